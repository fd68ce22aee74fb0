/* Runs from beginning to end, baselines, refusals. The rig also checks the events of every run. */
#include <sched.h>

#include "engine/measure/positions.h"
#include "policies/registry.h"
#include "tests/rigs/recorded_run.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

/* ---- runs ---- */

struct restarts {
    uint32_t runs;
};

static void
restart_and_prompt(void *user, struct live *s, const struct event *e)
{
    struct restarts *w = user;
    if (event_is_control(e, "run", NULL))
        w->runs++;
    if (e->type != EVENT_ROUND || e->round != 3)
        return;
    if (w->runs == 1)
        session_control(s, CONTROL_RESTART, NULL, NULL, 0);
    if (w->runs == 2)
        session_control(s, CONTROL_PROMPT, NULL, session_prompts[3], 0);
}

TEST(a_restart_and_a_new_prompt_begin_new_runs)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct restarts w = {0};
    struct session_rig_result plain;
    o.pace = 300;
    o.stay = true; /* the session waits at the end; the test quits there */
    struct live *s;
    struct err err = {0};
    assert_ok(session_open(&s, f->engine, &o, &err), err);
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    assert_ok(s->ops->start(s, &err), err);
    token_t last[256];
    size_t n = 0;
    for (bool over = false; !over;) {
        const struct event *e = event_reader_next(reader);
        if (e == NULL) {
            event_reader_wait(reader, 1000);
            continue;
        }
        if (event_is_control(e, "run", NULL))
            n = 0;
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_PREFILL)
            last[n++] = e->token.token;
        restart_and_prompt(&w, s, e);
        over = w.runs == 3 && event_is_control(e, "end", NULL);
    }
    event_reader_close(reader);
    live_close(s);
    o = session_usual();
    o.prompt = session_prompts[3];
    o.prompt_len = strlen(o.prompt);
    session_run(f->engine, &o, NULL, NULL, &plain);
    assert_int_equal(n, 1);
    assert_int_equal(last[0], plain.tokens[0]);
    session_rig_free(&plain);
}

/* Each time that the session is idle, the log has the rounds of the requested steps, and another pause. */
TEST(an_idle_session_has_emitted_the_events_of_all_requests)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct live *s;
    struct err err = {0};
    uint32_t rounds = 0;
    o.paused = o.stay = true;
    assert_ok(session_open(&s, f->engine, &o, &err), err);
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    assert_false(s->ops->resting(s)); /* it has not begun */
    assert_ok(s->ops->start(s, &err), err);
    for (uint32_t steps = 1; steps < 6; steps++) {
        bool paused = false;
        session_control(s, CONTROL_POLICY, NULL, steps % 2 != 0 ? "layerskip" : "specbound", 0);
        session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, 2);
        while (!s->ops->resting(s))
            sched_yield();
        for (const struct event *e; (e = event_reader_next(reader)) != NULL;) {
            rounds += e->type == EVENT_ROUND;
            if (event_is_control(e, "state", NULL))
                paused = strcmp(e->control.new_text, "paused") == 0;
        }
        assert_int_equal(rounds, 2 * steps);
        assert_true(paused);
    }
    event_reader_close(reader);
    live_close(s);
}

TEST(a_run_ends_after_its_tokens_or_with_its_context)
{
    struct fixture *f = *state;
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct session_options o = session_usual();
        struct session_rig_result r;
        o.policy = policy_registry[i]->name;
        for (uint32_t n = 1; n < 12; n++) {
            o.tokens = n;
            session_run(f->engine, &o, NULL, NULL, &r);
            assert_int_equal(r.n, n);
            assert_string_equal(r.end, "tokens");
            session_rig_free(&r);
        }
        o.tokens = 0;
        o.ctx = 100;
        session_run(f->engine, &o, NULL, NULL, &r);
        assert_string_equal(r.end, "context");
        size_t generated = r.n;
        session_rig_free(&r);
        o.policy = "ar";
        session_run(f->engine, &o, NULL, NULL, &r);
        assert_int_equal(r.n, generated); /* the last slot is used under every policy */
        session_rig_free(&r);
    }
}

TEST(an_end_of_sequence_ends_the_run_at_the_same_token_under_every_policy)
{
    struct fixture *f = *state;
    uint32_t ended = 0;
    for (size_t prompt = 0; prompt < SESSION_PROMPTS; prompt++) {
        struct session_options o = session_usual();
        o.ignore_eos = false;
        o.tokens = 120;
        o.prompt = session_prompts[prompt];
        o.prompt_len = strlen(o.prompt);
        struct session_rig_result ar, r;
        o.policy = "ar";
        session_run(f->engine, &o, NULL, NULL, &ar);
        ended += strcmp(ar.end, "eos") == 0;
        for (size_t i = 0; policy_registry[i] != NULL; i++) {
            o.policy = policy_registry[i]->name;
            session_run(f->engine, &o, NULL, NULL, &r);
            assert_string_equal(r.end, ar.end);
            assert_int_equal(r.n, ar.n);
            assert_memory_equal(r.tokens, ar.tokens, r.n * sizeof *r.tokens);
            session_rig_free(&r);
        }
        session_rig_free(&ar);
    }
    print_message("# %u of %d prompts ended with eos\n", (unsigned)ended, SESSION_PROMPTS);
}

/* Counts a round's drafts up to the end of the text, and those after it separately. */
static uint32_t
check_cut(const struct recorded_run *run)
{
    uint32_t drafts = 0, verdicts = 0, accepted = 0, own = 0, cut = 0;
    for (size_t i = 0; i < run->n; i++) {
        const struct event *e = &run->events[i];
        const struct round_event *r = &e->round_end;
        drafts += e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT;
        own += e->type == EVENT_TOKEN && (e->token.source == SOURCE_CORRECTION || e->token.source == SOURCE_BONUS);
        verdicts += e->type == EVENT_VERDICT;
        accepted += e->type == EVENT_VERDICT && e->verdict.accepted > 0;
        if (e->type == EVENT_VERDICT)
            assert_int_equal(e->verdict.accepted, e->verdict.committed);
        if (e->type != EVENT_ROUND)
            continue;
        assert_int_equal(r->drafted + r->cut, drafts);
        assert_int_equal(r->drafted, verdicts);
        assert_int_equal(r->verified, verdicts);
        assert_int_equal(r->accepted, accepted);
        assert_int_equal(r->emitted, accepted + own);
        assert_true(r->cut == 0 || (r->accepted == r->verified && own == 0 && r->reject_rank == -1));
        cut += r->cut;
        drafts = verdicts = accepted = own = 0;
    }
    return cut;
}

TEST(drafts_after_the_end_of_the_text_are_cut_and_in_no_rate)
{
    static const char *const chains[] = {"layerskip", "specbound", "dv", "ngram"};
    struct fixture *f = *state;
    uint32_t cut = 0;
    for (size_t i = 0; i < SESSION_PROMPTS * (sizeof chains / sizeof *chains); i++) {
        struct session_options o = session_usual();
        struct recorded_run run;
        struct err err = {0};
        o.ignore_eos = false;
        o.tokens = 120;
        o.prompt = session_prompts[i % SESSION_PROMPTS];
        o.prompt_len = strlen(o.prompt);
        o.policy = chains[i / SESSION_PROMPTS];
        assert_ok(record_run(f->engine, &o, &run, &err), err);
        cut += check_cut(&run);
        recorded_run_free(&run);
    }
    print_message("# %u drafts were cut\n", (unsigned)cut);
    assert_greater(cut, 0);
}

/* ---- baseline ---- */

struct baseline_watch {
    bool posted;
    char lossless[48], speed[48];
};

static void
ask_for_baseline(void *user, struct live *s, const struct event *e)
{
    struct baseline_watch *w = user;
    if (e->type == EVENT_ROUND && e->round == 5 && !w->posted) {
        w->posted = true;
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    }
    if (event_is_control(e, "baseline", NULL))
        snprintf(w->speed, sizeof w->speed, "%s", e->control.new_text);
    if (event_is_control(e, "lossless", NULL))
        snprintf(w->lossless, sizeof w->lossless, "%s", e->control.new_text);
}

TEST(a_baseline_in_mid_run_compares_and_changes_nothing)
{
    struct fixture *f = *state;
    for (int sampled = 0; sampled < 2; sampled++) {
        struct session_options o = session_usual();
        o.tokens = 100;
        o.sampling.temperature = sampled ? 0.9f : 0;
        o.pace = 150; /* round 5 must not be the last one when it is requested */
        struct session_rig_result plain, r;
        struct baseline_watch w = {0};
        session_run(f->engine, &o, NULL, NULL, &plain);
        session_run(f->engine, &o, ask_for_baseline, &w, &r);
        assert_string_equal(w.lossless, sampled ? "sampled" : "yes");
        assert_greater(strtod(w.speed, NULL), 0);
        assert_int_equal(r.n, plain.n);
        assert_memory_equal(r.tokens, plain.tokens, r.n * sizeof *r.tokens);
        session_rig_free(&plain);
        session_rig_free(&r);
    }
}

/* ---- costs of steps ---- */

struct costs_watch {
    uint32_t posted, heard, layers;
    uint64_t sum; /* the events' predictions, in order */
    struct cost_model costs;
};

static void
ask_for_costs(void *user, struct live *s, const struct event *e)
{
    struct costs_watch *w = user;
    struct err err;
    if (e->type == EVENT_ROUND && e->round == 3 + 3 * w->posted && w->posted < 2) {
        w->posted++;
        session_control(s, CONTROL_COSTS, NULL, NULL, 0);
    }
    if (event_is_control(e, "cost", NULL)) {
        w->heard++;
        assert_ok(cost_model_parse(e->control.new_text, &w->costs, &err), err);
    }
    if (e->type == EVENT_LAYER) {
        w->layers++;
        w->sum = w->sum * 31 + (uint64_t)e->layer.token * 1009 + (uint64_t)e->layer.layer * 7 + e->layer.pos;
    }
}

static void
hear_layers(void *user, struct live *s, const struct event *e)
{
    (void)s;
    ((struct costs_watch *)user)->posted = 2; /* posts no request */
    ask_for_costs(user, NULL, e);
}

TEST(costs_are_measured_once_for_an_engine_and_change_nothing)
{
    struct fixture *f = *state;
    for (int sampled = 0; sampled < 2; sampled++) {
        struct session_options o = session_usual();
        o.tokens = 100;
        o.probe = PROBE_ALL;
        o.sampling.temperature = sampled ? 0.9f : 0;
        struct session_rig_result plain, r;
        struct costs_watch none = {0}, first = {0}, second = {0};
        f->engine->costs = (struct cost_model){0};
        session_run(f->engine, &o, hear_layers, &none, &plain);
        o.pace = 150;
        for (int run = 0; first.heard == 0 && run < 30; run++) { /* on a busy machine one run may be too short for it */
            if (run > 0)
                session_rig_free(&r);
            first = (struct costs_watch){0};
            session_run(f->engine, &o, ask_for_costs, &first, &r);
        }
        o.pace = 0;
        assert_int_equal(none.heard, 0);
        assert_int_equal(first.heard, 1);
        assert_int_equal(first.posted, 2);
        assert_true(cost_known(&first.costs));
        assert_memory_equal(&first.costs, &f->engine->costs, sizeof first.costs);
        assert_int_equal(r.n, plain.n);
        assert_int_equal(first.layers, none.layers);
        assert_int_equal(first.sum, none.sum);
        assert_memory_equal(r.tokens, plain.tokens, r.n * sizeof *r.tokens);
        session_rig_free(&r);
        session_run(f->engine, &o, ask_for_costs, &second, &r); /* known at the start: run_info.costs */
        assert_int_equal(second.heard, 0);
        session_rig_free(&plain);
        session_rig_free(&r);
    }
}

struct sliced_run {
    uint32_t asked, baselines, comparisons, slices, rounds,
        together; /* together: slices without a round between them */
    bool wrong;
    double se;
};

static void
ask_and_count(void *user, struct live *s, const struct event *e)
{
    struct sliced_run *w = user;
    if (e->type == EVENT_ROUND) {
        w->rounds++;
        if (e->round == 4 && w->asked++ == 0)
            session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    }
    w->baselines += event_is_control(e, "baseline", NULL);
    w->comparisons += event_is_control(e, "lossless", "yes");
    if (event_is_control(e, "baseline_se", NULL))
        w->se = strtod(e->control.new_text, NULL);
    if (event_is_control(e, "baseline_slice", NULL)) {
        w->slices++;
        w->together += w->rounds == 0;
        w->wrong = w->wrong || w->baselines == 0 || !(strtod(e->control.new_text, NULL) > 0);
        w->rounds = 0;
    }
}

TEST(slices_of_a_baseline_follow_between_rounds_and_change_nothing)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    for (int paced = 0; paced < 2; paced++) {
        o.tokens = 100;
        struct session_rig_result plain, r;
        struct sliced_run none = {.asked = 1}, w = {0};
        o.pace = 0;
        session_run(f->engine, &o, ask_and_count, &none, &plain);
        o.pace = paced ? 150 : 0;
        session_run(f->engine, &o, ask_and_count, &w, &r);
        assert_int_equal(none.slices, 0); /* they are not requested */
        assert_int_equal(w.baselines, 1);
        assert_int_equal(w.comparisons, 1);
        assert_greater(w.se, 0);
        assert_greater(w.slices, 0);
        assert_int_equal(w.together, 0);
        assert_false(w.wrong);
        assert_int_equal(r.n, plain.n);
        assert_memory_equal(r.tokens, plain.tokens, r.n * sizeof *r.tokens);
        session_rig_free(&plain);
        session_rig_free(&r);
    }
}

static void
count_positions(void *user, struct live *s, const struct event *e)
{
    (void)s;
    if (e->type == EVENT_ROUND)
        positions_round(user, &e->round_end);
}

TEST(a_seed_repeats_a_sampled_run)
{
    struct fixture *f = *state;
    const struct knob_setting no_times = {"row_cost",
                                          "0.1"}; /* otherwise measured times decide how many drafts sv verifies */
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct session_options o = session_usual();
        o.policy = policy_registry[i]->name;
        if (strcmp(o.policy, "sv") == 0) {
            o.set = &no_times;
            o.n_set = 1;
        }
        o.sampling = (struct sampling){.temperature = 1, .top_k = 40, .top_p = 0.95f};
        struct session_rig_result a, b, c;
        session_run(f->engine, &o, NULL, NULL, &a);
        session_run(f->engine, &o, NULL, NULL, &b);
        o.seed = 2;
        session_run(f->engine, &o, NULL, NULL, &c);
        assert_memory_equal(a.tokens, b.tokens, a.n * sizeof *a.tokens);
        assert_memory_not_equal(a.tokens, c.tokens, a.n * sizeof *a.tokens);
        session_rig_free(&a);
        session_rig_free(&b);
        session_rig_free(&c);
    }
}

/* The rig compares each rank with the list from which the draft was taken, if the policy's prediction was emitted. */
TEST(the_rank_at_a_rejection_is_that_in_the_drafters_list)
{
    struct fixture *f = *state;
    static const struct {
        const char *policy;
        bool listed;
    } of[] = {{"layerskip", true}, {"specbound", true}, {"sd", true}, {"ngram", false}, {"ar", false}};
    for (size_t i = 0; i < 2 * sizeof of / sizeof *of; i++) {
        struct session_options o = session_usual();
        struct session_rig_result r;
        struct positions p = {0};
        o.policy = of[i / 2].policy;
        o.sampling.temperature = i % 2 == 0 ? 0 : 1;
        session_run(f->engine, &o, count_positions, &p, &r);
        if (of[i / 2].listed) {
            assert_greater(r.ranked, 0);
            assert_at_least(positions_ranked(&p), r.ranked);
        } else
            assert_int_equal(positions_ranked(&p), 0);
        if (o.sampling.temperature == 0)
            assert_int_equal(p.ranks[1], 0); /* a rejected first choice is another token */
        session_rig_free(&r);
    }
}

/* ---- refusals ---- */

static void
refused(struct engine *engine, const struct session_options *o, const char *says)
{
    struct live *s;
    struct err err = {0};
    assert_false(session_open(&s, engine, o, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    if (strstr(err.text, says) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, says);
}

TEST(models_that_cannot_run_are_refused_in_one_line)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    o.policy = "nonsense";
    refused(f->engine, &o, "no policy 'nonsense'");
    o = session_usual();
    o.ctx = 4;
    refused(f->engine, &o, "the context holds 4");
    o = session_usual();
    o.set = &(struct knob_setting){"tau", "7"};
    o.n_set = 1;
    refused(f->engine, &o, "tau");
    o.set = &(struct knob_setting){"colour", "1"};
    refused(f->engine, &o, "has no knob 'colour'");
    o = session_usual();
    o.sampling.temperature = -1;
    refused(f->engine, &o, "temperature");
}

FIXTURE(session_fixture_open, session_fixture_close);
