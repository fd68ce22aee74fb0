#include "tui/figures/style.h"

#include <math.h>

#include "tui/terminal/theme.h"

const struct line_style line_styles[LINE_STYLES] = {
    {0x12355b, 0}, {0xd9772b, 1}, {0x3f7d7a, 2}, {0x9c2f4f, 3}, {0xa0a0a0, 4}, {0xb9a44c, 5},
};

int32_t
ramp(double fraction)
{
    static const int32_t stops[] = {0xffffff, 0xdfeaf4, 0xb3cfe5, 0x78abd0, 0x3f7fb5, 0x1c548c, 0x08305e};
    const int last = (int)(sizeof stops / sizeof *stops) - 1;
    if (!(fraction > 0))
        return stops[0];
    if (fraction >= 1)
        return stops[last];
    const double at = fraction * last;
    const int i = (int)at;
    int32_t rgb = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const int a = stops[i] >> shift & 0xff, b = stops[i + 1] >> shift & 0xff;
        rgb |= (int32_t)lround(a + (at - i) * (b - a)) << shift;
    }
    return rgb;
}

int32_t
ink_on(int32_t background)
{
    return theme_lightness(background) > 58 ? INK : PAPER;
}

void
mark_draw(struct drawing *d, int mark, double x, double y, double r, int32_t colour)
{
    const struct pen pen = FILL(colour), edge = STROKE(colour, .line = 0.7);
    switch (mark % MARKS) {
    case 0: drawing_circle(d, x, y, r, pen); break;
    case 1: drawing_rect(d, x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r, pen); break;
    case 2:
        drawing_path(d, (struct point[]){{x, y - 1.15 * r}, {x + r, y + 0.75 * r}, {x - r, y + 0.75 * r}}, 3, true,
                     pen);
        break;
    case 3:
        drawing_path(d, (struct point[]){{x, y - 1.2 * r}, {x + 1.2 * r, y}, {x, y + 1.2 * r}, {x - 1.2 * r, y}}, 4,
                     true, pen);
        break;
    case 4: drawing_circle(d, x, y, 0.85 * r, edge); break;
    default: drawing_line(d, x - r, y - r, x + r, y + r, edge); drawing_line(d, x - r, y + r, x + r, y - r, edge);
    }
}
