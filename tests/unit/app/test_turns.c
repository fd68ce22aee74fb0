/* Turns taken back and brought again, against events as a session tells them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tui/state/turns.h"

struct told {
    struct turns turns;
    uint64_t number;
    uint32_t round;
};

static void
tell(struct told *t, const char *name, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL, .number = ++t->number, .round = t->round};
    e.control = (struct control_event){.old_text = before, .new_text = after, .applied_round = t->round + 1};
    snprintf(e.control.name, sizeof e.control.name, "%s", name);
    turns_event(&t->turns, &e);
}

static void
tell_of(struct told *t, uint32_t seq, const char *name, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL, .number = ++t->number, .seq = seq, .round = t->round};
    e.control = (struct control_event){.old_text = before, .new_text = after, .applied_round = t->round + 1};
    snprintf(e.control.name, sizeof e.control.name, "%s", name);
    turns_event(&t->turns, &e);
}

static void
play(struct told *t)
{
    const struct event e = {.type = EVENT_ROUND, .number = ++t->number, .round = ++t->round};
    turns_event(&t->turns, &e);
}

/* What is asked for comes. */
static void
undo(struct told *t)
{
    const struct turn turn = *turns_back(&t->turns);
    turns_undo(&t->turns);
    tell(t, turn.name, turn.after, turn.before);
}

static void
redo(struct told *t)
{
    const struct turn turn = *turns_forth(&t->turns);
    turns_redo(&t->turns);
    tell(t, turn.name, turn.before, turn.after);
}

static void
assert_turn(const struct turn *turn, const char *name, const char *before, const char *after)
{
    assert_non_null(turn);
    assert_string_equal(turn->name, name);
    assert_string_equal(turn->before, before);
    assert_string_equal(turn->after, after);
}

static void
test_turns_go_back_and_come_again(void **state)
{
    (void)state;
    struct told t = {.round = 1};
    assert_null(turns_back(&t.turns));
    assert_null(turns_forth(&t.turns));
    tell(&t, "tau", "0.55", "0.6");
    play(&t);
    tell(&t, "policy", "specbound", "layerskip");
    play(&t);
    tell(&t, "gamma", "5", "3");
    play(&t);
    assert_turn(turns_back(&t.turns), "gamma", "5", "3");
    undo(&t);
    undo(&t);
    assert_turn(turns_back(&t.turns), "tau", "0.55", "0.6");
    assert_turn(turns_forth(&t.turns), "policy", "specbound", "layerskip");
    redo(&t);
    assert_turn(turns_forth(&t.turns), "gamma", "5", "3");
    undo(&t);
    tell(&t, "alpha", "0.2", "0.3"); /* a new turn takes the place of those that were taken back */
    assert_null(turns_forth(&t.turns));
    assert_turn(turns_back(&t.turns), "alpha", "0.2", "0.3");
    undo(&t);
    undo(&t);
    assert_null(turns_back(&t.turns));
}

static void
test_several_can_be_asked_for_before_one_came(void **state)
{
    (void)state;
    struct told t = {.round = 1};
    tell(&t, "tau", "0.55", "0.6");
    play(&t);
    tell(&t, "alpha", "0.2", "0.3");
    turns_undo(&t.turns);
    assert_turn(turns_back(&t.turns), "tau", "0.55", "0.6");
    turns_undo(&t.turns);
    assert_null(turns_back(&t.turns));
    assert_null(turns_forth(&t.turns)); /* not before those have come */
    tell(&t, "alpha", "0.3", "0.2");
    tell(&t, "tau", "0.6", "0.55");
    turns_redo(&t.turns);
    turns_redo(&t.turns);
    assert_null(turns_forth(&t.turns));
    tell(&t, "tau", "0.55", "0.6");
    tell(&t, "alpha", "0.2", "0.3");
    assert_turn(turns_back(&t.turns), "alpha", "0.2", "0.3");
}

static void
test_a_knob_that_goes_on_turning_is_one_turn(void **state)
{
    (void)state;
    struct told t = {.round = 1};
    tell(&t, "tau", "0.55", "0.6");
    tell(&t, "tau", "0.6", "0.65");
    assert_turn(turns_back(&t.turns), "tau", "0.55", "0.65");
    play(&t);
    tell(&t, "tau", "0.65", "0.7"); /* after a round it is another one */
    assert_turn(turns_back(&t.turns), "tau", "0.65", "0.7");
    tell(&t, "tau", "0.7", "0.65");
    assert_turn(turns_back(&t.turns), "tau", "0.55", "0.65");
}

static void
test_what_is_no_turn_is_passed_over(void **state)
{
    (void)state;
    struct told t = {.round = 1};
    tell(&t, "run", "", "restart");
    tell(&t, "head", "", "trained"); /* only says which one the run begins with */
    tell(&t, "probe", "all", "off");
    tell(&t, "state", "", "paused");
    tell(&t, "tau", "0.5", "0.5");
    assert_null(turns_back(&t.turns));
    tell(&t, "policy", "layerskip", "specbound");
    tell(&t, "head", "lens", "trained"); /* which came with the policy, and goes with it */
    assert_turn(turns_back(&t.turns), "policy", "layerskip", "specbound");
    tell(&t, "end", "", "eos");
    tell(&t, "head", "trained", "lens");
    assert_turn(turns_back(&t.turns), "head", "trained", "lens");
}

static void
test_those_of_a_group_have_its_number(void **state)
{
    (void)state;
    struct told t = {.round = 1};
    tell(&t, "tau", "0.55", "0.6");
    turns_together(&t.turns, 3);
    tell(&t, "policy", "specbound", "layerskip");
    tell(&t, "exit_layer", "4", "6");
    tell(&t, "gamma", "5", "3");
    tell(&t, "gamma", "3", "4"); /* somebody's own turn again */
    assert_int_equal(turns_back(&t.turns)->group, 0);
    undo(&t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(turns_back(&t.turns)->group, 1);
        undo(&t);
    }
    assert_int_equal(turns_back(&t.turns)->group, 0);
    turns_together(&t.turns, 5); /* of which only one comes */
    tell(&t, "alpha", "0", "1");
    for (int i = 0; i < 3; i++)
        play(&t);
    tell(&t, "alpha", "1", "2");
    assert_int_equal(turns_back(&t.turns)->group, 0);
}

static void
test_the_oldest_go(void **state)
{
    (void)state;
    struct told t = {.round = 1};
    char before[16], after[16];
    for (int i = 0; i < TURNS + 10; i++) {
        snprintf(before, sizeof before, "%d", i);
        snprintf(after, sizeof after, "%d", i + 1);
        tell(&t, "d_max", before, after);
        play(&t);
    }
    for (int i = 0; i < TURNS; i++)
        undo(&t);
    assert_null(turns_back(&t.turns));
    assert_turn(turns_forth(&t.turns), "d_max", "10", "11");
}

static void
test_of_two_settings_each_turn_is_its_own(void **state)
{
    (void)state;
    static struct told t;
    t = (struct told){.round = 0};
    tell_of(&t, 0, "versus", "", "fsm");
    tell_of(&t, 0, "gamma", "3", "4");
    tell_of(&t, 1, "gamma", "4", "5"); /* goes on where the other's ended, and is another one all the same */
    assert_turn(turns_back(&t.turns), "gamma", "4", "5");
    assert_int_equal(turns_back(&t.turns)->seq, 1);
    turns_undo(&t.turns);
    tell_of(&t, 1, "gamma", "5", "4");
    assert_turn(turns_back(&t.turns), "gamma", "3", "4");
    assert_int_equal(turns_back(&t.turns)->seq, 0);
    turns_redo(&t.turns);
    tell_of(&t, 1, "gamma", "4", "5");
    tell_of(&t, 0, "run", "", "restart"); /* both begin again, with what they were turned to */
    tell_of(&t, 0, "versus", "", "fsm gamma=5");
    assert_turn(turns_back(&t.turns), "gamma", "4", "5");
    tell_of(&t, 0, "tau", "0.5", "0.6");
    turns_undo(&t.turns);
    tell_of(&t, 0, "tau", "0.6", "0.5");
    turns_other_second(&t.turns); /* another is asked for, */
    assert_int_equal(turns_back(&t.turns)->seq, 1);
    tell_of(&t, 0, "run", "", "restart"); /* and has come: what was turned of the one before is gone, */
    assert_turn(turns_back(&t.turns), "gamma", "3", "4");
    assert_int_equal(turns_back(&t.turns)->seq, 0);          /* and the first's is not, */
    assert_turn(turns_forth(&t.turns), "tau", "0.5", "0.6"); /* nor what was taken back of it */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_go_back_and_come_again),
        cmocka_unit_test(test_several_can_be_asked_for_before_one_came),
        cmocka_unit_test(test_a_knob_that_goes_on_turning_is_one_turn),
        cmocka_unit_test(test_what_is_no_turn_is_passed_over),
        cmocka_unit_test(test_those_of_a_group_have_its_number),
        cmocka_unit_test(test_the_oldest_go),
        cmocka_unit_test(test_of_two_settings_each_turn_is_its_own),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
