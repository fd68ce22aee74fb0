/* The theme's colours as a terminal's: nearest numbers of a palette, and scales that keep their order in it. */
#include "tui/terminal/paint.h"

/* xterm's first sixteen; other terminals differ a little */
static const int32_t base_colours[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x2a4fd6, 0xcd00cd,
                                         0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                         0x5c7cff, 0xff00ff, 0x00ffff, 0xffffff};

int32_t
paint_rgb(enum paint_depth depth, int number)
{
    if (number < 0)
        return THEME_NO_RGB;
    if (depth == PAINT_DIRECT)
        return number;
    if (number < 16)
        return base_colours[number];
    if (number < 232) { /* a 6×6×6 cube with these steps */
        static const int32_t step[6] = {0, 95, 135, 175, 215, 255};
        const int at = number - 16;
        return step[at / 36] << 16 | step[at / 6 % 6] << 8 | step[at % 6];
    }
    return (8 + 10 * (number - 232)) * 0x010101;
}

int
paint_nearest(enum paint_depth depth, int32_t rgb)
{
    if (rgb < 0 || depth == PAINT_NONE)
        return -1;
    if (depth == PAINT_DIRECT) /* 1 to 7 would be taken for the palette's colours */
        return rgb > 0 && rgb < 8 ? 0 : rgb;
    int best = -1;
    int64_t best_distance = INT64_MAX;
    /* The first sixteen are what the user made of them: with 256 colours the fixed ones are taken. */
    const int from = depth == PAINT_256 ? 16 : 0;
    for (int i = from; i < (int)depth; i++) {
        const int32_t there = paint_rgb(depth, i);
        int64_t distance = 0;
        static const int64_t weight[3] = {2, 4, 3}; /* of blue, green, red to the eye, roughly */
        for (int k = 0; k < 3; k++) {
            const int64_t d = ((rgb >> (8 * k)) & 0xff) - ((there >> (8 * k)) & 0xff);
            distance += weight[k] * d * d;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = i;
        }
    }
    return best;
}

void
paint_scale(enum paint_depth depth, const struct theme *t, int numbers[GRID_HEATS])
{
    const int palette = depth == PAINT_256 ? THEME_256 : depth == PAINT_16 ? THEME_16 : depth == PAINT_8 ? THEME_8 : -1;
    const int steps = palette >= 0 && t->stops > 0 ? t->steps[palette].n : 0;
    double reached = 0;
    for (int i = 0; i < GRID_HEATS; i++) {
        if (steps > 0) {
            numbers[i] = t->steps[palette].number[i * steps / GRID_HEATS];
            continue;
        }
        /* Nearest colours go to and fro in lightness; one that would turn round is passed over. */
        const int nearest = paint_nearest(depth, theme_heat(t, (float)i / (GRID_HEATS - 1)));
        const double lightness = theme_lightness(paint_rgb(depth, nearest < 0 ? 0 : nearest));
        const bool turns = i > 0 && (t->darker ? lightness > reached : lightness < reached);
        numbers[i] = turns ? numbers[i - 1] : nearest;
        reached = turns ? reached : lightness;
    }
}
