/* Checks of a control when it is posted, and the state of the engine that a queue of controls implies. */
#include "engine/session/mailbox.h"
#include "tests/rigs/test.h"

static struct mailbox box;

static int
open_box(void **state)
{
    (void)state;
    box = (struct mailbox){0};
    mailbox_open(&box);
    return 0;
}

static int
close_box(void **state)
{
    (void)state;
    mailbox_close(&box);
    return 0;
}

/* Frees the mail if it was not posted. */
static enum posted
post(struct mail values)
{
    struct err err = {0};
    struct mail *m = malloc(sizeof *m);
    assert_non_null(m);
    *m = values;
    const enum posted posted = mailbox_post(&box, m, &err);
    if (posted != POSTED)
        mail_free(m);
    assert_int_equal(err.kind, posted == POSTED_NOT ? ERR_USAGE : ERR_NONE);
    return posted;
}

static void
take(enum control_kind kind, uint32_t asked_round)
{
    struct mail *m = mailbox_take(&box, 0);
    assert_non_null(m);
    assert_int_equal(m->kind, kind);
    assert_int_equal(m->asked_round, asked_round);
    mail_free(m);
}

TEST_WITH(a_knob_read_for_a_policy_that_is_left_meanwhile_is_read_again, open_box, close_box)
{
    assert_int_equal(post((struct mail){.kind = CONTROL_KNOB, .policy = 0}), POSTED);
    assert_int_equal(post((struct mail){.kind = CONTROL_POLICY, .policy = 2}), POSTED);
    assert_int_equal(post((struct mail){.kind = CONTROL_KNOB, .policy = 0}), POSTED_LATE);
    struct settings requested;
    mailbox_requested(&box, 0, &requested);
    assert_int_equal(requested.policy, 2); /* before the engine takes it */
    assert_int_equal(post((struct mail){.kind = CONTROL_KNOB, .policy = 2, .read_at = 2}), POSTED);
    take(CONTROL_KNOB, 0);
    take(CONTROL_POLICY, 0);
    take(CONTROL_KNOB, 0);
    assert_null(mailbox_take(&box, 0));
}

TEST_WITH(a_breakpoint_in_the_past_is_refused_unless_a_new_run_was_asked_for, open_box, close_box)
{
    mailbox_round(&box, 7);
    assert_int_equal(post((struct mail){.kind = CONTROL_BREAK, .n = 6}), POSTED_NOT);
    assert_int_equal(post((struct mail){.kind = CONTROL_BREAK, .n = 7}), POSTED);
    assert_int_equal(post((struct mail){.kind = CONTROL_BREAK, .n = 0}), POSTED); /* clears the request */
    assert_int_equal(post((struct mail){.kind = CONTROL_RESTART}), POSTED);
    assert_int_equal(post((struct mail){.kind = CONTROL_BREAK, .n = 6}), POSTED);
}

TEST_WITH(what_interrupts_cancels_until_all_of_it_is_taken, open_box, close_box)
{
    mailbox_round(&box, 7);
    assert_false(atomic_load(&box.cancel));
    post((struct mail){.kind = CONTROL_PAUSE});
    assert_false(atomic_load(&box.cancel));
    post((struct mail){.kind = CONTROL_RESTART});
    post((struct mail){.kind = CONTROL_QUIT});
    take(CONTROL_PAUSE, 7);
    take(CONTROL_RESTART, 7);
    assert_true(atomic_load(&box.cancel));
    post((struct mail){.kind = CONTROL_RESUME});
    take(CONTROL_QUIT, 7);
    assert_false(atomic_load(&box.cancel));
    take(CONTROL_RESUME, 0); /* a request for the new run */
}

TEST_WITH(the_engine_moves_by_the_last_control_in_the_queue, open_box, close_box)
{
    mailbox_paused(&box, true);
    assert_false(mailbox_moving(&box));
    post((struct mail){.kind = CONTROL_RESUME});
    assert_true(mailbox_moving(&box)); /* before the engine takes the control, */
    mailbox_paused(&box, true);
    assert_true(mailbox_moving(&box)); /* and also if it pauses meanwhile */
    take(CONTROL_RESUME, 0);
    mailbox_paused(&box, true); /* after a step */
    assert_false(mailbox_moving(&box));
    post((struct mail){.kind = CONTROL_STEP_ROUNDS, .n = 2});
    post((struct mail){.kind = CONTROL_PAUSE});
    assert_false(mailbox_moving(&box));
}

TEST_WITH(the_engine_rests_until_a_control_is_posted_and_after_it_waits_again, open_box, close_box)
{
    assert_false(mailbox_resting(&box));
    mailbox_rest(&box);
    assert_true(mailbox_resting(&box));
    post((struct mail){.kind = CONTROL_POLICY, .policy = 2});
    assert_false(mailbox_resting(&box)); /* before the engine takes the control, */
    take(CONTROL_POLICY, 0);
    assert_false(mailbox_resting(&box)); /* and while the engine executes it */
    mailbox_rest(&box);
    assert_true(mailbox_resting(&box));
}
