/* Controls at the control points: breakpoints, steps, knobs, policies, and random controls at random times. The rig
 * also checks the events of every run. */
#include "engine/session/round.h"
#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

static uint64_t seed = 3;

/* ---- breakpoints and stepping ---- */

struct stops {
    uint32_t at[8], n; /* rounds at which it paused */
    uint32_t rounds;
};

static void
break_at_three_then_five(void *user, struct live *s, const struct event *e)
{
    struct stops *st = user;
    st->rounds += e->type == EVENT_ROUND;
    if (!event_is_control(e, "state", "paused"))
        return;
    if (st->n < 8)
        st->at[st->n++] = st->rounds;
    if (st->n == 1)
        session_control(s, CONTROL_BREAK, NULL, NULL, 3);
    if (st->n == 2)
        session_control(s, CONTROL_BREAK, NULL, NULL, 5);
    session_control(s, CONTROL_RESUME, NULL, NULL, 0);
}

TEST(a_breakpoint_stops_after_exactly_that_round)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    o.paused = true;
    struct stops st = {0};
    struct session_rig_result r;
    session_run(f->engine, &o, break_at_three_then_five, &st, &r);
    assert_int_equal(st.n, 3);
    assert_int_equal(st.at[0], 0);
    assert_int_equal(st.at[1], 3);
    assert_int_equal(st.at[2], 5);
    assert_int_equal(r.n, 60);
    session_rig_free(&r);
}

static void
step_two_then_tokens(void *user, struct live *s, const struct event *e)
{
    struct stops *st = user;
    st->rounds += e->type == EVENT_ROUND;
    if (!event_is_control(e, "state", "paused"))
        return;
    if (st->n < 8)
        st->at[st->n++] = st->rounds;
    if (st->n == 1)
        session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, 2);
    else if (st->n < 5)
        session_control(s, CONTROL_STEP_TOKEN, NULL, NULL, 0);
    else
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
}

TEST(steps_go_so_many_rounds_or_one_token)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    o.paused = true;
    o.policy = "layerskip";
    struct stops st = {0};
    struct session_rig_result r;
    session_run(f->engine, &o, step_two_then_tokens, &st, &r);
    assert_int_equal(st.n, 5);
    assert_int_equal(st.at[1], 2);
    assert_int_equal(st.at[2], 2); /* in the third round: five drafts take three steps */
    assert_int_equal(st.at[4], 2);
    session_rig_free(&r);
}

struct held {
    uint32_t stops, rounds, at;
    bool compared;
};

/* Pauses in the first round after its second draft, requests a baseline, and resumes after it. */
static void
ask_in_a_round(void *user, struct live *s, const struct event *e)
{
    struct held *h = user;
    h->rounds += e->type == EVENT_ROUND;
    if (event_is_control(e, "state", "paused") && ++h->stops <= 2)
        session_control(s, CONTROL_STEP_TOKEN, NULL, NULL, 0);
    else if (event_is_control(e, "state", "paused") && h->stops == 3) {
        h->at = h->rounds;
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    }
    if (event_is_control(e, "lossless", "yes")) {
        h->compared = true;
        assert_int_equal(h->rounds, 1);
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    }
}

TEST(a_baseline_requested_in_a_waiting_round_runs_at_its_end)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    o.paused = true;
    o.policy = "layerskip";
    struct held h = {0};
    struct session_rig_result r;
    session_run(f->engine, &o, ask_in_a_round, &h, &r);
    assert_int_equal(h.at, 0);
    assert_int_equal(h.stops, 4); /* the last one at the round's end */
    assert_true(h.compared);
    assert_int_equal(r.n, 60);
    session_rig_free(&r);
}

/* ---- knobs and policies ---- */

struct knob_watch {
    uint32_t asked_after, asked, applied;
    bool posted;
    float threshold_before, threshold_at, threshold_after;
};

static void
turn_tau(void *user, struct live *s, const struct event *e)
{
    struct knob_watch *w = user;
    if (e->type == EVENT_ROUND && e->round == w->asked_after && !w->posted) {
        session_control(s, CONTROL_KNOB, "tau", "0.3", 0);
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
        w->posted = true;
    }
    if (event_is_control(e, "tau", "0.3")) {
        w->asked = e->round;
        w->applied = e->control.applied_round;
        assert_string_equal(e->control.old_text, "0.55");
    }
    if (e->type != EVENT_ROUND)
        return;
    if (w->applied == 0)
        w->threshold_before = e->round_end.threshold;
    else if (e->round == w->applied)
        w->threshold_at = e->round_end.threshold;
    else
        w->threshold_after = e->round_end.threshold;
}

static void
break_at(void *user, struct live *s, const struct event *e)
{
    struct knob_watch *w = user;
    if (event_is_control(e, "state", "paused") && !w->posted) {
        session_control(s, CONTROL_BREAK, NULL, NULL, w->asked_after);
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    }
    turn_tau(user, s, e);
}

TEST(a_knob_is_applied_at_the_next_round_and_its_event_contains_both_rounds)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    o.paused = true;
    struct knob_watch w = {.asked_after = 4};
    struct session_rig_result r;
    session_run(f->engine, &o, break_at, &w, &r);
    assert_int_equal(w.asked, 4);
    assert_int_equal(w.applied, 5);
    assert_number_equal(w.threshold_before, 0.55f);
    assert_number_equal(w.threshold_at, 0.3f);
    assert_number_equal(w.threshold_after, 0.3f);
    session_rig_free(&r);
}

struct switches {
    uint32_t next, applied, seen;
    char now[16];
};

static void
switch_policies(void *user, struct live *s, const struct event *e)
{
    struct switches *w = user;
    if (event_is_control(e, "policy", NULL)) {
        snprintf(w->now, sizeof w->now, "%s", e->control.new_text);
        w->applied++;
    }
    if (e->type != EVENT_ROUND)
        return;
    if (w->now[0] != '\0') {
        assert_string_equal(e->round_end.policy, w->now);
        w->seen++;
    }
    if (policy_registry[w->next] != NULL)
        session_control(s, CONTROL_POLICY, NULL, policy_registry[w->next++]->name, 0);
}

TEST(policies_can_be_switched_in_mid_run_without_changing_a_token)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    o.tokens = 150;
    struct session_rig_result ar, r;
    o.policy = "ar";
    session_run(f->engine, &o, NULL, NULL, &ar);
    struct switches w = {0};
    o.pace = 150; /* so slow that every switch is within a round */
    session_run(f->engine, &o, switch_policies, &w, &r);
    assert_at_least(w.applied, 3);
    assert_greater(w.seen, 0);
    assert_int_equal(r.n, ar.n);
    assert_memory_equal(r.tokens, ar.tokens, r.n * sizeof *r.tokens);
    session_rig_free(&ar);
    session_rig_free(&r);
}

/* ---- random controls from another thread ---- */

static void
random_controls(void *user, struct live *s, const struct event *e)
{
    uint64_t *random = user;
    if (e->type == EVENT_CONTROL && event_is_control(e, "state", "paused")) {
        session_control(s, splitmix64(random) % 2 ? CONTROL_RESUME : CONTROL_STEP_TOKEN, NULL, NULL, 0);
        return;
    }
    if ((e->type != EVENT_TOKEN && e->type != EVENT_ROUND) || splitmix64(random) % 6 != 0 || e->run > 12)
        return;
    static const char *const probes[] = {"off", "policy", "30%", "all"};
    uint32_t policies = 0;
    while (policy_registry[policies] != NULL)
        policies++;
    switch (splitmix64(random) % 9) {
    case 0: session_control(s, CONTROL_PAUSE, NULL, NULL, 0); break;
    case 1: session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, 1 + (uint32_t)(splitmix64(random) % 3)); break;
    case 2: session_control(s, CONTROL_STEP_TOKEN, NULL, NULL, 0); break;
    case 3: session_control(s, CONTROL_POLICY, NULL, policy_registry[splitmix64(random) % policies]->name, 0); break;
    case 4: session_control(s, CONTROL_PROBE, NULL, probes[splitmix64(random) % 4], 0); break;
    case 5: session_control(s, CONTROL_BASELINE, NULL, NULL, 0); break;
    case 6:
        if (splitmix64(random) % 4 == 0)
            session_control(s, CONTROL_RESTART, NULL, NULL, 0);
        break;
    case 7:
        if (splitmix64(random) % 4 == 0)
            session_control(s, CONTROL_PROMPT, NULL, session_prompts[splitmix64(random) % SESSION_PROMPTS], 0);
        break;
    default: session_control(s, CONTROL_RESUME, NULL, NULL, 0); break;
    }
}

TEST(controls_at_random_moments_break_no_promise)
{
    struct fixture *f = *state;
    uint64_t random = seed;
    for (int i = 0; i < 6; i++) {
        struct session_options o = session_usual();
        struct session_rig_result r;
        o.probe = PROBE_ALL;
        session_run(f->engine, &o, random_controls, &random, &r);
        assert_greater(r.n, 0);
        session_rig_free(&r);
    }
}

/* ---- controls posted together with a restart ---- */

static struct live *mine; /* set before the first round */

static bool
restart_and_extend_one(struct policy *p, struct round *r)
{
    (void)p;
    if (r->number == 1 && mine != NULL) { /* on the engine's thread, so both are in the queue before it reads */
        session_control(mine, CONTROL_RESTART, NULL, NULL, 0);
        session_control(mine, CONTROL_EXTEND, NULL, NULL, 7);
        mine = NULL;
    }
    return true;
}

static bool
restart_and_extend(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, restart_and_extend_one);
}

static void
hand_over(void *user, struct live *s, const struct event *e)
{
    (void)user;
    if (event_is_control(e, "state", "paused")) {
        mine = s;
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    }
}

TEST(tokens_added_after_a_restart_are_the_new_runs)
{
    struct fixture *f = *state;
    static const struct policy_ops asking = {.name = "asking", .title = "", .paper = "", .draft = restart_and_extend};
    static const struct policy_ops *const registry[] = {&asking, NULL};
    struct session_options o = session_usual();
    struct session_rig_result r;
    o.policies = registry;
    o.policy = "asking";
    o.paused = true;
    session_run(f->engine, &o, hand_over, NULL, &r);
    assert_int_equal(r.runs, 2);
    assert_int_equal(r.n, o.tokens + 7);
    session_rig_free(&r);
}

/* ---- refusals ---- */

static void
post_nonsense(void *user, struct live *s, const struct event *e)
{
    if (e->type != EVENT_ROUND || e->round != 2)
        return;
    int *lines = user;
    static const struct control wrong[] = {{.kind = CONTROL_KNOB, .name = "tau", .text = "x"},
                                           {.kind = CONTROL_KNOB, .name = "beta", .text = "1"},
                                           {.kind = CONTROL_POLICY, .text = "?"},
                                           {.kind = CONTROL_PROBE, .text = "some"},
                                           {.kind = CONTROL_PROBE, .text = "0%"},
                                           {.kind = CONTROL_PROBE, .text = "100%"},
                                           {.kind = CONTROL_PACE, .text = "fast"},
                                           {.kind = CONTROL_EXTEND, .n = 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = {0};
        *lines += !s->ops->post(s, &wrong[i], &err) && err.kind == ERR_USAGE && err.text[0] != '\0';
    }
}

TEST(nonsense_is_refused_and_the_run_continues)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct session_rig_result r;
    int lines = 0;
    session_run(f->engine, &o, post_nonsense, &lines, &r);
    assert_int_equal(lines, 8);
    assert_int_equal(r.n, 60);
    session_rig_free(&r);
}

TEST_SEED(seed, seed);

FIXTURE(session_fixture_open, session_fixture_close);
