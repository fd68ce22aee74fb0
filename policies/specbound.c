/* SpecBound (docs/policies/specbound.md): annealed confidence decides where a token exits, and a round is bounded in
 * depth and width.
 *
 *   T_l = 1 + α (1 − l/L)                                        (eq. 1)
 *   p_l = max softmax(z_l / T_l); exit at the first l ≤ d_max with p_l ≥ τ   (eq. 2)
 *
 * The backend compares p_l with τ within its pass (struct exit_rule in kernels/backend.h); this file sets T and τ for
 * each layer.
 *
 * A token that finds no exit by d_max is *difficult*: drafting stops and verification decodes it. w_max drafts end the
 * round too. Earlier rows of the round go through a layer together with the newest (the paper's reuse), so attention
 * always sees real keys and values and each layer is read once.
 *
 * Beyond the paper: `d_min` and `stride` leave layers unprobed (small models pay more for a probe than a layer), and
 * `bonus` gives the last draft of a full chain a row of its own, hence a bonus token; the paper's rounds (its eq. 3)
 * have none there. */
#include <math.h>
#include <stdlib.h>

#include "engine/events/policy.h"
#include "engine/session/round.h"
#include "policies/what_if.h"

enum { KNOB_ALPHA, KNOB_TAU, KNOB_D_MAX, KNOB_W_MAX, KNOB_D_MIN, KNOB_STRIDE, KNOB_BONUS };

#define NO_EXIT 2.0f /* a threshold that no probability reaches */

struct specbound {
    uint32_t layers;
    float *temperature, *threshold; /* (L + 1), by layer */
};

static const char *const off_on[] = {"off", "on", NULL};

static bool
specbound_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)sampling;
    struct specbound *b = p->state;
    b->layers = model->layers;
    b->temperature = calloc(model->layers + 1, sizeof *b->temperature);
    b->threshold = calloc(model->layers + 1, sizeof *b->threshold);
    if (b->temperature == NULL || b->threshold == NULL)
        return err_set(err, ERR_WORK, "out of memory opening specbound");
    const double deepest = model->layers - 1,
                 d_max = fmax(1, round(model->layers * 10 / 32.0)); /* the paper's 10 of 32 */
    return policy_number(p, "alpha", "α", 0, 2, 0.05, 0.2,
                         "annealing: shallow layers are softened by T = 1 + α(1 − l/L)") &&
           policy_number(p, "tau", "τ", 0, 1, 0.01, 0.55, "annealed confidence at which a token exits") &&
           policy_number(p, "d_max", "d_max", 1, deepest, 1, d_max,
                         "deepest exit; a token that needs more ends the round") &&
           policy_number(p, "w_max", "w_max", 1, 32, 1, 8, "most drafts in a round") &&
           policy_number(p, "d_min", "d_min", 1, deepest, 1, 1, "first layer that is probed") &&
           policy_number(p, "stride", "k", 1, deepest, 1, 1, "probe every k-th layer from d_min on") &&
           policy_choice(p, "bonus", "bonus", off_on, 1,
                         "the last draft of a full chain has a row and gives a bonus") &&
           policy_series(p, "exit", "mean exit layer", SERIES_LINE, 1, 1) &&
           policy_series(p, "annealed", "mean annealed confidence", SERIES_LINE, 1, 1);
}

/* ---- the rule ---- */

/* eq. 1 and the probed layers. */
static float
temperature(const double *value, uint32_t l, uint32_t layers)
{
    return (float)(1 + value[KNOB_ALPHA] * (1 - (double)l / layers));
}

static float
threshold(const double *value, uint32_t l)
{
    const uint32_t d_min = (uint32_t)value[KNOB_D_MIN], stride = (uint32_t)value[KNOB_STRIDE];
    return l >= d_min && (l - d_min) % stride == 0 ? (float)value[KNOB_TAU] : NO_EXIT;
}

/* Why a round of this many drafts ends; NULL: it continues. */
static const char *
enough(const double *value, uint32_t drafted, bool full)
{
    return drafted >= (uint32_t)value[KNOB_W_MAX] ? "w_max" : full ? "budget" : NULL;
}

/* Whether draft number n gets no row. */
static bool
rowless(const double *value, uint32_t n)
{
    return !(value[KNOB_BONUS] > 0) && n == (uint32_t)value[KNOB_W_MAX];
}

/* ---- on a round ---- */

struct chain {
    struct policy *p;
    struct round *r;
    slot_t rows[VERIFY_NODES]; /* (n + 1) of the pending token and the drafts */
    uint32_t n;
    const char *stop;         /* why drafting stopped; NULL: it continues */
    double exits, confidence; /* sums over the drafts */
    int deepest;
};

static bool
propose(struct chain *c, const struct exit_result *exit)
{
    struct proposal draft = {.parent = (int32_t)c->n,
                             .exit_layer = exit->depth,
                             .prediction = &exit->prediction,
                             .no_row = rowless(c->p->value, c->n + 1)};
    if (!rounds_choose(&c->r, &c->rows[c->n], 1, exit->depth, &exit->prediction, &draft.token, &draft.q) ||
        round_propose(c->r, &draft) < 0)
        return false;
    c->exits += exit->depth;
    c->confidence += (double)exit->prediction.annealed;
    c->deepest = (int)exit->depth > c->deepest ? (int)exit->depth : c->deepest;
    c->n++;
    c->rows[c->n] = round_slot(c->r, (int32_t)c->n);
    return true;
}

/* Adds a draft to each chain that continues, in step; *more: there are such chains. */
static bool
extend(struct chain *chains, uint32_t n, const struct exit_rule *rule, bool *more)
{
    struct chain *open[ROUNDS_MOST];
    struct round *rounds[ROUNDS_MOST];
    struct exit_rows rows[ROUNDS_MOST];
    struct exit_result exits[ROUNDS_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct chain *c = &chains[i];
        if (c->stop == NULL)
            c->stop = enough(c->p->value, c->n, round_full(c->r));
        if (c->stop != NULL)
            continue;
        rows[count] = (struct exit_rows){c->rows, c->n + 1};
        rounds[count] = c->r;
        open[count++] = c;
    }
    *more = count > 0;
    if (count > 0 && !rounds_until(rounds, rows, count, (uint32_t)open[0]->p->value[KNOB_D_MAX], rule, exits))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!exits[i].exited)
            open[i]->stop = "difficult";
        else if (!propose(open[i], &exits[i]))
            return false;
    }
    return true;
}

static bool
specbound_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct specbound *b = p[0]->state;
    struct chain chains[ROUNDS_MOST];
    bool more = true;
    for (uint32_t l = 1; l <= b->layers; l++) {
        b->temperature[l] = temperature(p[0]->value, l, b->layers);
        b->threshold[l] = threshold(p[0]->value, l);
    }
    for (uint32_t i = 0; i < n; i++)
        chains[i] = (struct chain){.p = p[i], .r = r[i], .rows = {round_slot(r[i], 0)}, .deepest = -1};
    while (more)
        if (!extend(chains, n, &(struct exit_rule){.temperature = b->temperature, .threshold = b->threshold}, &more))
            return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct chain *c = &chains[i];
        const double *value = p[i]->value;
        if (c->n > 0) {
            round_report(r[i], "exit", 0, c->exits / c->n);
            round_report(r[i], "annealed", 0, c->confidence / c->n);
        }
        round_summary(r[i], c->stop, c->deepest, value[KNOB_TAU], (int)value[KNOB_D_MAX], (int)value[KNOB_W_MAX]);
    }
    return true;
}

/* ---- on a record ---- */

static bool
specbound_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    const uint32_t layers = record->layers;
    float *schedule = calloc(2 * (size_t)(layers + 1), sizeof *schedule);
    if (schedule == NULL)
        return false;
    float *least = schedule + layers + 1;
    for (uint32_t l = 1; l <= layers; l++) {
        schedule[l] = temperature(value, l, layers);
        least[l] = threshold(value, l);
    }
    const struct exit_rule rule = {.temperature = schedule, .threshold = least};
    struct what_if w;
    what_if_begin(&w, record, out);
    while (what_if_round(&w)) {
        uint32_t exit;
        while (enough(value, w.drafted, what_if_full(&w)) == NULL &&
               (exit = what_if_until(&w, (uint32_t)value[KNOB_D_MAX], &rule)) > 0)
            what_if_propose(&w, exit, rowless(value, w.drafted + 1));
        what_if_verify(&w);
    }
    free(schedule);
    return true;
}

static void
specbound_close(struct policy *p)
{
    struct specbound *b = p->state;
    free(b->temperature);
    free(b->threshold);
}

const struct policy_ops policy_specbound = {
    .name = "specbound",
    .title = "SpecBound: bounded early exits",
    .paper = "Wen & Feng 2026, arXiv:2604.12247",
    .trained_heads = true,
    .least_layers = 2,
    .state_size = sizeof(struct specbound),
    .open = specbound_open,
    .draft_vocab = KNOB_BONUS + 1,
    .draft = specbound_draft,
    .what_if = specbound_what_if,
    .estimates = true,
    .close = specbound_close,
    .no_command = "it cannot choose an exit layer for each token",
};
