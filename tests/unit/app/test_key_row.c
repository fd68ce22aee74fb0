/* The row of key hints: the items that fit, and the key that a click on an item presses. */
#include "tests/rigs/test.h"
#include "tui/app/key_row.h"

static struct key_row
row(void)
{
    struct key_row row = {.n = 0};
    key_row_pairs(&row, 0, "Space pause  ? help");
    row.parts = true;
    key_row_pairs(&row, 2, "← → turn  <> speed");
    row.parts = true;
    key_row_pairs(&row, 1, ": command");
    return row;
}

static const char *
clicked(const struct clicks *clicks, int x)
{
    const char *line = clicks_find(clicks, 3, x);
    return line == NULL ? "" : line;
}

TEST(a_key_has_the_meaning_of_the_lower_rank)
{
    for (int first = 0; first < 2; first++) {
        struct key_row row = {.n = 0};
        key_row_pairs(&row, first == 0 ? 3 : 6, first == 0 ? "b break-even" : "b baseline");
        key_row_pairs(&row, first == 0 ? 6 : 3, first == 0 ? "b baseline" : "b break-even");
        assert_int_equal(row.n, 1);
        assert_string_equal(row.item[0].what, "break-even");
    }
}

TEST(messages_are_shown_whole_at_any_width)
{
    const char *const words[] = {"pause", "help", "turn", "speed", "command"};
    const struct key_row all = row();
    for (int cols = 10; cols < 70; cols++) {
        struct grid g = {.utf8 = true};
        char text[400];
        assert_true(grid_open(&g, 1, cols));
        key_row_draw(&all, &(struct canvas){.rows = 1, .cols = cols, .grid = &g}, NULL);
        grid_row(&g, 0, text, sizeof text);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            for (size_t n = 3; n < strlen(words[i]); n++) { /* a word is never cut */
                char cut[16];
                snprintf(cut, sizeof cut, " %.*s", (int)n, words[i]);
                const char *found = strstr(text, cut);
                if (found)
                    assert_int_equal(strncmp(found + 1, words[i], strlen(words[i])), 0);
            }
        }
        if (cols >= 21)
            assert_contains(text, "Space pause  ? help");
        grid_close(&g);
    }
}

TEST(a_click_presses_the_key_that_is_there)
{
    struct grid g = {.utf8 = true};
    struct clicks clicks = {.n = 0};
    const struct key_row all = row();
    assert_true(grid_open(&g, 4, 80));
    key_row_draw(&all, &(struct canvas){.y = 3, .rows = 1, .cols = 80, .grid = &g}, &clicks);
    /* " Space pause  ? help  │ ← → turn  <> speed  │ : command" */
    assert_string_equal(clicked(&clicks, 0), "");
    assert_string_equal(clicked(&clicks, 1), "key Space");
    assert_string_equal(clicked(&clicks, 11), "key Space"); /* the description of a single key can be clicked, too */
    assert_string_equal(clicked(&clicks, 12), "");
    assert_string_equal(clicked(&clicks, 14), "key ?");
    assert_string_equal(clicked(&clicks, 24), "key ←");
    assert_string_equal(clicked(&clicks, 26), "key →");
    assert_string_equal(clicked(&clicks, 29), ""); /* a description of two keys presses neither */
    assert_string_equal(clicked(&clicks, 34), "key <");
    assert_string_equal(clicked(&clicks, 35), "key >");
    assert_null(clicks_find(&clicks, 2, 1));
    grid_close(&g);
}
