/* Changes of sampling in a session: a run after a change equals that of a session opened with the values. Sampled text
 * is not called lossless, and impossible values are refused. */
#include "engine/events/sampling_knobs.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

static const struct sampling drawn = {.temperature = 0.9f, .top_k = 20, .top_p = 0.95f};

struct turns { /* one list of tokens per run */
    token_t runs[3][64];
    size_t n[3];
    token_t drafts[VERIFY_NODES];
    uint32_t run;
};

static void
take(struct turns *t, token_t token)
{
    if (t->run < 3 && t->n[t->run] < 64)
        t->runs[t->run][t->n[t->run]++] = token;
}

static void
turn_between_runs(void *user, struct live *s, const struct event *e)
{
    struct turns *t = user;
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
        t->drafts[e->token.candidate] = e->token.token;
    else if (e->type == EVENT_TOKEN && e->token.source != SOURCE_PROMPT)
        take(t, e->token.token);
    else if (e->type == EVENT_VERDICT && e->verdict.committed == 1)
        take(t, t->drafts[e->verdict.candidate]);
    if (!event_is_control(e, "end", NULL))
        return;
    t->run++;
    if (t->run == 1) {
        session_control(s, CONTROL_KNOB, "temperature", "0.9", 0);
        session_control(s, CONTROL_KNOB, "top_k", "20", 0);
        session_control(s, CONTROL_KNOB, "top-p", "0.95", 0);
        session_control(s, CONTROL_KNOB, "seed", "7", 0);
    } else if (t->run == 2) {
        session_control(s, CONTROL_KNOB, "T", "0", 0);
    }
    session_control(s, t->run < 3 ? CONTROL_RESTART : CONTROL_QUIT, NULL, NULL, 0);
}

TEST(a_run_after_a_knob_change_equals_that_of_a_new_session)
{
    struct fixture *f = *state;
    static const char *const policies[] = {"ar", "specbound", "swift", "sd"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct session_options o = session_usual();
        struct session_rig_result turned, greedy, sampled;
        struct turns t = {0};
        o.policy = policies[i];
        o.tokens = 40;
        o.stay = true;
        session_run(f->engine, &o, turn_between_runs, &t, &turned);
        o.stay = false;
        session_run(f->engine, &o, NULL, NULL, &greedy);
        o.sampling = drawn;
        o.seed = 7;
        session_run(f->engine, &o, NULL, NULL, &sampled);
        assert_int_equal(t.n[0], greedy.n);
        assert_memory_equal(t.runs[0], greedy.tokens, greedy.n * sizeof *greedy.tokens);
        assert_int_equal(t.n[1], sampled.n);
        assert_memory_equal(t.runs[1], sampled.tokens, sampled.n * sizeof *sampled.tokens);
        assert_memory_equal(t.runs[2], greedy.tokens, greedy.n * sizeof *greedy.tokens);
        assert_memory_not_equal(t.runs[1], greedy.tokens, greedy.n * sizeof *greedy.tokens);
        session_rig_free(&turned);
        session_rig_free(&greedy);
        session_rig_free(&sampled);
    }
}

struct middle {
    uint32_t yes, drawn, applied;
    uint32_t known, hot, cold; /* rounds after the first comparison, at temperature 1.5, and at 0 again */
};

static void
turn_in_the_middle(void *user, struct live *s, const struct event *e)
{
    struct middle *m = user;
    m->yes += event_is_control(e, "lossless", "yes");
    m->drawn += event_is_control(e, "lossless", "sampled");
    m->applied += event_is_control(e, "temperature", NULL);
    if (e->type != EVENT_ROUND)
        return;
    if (e->round == 2)
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    if (m->yes == 1 && ++m->known == 1)
        session_control(s, CONTROL_KNOB, "temperature", "1.5", 0);
    if (m->applied == 1 && ++m->hot == 3)
        session_control(s, CONTROL_KNOB, "temperature", "0", 0);
    if (m->applied == 2 && ++m->cold == 2)
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
}

TEST(sampled_text_in_between_is_not_called_lossless)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct session_rig_result r;
    struct middle m = {0};
    o.policy = "ar";
    o.pace = 200;
    session_run(f->engine, &o, turn_in_the_middle, &m, &r);
    assert_int_equal(m.applied, 2);
    assert_int_equal(m.yes, 1);
    assert_int_equal(m.drawn, 1);
    session_rig_free(&r);
}

TEST(invalid_sampling_is_refused)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct live *s;
    struct err err = {0};
    assert_ok(session_open(&s, f->engine, &o, &err), err);
    static const char *const bad[][2] = {{"temperature", "-1"}, {"temperature", "hot"}, {"top_p", "0"},
                                         {"top_p", "1.5"},      {"top_k", "2.5"},       {"seed", "-3"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct control c = {.kind = CONTROL_KNOB, .text = bad[i][1]};
        snprintf(c.name, sizeof c.name, "%s", bad[i][0]);
        assert_false(s->ops->post(s, &c, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_contains(err.text, bad[i][0]);
    }
    live_close(s);
}

TEST(no_policy_takes_their_names)
{
    struct policy p = {0};
    for (int i = 0; i < SAMPLING_KNOBS; i++) {
        struct err err = {0};
        struct knob k = sampling_knobs[i];
        assert_false(policy_knob(&p, &k));
        assert_false(knob_valid(&k, &err));
        assert_contains(err.text, k.name);
    }
}

FIXTURE(session_fixture_open, session_fixture_close);
