/* SWIFT: self-speculation with skipped sublayers, optimised on the fly (docs/policies/swift.md).
 *
 * The draft is the same model without some attention and MLP sublayers of layers 2..L-1. Its rows live in a fork of the
 * sequence, on top of the target's keys and values, dropped before verification. A draft step adds its best candidate
 * to the chain and, the less sure it is, siblings beside it; the whole tree goes through the target in one pass.
 *
 * Before a round, while the search runs and enough tokens were generated, one set of sublayers is scored: the first
 * tokens after the prompt run through the reduced model in a fork at the prompt's end, and the share that it predicts
 * is its *matchness*. That is a learning pass: its time and loads are not the round's. The search continues from prompt
 * to prompt, and from session to session (save, load).
 *
 * The paper's text has fewer siblings than its released code, which adds more when greedy: the knob `tree` has both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/policy.h"
#include "engine/session/round.h"
#include "policies/chain.h"
#include "policies/swift_search.h"

enum {
    KNOB_RATIO,
    KNOB_WINDOW,
    KNOB_INTERVAL,
    KNOB_STEPS,
    KNOB_PATIENCE,
    KNOB_TARGET,
    KNOB_STOP,
    KNOB_DRAFTS,
    KNOB_TREE
};

enum phase { PHASE_WAITING, PHASE_OPTIMISING, PHASE_SETTLED };

#define WINDOW_MOST   48 /* rows of one optimisation pass */
#define SIBLINGS_MOST 10
#define SEED          1

struct swift {
    struct swift_search search;
    uint32_t layers;
    bool *skip_attention, *skip_mlp; /* (L + 1) of the plan in use */
};

static const char *const trees[] = {"off", "paper", "code", NULL};

/* candidates of a step by its confidence: above 0.95, 0.8, 0.5, below */
static const uint32_t schedules[][4] = {{1, 1, 1, 1}, {1, 3, 5, 10}, {3, 5, 8, 10}};

/* Another number of skipped sublayers begins another search. */
static bool
follow_ratio(struct policy *p)
{
    struct swift *w = p->state;
    const uint32_t skipped = search_skipped(w->layers, p->value[KNOB_RATIO]);
    if (skipped == w->search.skipped)
        return true;
    struct swift_search fresh;
    const bool ok = search_open(&fresh, w->layers, skipped, SEED);
    search_close(ok ? &w->search : &fresh);
    if (ok)
        w->search = fresh;
    return ok;
}

static bool
swift_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)sampling;
    struct swift *w = p->state;
    const double ratio = 0.45;
    w->layers = model->layers;
    w->skip_attention = calloc(model->layers + 1, sizeof *w->skip_attention);
    w->skip_mlp = calloc(model->layers + 1, sizeof *w->skip_mlp);
    if (!search_open(&w->search, model->layers, search_skipped(model->layers, ratio), SEED) ||
        w->skip_attention == NULL || w->skip_mlp == NULL)
        return err_set(err, ERR_WORK, "out of memory opening swift");
    return policy_number(p, "skip_ratio", "r", 0, 0.9, 0.01, ratio,
                         "share of the sublayers of layers 2..L-1 that the draft skips") &&
           policy_number(p, "window", "W", 4, WINDOW_MOST, 1, 32, "generated tokens that a set is scored on") &&
           policy_number(p, "interval", "B", 0, 100, 1, 25,
                         "one of so many sets is the Gaussian process's suggestion; 0: none") &&
           policy_number(p, "max_steps", "S", 0, 10000, 1, 1000, "sets scored at most") &&
           policy_number(p, "patience", "P", 1, 10000, 1, 300, "sets without a gain that end the search") &&
           policy_number(p, "target", "m*", 0, 1, 0.01, 0.95, "matchness that ends the search") &&
           policy_number(p, "stop", "τ", 0, 1, 0.01, 0.8, "a step of less confidence is the last one") &&
           policy_number(p, "w_max", "w_max", 1, 32, 1, 25, "most drafts in a round") &&
           policy_choice(p, "tree", "tree", trees, 1,
                         "siblings beside the chain: none; the paper's 1 3 5 10; its code's 3 5 8 10") &&
           policy_series(p, "matchness", "matchness, best set", SERIES_LINE, 1, 1) &&
           policy_series(p, "scored", "matchness, last set", SERIES_LINE, 1, 1) &&
           policy_series(p, "phase", "search (1 runs, 2 ended)", SERIES_PHASE, 1, 1) &&
           policy_series(p, "age", "sets since the best", SERIES_LINE, 1, 1) &&
           policy_series(p, "learning", "optimisation, ms", SERIES_LINE, 1, 1) &&
           policy_series(p, "mask", "skipped sublayers", SERIES_MASK, 2, (int)model->layers);
}

static void *
swift_save(const struct policy *p)
{
    const struct swift *w = p->state;
    return w->search.steps > 0 ? search_save(&w->search) : NULL;
}

static bool
swift_load(struct policy *p, const void *learned)
{
    struct swift *w = p->state;
    if (!follow_ratio(p))
        return false;
    search_load(&w->search, learned);
    return true;
}

static struct plan
plan_of(struct swift *w, const bool *set)
{
    for (uint32_t i = 0; i < w->search.switches; i++)
        *(i % 2 == 0 ? &w->skip_attention[2 + i / 2] : &w->skip_mlp[2 + i / 2]) = set[i];
    return (struct plan){w->skip_attention, w->skip_mlp};
}

/* ---- optimisation ---- */

/* Scores the proposed set on the first W + 1 generated tokens: the rows of g_0..g_{W-1} in a fork at the prompt's
 * end. */
static bool
score(struct swift *w, struct round *r, uint32_t window, double *matchness)
{
    const token_t *g = r->tokens + r->prompt_len;
    struct plan plan = plan_of(w, w->search.proposed);
    struct prediction predictions[WINDOW_MOST];
    const bool ok = chain_rerun(r, r->prompt_len, g, window, w->layers, &plan, predictions);
    uint32_t matched = 0;
    for (uint32_t i = 0; i < window && ok; i++)
        matched += predictions[i].token == g[i + 1];
    *matchness = (double)matched / window;
    return ok;
}

/* Scores one set in a learning pass, if enough tokens are generated. */
static bool
optimise(struct policy *p, struct round *r, enum phase *phase)
{
    struct swift *w = p->state;
    uint32_t window = (uint32_t)p->value[KNOB_WINDOW];
    const struct search_limits limits = {.max_steps = (uint32_t)p->value[KNOB_STEPS],
                                         .patience = (uint32_t)p->value[KNOB_PATIENCE],
                                         .target = p->value[KNOB_TARGET]};
    const bool over = w->search.skipped == 0 || search_phase(&w->search, &limits) != SEARCH_RUNNING;
    *phase = over ? PHASE_SETTLED : r->n_tokens - r->prompt_len > window ? PHASE_OPTIMISING : PHASE_WAITING;
    if (*phase != PHASE_OPTIMISING)
        return true;
    double matchness;
    round_learning_begin(r);
    search_propose(&w->search, (uint32_t)p->value[KNOB_INTERVAL]);
    bool ok = score(w, r, window, &matchness);
    if (ok)
        search_score(&w->search, matchness);
    round_learning_end(r);
    return ok;
}

static void
report(struct policy *p, struct round *r, enum phase phase)
{
    const struct swift *w = p->state;
    const struct swift_search *s = &w->search;
    double steps = p->value[KNOB_STEPS] > 0 ? s->steps / p->value[KNOB_STEPS] : 1;
    double patience = (s->steps - s->best_step) / p->value[KNOB_PATIENCE];
    if (s->steps > 0) {
        round_report(r, "matchness", 0, s->best_matchness);
        round_report(r, "scored", 0, s->last_matchness);
        round_report(r, "age", 0, s->steps - s->best_step);
    }
    if (phase == PHASE_OPTIMISING)
        round_report(r, "learning", 0, round_learning_ms(r));
    round_report(r, "phase", 0, phase);
    round_report(r, "phase", 1, phase == PHASE_SETTLED ? 1 : fmin(1, fmax(steps, patience)));
    for (uint32_t l = 1; l <= w->layers; l++) {
        round_report(r, "mask", (int)l - 1, w->skip_attention[l]);
        round_report(r, "mask", (int)(w->layers + l) - 1, w->skip_mlp[l]);
    }
}

/* ---- drafting ---- */

struct tree {
    seq_t fork;     /* where the reduced model's rows are */
    slot_t row;     /* of the chain's last token in the fork */
    uint32_t pos;   /* its position */
    token_t token;  /* the chain's last token */
    int32_t node;   /* its node in the round's tree */
    uint32_t nodes; /* of the tree, with the pending token */
    uint32_t chain; /* tokens that the chain may still get */
    bool last;      /* drafting stops, because the confidence was too low */
};

static uint32_t
candidates_for(const struct policy *p, double confidence)
{
    const uint32_t *k = schedules[(int)p->value[KNOB_TREE]];
    return confidence > 0.95 ? k[0] : confidence > 0.8 ? k[1] : confidence > 0.5 ? k[2] : k[3];
}

/* The prediction with the probability of another token as its confidence; NAN: it is not among the likeliest. */
static struct prediction
of_sibling(const struct prediction *g, token_t token)
{
    struct prediction own = *g;
    own.confidence = NAN;
    for (int i = 0; i < PREDICTION_TOP; i++)
        if (g->top[i] == token)
            own.confidence = g->top_p[i];
    return own;
}

/* Drafts the chain's next token and its siblings. */
static bool
step(struct policy *p, struct round *r, struct tree *t)
{
    struct swift *w = p->state;
    const struct plan plan = plan_of(w, w->search.best);
    t->row = context_append(r->ctx, t->fork, t->row, t->token);
    const struct context_probe probe = {.slot = t->row, .layer = w->layers, .temperature = 1};
    struct prediction g;
    if (t->row == SLOT_NONE || !context_advance(r->ctx, &t->row, 1, w->layers, &plan) ||
        !round_inspect(r, &probe, 1, &g))
        return false;
    const uint32_t wish = candidates_for(p, (double)g.confidence);
    const uint32_t room = VERIFY_NODES - t->nodes - (t->chain - 1); /* leaves room for the rest of the chain */
    token_t tokens[SIBLINGS_MOST];
    dist_t q;
    const uint32_t n = round_candidates(r, t->row, w->layers, ++t->pos, wish < room ? wish : room, &g, tokens, &q);
    if (n == 0)
        return false;
    const int32_t parent = t->node;
    for (uint32_t i = 0; i < n; i++) {
        const struct prediction own = i > 0 ? of_sibling(&g, tokens[i]) : g;
        const struct proposal draft = {
            .parent = parent, .token = tokens[i], .exit_layer = w->layers, .prediction = &own, .q = q};
        const int32_t node = round_propose(r, &draft);
        if (node < 0)
            return false;
        if (i == 0)
            t->node = node;
    }
    t->nodes += n;
    t->chain--;
    t->token = tokens[0];
    t->last = (double)g.confidence < p->value[KNOB_STOP];
    return true;
}

/* The chain ends at w_max tokens or at the budget. */
static bool
draft_tree(struct policy *p, struct round *r, seq_t fork, const char **reason)
{
    const uint32_t most = (uint32_t)p->value[KNOB_DRAFTS];
    struct tree t = {.fork = fork,
                     .row = SLOT_NONE,
                     .pos = context_length(r->ctx, r->seq),
                     .token = r->tokens[r->n_tokens - 1],
                     .nodes = 1,
                     .chain = most < r->budget ? most : r->budget};
    *reason = most <= r->budget ? "w_max" : "budget";
    while (t.chain > 0 && !t.last)
        if (!step(p, r, &t))
            return false;
    if (t.last)
        *reason = "threshold";
    return true;
}

static bool
draft_one(struct policy *p, struct round *r)
{
    struct swift *w = p->state;
    enum phase phase;
    if (!follow_ratio(p))
        return round_fail(r, "out of memory for a search");
    if (!optimise(p, r, &phase))
        return false;
    plan_of(w, w->search.best);
    report(p, r, phase);
    const char *reason = "budget";
    if (r->budget > 0) {
        const seq_t fork = context_fork(r->ctx, r->seq, context_length(r->ctx, r->seq));
        const bool ok = fork != SEQ_NONE && draft_tree(p, r, fork, &reason);
        if (fork != SEQ_NONE)
            context_drop(r->ctx, fork);
        if (!ok)
            return false;
    }
    round_summary(r, reason, -1, p->value[KNOB_STOP], -1, (int)p->value[KNOB_DRAFTS]);
    return true;
}

static bool
swift_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, draft_one);
}

static void
swift_close(struct policy *p)
{
    struct swift *w = p->state;
    search_close(&w->search);
    free(w->skip_attention);
    free(w->skip_mlp);
}

const struct policy_ops policy_swift = {
    .name = "swift",
    .no_what_if = "no layer predicts what drafts without sublayers would be",
    .title = "SWIFT: skipped sublayers, searched on the fly",
    .paper = "Xia et al. 2025, arXiv:2410.06916",
    .state_size = sizeof(struct swift),
    .open = swift_open,
    .draft_vocab = KNOB_TREE + 1,
    .draft = swift_draft,
    .save = swift_save,
    .load = swift_load,
    .close = swift_close,
    .no_command = "it cannot skip sublayers in drafts",
};
