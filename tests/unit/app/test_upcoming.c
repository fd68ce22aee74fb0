/* The prompt that follows a text, and the time after which it starts by itself. */
#include "tests/rigs/test.h"
#include "tui/app/upcoming.h"

#define SECOND 1000000u

static char one[] = "one", two[] = "two", three[] = "three", *list[] = {one, two, three};

TEST(the_next_prompt_follows_the_running_one)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, true, "one");
    assert_string_equal(upcoming_next(&u, "one"), "two");
    assert_string_equal(upcoming_next(&u, "three"), "one");
    upcoming_take(&u, "two");
    assert_string_equal(upcoming_next(&u, "a text of one's own"), "three"); /* the list continues where it stopped */
    upcoming_begin(&u, list, 3, true, "a text of one's own");
    assert_string_equal(upcoming_next(&u, "a text of one's own"), "one");
    upcoming_begin(&u, list, 3, true, NULL);
    assert_string_equal(upcoming_next(&u, NULL), "one");
}

TEST(no_prompt_is_announced_where_there_is_no_other)
{
    struct upcoming u;
    upcoming_begin(&u, list, 1, true, "one");
    assert_null(upcoming_next(&u, "one"));
    assert_string_equal(upcoming_next(&u, "mine"), "one");
    upcoming_begin(&u, NULL, 0, true, "one");
    assert_null(upcoming_next(&u, "one"));
    upcoming_look(&u, 1, true, false, SECOND);
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1);
}

TEST(the_moment_is_counted_down_from_the_end_of_the_text)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, true, "one");
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1); /* the text is not finished */
    upcoming_look(&u, 1, false, false, 100 * SECOND);
    upcoming_look(&u, 1, true, false, 101 * SECOND);
    upcoming_look(&u, 1, true, false, 103 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 101 * SECOND), 5);
    assert_int_equal(upcoming_seconds(&u, 101 * SECOND + 1), 5);
    assert_int_equal(upcoming_seconds(&u, 105 * SECOND), 1);
    assert_int_equal(upcoming_seconds(&u, 106 * SECOND - 1), 1);
    assert_int_equal(upcoming_seconds(&u, 106 * SECOND), 0);
    assert_int_equal(upcoming_seconds(&u, 200 * SECOND), 0);
    upcoming_take(&u, "two");
    assert_int_equal(upcoming_seconds(&u, 200 * SECOND), -1);
    upcoming_look(&u, 1, false, false, 201 * SECOND);
    upcoming_look(&u, 1, true, false, 202 * SECOND); /* the countdown starts again at the next end */
    assert_int_equal(upcoming_seconds(&u, 203 * SECOND), 4);
}

TEST(a_key_keeps_the_text_until_the_next_one_ends)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, true, "one");
    u.held = true; /* a key before the end does not hold the finished text */
    upcoming_look(&u, 1, true, false, SECOND);
    assert_int_equal(upcoming_seconds(&u, SECOND), 5);
    u.held = true;
    upcoming_look(&u, 1, true, false, 2 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1);
    assert_string_equal(upcoming_next(&u, "one"), "two"); /* the prompt can still be requested */
    upcoming_look(&u, 1, false, false, 100 * SECOND);
    upcoming_look(&u, 1, true, false, 101 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 101 * SECOND), 5);
    u.held = true;
    upcoming_look(&u, 2, true, false, 110 * SECOND); /* a text that began and ended since the last call */
    assert_int_equal(upcoming_seconds(&u, 110 * SECOND), 5);
}

TEST(the_next_prompt_waits_for_measurements_after_the_end)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, true, "one");
    upcoming_look(&u, 1, true, false, SECOND);
    u.since_us = 50 * SECOND; /* a baseline is measured until here */
    assert_int_equal(upcoming_seconds(&u, 51 * SECOND), 4);
    assert_int_equal(upcoming_seconds(&u, 55 * SECOND), 0);
    u.held = true; /* a held text also stays after a baseline */
    u.since_us = 60 * SECOND;
    upcoming_look(&u, 1, true, false, 61 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1);
}

TEST(a_text_that_is_to_stay_stays)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, true, "one");
    upcoming_look(&u, 1, false, true, SECOND);
    upcoming_look(&u, 1, true, false, 2 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1);
    upcoming_look(&u, 1, false, false, 100 * SECOND);
    upcoming_look(&u, 1, true, false, 101 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 101 * SECOND), 5);
    upcoming_look(&u, 1, true, true, 102 * SECOND); /* a sweep begins, */
    assert_int_equal(upcoming_seconds(&u, 110 * SECOND), -1);
    upcoming_look(&u, 2, true, true, 110 * SECOND);
    upcoming_look(&u, 3, true, false, 111 * SECOND); /* its last text ends together with the sweep */
    assert_int_equal(upcoming_seconds(&u, 111 * SECOND), -1);
    upcoming_look(&u, 4, true, false, 120 * SECOND);
    assert_int_equal(upcoming_seconds(&u, 120 * SECOND), 5);
}

TEST(no_prompt_of_the_list_replaces_the_users_own_by_itself)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, true, "mine");
    u.own = true;
    upcoming_look(&u, 1, true, false, SECOND);
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1);
    assert_string_equal(upcoming_next(&u, "mine"), "one"); /* the next prompt starts only on request */
    upcoming_take(&u, "one");
    upcoming_look(&u, 2, true, false, 101 * SECOND); /* after it, the list continues */
    assert_int_equal(upcoming_seconds(&u, 101 * SECOND), 5);
}

TEST(nothing_starts_by_itself_where_it_is_off)
{
    struct upcoming u;
    upcoming_begin(&u, list, 3, false, "one");
    upcoming_look(&u, 1, true, false, SECOND);
    assert_int_equal(upcoming_seconds(&u, 100 * SECOND), -1);
    assert_string_equal(upcoming_next(&u, "one"), "two");
}
