/* The heat scale is ordered: CIE L* only grows with the value (or only falls, if the theme's file declares this), in
 * every theme at every colour depth. */
#include "base/colour.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tui/terminal/paint.h"

#include <math.h>

static const enum paint_depth depths[] = {PAINT_DIRECT, PAINT_256, PAINT_16, PAINT_8};

/* The first sixteen colours of the Linux console and many other terminals. */
static const int32_t vga[16] = {0x000000, 0xaa0000, 0x00aa00, 0xaa5500, 0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa,
                                0x555555, 0xff5555, 0x55ff55, 0xffff55, 0x5555ff, 0xff55ff, 0x55ffff, 0xffffff};

static struct theme
load(const char *path, const char *name)
{
    struct theme t;
    struct err err = {0};
    if (!theme_load(&t, path, ".", &err))
        fail_msg("%s: %s (tests run in the repository's root)", name, err.text);
    return t;
}

static int32_t
as_xterm(enum paint_depth depth, int number)
{
    return paint_rgb(depth, number);
}

static int32_t
as_vga(enum paint_depth depth, int number)
{
    return depth <= PAINT_16 ? vga[number] : paint_rgb(depth, number);
}

static void
assert_ordered(const struct theme *t, enum paint_depth depth, int32_t (*shown)(enum paint_depth, int))
{
    int numbers[GRID_HEATS], different = 1;
    paint_scale(depth, t, numbers);
    for (int i = 0; i < GRID_HEATS; i++) {
        assert_at_least(numbers[i], 0);
        assert_less(numbers[i], (int)depth);
        if (i == 0 || numbers[i] == numbers[i - 1])
            continue;
        const double before = colour_lightness(shown(depth, numbers[i - 1])),
                     now = colour_lightness(shown(depth, numbers[i]));
        if (t->darker ? now >= before : now <= before)
            fail_msg("%s at %d colours: L* goes from %.2f to %.2f at level %d", t->name, (int)depth, before, now, i);
        different++;
    }
    const double whole =
        fabs(colour_lightness(shown(depth, numbers[GRID_HEATS - 1])) - colour_lightness(shown(depth, numbers[0])));
    assert_at_least(whole, 40); /* so many are visible as a scale */
    assert_at_least(different, depth == PAINT_DIRECT ? GRID_HEATS / 2 : depth == PAINT_256 ? 7 : 3);
}

TEST(lightness_is_cie_l)
{
    /* computed by hand from L* = 116 f(Y) − 16 and the usual sRGB tables */
    assert_near(colour_lightness(0x000000), 0, 0.01);
    assert_near(colour_lightness(0xffffff), 100, 0.01);
    assert_near(colour_lightness(0x777777), 50.03, 0.05);
    assert_near(colour_lightness(0xff0000), 53.24, 0.05);
    assert_near(colour_lightness(0x00ff00), 87.73, 0.05);
    assert_near(colour_lightness(0x0000ff), 32.30, 0.05);
    assert_near(colour_lightness(0x050505), 1.37, 0.05); /* the linear part */
}

TEST(lightness_is_ordered_in_every_theme_at_every_depth)
{
    char names[16][32];
    const int n = theme_list(names, 16, ".");
    assert_at_least(n, 4);
    for (int i = 0; i < n; i++) {
        const struct theme t = load(names[i], names[i]);
        if (t.stops == 0) {
            assert_string_equal(names[i], "mono");
            continue;
        }
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
            assert_ordered(&t, depths[d], as_xterm);
            assert_ordered(&t, depths[d], as_vga);
        }
    }
}

TEST(bundled_themes_declare_the_direction_and_steps_of_their_scale)
{
    static const struct {
        const char *name;
        bool darker;
    } themes[] = {{"dark", false}, {"light", true}, {"cividis", false}};
    for (size_t i = 0; i < sizeof themes / sizeof themes[0]; i++) {
        const struct theme t = load(themes[i].name, themes[i].name);
        assert_int_equal(t.darker, themes[i].darker);
        for (int k = 0; k < THEME_PALETTES; k++)
            assert_at_least(t.steps[k].n, 3);
    }
}

/* Without colours heat is the height of a glyph, and the weight of the text. */
TEST(heights_grow_where_there_are_no_colours)
{
    struct theme t;
    int numbers[GRID_HEATS];
    theme_mono(&t);
    paint_scale(PAINT_NONE, &t, numbers);
    for (int i = 0; i < GRID_HEATS; i++) {
        assert_int_equal(numbers[i], -1);
        if (i > 0)
            assert_at_most(
                strcmp(canvas_level((double)(i - 1) / (GRID_HEATS - 1)), canvas_level((double)i / (GRID_HEATS - 1))),
                0); /* ▁ to █, in the order of their codes */
    }
    assert_string_not_equal(canvas_level(0), canvas_level(1));
}

/* A user's theme without chosen steps has the nearest colours, which never go back. */
TEST(any_scale_is_ordered_without_chosen_steps)
{
    srand((unsigned)seed_or(7));
    for (int n = 0; n < 500; n++) {
        struct theme t = {.stops = 2 + rand() % 6};
        for (int i = 0; i < t.stops; i++)
            t.heat[i] = rand() & 0xffffff;
        t.darker = colour_lightness(t.heat[t.stops - 1]) < colour_lightness(t.heat[0]);
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
            int numbers[GRID_HEATS];
            paint_scale(depths[d], &t, numbers);
            for (int i = 1; i < GRID_HEATS; i++) {
                const double before = colour_lightness(paint_rgb(depths[d], numbers[i - 1])),
                             now = colour_lightness(paint_rgb(depths[d], numbers[i]));
                assert_true(t.darker ? now <= before : now >= before);
            }
        }
    }
}

TEST(a_theme_that_contradicts_itself_is_refused)
{
    static const struct {
        const char *json, *says;
    } broken[] = {
        {"{\"roles\": {}, \"heat\": [\"#000000\", \"#ffffff\"], \"more\": \"darker\"}", "becomes lighter"},
        {"{\"roles\": {}, \"heat\": [\"#ffffff\", \"#000000\"], \"more\": \"lighter\"}", "becomes darker"},
        {"{\"roles\": {}, \"heat\": [\"#ffffff\", \"#000000\"], \"more\": 3}", "\"lighter\" or \"darker\""},
        {"{\"roles\": {}, \"heat-256\": [1]}", "2 to"},
        {"{\"roles\": {}, \"heat-256\": 7}", "2 to"},
        {"{\"roles\": {}, \"heat-256\": [0, 256]}", "step 2"},
        {"{\"roles\": {}, \"heat-16\": [0, 16]}", "0 to 15"},
        {"{\"roles\": {}, \"heat-8\": [0, 2.5]}", "step 2"},
        {"{\"roles\": {}, \"heat-8\": [\"0\", 2]}", "step 1"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct theme t;
        struct err err = {0};
        assert_false(theme_parse(&t, broken[i].json, strlen(broken[i].json), "mine", &err));
        if (strstr(err.text, broken[i].says) == NULL)
            fail_msg("theme %zu: \"%s\" does not say %s", i, err.text, broken[i].says);
    }
}
