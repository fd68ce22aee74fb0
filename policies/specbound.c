/* SpecBound (docs/methods.md: SpecBound): annealed confidence decides where a token leaves, and a round is bounded in
 * depth and width.
 *
 *   T_l = 1 + α (1 − l/L)                                        (eq. 1)
 *   p_l = max softmax(z_l / T_l); exit at the first l ≤ d_max with p_l ≥ τ   (eq. 2)
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

#include "engine/session/round.h"
#include "policies/policy.h"
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
           policy_number(p, "tau", "τ", 0, 1, 0.01, 0.55, "annealed confidence at which a token leaves") &&
           policy_number(p, "d_max", "d_max", 1, deepest, 1, d_max,
                         "deepest exit; a token that needs more ends the round") &&
           policy_number(p, "w_max", "w_max", 1, 32, 1, 8, "most drafts in a round") &&
           policy_number(p, "d_min", "d_min", 1, deepest, 1, 1, "first layer that is probed") &&
           policy_number(p, "stride", "k", 1, deepest, 1, 1, "probe every k-th layer from d_min on") &&
           policy_choice(p, "bonus", "bonus", off_on, 1,
                         "the last draft of a full chain gets a row, hence a bonus token") &&
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

/* Why a round of so many drafts has enough; NULL: it goes on. */
static const char *
enough(const double *value, uint32_t drafted, bool full)
{
    return drafted >= (uint32_t)value[KNOB_W_MAX] ? "w_max" : full ? "budget" : NULL;
}

/* Has draft number n no row of its own? */
static bool
rowless(const double *value, uint32_t n)
{
    return !(value[KNOB_BONUS] > 0) && n == (uint32_t)value[KNOB_W_MAX];
}

/* ---- on a round ---- */

static bool
specbound_draft(struct policy *p, struct round *r)
{
    struct specbound *b = p->state;
    for (uint32_t l = 1; l <= b->layers; l++) {
        b->temperature[l] = temperature(p->value, l, b->layers);
        b->threshold[l] = threshold(p->value, l);
    }
    const struct exit_rule rule = {.temperature = b->temperature, .threshold = b->threshold};
    const uint32_t d_max = (uint32_t)p->value[KNOB_D_MAX];
    const char *stop;
    slot_t rows[VERIFY_NODES] = {round_slot(r, 0)};
    uint32_t n = 0;
    double exits = 0, confidence = 0;
    int deepest = -1;
    while ((stop = enough(p->value, n, round_full(r))) == NULL) {
        struct exit_result exit = {0};
        if (!round_until(r, rows, n + 1, d_max, &rule, &exit))
            return false;
        if (!exit.exited) {
            stop = "difficult";
            break;
        }
        struct proposal draft = {
            .parent = (int32_t)n, .exit_layer = exit.depth, .guess = &exit.guess, .no_row = rowless(p->value, n + 1)};
        if (!round_choose(r, rows[n], exit.depth, &exit.guess, &draft.token, &draft.q) || round_propose(r, &draft) < 0)
            return false;
        exits += exit.depth;
        confidence += (double)exit.guess.annealed;
        deepest = (int)exit.depth > deepest ? (int)exit.depth : deepest;
        n++;
        rows[n] = round_slot(r, (int32_t)n);
    }
    if (n > 0) {
        round_report(r, "exit", 0, exits / n);
        round_report(r, "annealed", 0, confidence / n);
    }
    round_summary(r, stop, deepest, p->value[KNOB_TAU], (int)d_max, (int)p->value[KNOB_W_MAX]);
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

extern const struct policy_ops policy_specbound;
const struct policy_ops policy_specbound = {
    .name = "specbound",
    .title = "SpecBound: bounded early exits",
    .paper = "Wen & Feng 2026, arXiv:2604.12247",
    .trained_heads = true,
    .least_layers = 2,
    .state_size = sizeof(struct specbound),
    .open = specbound_open,
    .draft = specbound_draft,
    .what_if = specbound_what_if,
    .close = specbound_close,
};
