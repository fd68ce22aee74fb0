/* Messages: the latest are kept, and a result of a run disappears with it. */
#include "tests/rigs/test.h"
#include "tui/app/message.h"

TEST(reported_messages_are_stored_and_shown_help_is_not)
{
    struct message *m = calloc(1, sizeof *m);
    struct err err = {0};
    assert_non_null(m);
    message_print(m, "exported to %s", "here");
    message_show(m, "d_max  d_min");
    err_set(&err, ERR_USAGE, "there is no knob \"\033[31m\"");
    message_fail(m, &err);
    assert_int_equal(m->role, ROLE_ERROR);
    assert_int_equal(m->n, 2);
    assert_string_equal(m->said[0].text, "exported to here");
    assert_contains(m->said[1].text, "there is no knob");
    assert_null(strchr(m->said[1].text, '\033'));
    free(m);
}

TEST(a_result_goes_when_the_next_run_begins)
{
    struct message *m = calloc(1, sizeof *m);
    assert_non_null(m);
    message_print(m, "saved to %s", "here");
    message_run_begins(m);
    assert_string_equal(m->text, "saved to here"); /* this message is not a result of a run */
    message_print(m, "autoregressive: 31 tokens/s on the same prompt");
    m->of_run = true;
    message_run_begins(m);
    assert_string_equal(m->text, "");
    assert_int_equal(m->n, 2); /* the result is still in the list */
    message_print(m, "saved to %s", "there");
    message_run_begins(m);
    assert_string_equal(m->text, "saved to there");
    free(m);
}

TEST(a_report_does_not_replace_an_error_on_the_screen)
{
    struct message *m = calloc(1, sizeof *m);
    struct err err = {0};
    assert_non_null(m);
    err_set(&err, ERR_USAGE, "there is no knob x");
    message_fail(m, &err);
    message_report(m, "plain decoding: no policy is clearly faster");
    assert_string_equal(m->text, "there is no knob x");
    assert_contains(m->said[1].text, "plain decoding");
    message_show(m, "");
    message_report(m, "suffix: 1.3×");
    assert_string_equal(m->text, "suffix: 1.3×");
    free(m);
}

TEST(the_newest_messages_are_kept)
{
    struct message *m = calloc(1, sizeof *m);
    char last[32];
    assert_non_null(m);
    for (int i = 1; i <= MESSAGES_KEPT + 50; i++)
        message_print(m, "message %d", i);
    snprintf(last, sizeof last, "message %d", MESSAGES_KEPT + 50);
    assert_string_equal(m->said[(m->n - 1) % MESSAGES_KEPT].text, last);
    assert_string_equal(m->said[m->n % MESSAGES_KEPT].text, "message 51"); /* the oldest message that is kept */
    free(m);
}
