/* Screens saved as pictures with their colours. */
#include "tests/rigs/test.h"
#include "tui/terminal/canvas.h"
#include "tui/terminal/theme.h"

#define ROWS 3
#define COLS 12

/* "a<&" in the text's colours, a wide character, a cell of highest heat, one struck through, one under the cursor. */
static void
draw(struct grid *g)
{
    memset(g, 0, sizeof *g);
    g->utf8 = true;
    assert_true(grid_open(g, ROWS, COLS));
    const struct grid_cell plain = {.role = ROLE_TEXT, .heat = GRID_NO_HEAT};
    grid_put(g, 0, 0, "a", 1, 1, plain);
    grid_put(g, 0, 1, "<", 1, 1, plain);
    grid_put(g, 0, 2, "&", 1, 1, plain);
    grid_put(g, 0, 4, "大", 3, 2, (struct grid_cell){.role = ROLE_ERROR, .heat = GRID_NO_HEAT});
    grid_put(g, 1, 0, "h", 1, 1, (struct grid_cell){.role = ROLE_TEXT, .heat = GRID_HEATS - 1});
    grid_put(g, 1, 1, "s", 1, 1, (struct grid_cell){.role = ROLE_TEXT, .heat = GRID_NO_HEAT, .marks = MARK_STRUCK});
    grid_put(g, 1, 2, "c", 1, 1, (struct grid_cell){.role = ROLE_TEXT, .heat = 3, .marks = MARK_CURSOR});
}

static char *
written(const struct grid *g, const struct theme *theme)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    assert_true(grid_write_svg(g, theme, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

TEST(an_svg_has_texts_and_grounds)
{
    struct grid g;
    struct theme theme;
    char heat[32], paper[64];
    assert_true(theme_builtin(&theme, NULL));
    draw(&g);
    char *text = written(&g, &theme);
    snprintf(heat, sizeof heat, "fill=\"#%06x\"/>", (unsigned)theme.heat[theme.stops - 1]);
    snprintf(paper, sizeof paper, "height=\"100%%\" fill=\"#%06x\"", (unsigned)theme.role[ROLE_TEXT].bg);
    assert_contains(text, ">a&lt;&amp;");
    assert_contains(text, ">大<");
    assert_contains(text, heat);
    assert_contains(text, paper);
    assert_contains(text, "line-through");
    assert_int_equal(strncmp(text, "<svg ", 5), 0);
    assert_string_equal(text + strlen(text) - 7, "</svg>\n");
    free(text);
    theme_mono(&theme);
    text = written(&g, &theme);
    assert_contains(text, "height=\"100%\" fill=\"#ffffff\""); /* no colours: paper and ink */
    free(text);
    grid_close(&g);
}
