/* SWIFT: self-speculation with skipped sublayers, optimised on the fly (METHODS §5).
 *
 * The draft is the same model without some attention and MLP sublayers of layers 2..L-1. Its rows live in a fork of the
 * sequence, on top of the target's keys and values, dropped before verification. A draft step adds its best candidate to
 * the chain and, the less sure it is, siblings beside it; the whole tree goes through the target in one pass.
 *
 * Before a round, while the search runs and enough tokens were generated, one set of sublayers is scored: the first
 * tokens after the prompt run through the reduced model in a fork at the prompt's end, and the share that it predicts is
 * its *matchness*. The search survives from prompt to prompt, and in a file when a folder for that was given.
 *
 * Where this departs: the paper's released code uses fewer siblings (the knob `tree`); rounds end early when the tree
 * is full (siblings are cut first); one set is scored a round. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/round.h"
#include "policies/policy.h"
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

struct swift {
    struct swift_search search;
    double ratio; /* the search is for this one */
    uint32_t layers;
    bool *skip_attention, *skip_mlp; /* (L + 1) of the plan in use */
    bool saved;                      /* nothing new to write */
    char path[512];                  /* of the state file; "" for none */
    uint64_t seed;
};

static const char *const trees[] = {"off", "paper", "code"};

/* candidates in all for a step of that confidence: above 0.95, 0.8, 0.5, below */
static const uint32_t schedules[][4] = {{1, 1, 1, 1}, {1, 3, 5, 10}, {3, 5, 8, 10}};

static bool
begin_search(struct swift *w, double ratio, struct err *err)
{
    search_close(&w->search);
    w->ratio = ratio;
    w->saved = true;
    if (!search_open(&w->search, w->layers, ratio, w->seed))
        return err_set(err, ERR_WORK, "out of memory opening swift");
    if (w->path[0] != '\0' && !search_load(&w->search, w->path, err) && err->kind != ERR_NONE)
        return false;
    return true;
}

static bool
swift_open(struct policy *p, const struct model_info *model, const struct policy_args *args, struct err *err)
{
    static const struct knob tree = {.name = "tree",
                                     .symbol = "tree",
                                     .kind = KNOB_CHOICE,
                                     .max = 2,
                                     .step = 1,
                                     .def = 1,
                                     .choices = trees,
                                     .help =
                                         "siblings beside the chain: none; the paper's 1 3 5 10; its code's 3 5 8 10"};
    struct swift *w = calloc(1, sizeof *w);
    p->state = w;
    if (w == NULL)
        return err_set(err, ERR_WORK, "out of memory opening swift");
    w->layers = model->layers;
    w->seed = 1;
    w->skip_attention = calloc(model->layers + 1, sizeof *w->skip_attention);
    w->skip_mlp = calloc(model->layers + 1, sizeof *w->skip_mlp);
    if (w->skip_attention == NULL || w->skip_mlp == NULL)
        return err_set(err, ERR_WORK, "out of memory opening swift");
    if (args->state_dir != NULL)
        snprintf(w->path, sizeof w->path, "%s/swift-%016" PRIx64 ".json", args->state_dir, args->model_hash);
    return policy_number(p, "skip_ratio", "r", 0, 0.9, 0.01, 0.45,
                         "share of the sublayers of layers 2..L-1 that the draft skips") &&
           policy_number(p, "window", "W", 4, WINDOW_MOST, 1, 32, "generated tokens that a set is scored on") &&
           policy_number(p, "interval", "B", 0, 100, 1, 25,
                         "every so many sets one is the Gaussian process's; 0: never") &&
           policy_number(p, "max_steps", "S", 0, 10000, 1, 1000, "sets scored at most") &&
           policy_number(p, "patience", "P", 1, 10000, 1, 300, "sets without a gain after which the search ends") &&
           policy_number(p, "target", "m*", 0, 1, 0.01, 0.95, "matchness at which the search ends") &&
           policy_number(p, "stop", "τ", 0, 1, 0.01, 0.8, "a step of less confidence is the last one") &&
           policy_number(p, "w_max", "w_max", 1, 32, 1, 25, "most drafts in a round") && policy_knob(p, &tree) &&
           policy_series(p, "matchness", "matchness, best set", SERIES_LINE, 1, 1) &&
           policy_series(p, "scored", "matchness, last set", SERIES_LINE, 1, 1) &&
           policy_series(p, "phase", "search (1 runs, 2 ended)", SERIES_PHASE, 1, 1) &&
           policy_series(p, "age", "sets since the best", SERIES_LINE, 1, 1) &&
           policy_series(p, "aside", "optimisation, ms", SERIES_LINE, 1, 1) &&
           policy_series(p, "mask", "skipped sublayers", SERIES_MASK, 2, (int)model->layers) &&
           begin_search(w, p->value[KNOB_RATIO], err);
}

static struct plan
plan_of(struct swift *w, const bool *set)
{
    for (uint32_t i = 0; i < w->search.switches; i++)
        *(i % 2 == 0 ? &w->skip_attention[2 + i / 2] : &w->skip_mlp[2 + i / 2]) = set[i];
    return (struct plan){w->skip_attention, w->skip_mlp};
}

/* ---- optimisation ---- */

/* Scores the proposed set on the first W + 1 generated tokens: the rows of g_0..g_{W-1} in a fork at the prompt's end. */
static bool
score(struct swift *w, struct round *r, uint32_t window, double *matchness)
{
    const token_t *g = r->tokens + r->prompt_len;
    struct plan plan = plan_of(w, w->search.proposed);
    slot_t rows[WINDOW_MOST];
    struct context_probe probes[WINDOW_MOST];
    struct guess guesses[WINDOW_MOST];
    seq_t fork = context_fork(r->ctx, r->seq, r->prompt_len);
    bool ok = fork != SEQ_NONE;
    for (uint32_t i = 0; i < window && ok; i++) {
        rows[i] = context_append(r->ctx, fork, i == 0 ? SLOT_NONE : rows[i - 1], g[i]);
        ok = rows[i] != SLOT_NONE;
        probes[i] = (struct context_probe){.slot = rows[i], .layer = w->layers, .temperature = 1};
    }
    ok =
        ok && context_advance(r->ctx, rows, window, w->layers, &plan) && context_guess(r->ctx, probes, window, guesses);
    uint32_t matched = 0;
    for (uint32_t i = 0; i < window && ok; i++)
        matched += guesses[i].token == g[i + 1];
    *matchness = (double)matched / window;
    if (fork != SEQ_NONE)
        context_drop(r->ctx, fork);
    return ok;
}

static bool
optimise(struct policy *p, struct round *r, enum phase *phase)
{
    struct swift *w = p->state;
    uint32_t window = (uint32_t)p->value[KNOB_WINDOW];
    const struct search_limits limits = {.interval = (uint32_t)p->value[KNOB_INTERVAL],
                                         .max_steps = (uint32_t)p->value[KNOB_STEPS],
                                         .patience = (uint32_t)p->value[KNOB_PATIENCE],
                                         .target = p->value[KNOB_TARGET]};
    *phase = PHASE_SETTLED;
    if (w->search.phase != SEARCH_RUNNING || w->search.steps >= limits.max_steps || w->search.skipped == 0)
        return true;
    *phase = r->n_tokens - r->prompt_len > window ? PHASE_OPTIMISING : PHASE_WAITING;
    if (*phase == PHASE_WAITING)
        return true;
    double matchness;
    round_aside_begin(r);
    search_propose(&w->search, limits.interval);
    bool ok = score(w, r, window, &matchness);
    if (ok && search_score(&w->search, matchness, &limits))
        w->saved = false;
    round_aside_end(r);
    return ok;
}

static void
report(struct policy *p, struct round *r, enum phase phase, double aside_ms)
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
        round_report(r, "aside", 0, aside_ms);
    round_report(r, "phase", 0, phase);
    round_report(r, "phase", 1, phase == PHASE_SETTLED ? 1 : fmin(1, fmax(steps, patience)));
    for (uint32_t l = 1; l <= w->layers; l++) {
        round_report(r, "mask", (int)l - 1, w->skip_attention[l]);
        round_report(r, "mask", (int)(w->layers + l) - 1, w->skip_mlp[l]);
    }
}

/* ---- drafting ---- */

static uint32_t
candidates_for(const struct policy *p, double confidence)
{
    const uint32_t *k = schedules[(int)p->value[KNOB_TREE]];
    return confidence > 0.95 ? k[0] : confidence > 0.8 ? k[1] : confidence > 0.5 ? k[2] : k[3];
}

/* One draft step after chain node `node`: the chain's next token, siblings beside it. Its row in the fork is `row`. */
static bool
step(struct policy *p, struct round *r, slot_t row, uint32_t pos, int32_t *node, uint32_t *nodes, token_t *next,
     bool *last)
{
    const struct swift *w = p->state;
    const struct context_probe probe = {.slot = row, .layer = w->layers, .temperature = 1};
    struct guess g;
    if (!round_look(r, &probe, 1, &g))
        return false;
    uint32_t k = candidates_for(p, (double)g.confidence), room = VERIFY_NODES - *nodes;
    uint32_t chain = r->budget; /* places that the chain may still want: siblings are cut first */
    k = room > chain + k - 1 ? k : room > chain ? room - chain + 1 : 1;
    token_t tokens[SIBLINGS_MOST];
    dist_t q;
    uint32_t n = round_candidates(r, row, w->layers, pos, k, &g, tokens, &q);
    if (n == 0)
        return false;
    const int32_t parent = *node;
    for (uint32_t i = 0; i < n; i++) {
        struct proposal draft = {.parent = parent, .token = tokens[i], .exit_layer = w->layers, .guess = &g, .q = q};
        int32_t proposed = round_propose(r, &draft);
        if (proposed < 0)
            return false;
        if (i == 0)
            *node = proposed;
        ++*nodes;
    }
    *next = tokens[0];
    *last = (double)g.confidence < p->value[KNOB_STOP];
    return true;
}

static bool
draft_tree(struct policy *p, struct round *r, seq_t fork, const char **reason)
{
    struct swift *w = p->state;
    struct plan plan = plan_of(w, w->search.best);
    uint32_t most = (uint32_t)p->value[KNOB_DRAFTS], nodes = 1;
    uint32_t pos = context_length(r->ctx, r->seq); /* of the pending token */
    token_t token = r->tokens[r->n_tokens - 1];
    int32_t node = 0;
    slot_t row = SLOT_NONE;
    bool last = false;
    *reason = "w_max";
    for (uint32_t drafted = 0; drafted < most && !last; drafted++) {
        if (round_full(r)) {
            *reason = "budget";
            return true;
        }
        row = context_append(r->ctx, fork, row, token);
        if (row == SLOT_NONE || !context_advance(r->ctx, &row, 1, w->layers, &plan) ||
            !step(p, r, row, ++pos, &node, &nodes, &token, &last))
            return false;
    }
    if (last)
        *reason = "threshold";
    return true;
}

static bool
swift_draft(struct policy *p, struct round *r)
{
    struct swift *w = p->state;
    struct err ignored;
    enum phase phase;
    if (w->ratio != p->value[KNOB_RATIO] && !begin_search(w, p->value[KNOB_RATIO], &ignored))
        return false;
    double before = round_aside_ms(r);
    if (!optimise(p, r, &phase))
        return false;
    if (w->search.steps == 0) /* nothing is scored yet: draft with the set that will be scored first */
        search_propose(&w->search, 0);
    if (w->search.best_matchness < 0)
        memcpy(w->search.best, w->search.proposed, w->search.switches * sizeof *w->search.best);
    plan_of(w, w->search.best);
    report(p, r, phase, round_aside_ms(r) - before);
    const char *reason = "budget";
    if (r->budget > 0) {
        seq_t fork = context_fork(r->ctx, r->seq, context_length(r->ctx, r->seq));
        bool ok = fork != SEQ_NONE && draft_tree(p, r, fork, &reason);
        if (fork != SEQ_NONE)
            context_drop(r->ctx, fork);
        if (!ok)
            return false;
    }
    round_summary(r, reason, -1, p->value[KNOB_STOP], -1, (int)p->value[KNOB_DRAFTS]);
    return true;
}

static void
swift_close(struct policy *p)
{
    struct swift *w = p->state;
    if (w == NULL)
        return;
    if (w->path[0] != '\0' && !w->saved)
        search_save(&w->search, w->path, NULL); /* a search that is not kept costs the next run only time */
    search_close(&w->search);
    free(w->skip_attention);
    free(w->skip_mlp);
    free(w);
}

extern const struct policy_ops policy_swift;
const struct policy_ops policy_swift = {
    .name = "swift",
    .title = "SWIFT: skipped sublayers, searched on the fly",
    .paper = "Xia et al. 2025, arXiv:2410.06916",
    .open = swift_open,
    .draft = swift_draft,
    .close = swift_close,
};
