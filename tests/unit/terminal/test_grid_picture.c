/* Pictures saved with their colours: reading a saved picture returns the same picture. */
#include "tests/rigs/test.h"
#include "tui/terminal/canvas.h"
#include "tui/terminal/theme.h"

#define ROWS 3
#define COLS 12

/* "a<&" in the text's colours, a wide character, a cell of most heat, one struck through, one under the cursor. */
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
written(bool (*write)(const struct grid *, const struct theme *, FILE *), const struct grid *g,
        const struct theme *theme)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    assert_true(write(g, theme, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

struct terminal_cell {
    char text[8];
    int fg, bg; /* -1: the terminal's */
    bool bold, strike, reverse;
};

static void
take_codes(struct terminal_cell *pen, char *codes)
{
    int all[16], n = 0;
    for (char *save = NULL, *word = strtok_r(codes, ";", &save); word != NULL && n < 16;
         word = strtok_r(NULL, ";", &save))
        all[n++] = atoi(word);
    for (int i = 0; i < n; i++) {
        if (all[i] == 0)
            *pen = (struct terminal_cell){.fg = -1, .bg = -1};
        else if ((all[i] == 38 || all[i] == 48) && i + 4 < n && all[i + 1] == 2) {
            *(all[i] == 38 ? &pen->fg : &pen->bg) = all[i + 2] << 16 | all[i + 3] << 8 | all[i + 4];
            i += 4;
        }
        pen->bold = pen->bold || all[i] == 1;
        pen->strike = pen->strike || all[i] == 9;
        pen->reverse = pen->reverse || all[i] == 7;
    }
}

/* A terminal that knows colours and a wide character. */
static void
play(const char *text, struct terminal_cell screen[ROWS][COLS])
{
    struct terminal_cell pen = {.fg = -1, .bg = -1};
    int y = 0, x = 0;
    while (*text != '\0') {
        if (*text == '\033') {
            char codes[64];
            const size_t n = strcspn(text + 2, "m");
            assert_true(text[1] == '[' && n < sizeof codes);
            snprintf(codes, sizeof codes, "%.*s", (int)n, text + 2);
            take_codes(&pen, codes);
            text += n + 3;
        } else if (*text == '\n') {
            assert_int_equal(x, COLS);
            y++;
            x = 0;
            text++;
        } else {
            const int bytes = (unsigned char)*text < 0x80 ? 1 : 3;
            assert_true(y < ROWS && x < COLS);
            screen[y][x] = pen;
            memcpy(screen[y][x].text, text, (size_t)bytes);
            x += bytes == 3 ? 2 : 1;
            text += bytes;
        }
    }
    assert_int_equal(y, ROWS);
}

TEST(a_terminal_shows_the_saved_screen)
{
    struct grid g;
    struct theme theme;
    struct terminal_cell screen[ROWS][COLS] = {0};
    assert_true(theme_builtin(&theme, NULL));
    draw(&g);
    char *text = written(grid_write_ansi, &g, &theme);
    play(text, screen);
    assert_string_equal(screen[0][1].text, "<");
    assert_int_equal(screen[0][1].fg, theme.role[ROLE_TEXT].fg);
    assert_int_equal(screen[0][1].bg, theme.role[ROLE_TEXT].bg);
    assert_string_equal(screen[0][4].text, "大");
    assert_int_equal(screen[0][4].fg, theme.role[ROLE_ERROR].fg);
    assert_int_equal(screen[1][0].bg, theme.heat[theme.stops - 1]);
    assert_int_equal(screen[1][0].fg, theme_contrast(theme.heat[theme.stops - 1]));
    assert_true(screen[1][1].strike && !screen[1][0].strike && !screen[1][3].strike);
    assert_int_equal(screen[1][2].fg, theme.role[ROLE_CURSOR].fg);
    assert_int_equal(screen[1][2].reverse, (theme.role[ROLE_CURSOR].attributes & THEME_REVERSE) != 0);
    free(text);
    grid_close(&g);
}

TEST(an_svg_has_texts_and_grounds)
{
    struct grid g;
    struct theme theme;
    char heat[32], paper[64];
    assert_true(theme_builtin(&theme, NULL));
    draw(&g);
    char *text = written(grid_write_svg, &g, &theme);
    snprintf(heat, sizeof heat, "fill=\"#%06x\"/>", (unsigned)theme.heat[theme.stops - 1]);
    snprintf(paper, sizeof paper, "height=\"100%%\" fill=\"#%06x\"", (unsigned)theme.role[ROLE_TEXT].bg);
    assert_non_null(strstr(text, ">a&lt;&amp;"));
    assert_non_null(strstr(text, ">大<"));
    assert_non_null(strstr(text, heat));
    assert_non_null(strstr(text, paper));
    assert_non_null(strstr(text, "line-through"));
    assert_true(strncmp(text, "<svg ", 5) == 0 && strcmp(text + strlen(text) - 7, "</svg>\n") == 0);
    free(text);
    theme_mono(&theme);
    text = written(grid_write_svg, &g, &theme);
    assert_non_null(strstr(text, "height=\"100%\" fill=\"#ffffff\"")); /* no colours: paper and ink */
    free(text);
    grid_close(&g);
}
