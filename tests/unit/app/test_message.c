/* What was said: kept, the newest last, and drawn into any room. */
#include "tests/rigs/test.h"
#include "tui/widgets/message.h"

static char row[4096];

static bool
shows(struct message *m, int *top, int rows, int cols, const char *text)
{
    struct grid g = {.utf8 = true};
    bool found = false;
    assert_true(grid_open(&g, rows, cols));
    messages_draw(m, top, &(struct canvas){.rows = rows, .cols = cols, .grid = &g});
    for (int y = 0; y < rows; y++) {
        grid_row(&g, y, row, sizeof row);
        found = found || strstr(row, text) != NULL;
    }
    grid_close(&g);
    return found;
}

TEST(reported_messages_are_stored_and_shown_help_is_not)
{
    struct message *m = calloc(1, sizeof *m);
    struct err err = {0};
    int top = 1000;
    assert_non_null(m);
    assert_true(shows(m, &top, 24, 80, "nothing was said yet"));
    message_print(m, "exported to %s", "here");
    message_show(m, "d_max  d_min");
    err_set(&err, ERR_USAGE, "there is no knob \"\033[31m\"");
    message_fail(m, &err);
    assert_int_equal(m->role, ROLE_ERROR);
    assert_int_equal(m->n, 2);
    assert_true(shows(m, &top, 24, 80, "exported to here"));
    assert_true(shows(m, &top, 24, 80, "there is no knob"));
    assert_false(shows(m, &top, 24, 80, "d_max"));
    assert_null(strchr(m->said[1].text, '\033'));
    free(m);
}

TEST(a_result_goes_when_the_next_run_begins)
{
    struct message *m = calloc(1, sizeof *m);
    int top = 1000;
    assert_non_null(m);
    message_print(m, "saved to %s", "here");
    message_run_begins(m);
    assert_string_equal(m->text, "saved to here"); /* that is no result of a run */
    message_print(m, "autoregressive: 31 tokens/s on the same prompt");
    message_is_of_run(m);
    message_run_begins(m);
    assert_string_equal(m->text, "");
    assert_true(shows(m, &top, 24, 80, "autoregressive: 31 tokens/s"));
    message_print(m, "saved to %s", "there");
    message_run_begins(m);
    assert_string_equal(m->text, "saved to there");
    free(m);
}

TEST(the_newest_messages_are_kept_and_scrolled_to)
{
    struct message *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (int i = 1; i <= MESSAGES_KEPT + 50; i++)
        message_print(m, "message %d, which is long enough to be wrapped on a terminal that is as narrow as this one",
                      i);
    int top = 1 << 30;
    char last[32];
    snprintf(last, sizeof last, "message %d,", MESSAGES_KEPT + 50);
    assert_true(shows(m, &top, 24, 60, last));
    assert_true(top > 0);
    top = 0;
    assert_true(shows(m, &top, 24, 60, "message 51,")); /* the oldest that is kept */
    top = -5;
    assert_false(shows(m, &top, 24, 60, "message 50,"));
    for (int rows = 10; rows < 40; rows += 3) /* any size of terminal */
        for (int cols = 40; cols < 120; cols += 7)
            assert_true(shows(m, &top, rows, cols, "messages"));
    free(m);
}
