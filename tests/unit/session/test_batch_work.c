/* Costs and comparisons of a batch: a layer that all rows pass is loaded once, the work for one sequence is on that
 * sequence's line, the scope probes all in one call, and a baseline covers all sequences. */
#include <stdatomic.h>

#include "engine/session/round.h"
#include "tests/rigs/rest.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

/* ---- accounts ---- */

struct totals {
    double layers, heads;
    uint32_t round, lines;
};

static void
sum_round(void *user, struct live *s, const struct event *e)
{
    struct totals *t = user;
    if (e->type != EVENT_ROUND)
        return;
    if (e->round != t->round) {
        if (t->round > 0) { /* one forward pass and one head call for all of them */
            assert_greater(t->layers, s->ops->info(s)->layers - 1e-3);
            assert_less(t->layers, s->ops->info(s)->layers + 1e-3);
            assert_greater(t->heads, 1 - 1e-3);
            assert_less(t->heads, 1 + 1e-3);
        }
        *t = (struct totals){.round = e->round};
    }
    t->layers += (double)e->round_end.layers_loaded;
    t->heads += (double)e->round_end.heads_loaded;
    t->lines++;
}

TEST(a_layer_that_all_pass_is_loaded_once)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(5);
    struct session_rig_result r;
    struct totals t = {0};
    o.policy = "ar";
    session_run(f->engine, &o, sum_round, &t, &r);
    assert_greater(r.metrics.total.emitted, 0);
    session_rig_free(&r);
}

/* A policy that drafts for one sequence after another, and is slow for the first. */
enum { SLOW_MS = 20, LOOKS = 3 };

static bool
slow_one(struct policy *p, struct round *r)
{
    (void)p;
    const struct context_probe probe = {
        .slot = context_at(r->ctx, r->seq, context_length(r->ctx, r->seq) - 1), .layer = 1, .temperature = 1};
    struct prediction g;
    if (r->seed % 2 != 0)
        return true;
    rest_ms(SLOW_MS);
    for (int i = 0; i < LOOKS; i++)
        if (!round_inspect(r, &probe, 1, &g))
            return false;
    return true;
}

static bool
slow_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, slow_one);
}

struct costs {
    uint32_t lines[2];
};

static void
note_cost(void *user, struct live *s, const struct event *e)
{
    (void)s;
    struct costs *c = user;
    if (e->type != EVENT_ROUND)
        return;
    const struct round_event *r = &e->round_end;
    const uint32_t which = e->seq % 2;
    c->lines[which]++;
    if (which != 1)
        assert_at_least(r->draft_us, SLOW_MS * 1000); /* equal shares would halve the time of each of two sequences */
    const float own = which == 0 ? LOOKS : 0;         /* besides a share of the verifying forward pass of all four */
    assert_float_equal(r->heads_loaded, own + 0.25f, 1e-6f);
    assert_float_equal(r->layers_loaded, 6 / 4.0f, 1e-6f);
    if (which != 1)
        assert_greater(r->heads_us, 0);
    if (which != 0)
        assert_number_equal(r->heads_us, 0);
}

TEST(time_spent_on_one_sequence_alone_is_on_its_line)
{
    struct fixture *f = *state;
    static const struct policy_ops slow = {.name = "slow", .title = "", .paper = "", .draft = slow_draft};
    static const struct policy_ops *const registry[] = {&slow, NULL};
    struct session_options o = session_batch(4);
    struct session_rig_result r;
    struct costs c = {.lines = {0}};
    o.policies = registry;
    o.policy = "slow";
    o.n_prompts = 4;
    o.tokens = 6;
    o.seed = 0;
    o.ignore_eos = true;
    session_run(f->engine, &o, note_cost, &c, &r);
    assert_int_equal(c.lines[0], 2 * 5);
    assert_int_equal(c.lines[1], 2 * 5);
    session_rig_free(&r);
}

/* ---- the scope's probes ---- */

static const struct backend_ops *real;
static uint32_t head_calls;

static bool
counted_prediction(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    head_calls++;
    return real->predict(s, probes, n, out);
}

static void
count_rounds(void *user, struct live *s, const struct event *e)
{
    (void)s;
    uint32_t *last = user;
    if (e->type == EVENT_ROUND)
        *last = e->round;
}

TEST(the_scope_asks_for_all_sequences_in_one_call)
{
    struct fixture *f = *state;
    struct backend_ops counting = *f->engine->ops;
    struct session_options o = session_batch(4);
    struct session_rig_result out;
    uint32_t rounds = 0;
    real = f->engine->ops;
    counting.predict = counted_prediction;
    head_calls = 0;
    o.policy = "ar"; /* which reads no head itself */
    o.n_prompts = 4;
    o.tokens = 40;
    o.probe = PROBE_ALL;
    f->engine->ops = &counting;
    session_run(f->engine, &o, count_rounds, &rounds, &out);
    f->engine->ops = real;
    assert_at_least(rounds, 39);
    assert_int_equal(head_calls, rounds + 4); /* and once at each prompt's end */
    session_rig_free(&out);
}

/* ---- baselines ---- */

/* One baseline after some sequences have left, and one at the end. */
struct alone_and_together {
    char lossless[2][64];
    uint32_t n, left, first_left, pauses;
};

/* Changes the backend's verdict once, to another token. */
static struct {
    struct backend_ops ops;
    const struct backend_ops *real;
    atomic_bool wanted;
    struct verdict *out;
} lie;

static bool
lying_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    if (atomic_exchange(&lie.wanted, false))
        lie.out = requests[0].out;
    return lie.real->verify(s, requests, n);
}

static bool
lying_wait(struct kv_cache *s, struct err *err)
{
    const bool ok = lie.real->wait(s, err);
    if (lie.out != NULL)
        lie.out->next = lie.out->next == 0;
    lie.out = NULL;
    return ok;
}

static void
compare_twice(void *user, struct live *s, const struct event *e)
{
    struct alone_and_together *c = user;
    if (event_is_control(e, "left", NULL) && c->left++ == 0)
        c->first_left = e->seq;
    if (event_is_control(e, "state", "paused") && c->pauses++ == 0)
        session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, 40);
    else if (event_is_control(e, "state", "paused") && c->pauses == 2) {
        assert_in_range(c->left, 1, SESSION_BATCH - 4);
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    }
    if (event_is_control(e, "end", "batch"))
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    if (!event_is_control(e, "lossless", NULL))
        return;
    snprintf(c->lossless[c->n], sizeof c->lossless[0], "%s", e->control.new_text);
    session_control(s, ++c->n == 1 ? CONTROL_RESUME : CONTROL_QUIT, NULL, NULL, 0);
}

/* In these, the first verdict of the first baseline is wrong. It belongs to the sequence that left first. */
static void
lie_to(void *user, struct live *s, const struct event *e)
{
    const struct alone_and_together *c = user;
    if (event_is_control(e, "state", "paused") && c->pauses == 1)
        atomic_store(&lie.wanted, true);
    compare_twice(user, s, e);
}

TEST(a_baseline_is_of_all_sequences_those_that_left_too)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(3);
    struct session_rig_result plain, busy;
    session_run(f->engine, &o, NULL, NULL, &plain);
    o.paused = o.stay = true;
    lie.real = f->engine->ops;
    lie.ops = *f->engine->ops;
    lie.ops.verify = lying_verify;
    lie.ops.wait = lying_wait;
    f->engine->ops = &lie.ops;
    for (int lies = 0; lies < 2; lies++) {
        struct alone_and_together c = {.n = 0};
        session_run(f->engine, &o, lies ? lie_to : compare_twice, &c, &busy);
        assert_int_equal(c.n, 2);
        for (size_t i = 0; i < SESSION_BATCH; i++) {
            assert_int_equal(busy.sequences[i].n, plain.sequences[i].n);
            assert_memory_equal(busy.sequences[i].tokens, plain.sequences[i].tokens,
                                plain.sequences[i].n * sizeof *plain.sequences[i].tokens);
        }
        char expected[64] = "yes: 7 sequences";
        if (lies)
            snprintf(expected, sizeof expected, "no: token 2 of sequence %u", (unsigned)c.first_left + 1);
        assert_string_equal(c.lossless[1], expected);
        session_rig_free(&busy);
    }
    f->engine->ops = lie.real;
    session_rig_free(&plain);
}

FIXTURE(session_fixture_open, session_fixture_close);
