/* Text for the terminal: escaping, measuring, cutting and drawing. The seed of the random bytes is printed. */
#include "base/rng.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tui/terminal/canvas.h"

#include <utf8proc.h>

static uint64_t seed;

static uint32_t
draw(void)
{
    return (uint32_t)(splitmix64(&seed) >> 32);
}

/* Makes bytes that are likely to cause errors: escapes, lead bytes, bidi controls, marks, wide letters. */
static size_t
nasty(char *out, size_t size)
{
    static const char *const pieces[] = {"\033[2J",
                                         "\033]0;x\007",
                                         "\23331m",
                                         "\xe2\x80\xae",
                                         "\xf3\xa0\x81\x81",
                                         "\xe6\x97\xa5",
                                         "a\xcc\x81\xcc\x82",
                                         "\xcc\x81",
                                         "\xc3",
                                         "\xf0\x9f\x98",
                                         "\n",
                                         "\t",
                                         "\xf0\x9f\x98\x80",
                                         "\xef\xbb\xbf",
                                         "\\x41",
                                         "plain",
                                         "\xed\xa0\x80",
                                         "\xf4\x90\x80\x80"};
    size_t n = 0;
    while (n + 8 < size) {
        if (draw() % 3 == 0) {
            out[n++] = (char)draw();
            continue;
        }
        const char *piece = pieces[draw() % (sizeof pieces / sizeof pieces[0])];
        memcpy(out + n, piece, strlen(piece));
        n += strlen(piece);
        if (draw() % 16 == 0)
            break;
    }
    return n;
}

static void
assert_harmless(const char *text)
{
    for (const char *at = text; *at != '\0';) {
        int32_t code;
        const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &code);
        assert_greater(n, 0);
        assert_true(printable_code(code));
        assert_at_least(code, 0x20);
        assert_int_not_equal(code, 0x7f);
        assert_false(code >= 0x80 && code < 0xa0);
        at += n;
    }
}

static void
assert_safe(const char *bytes, size_t n, const char *expected)
{
    char out[256];
    assert_int_equal(printable_text(bytes, n, out, sizeof out), strlen(expected));
    assert_string_equal(out, expected);
}

TEST(control_characters_are_shown_as_bytes)
{
    assert_safe("king", 4, "king");
    assert_safe("\033[31m", 5, "\\x1b[31m");
    assert_safe("a\0b", 3, "a\\x00b");
    assert_safe("\x7f", 1, "\\x7f");
    assert_safe("\xc2\x9b", 2, "\\xc2\\x9b");          /* C1: CSI */
    assert_safe("\xe2\x80\xae", 3, "\\xe2\\x80\\xae"); /* right-to-left override */
    assert_safe("\xe2\x81\xa6", 3, "\\xe2\\x81\\xa6"); /* isolate */
    assert_safe("\xef\xbb\xbf", 3, "\\xef\\xbb\\xbf"); /* byte order mark */
    assert_safe("\xe2\x80\xa8", 3, "\\xe2\\x80\\xa8"); /* line separator */
    assert_safe("\n", 1, "⏎");
    assert_safe("\t", 1, "→");
}

TEST(broken_utf8_is_shown_byte_by_byte)
{
    assert_safe("\xc3", 1, "\\xc3");
    assert_safe("\xe6\x97", 2, "\\xe6\\x97");
    assert_safe("\xff\xfe", 2, "\\xff\\xfe");
    assert_safe("\xc0\xaf", 2, "\\xc0\\xaf");                   /* overlong '/' */
    assert_safe("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          /* surrogate */
    assert_safe("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
    assert_safe("\xe6\x97\xa5é", 5, "日é");
}

TEST(random_bytes_become_harmless_text)
{
    for (int round = 0; round < 20000; round++) {
        char bytes[64], out[4 * sizeof bytes + 1], small[8];
        const size_t n = nasty(bytes, sizeof bytes);
        const size_t length = printable_text(bytes, n, out, sizeof out);
        assert_int_equal(length, strlen(out));
        assert_harmless(out);
        const size_t cut = printable_text(bytes, n, small, sizeof small);
        assert_less(cut, sizeof small);
        assert_memory_equal(small, out, cut); /* no character may be cut in half */
        assert_harmless(small);
    }
}

TEST(halves_of_characters_are_counted)
{
    assert_int_equal(text_incomplete("abc", 3), 0);
    assert_int_equal(text_incomplete("a\xc3", 2), 1);
    assert_int_equal(text_incomplete("\xe6\x97", 2), 2);
    assert_int_equal(text_incomplete("\xf0\x9f\x98", 3), 3);
    assert_int_equal(text_incomplete("\xe6\x97\xa5", 3), 0);
    assert_int_equal(text_incomplete("\x97\xa5", 2), 0); /* no further bytes could complete it */
    assert_int_equal(text_incomplete("\xff", 1), 0);
    assert_int_equal(text_incomplete("", 0), 0);
}

TEST(widths_are_those_of_a_terminal)
{
    int columns;
    assert_int_equal(text_width("king"), 4);
    assert_int_equal(text_width("日本"), 4);
    assert_int_equal(text_width("e\xcc\x81"), 1); /* a letter and its accent take one cell */
    assert_int_equal(text_cluster("e\xcc\x81x", &columns), 3);
    assert_int_equal(columns, 1);
    assert_int_equal(text_cluster("日", &columns), 3);
    assert_int_equal(columns, 2);
    assert_int_equal(text_cluster("\u1112\u1161\u11ab\u1100", &columns), 9);
    assert_int_equal(columns, 2);
    assert_int_equal(text_cluster("\u1161", &columns), 3);
    assert_int_equal(columns, 1);
    assert_int_equal(text_width("\u1112\u1161\u11ab\u1100\u1173\u11af"), 4);
    assert_int_equal(text_cluster("", &columns), 0);
    assert_int_equal(text_fit("日本", 3, &columns), 3); /* half a character does not fit */
    assert_int_equal(columns, 2);
    assert_int_equal(text_before("aé日", 6), 3);
    assert_int_equal(text_before("aé日", 0), 0);
}

TEST(walking_over_any_bytes_ends)
{
    for (int round = 0; round < 20000; round++) {
        char bytes[64];
        const size_t n = nasty(bytes, sizeof bytes - 1);
        bytes[n] = '\0';
        const size_t length = strlen(bytes);
        size_t at = 0, used;
        int columns = 0, total = 0;
        while ((used = text_cluster(bytes + at, &columns)) != 0) {
            assert_between(columns, 1, 2);
            assert_at_most(at + used, length);
            assert_int_equal(text_before(bytes, at + used), at);
            at += used;
            total += columns;
        }
        assert_int_equal(at, length);
        assert_int_equal(total, text_width(bytes));
    }
}

/* ---- drawing ---- */

static void
assert_row(const struct grid *g, int y, const char *expected)
{
    char row[512];
    grid_row(g, y, row, sizeof row);
    assert_string_equal(row, expected);
}

TEST(a_canvas_draws_nothing_outside_itself)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 5, 20));
    const struct canvas whole = {.rows = 5, .cols = 20, .grid = &g};
    const struct canvas c = canvas_inside(&whole, 1, 4, 2, 5);
    for (int y = -2; y < 8; y++)
        for (int x = -10; x < 30; x += 3) {
            canvas_text(&c, y, x, ROLE_TEXT, "日本語xyz");
            canvas_heat(&c, y, x, 9, 0.5F, MARK_SPURIOUS, "king");
            canvas_slider(&c, y, x, 12, 0.3, 0.5, ROLE_KNOB);
            canvas_bar(&c, y, x, 40, 0.7, ROLE_KNOB);
        }
    canvas_plot(&c, (const float[]){0, 9, -9, 4}, 4, 0, 1, ROLE_SERIES_1);
    canvas_box(&c, "a title that is too long", "a note", true);
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 20; x++)
            if (y < 1 || y > 2 || x < 4 || x > 8)
                assert_string_equal(grid_at(&g, y, x)->text, " ");
    const struct canvas beyond = canvas_inside(&c, 9, 9, 5, 5), before = canvas_inside(&c, -3, -3, 4, 4);
    assert_true(beyond.rows == 0 || beyond.cols == 0);
    assert_int_equal(before.y, c.y);
    assert_int_equal(before.x, c.x);
    assert_int_equal(before.rows, 1);
    assert_int_equal(before.cols, 1);
    grid_close(&g);
}

TEST(decomposed_hangul_is_drawn_as_syllables)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 2, 8));
    const struct canvas c = {.rows = 2, .cols = 8, .grid = &g};
    canvas_text(&c, 0, 0, ROLE_TEXT, "\u1112\u1161\u11ab\u1100\u1173\u11af|\u1100\u1161");
    assert_row(&g, 0, "한글|가");
    canvas_text(&c, 1, 0, ROLE_TEXT, "\u1161x"); /* a vowel without a consonant */
    assert_row(&g, 1, "◌\u1161x");
    grid_close(&g);
}

TEST(words_that_are_cut_end_in_an_ellipsis)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 4, 8));
    const struct canvas c = {.rows = 4, .cols = 8, .grid = &g};
    assert_int_equal(canvas_text(&c, 0, 2, ROLE_TEXT, "kitchens"), 6);
    assert_row(&g, 0, "  kitch…");
    canvas_text(&c, 1, 2, ROLE_TEXT, "barn      "); /* no ellipsis if only blanks are cut */
    assert_row(&g, 1, "  barn");
    canvas_text(&c, 2, 0, ROLE_TEXT, "──────────"); /* or part of a line */
    assert_row(&g, 2, "────────");
    canvas_print(&c, 3, 0, ROLE_TEXT, "%s", "кухня и сад");
    assert_row(&g, 3, "кухня и…");
    grid_close(&g);
}

TEST(half_overwritten_wide_characters_leave_no_half)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 1, 6));
    const struct canvas c = {.rows = 1, .cols = 6, .grid = &g};
    canvas_text(&c, 0, 0, ROLE_TEXT, "日本語");
    assert_row(&g, 0, "日本語");
    canvas_text(&c, 0, 1, ROLE_TEXT, "x");
    assert_row(&g, 0, " x本語");
    canvas_text(&c, 0, 3, ROLE_TEXT, "界");
    assert_row(&g, 0, " x 界");
    assert_int_equal(canvas_text(&c, 0, 5, ROLE_TEXT, "日"), 0); /* no room for both halves */
    grid_close(&g);
}

TEST(cells_hold_exactly_their_width)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 1, 20));
    const struct canvas c = {.rows = 1, .cols = 20, .grid = &g};
    canvas_heat(&c, 0, 0, 6, 0.5F, MARK_NONE, "daughters");
    canvas_heat(&c, 0, 6, 6, 0.5F, MARK_SPURIOUS, "man");
    canvas_heat(&c, 0, 12, 6, 0.5F, MARK_EXITED, "a");
    assert_row(&g, 0, "daugh…man  ▓a▒▒▒▒▒");
    canvas_heat(&c, 0, 0, 4, 0.5F, MARK_NONE, "日本語"); /* half a character does not fit into column 4 */
    assert_row(&g, 0, "日… h…man  ▓a▒▒▒▒▒");
    grid_close(&g);
}

TEST(heat_is_a_glyph_on_a_terminal_without_colours)
{
    struct grid g = {.utf8 = true, .mono = true};
    assert_true(grid_open(&g, 1, 20));
    const struct canvas c = {.rows = 1, .cols = 20, .grid = &g};
    canvas_heat(&c, 0, 0, 6, 0, MARK_NONE, "king");
    canvas_heat(&c, 0, 6, 6, 1, MARK_NONE, "daughters");
    assert_row(&g, 0, "king ▁daug…█");
    grid_close(&g);
}

TEST(text_is_ascii_on_a_terminal_without_utf8)
{
    struct grid g = {.utf8 = false};
    assert_true(grid_open(&g, 6, 40));
    const struct canvas c = {.rows = 6, .cols = 40, .grid = &g};
    canvas_box(&c, "τ", "▁█", true);
    canvas_slider(&c, 1, 1, 20, 0.3, 0.5, ROLE_KNOB);
    canvas_text(&c, 2, 1, ROLE_TEXT, "日本 é \xcc\x81 ⏎");
    canvas_plot(&(struct canvas){.y = 3, .x = 1, .rows = 2, .cols = 20, .grid = &g}, (const float[]){0, 1, 0}, 3, 0, 1,
                ROLE_SERIES_1);
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 40; x++) {
            const struct grid_cell *cell = grid_at(&g, y, x);
            assert_int_equal(strlen(cell->text), 1);
            assert_at_least(cell->text[0], ' ');
            assert_less(cell->text[0], 0x7f);
        }
    char row[200];
    grid_row(&g, 2, row, sizeof row);
    assert_contains(row, "???? ?? $");
    canvas_text(&c, 0, 0, ROLE_TEXT, "4.21 ±0.81 ≈ Δ β ε ₀ ␣ ┊ ▲▼ ◀▶ ◆◇ ★☆"); /* "?" replaces none of these */
    grid_row(&g, 0, row, sizeof row);
    assert_null(strchr(row, '?'));
    assert_contains(row, "4.21+-0.81 ");
    char text[] = "τ 4.21 ±0.81\n×2 – ±1 日";
    text_ascii(text);
    assert_string_equal(text, "t 4.21+-0.81\nx2 -+-1 ??");
    grid_close(&g);
}

/* As a last defence, a canvas escapes text that was not made safe before. */
TEST(a_canvas_lets_nothing_raw_through)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 1, 64));
    const struct canvas c = {.rows = 1, .cols = 64, .grid = &g};
    for (int round = 0; round < 5000; round++) {
        char bytes[64], row[64 * TEXT_CLUSTER + 1];
        bytes[nasty(bytes, sizeof bytes - 1)] = '\0';
        grid_clear(&g);
        const int used = canvas_text(&c, 0, 0, ROLE_TEXT, bytes);
        grid_row(&g, 0, row, sizeof row);
        assert_harmless(row);
        assert_at_most(used, 64);
        assert_at_most(text_width(row), 64);
    }
    grid_close(&g);
}

TEST(charts_join_their_points_and_break_at_gaps)
{
    struct grid g = {.utf8 = true};
    assert_true(grid_open(&g, 2, 4));
    const struct canvas c = {.rows = 2, .cols = 4, .grid = &g};
    const float rising[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    canvas_plot(&c, rising, 8, 0, 7, ROLE_SERIES_1);
    assert_row(&g, 0, "  ⡠⠊");
    assert_row(&g, 1, "⡠⠊");
    grid_clear(&g);
    const float gap[8] = {0, 0, 0, (float)__builtin_nan(""), (float)__builtin_nan(""), 0, 0, 0};
    canvas_plot(&c, gap, 8, 0, 7, ROLE_SERIES_1);
    assert_row(&g, 1, "⣀⡀⢀⣀");
    grid_close(&g);
}

TEST(text_wraps_at_blanks_and_breaks_only_words_longer_than_a_row)
{
    assert_int_equal(text_wrap("one two three", 7), 7);
    assert_int_equal(text_wrap("one two three", 6), 3);
    assert_int_equal(text_wrap("one two three", 40), 13);
    assert_int_equal(text_wrap("incomprehensible", 5), 5);
    assert_int_equal(text_wrap("日本 日本", 5), 6);
    assert_int_equal(text_wrap("日", 1), 3); /* the result is never 0, so that loops end */
    assert_int_equal(text_wrap("", 5), 0);
}

TEST_SEED(seed, 1);
