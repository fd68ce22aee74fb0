/* Themes: the bundled ones are readable, invalid ones are refused in one line, colours are mapped to a terminal's. */
#include "base/colour.h"
#include "tests/rigs/test.h"
#include "tui/terminal/paint.h"
#include "tui/terminal/theme.h"

#include <unistd.h>

static const char *const coloured[] = {"dark", "light", "cividis"};

static struct theme
load(const char *name)
{
    struct theme t;
    struct err err = {0};
    char path[64];
    snprintf(path, sizeof path, "themes/%s.json", name);
    if (!theme_load(&t, path, NULL, &err))
        fail_msg("%s (tests run in the repository's root)", err.text);
    return t;
}

TEST(bundled_themes_are_readable)
{
    for (size_t i = 0; i < sizeof coloured / sizeof coloured[0]; i++) {
        const struct theme t = load(coloured[i]);
        assert_string_equal(t.name, coloured[i]);
        for (int role = 0; role < ROLES; role++) {
            /* Lines and greyed-out items need less contrast than text (WCAG 2: 4.5 for text, 3 for the rest). */
            const double least = role == ROLE_BORDER ? 2.2 : role == ROLE_EXITED ? 3 : 4.4;
            const double ratio = colour_contrast_ratio(t.role[role].fg, t.role[role].bg);
            if (ratio < least)
                fail_msg("%s: \"%s\" has a contrast of %.2f", coloured[i], role_forms[role].name, ratio);
        }
    }
}

TEST(text_on_heat_is_readable_at_every_level)
{
    for (size_t i = 0; i < sizeof coloured / sizeof coloured[0]; i++) {
        const struct theme t = load(coloured[i]);
        for (int level = 0; level < GRID_HEATS; level++) {
            const int32_t back = theme_heat(&t, (float)level / (GRID_HEATS - 1));
            assert_at_least(colour_contrast_ratio(back, colour_contrast(back)), 4.5);
        }
    }
}

static double
brightness(int32_t rgb)
{
    return colour_contrast_ratio(rgb, 0x000000);
}

TEST(heat_scales_go_steadily_from_one_end_to_the_other)
{
    for (size_t i = 0; i < sizeof coloured / sizeof coloured[0]; i++) {
        const struct theme t = load(coloured[i]);
        const bool up = brightness(theme_heat(&t, 1)) > brightness(theme_heat(&t, 0));
        for (int level = 1; level < GRID_HEATS; level++) {
            const double before = brightness(theme_heat(&t, (float)(level - 1) / (GRID_HEATS - 1)));
            const double now = brightness(theme_heat(&t, (float)level / (GRID_HEATS - 1)));
            if (up ? now < before : now > before)
                fail_msg("%s: heat turns round at level %d", coloured[i], level);
        }
        assert_int_equal(theme_heat(&t, 0), t.heat[0]);
        assert_int_equal(theme_heat(&t, 1), t.heat[t.stops - 1]);
        assert_int_equal(theme_heat(&t, -3), t.heat[0]);
    }
}

TEST(the_mono_theme_needs_no_file)
{
    struct theme t;
    theme_mono(&t);
    assert_int_equal(t.stops, 0);
    for (int role = 0; role < ROLES; role++) {
        assert_int_equal(t.role[role].fg, THEME_NO_RGB);
        assert_int_equal(t.role[role].bg, THEME_NO_RGB);
    }
    assert_int_equal(theme_heat(&t, 0.5F), THEME_NO_RGB);
}

/* Without colours, attributes distinguish the fates. */
TEST(the_mono_theme_distinguishes_fates)
{
    struct theme t;
    theme_mono(&t);
    static const enum role fates[] = {ROLE_ACCEPTED, ROLE_REJECTED, ROLE_DRAFT, ROLE_CORRECTION, ROLE_CURSOR};
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(t.role[fates[i]].attributes, t.role[fates[k]].attributes);
}

TEST(no_line_covers_a_glyph)
{
    struct theme theme;
    struct grid_cell c = {.role = ROLE_DRAFT, .heat = -1, .text = "a"};
    assert_true(theme_builtin(&theme, NULL));
    assert_true(cell_style(&theme, &c).attributes & THEME_UNDERLINE);
    strcpy(c.text, "_");
    assert_false(cell_style(&theme, &c).attributes & THEME_UNDERLINE);
    c = (struct grid_cell){.role = ROLE_TEXT, .heat = -1, .marks = MARK_UNDERLINED, .text = "␣"};
    assert_false(cell_style(&theme, &c).attributes & THEME_UNDERLINE);
    c = (struct grid_cell){.role = ROLE_REJECTED, .heat = -1, .marks = MARK_STRUCK, .text = "_"};
    assert_true(cell_style(&theme, &c).attributes & THEME_STRIKE);
    strcpy(c.text, "-");
    assert_false(cell_style(&theme, &c).attributes & THEME_STRIKE);
}

TEST(broken_themes_are_refused_in_one_line)
{
    static const struct {
        const char *json, *says;
    } broken[] = {
        {"", "not valid JSON"},
        {"{\n\"roles\": {\n\"text\": }}", "line 3"},
        {"{\"roles\": {}}\n\n, \"heat\": []}", "line 3"},
        {"[]", "\"roles\""},
        {"{\"roles\": 3}", "\"roles\""},
        {"{\"roles\": {\"txet\": {}}}", "txet"},
        {"{\"roles\": {\"text\": \"red\"}}", "must be an object"},
        {"{\"roles\": {\"text\": {\"fg\": \"red\"}}}", "colour"},
        {"{\"roles\": {\"text\": {\"fg\": \"#12345\"}}}", "colour"},
        {"{\"roles\": {\"text\": {\"fg\": \"#12345g\"}}}", "colour"},
        {"{\"roles\": {\"text\": {\"bold\": 1}}}", "true or false"},
        {"{\"roles\": {\"text\": {\"blink\": true}}}", "blink"},
        {"{\"roles\": {}, \"heat\": [\"#000000\"]}", "2 to"},
        {"{\"roles\": {}, \"heat\": [\"#000000\", 7]}", "stop 2"},
        {"{\"roles\": {}, \"heat\": [\"#000000\", \"default\"]}", "stop 2"},
        {"{\"roles\": {\"\\u001b[31m\": {}}}", "no role"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct theme t = {.name = "untouched"};
        struct err err = {0};
        assert_false(theme_parse(&t, broken[i].json, strlen(broken[i].json), "mine", &err));
        assert_int_equal(err.kind, ERR_USAGE);
        if (strstr(err.text, broken[i].says) == NULL)
            fail_msg("theme %zu: \"%s\" does not say %s", i, err.text, broken[i].says);
        assert_null(strpbrk(err.text, "\n\033"));
        assert_string_equal(t.name, "untouched");
    }
}

TEST(colours_that_a_theme_omits_are_those_of_text)
{
    struct theme t;
    static const char json[] =
        "{\"roles\": {\"dim\": {\"dim\": true}, \"text\": {\"fg\": \"#102030\", \"bg\": \"#ffffff\"}}}";
    assert_true(theme_parse(&t, json, strlen(json), "mine", NULL));
    assert_int_equal(t.role[ROLE_DIM].fg, 0x102030);
    assert_int_equal(t.role[ROLE_DIM].attributes, THEME_DIM);
    assert_int_equal(t.role[ROLE_CURSOR].bg, 0xffffff);
    assert_int_equal(t.stops, 0);
}

TEST(themes_are_found_by_name)
{
    char root[] = "/tmp/specscope-theme-XXXXXX", path[128];
    assert_non_null(mkdtemp(root));
    setenv("XDG_CONFIG_HOME", root, 1);
    struct theme t;
    struct err err = {0};
    char names[16][32];
    assert_int_equal(theme_list(names, 16, "."), 4);
    assert_string_equal(names[0], "cividis");
    assert_string_equal(names[3], "mono");
    assert_ok(theme_load(&t, "light", ".", &err), err);
    assert_string_equal(t.name, "light");
    assert_ok(theme_load(&t, "dark", NULL, &err), err); /* a bundled theme needs no folder */
    assert_ok(theme_load(&t, "mono", "/nowhere", &err), err);
    assert_false(theme_load(&t, "none-such", ".", &err));
    assert_contains(err.text, "none-such");
    assert_false(theme_load(&t, "./themes", ".", &err)); /* a folder */
    snprintf(path, sizeof path, "%s/missing.json", root);
    assert_false(theme_load(&t, path, ".", &err));
    unsetenv("XDG_CONFIG_HOME");
    rmdir(root);
}

TEST(the_default_theme_is_compiled_in)
{
    struct theme t;
    const struct theme file = load(THEME_DEFAULT);
    assert_true(theme_builtin(&t, NULL));
    if (t.stops == 0)
        skip(); /* built without the Makefile's rule for embedded themes */
    assert_int_equal(t.stops, file.stops);
    for (int role = 0; role < ROLES; role++) {
        assert_int_equal(t.role[role].fg, file.role[role].fg);
        assert_int_equal(t.role[role].bg, file.role[role].bg);
        assert_int_equal(t.role[role].attributes, file.role[role].attributes);
    }
}

TEST(colours_become_the_nearest_of_a_palette)
{
    assert_int_equal(paint_nearest(PAINT_256, 0xff0000), 196);
    assert_int_equal(paint_nearest(PAINT_256, 0x808080), 244);
    assert_int_equal(paint_nearest(PAINT_8, 0x000000), 0);
    assert_int_equal(paint_nearest(PAINT_8, 0xffffff), 7);
    assert_int_equal(paint_nearest(PAINT_16, 0xffffff), 15);
    assert_int_equal(paint_nearest(PAINT_DIRECT, 0x123456), 0x123456);
    assert_int_equal(paint_nearest(PAINT_NONE, 0x123456), -1);
    assert_int_equal(paint_nearest(PAINT_256, THEME_NO_RGB), -1);
    for (int i = 16; i < 256; i++) /* the colour cube also contains some greys */
        assert_int_equal(paint_rgb(PAINT_256, paint_nearest(PAINT_256, paint_rgb(PAINT_256, i))),
                         paint_rgb(PAINT_256, i));
}
