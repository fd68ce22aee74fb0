/* The record for what-if, which a scope makes from its events. */

#include "cli/generation/generation.h"
#include "engine/measure/forecast.h"
#include "policies/registry.h"
#include "tests/rigs/folders.h"
#include "tests/rigs/observed_run.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"
#include "traces/reader.h"

enum { LAYERS = 6, TOKENS = 120 };

static struct session_options
options_of(enum probe_mode probe)
{
    struct session_options o = session_usual();
    o.policy = "layerskip";
    o.tokens = TOKENS;
    o.ignore_eos = true;
    o.probe = probe;
    return o;
}

static struct observed_run
observe(void **state, const struct session_options *o)
{
    struct fixture *f = *state;
    struct observed_run w;
    struct err err = {0};
    assert_ok(observe_run(&w, f->engine, o, &err), err);
    return w;
}

TEST(a_record_contains_the_layers_predictions)
{
    const struct session_options o = options_of(PROBE_ALL);
    struct observed_run w = observe(state, &o);
    struct layer_record r;
    struct err err;
    assert_ok(layer_record_open(&r, LAYERS, &err), err);
    assert_null(scope_record(w.scope, &r));
    assert_int_equal(r.first + r.n, scope_now(w.scope)->committed - 1);
    assert_at_least(r.n, TOKENS - 1);
    if (r.begin > 0)
        assert_int_not_equal(scope_column(w.scope, r.first + r.begin)->fate, FATE_PROMPT); /* the end of the prompt */
    assert_number_equal(r.head_load, 1);
    assert_number_equal(r.layers_load, 1); /* the lens */
    for (uint32_t pos = r.first; pos < r.first + r.n; pos++)
        for (uint32_t l = 1; l <= LAYERS; l++) {
            const struct layer_prediction *word = layer_prediction(&r, pos - r.first, l);
            const struct scope_cell *cells = scope_cells(w.scope, pos + 1);
            assert_int_equal(word->agrees, cells[l].token == cells[LAYERS].token);
            assert_near(word->confidence, cells[l].confidence, 1e-6f);
        }
    assert_int_equal(r.n_text, r.first + r.n + 1); /* the record has the whole text */
    for (uint32_t pos = 0; pos <= r.first + r.n; pos++)
        assert_int_equal(layer_record_token(&r, pos), scope_column(w.scope, pos)->token);
    layer_record_close(&r);
    observed_run_close(&w);
}

/* ---- gaps: positions whose layers were not probed ---- */

struct gaps {
    struct scope *scope;
    struct live *session;
    uint32_t at[2]; /* rounds after which probes end and begin again; 0: they do not */
};

static void
switch_probes(void *user, const struct event *e)
{
    struct gaps *g = user;
    struct live *s = g->session;
    struct err err;
    if (g->scope == NULL)
        assert_ok(scope_open(&g->scope, s->ops->info(s), &err), err);
    scope_event(g->scope, e);
    if (!event_is_control(e, "state", "paused"))
        return;
    const uint32_t now = e->round;
    if (now > 0)
        session_control(s, CONTROL_PROBE, NULL, now == g->at[0] ? "policy" : "all", 0);
    session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL,
                    now == 0                          ? g->at[0]
                    : now == g->at[0] && g->at[1] > 0 ? g->at[1] - now
                                                      : 1000);
}

/* A run of `ar` (a token a round) whose probes end after round `off` and begin again after round `on`, and its
 * record. */
static void
record_with_gap(void **state, uint32_t off, uint32_t on, struct gaps *g, struct layer_record *r)
{
    struct fixture *f = *state;
    struct session_options o = options_of(PROBE_ALL);
    struct outcome out;
    struct err err;
    o.policy = "ar";
    o.paused = true;
    *g = (struct gaps){.at = {off, on}};
    assert_ok(session_open(&g->session, f->engine, &o, &err), err);
    const struct generation generation = {.live = g->session, .event = switch_probes, .user = g};
    assert_ok(generate(&generation, &out, &err), err);
    outcome_free(&out);
    assert_ok(layer_record_open(r, LAYERS, &err), err);
    assert_null(scope_record(g->scope, r));
    for (uint32_t pos = r->first; pos <= r->first + r->n; pos++) /* the record's text ends with its last row */
        assert_int_equal(layer_record_token(r, pos), scope_column(g->scope, pos)->token);
    for (uint32_t pos = r->first; pos < r->first + r->n; pos++)
        for (uint32_t l = 1; l <= LAYERS; l++)
            assert_true(scope_cells(g->scope, pos + 1)[l].known);
}

static void
close_gaps(struct gaps *g, struct layer_record *r)
{
    layer_record_close(r);
    scope_close(g->scope);
    live_close(g->session);
}

TEST(a_record_ends_before_a_gap_at_the_end_of_the_text)
{
    struct gaps g;
    struct layer_record r;
    record_with_gap(state, 80, 0, &g, &r);
    const uint32_t gap = scope_round_position(g.scope, 81);
    assert_int_equal(r.first + r.n + 1, gap);
    close_gaps(&g, &r);
}

TEST(a_record_begins_after_a_gap_if_enough_positions_follow)
{
    struct gaps g;
    struct layer_record r;
    record_with_gap(state, 30, 50, &g, &r);
    assert_int_equal(r.first + 1, scope_round_position(g.scope, 51));
    assert_int_equal(r.first + r.n, scope_now(g.scope)->committed - 1);
    close_gaps(&g, &r);
    record_with_gap(state, 90, 110, &g, &r); /* few do: the longer part before the gap counts */
    assert_int_equal(r.first + r.n + 1, scope_round_position(g.scope, 91));
    close_gaps(&g, &r);
}

TEST(a_record_without_probes_gives_the_reason)
{
    struct session_options o = options_of(PROBE_POLICY);
    struct observed_run w = observe(state, &o);
    struct layer_record r;
    struct err err;
    assert_ok(layer_record_open(&r, LAYERS, &err), err);
    assert_contains(scope_record(w.scope, &r), "probe all");
    observed_run_close(&w);
    o = options_of(PROBE_ALL);
    o.sampling.temperature = 1;
    w = observe(state, &o);
    assert_contains(scope_record(w.scope, &r), "sampling");
    scope_reset(w.scope);
    assert_non_null(scope_record(w.scope, &r));
    observed_run_close(&w);
    layer_record_close(&r);
}

/* ---- forecasts in time, live and in a replay ---- */

static void
follow(void *user, const struct event *e)
{
    struct observed_run *l = user;
    struct live *s = l->session;
    struct err err;
    if (l->scope == NULL)
        assert_ok(scope_open(&l->scope, s->ops->info(s), &err), err);
    scope_event(l->scope, e);
    if (e->type == EVENT_ROUND && e->round == 3)
        session_control(s, CONTROL_COSTS, NULL, NULL, 0);
}

static struct scope *
replayed(const char *folder, struct trace_reader **r)
{
    struct scope *s;
    struct event e;
    struct err err;
    assert_ok(trace_reader_open(r, folder, false, &err), err);
    assert_ok(scope_open(&s, trace_reader_info(*r), &err), err);
    while (trace_reader_next(*r, &e, &err))
        scope_event(s, &e);
    assert_int_equal(err.kind, ERR_NONE);
    return s;
}

static struct forecast
forecast_of(const struct scope *s)
{
    const double values[POLICY_KNOBS] = {2, 3}; /* exit_layer, gamma */
    struct layer_record r;
    struct forecast f;
    struct err err;
    assert_ok(layer_record_open(&r, LAYERS, &err), err);
    assert_null(scope_record(s, &r));
    assert_true(forecast_make(policy_named(policy_registry, "layerskip"), &r, values, 1, &scope_now(s)->costs, &f));
    layer_record_close(&r);
    return f;
}

/* A control has the costs, which are measured during the first run. The second run has them in run.json. */
TEST(a_replay_has_the_forecasts_in_time_of_its_run)
{
    struct fixture *fixture = *state;
    void *folder;
    struct session_options o = options_of(PROBE_ALL);
    fixture->engine->costs = (struct cost_model){0};
    assert_int_equal(folder_set_up(&folder), 0);
    for (int i = 0; i < 2; i++) {
        struct observed_run live = {0};
        struct outcome out;
        struct trace_reader *reader;
        struct err err;
        char path[300];
        snprintf(path, sizeof path, "%s/%d", (const char *)folder, i);
        o.pace = i == 0 ? 60 : 0; /* a measurement may only take a share of the run's time */
        assert_ok(session_open(&live.session, fixture->engine, &o, &err), err);
        const struct generation g = {.live = live.session, .trace = path, .event = follow, .user = &live};
        assert_ok(generate(&g, &out, &err), err);
        outcome_free(&out);
        struct scope *again = replayed(path, &reader);
        const struct forecast now = forecast_of(live.scope), then = forecast_of(again);
        assert_true(now.in_time);
        assert_greater(now.speedup, 0);
        assert_memory_equal(&now, &then, sizeof now);
        assert_int_equal(cost_known(&trace_reader_info(reader)->costs), i == 1);
        scope_close(again);
        observed_run_close(&live);
        trace_reader_close(reader);
    }
    folder_tear_down(&folder);
}

FIXTURE(session_fixture_open, session_fixture_close);
