/* SWIFT round by round against a slow reference. Each round is drafted again in a separate context, from an empty
 * cache, one row at a time, with the sublayers that the round reports as skipped. Candidates come from sorted logits,
 * and the tree's places are allocated as in docs/policies/swift.md. The bits are the same, so tokens must be equal. */
#include <math.h>

#include "cli/options/commands.h"
#include "engine/context/context.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/test.h"

enum { LAYERS = 32, CTX = 512, CANDIDATES = 10 };

struct swift_knobs {
    uint32_t w_max, window;
    double stop;
    const uint32_t *candidates; /* for confidence above 0.95, 0.8, 0.5, and below */
};

static const uint32_t paper[] = {1, 3, 5, 10}, code[] = {3, 5, 8, 10}, off[] = {1, 1, 1, 1};

struct reference {
    struct context *ctx;
    seq_t seq;
    uint32_t layers, vocab, prompt; /* tokens of the prompt */
    token_t text[CTX];              /* (n_text) prompt and autoregressive continuation */
    uint32_t n_text;
    float *logits; /* (vocab) */
};

/* ---- the text ---- */

static token_t
likeliest(const struct reference *ref, const token_t *without, uint32_t n)
{
    token_t best = TOKEN_NONE;
    for (uint32_t t = 0; t < ref->vocab; t++) {
        bool taken = false;
        for (uint32_t i = 0; i < n; i++)
            taken = taken || without[i] == (token_t)t;
        if (!taken && (best == TOKEN_NONE || ref->logits[t] > ref->logits[best]))
            best = (token_t)t;
    }
    return best;
}

static void
open_reference(struct reference *ref, const struct engine *engine, const struct recorded_run *run, uint32_t tokens)
{
    struct err err = {0};
    const struct context_options limits = {.ctx = CTX};
    *ref = (struct reference){.layers = run->layers, .vocab = engine->model->desc.vocab};
    assert_true(
        context_open(&ref->ctx, engine->ops, engine->backend, engine->weights, &engine->model->desc, &limits, &err));
    ref->seq = context_sequence(ref->ctx);
    ref->logits = calloc(ref->vocab, sizeof *ref->logits);
    assert_non_null(ref->logits);
    for (size_t i = 0; i < run->n; i++)
        if (run->events[i].type == EVENT_TOKEN && run->events[i].token.source == SOURCE_PROMPT)
            ref->text[ref->prompt++] = run->events[i].token.token;
    assert_true(context_prefill(ref->ctx, ref->seq, ref->text, ref->prompt, NULL, NULL));
    for (ref->n_text = ref->prompt; ref->n_text < ref->prompt + tokens; ref->n_text++) {
        const slot_t last = context_at(ref->ctx, ref->seq, ref->n_text - 1);
        assert_true(context_read_logits(ref->ctx, last, ref->layers, ref->logits));
        ref->text[ref->n_text] = likeliest(ref, NULL, 0);
        assert_true(context_prefill(ref->ctx, ref->seq, &ref->text[ref->n_text], 1, NULL, NULL));
    }
}

static void
close_reference(struct reference *ref)
{
    context_close(ref->ctx);
    free(ref->logits);
}

/* ---- a round ---- */

struct node {
    int32_t parent;
    token_t token;
    float confidence;
};

struct round_seen {
    uint32_t number, n_tokens; /* the round; tokens at its beginning */
    struct node node[VERIFY_NODES];
    uint32_t n; /* nodes; node 0 is the pending token */
    bool skip_attention[LAYERS + 1], skip_mlp[LAYERS + 1];
    const struct round_event *end;
};

/* Reads the events of a round. */
static void
read_round(const struct recorded_run *run, uint32_t number, struct round_seen *seen)
{
    *seen = (struct round_seen){.number = number, .n_tokens = seen->n_tokens, .n = 1};
    for (size_t i = 0; i < run->n; i++) {
        const struct event *e = &run->events[i];
        if (e->round != number)
            continue;
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
            assert_int_equal(e->token.candidate, seen->n);
            assert_in_range(seen->n, 1, VERIFY_NODES - 1);
            seen->node[seen->n++] = (struct node){e->token.parent, e->token.token, e->token.confidence};
        } else if (e->type == EVENT_SERIES && strcmp(e->series.key, "mask") == 0) {
            const uint32_t at = (uint32_t)e->series.index;
            (at < run->layers ? seen->skip_attention : seen->skip_mlp)[at % run->layers + 1] = e->series.value > 0;
        } else if (e->type == EVENT_ROUND) {
            seen->end = &e->round_end;
        }
    }
    assert_non_null(seen->end);
}

/* Appends a row of the reduced model and stores its logits in ref->logits. */
static slot_t
reduced_row(struct reference *ref, const struct round_seen *seen, slot_t after, token_t token)
{
    const struct plan plan = {seen->skip_attention, seen->skip_mlp};
    const slot_t row = context_append(ref->ctx, ref->seq, after, token);
    assert_int_not_equal(row, SLOT_NONE);
    assert_true(context_advance(ref->ctx, &row, 1, ref->layers, &plan));
    assert_true(context_read_logits(ref->ctx, row, ref->layers, ref->logits));
    return row;
}

static double
probability(const struct reference *ref, token_t token)
{
    double sum = 0;
    for (uint32_t t = 0; t < ref->vocab; t++)
        sum += exp((double)ref->logits[t] - (double)ref->logits[token]);
    return 1 / sum;
}

/* Each step adds the chain's token and its siblings: as many as its confidence allows, while the rest of the chain
 * keeps its places. */
static void
check_tree(struct reference *ref, const struct round_seen *seen, const struct swift_knobs *with)
{
    const uint32_t wanted = ref->n_text - seen->n_tokens - 1, chain = wanted < with->w_max ? wanted : with->w_max;
    context_truncate(ref->ctx, ref->seq, 0);
    assert_true(context_prefill(ref->ctx, ref->seq, ref->text, seen->n_tokens - 1, NULL, NULL));
    slot_t row = SLOT_NONE;
    token_t token = ref->text[seen->n_tokens - 1];
    uint32_t used = 1, step = 0; /* of VERIFY_NODES places; of chain steps */
    int32_t parent = 0;
    bool sure = true;
    for (; step < chain && sure; step++) {
        row = reduced_row(ref, seen, row, token);
        if (used >= seen->n)
            fail_msg("round %u stops after %u steps", (unsigned)seen->number, (unsigned)step);
        const double c = (double)seen->node[used].confidence;
        uint32_t k = with->candidates[c > 0.95 ? 0 : c > 0.8 ? 1 : c > 0.5 ? 2 : 3];
        const uint32_t kept = chain - step - 1; /* places that the rest of the chain needs */
        while (k > 1 && used + k + kept > VERIFY_NODES)
            k--;
        token_t candidates[CANDIDATES];
        for (uint32_t i = 0; i < k; i++, used++) {
            candidates[i] = likeliest(ref, candidates, i);
            if (used >= seen->n || seen->node[used].parent != parent || seen->node[used].token != candidates[i])
                fail_msg("round %u, step %u: candidate %u of %u is not token %d", (unsigned)seen->number,
                         (unsigned)step, (unsigned)i, (unsigned)k, (int)candidates[i]);
            const double own = (double)seen->node[used].confidence, p = probability(ref, candidates[i]);
            if (i < PREDICTION_TOP ? !(fabs(own - p) < 1e-5) : !isnan(own))
                fail_msg("round %u, step %u: candidate %u has the confidence %g, by the logits %g",
                         (unsigned)seen->number, (unsigned)step, (unsigned)i, own, p);
        }
        parent = (int32_t)(used - k);
        token = candidates[0];
        sure = !(c < with->stop);
    }
    assert_int_equal(seen->n, used);
    assert_int_equal(seen->end->drafted, step);
    assert_string_equal(seen->end->stop_reason, !sure ? "threshold" : with->w_max <= wanted ? "w_max" : "budget");
}

/* Verifies the tree with the target; returns the number of tokens that the round emits. */
static uint32_t
check_verdict(const struct reference *ref, const struct round_seen *seen)
{
    uint32_t accepted = 0;
    int32_t at = 0;
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = 1; i < seen->n && !found; i++)
            if (seen->node[i].parent == at && seen->node[i].token == ref->text[seen->n_tokens + accepted]) {
                found = true;
                at = (int32_t)i;
            }
        accepted += found;
    }
    assert_int_equal(seen->end->accepted, accepted);
    assert_int_equal(seen->end->emitted, accepted + 1);
    return accepted + 1;
}

/* The share of the first W generated tokens' followers that the round's reduced model predicts. */
static double
matchness(struct reference *ref, const struct round_seen *seen, uint32_t window)
{
    context_truncate(ref->ctx, ref->seq, 0);
    assert_true(context_prefill(ref->ctx, ref->seq, ref->text, ref->prompt, NULL, NULL));
    slot_t row = SLOT_NONE;
    uint32_t matched = 0;
    for (uint32_t i = 0; i < window; i++) {
        row = reduced_row(ref, seen, row, ref->text[ref->prompt + i]);
        matched += likeliest(ref, NULL, 0) == ref->text[ref->prompt + i + 1];
    }
    return (double)matched / window;
}

/* ---- runs ---- */

static void
compare(struct engine *engine, const struct session_options *options, struct swift_knobs with)
{
    struct recorded_run run;
    struct reference ref;
    struct round_seen seen = {0};
    struct err err = {0};
    assert_ok(record_run(engine, options, &run, &err), err);
    assert_in_range(run.layers, 2, LAYERS);
    open_reference(&ref, engine, &run, options->tokens);
    uint32_t rounds = 0, full = 0;
    bool scored = false;
    seen.n_tokens = ref.prompt + 1;
    while (seen.n_tokens < ref.n_text) {
        read_round(&run, ++rounds, &seen);
        check_tree(&ref, &seen, &with);
        full += seen.n == VERIFY_NODES;
        if (!scored && seen.n_tokens - ref.prompt > with.window) { /* the first set scored is the best so far */
            assert_near(recorded_value(&run, rounds, "scored", 0), matchness(&ref, &seen, with.window), 1e-6);
            assert_greater(seen.end->learning_us, 0);
            scored = true;
        }
        seen.n_tokens += check_verdict(&ref, &seen);
    }
    print_message("%u rounds, %u of them with a full tree\n", (unsigned)rounds, (unsigned)full);
    close_reference(&ref);
    recorded_run_free(&run);
}

TEST(trees_follow_the_method_on_tiny_models)
{
    const struct tinymodel shapes[] = {
        {.seed = 1, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8},
        {.seed = 3, .n_layers = 9, .width = 32, .calm_after = 3, .calm = 0.3f},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct engine *engine = exact_rig_tiny(&shapes[i], NULL, NULL);
        struct session_options o = exact_rig_session("swift", "a longer prompt: 1, 2, 3", 150);
        compare(engine, &o, (struct swift_knobs){25, 32, 0.8, paper});
        const struct knob_setting unstopped[] = {{"stop", "0"}, {"tree", "code"}, {"window", "8"}, {"interval", "3"}};
        o.set = unstopped; /* trees have all places */
        o.n_set = 4;
        compare(engine, &o, (struct swift_knobs){25, 8, 0, code});
        const struct knob_setting chains[] = {{"stop", "0.3"}, {"tree", "off"}, {"w_max", "5"}, {"skip_ratio", "0.7"}};
        o.set = chains;
        compare(engine, &o, (struct swift_knobs){5, 32, 0.3, off});
        engine_close(engine);
    }
}

TEST(trees_follow_the_method_on_the_bundled_model)
{
    struct engine *engine = exact_rig_open(bundled_model_path(), NULL, NULL);
    struct session_options o =
        exact_rig_session("swift", "Once upon a time there was a king who had three daughters, and", 90);
    compare(engine, &o, (struct swift_knobs){25, 32, 0.8, paper});
    engine_close(engine);
}

TEST(the_search_resumes_in_the_next_session)
{
    struct engine *engine =
        exact_rig_tiny(&(struct tinymodel){.seed = 3, .n_layers = 9, .calm_after = 3, .calm = 0.3f}, NULL, NULL);
    struct session_options o = exact_rig_session("swift", "a longer prompt: 1, 2, 3", 100);
    const struct knob_setting set[] = {{"window", "8"}, {"target", "1"}, {"patience", "10000"}};
    o.set = set;
    o.n_set = 3;
    struct policy_memory memory = {0};
    struct round_seen last = {0}, begun = {0};
    struct recorded_run alone = exact_rig_record(engine, &o); /* without a memory */
    o.memory = &memory;
    struct recorded_run first = exact_rig_record(engine, &o);
    o.prompt = "another one";
    o.prompt_len = strlen(o.prompt);
    struct recorded_run next = exact_rig_record(engine, &o);
    uint32_t rounds = 0;
    for (size_t i = 0; i < first.n; i++)
        rounds += first.events[i].type == EVENT_ROUND;
    read_round(&first, rounds, &last);
    read_round(&next, 1, &begun);
    assert_true(isnan(recorded_value(&alone, 1, "matchness", 0)) && isnan(recorded_value(&first, 1, "matchness", 0)));
    assert_number_equal(recorded_value(&next, 1, "matchness", 0), recorded_value(&first, rounds, "matchness", 0));
    assert_number_equal(recorded_value(&next, 1, "age", 0), recorded_value(&first, rounds, "age", 0));
    assert_memory_equal(begun.skip_attention, last.skip_attention, sizeof last.skip_attention);
    assert_memory_equal(begun.skip_mlp, last.skip_mlp, sizeof last.skip_mlp);
    recorded_run_free(&alone);
    recorded_run_free(&first);
    recorded_run_free(&next);
    policy_memory_free(&memory);
    engine_close(engine);
}
