/* Runs that fail: their error messages, requests from other threads, and the runs after them. The test includes the
 * event log's source, with an allocator that fails on request. */
#include <stdatomic.h>

#include "tests/rigs/test.h"

static atomic_bool no_memory; /* for chunks of the event log */

static void *
failing_malloc(size_t n)
{
    return atomic_load(&no_memory) ? NULL : malloc(n);
}

#define malloc failing_malloc
#include "engine/events/event.c"
#undef malloc

#include "engine/session/round.h"
#include "tests/rigs/session_fixture.h"

/* ---- a policy that fails ---- */

static bool
fail_in_round_three_one(struct policy *p, struct round *r)
{
    (void)p;
    return r->number != 3 || round_fail(r, "three is too many");
}

static bool
fail_in_round_three(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, fail_in_round_three_one);
}

static const struct policy_ops failing = {
    .name = "failing", .title = "fails", .paper = "", .draft = fail_in_round_three};
static const struct policy_ops *const failing_registry[] = {&failing, NULL};

static struct session_options
failing_options(void)
{
    struct session_options o = session_usual();
    o.policies = failing_registry;
    o.policy = "failing";
    return o;
}

static bool
is_failure(const struct event *e)
{
    return event_is_control(e, "end", NULL) && strncmp(e->control.new_text, "error: ", 7) == 0;
}

static void
restart_after_failure(void *user, struct live *s, const struct event *e)
{
    uint32_t *failures = user;
    if (is_failure(e) && ++*failures < 3)
        session_control(s, CONTROL_RESTART, NULL, NULL, 0);
    else if (*failures == 3)
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
}

TEST(a_policy_that_fails_ends_the_run_and_a_restart_tries_again)
{
    struct fixture *f = *state;
    struct session_options o = failing_options();
    struct session_rig_result r;
    struct err err = {0};
    uint32_t failures = 0;
    assert_false(session_rig_generate(f->engine, &o, NULL, NULL, &r, &err));
    assert_int_equal(err.kind, ERR_WORK);
    assert_string_equal(err.text, "failing: three is too many");
    o.stay = true;
    assert_false(session_rig_generate(f->engine, &o, restart_after_failure, &failures, &r, &err));
    assert_int_equal(failures, 3);
}

static bool
propose_of_no_such_layer_one(struct policy *p, struct round *r)
{
    (void)p;
    return round_propose(r, &(struct proposal){.exit_layer = r->layers + 1, .q = DIST_NONE}) >= 0;
}

static bool
propose_of_no_such_layer(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, propose_of_no_such_layer_one);
}

TEST(a_draft_of_a_layer_that_the_model_lacks_ends_the_run)
{
    struct fixture *f = *state;
    const struct policy_ops wrong = {.name = "failing", .title = "", .paper = "", .draft = propose_of_no_such_layer};
    const struct policy_ops *const registry[] = {&wrong, NULL};
    struct session_options o = failing_options();
    struct session_rig_result r;
    struct err err = {0};
    o.policies = registry;
    assert_false(session_rig_generate(f->engine, &o, NULL, NULL, &r, &err));
    assert_string_equal(err.text, "policy: proposed a token of a layer that the model does not have");
}

/* ---- requests while runs fail ---- */

struct question {
    uint32_t failures, answers;
};

static void
ask_while_it_fails(void *user, struct live *s, const struct event *e)
{
    struct question *q = user;
    struct err err;
    if (is_failure(e))
        session_control(s, ++q->failures < 200 ? CONTROL_RESTART : CONTROL_QUIT, NULL, NULL, 0);
    if (s->ops->failed(s, &err)) { /* from the last run or the next one: the message is the same */
        assert_string_equal(err.text, "failing: three is too many");
        q->answers++;
    }
}

TEST(a_failure_can_be_asked_for_while_runs_fail)
{
    struct fixture *f = *state;
    struct session_options o = failing_options();
    struct session_rig_result r;
    struct err err = {0};
    struct question q = {0};
    o.stay = true;
    assert_false(session_rig_generate(f->engine, &o, ask_while_it_fails, &q, &r, &err));
    assert_int_equal(q.failures, 200);
    assert_greater(q.answers, 0);
}

/* ---- requests to a run that failed ---- */

struct leak {
    uint32_t failures, measured;
};

static void
ask_for_a_baseline_and_restart(void *user, struct live *s, const struct event *e)
{
    struct leak *l = user;
    l->measured += event_is_control(e, "lossless", NULL);
    if (is_failure(e) && ++l->failures == 1) {
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
        session_control(s, CONTROL_RESTART, NULL, NULL, 0);
    } else if (l->failures == 2) {
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
    }
}

TEST(a_baseline_asked_of_a_failed_run_is_not_the_next_ones)
{
    struct fixture *f = *state;
    struct session_options o = failing_options();
    struct session_rig_result r;
    struct err err = {0};
    struct leak l = {0};
    o.stay = true;
    assert_false(session_rig_generate(f->engine, &o, ask_for_a_baseline_and_restart, &l, &r, &err));
    assert_int_equal(l.failures, 2);
    assert_int_equal(l.measured, 0);
}

/* ---- no memory for events ---- */

static bool
draft_nothing_one(struct policy *p, struct round *r)
{
    (void)p, (void)r;
    return true;
}

static bool
draft_nothing(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, draft_nothing_one);
}

static void
run_out_of_memory(void *user, struct live *s, const struct event *e)
{
    char *said = user;
    if (event_is_control(e, "state", "paused") && said[0] == '\0')
        atomic_store(&no_memory, true); /* before the first round: events of prefill have memory */
    if (event_is_control(e, "state", "paused"))
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    if (is_failure(e)) {
        snprintf(said, 100, "%s", e->control.new_text);
        atomic_store(&no_memory, false);
        session_control(s, CONTROL_RESTART, NULL, NULL, 0);
    } else if (event_is_control(e, "end", NULL)) {
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
    }
}

TEST(a_round_without_memory_for_its_events_ends_the_run_with_an_error)
{
    struct fixture *f = *state;
    static const struct policy_ops plain = {.name = "plain", .title = "", .paper = "", .draft = draft_nothing};
    static const struct policy_ops *const registry[] = {&plain, NULL};
    struct session_options o = session_usual();
    struct session_rig_result r;
    char said[100] = "";
    o.policies = registry;
    o.policy = "plain";
    o.tokens = 0; /* a round may draft the most: its events need more than a usual chunk */
    o.paused = true;
    o.stay = true;
    session_run(f->engine, &o, run_out_of_memory, said, &r);
    assert_contains(said, "error: event log: out of memory for ");
    assert_string_equal(r.end, "context");
    assert_int_equal(r.runs, 2);
    session_rig_free(&r);
}

FIXTURE(session_fixture_open, session_fixture_close);
