/* SpecBound (METHODS §3): annealed confidence decides where a token leaves, and a round is bounded in depth and width.
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

enum { KNOB_ALPHA, KNOB_TAU, KNOB_D_MAX, KNOB_W_MAX, KNOB_D_MIN, KNOB_STRIDE, KNOB_BONUS };

#define NO_EXIT 2.0f /* a threshold that no probability reaches */

struct specbound {
    uint32_t layers;
    float *temperature, *threshold; /* (L + 1), by layer */
};

static const char *const off_on[] = {"off", "on"};

static bool
specbound_open(struct policy *p, const struct model_info *model, const struct policy_args *args, struct err *err)
{
    (void)args;
    double layers = model->layers;
    if (layers < 2)
        return err_set(err, ERR_WORK, "specbound needs a model of 2 layers or more, this one has %u",
                       (unsigned)model->layers);
    struct specbound *b = calloc(1, sizeof *b);
    if (b != NULL) {
        b->layers = model->layers;
        b->temperature = calloc(model->layers + 1, sizeof *b->temperature);
        b->threshold = calloc(model->layers + 1, sizeof *b->threshold);
    }
    p->state = b;
    if (b == NULL || b->temperature == NULL || b->threshold == NULL)
        return err_set(err, ERR_WORK, "out of memory opening specbound");
    return policy_knob(p, &(struct knob){.name = "alpha",
                                         .symbol = "α",
                                         .kind = KNOB_REAL,
                                         .min = 0,
                                         .max = 2,
                                         .step = 0.05,
                                         .def = 0.2,
                                         .help = "annealing: shallow layers are softened by T = 1 + α(1 − l/L)"}) &&
           policy_knob(p, &(struct knob){.name = "tau",
                                         .symbol = "τ",
                                         .kind = KNOB_REAL,
                                         .min = 0,
                                         .max = 1,
                                         .step = 0.01,
                                         .def = 0.55,
                                         .help = "annealed confidence at which a token leaves"}) &&
           policy_knob(p, &(struct knob){.name = "d_max",
                                         .symbol = "d_max",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = layers - 1,
                                         .step = 1,
                                         .def = fmax(1, round(layers * 10 / 32)), /* 10 of 32 in the paper */
                                         .help = "deepest exit; a token that needs more ends the round"}) &&
           policy_knob(p, &(struct knob){.name = "w_max",
                                         .symbol = "w_max",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = 32,
                                         .step = 1,
                                         .def = 8,
                                         .help = "most drafts in a round"}) &&
           policy_knob(p, &(struct knob){.name = "d_min",
                                         .symbol = "d_min",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = layers - 1,
                                         .step = 1,
                                         .def = 1,
                                         .help = "first layer that is probed"}) &&
           policy_knob(p, &(struct knob){.name = "stride",
                                         .symbol = "k",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = layers - 1,
                                         .step = 1,
                                         .def = 1,
                                         .help = "probe every k-th layer from d_min on"}) &&
           policy_knob(p, &(struct knob){.name = "bonus",
                                         .symbol = "bonus",
                                         .kind = KNOB_CHOICE,
                                         .min = 0,
                                         .max = 1,
                                         .step = 1,
                                         .def = 1,
                                         .choices = off_on,
                                         .help = "the last draft of a full chain gets a row, hence a bonus token"}) &&
           policy_series(p, "exit", "mean exit layer", SERIES_LINE, 1, 1) &&
           policy_series(p, "annealed", "mean annealed confidence", SERIES_LINE, 1, 1);
}

/* eq. 1 and the probed layers, from the knobs. */
static void
set_rule(const struct policy *p, struct specbound *b)
{
    uint32_t d_min = (uint32_t)p->value[KNOB_D_MIN], stride = (uint32_t)p->value[KNOB_STRIDE];
    for (uint32_t l = 1; l <= b->layers; l++) {
        bool probed = l >= d_min && (l - d_min) % stride == 0;
        b->temperature[l] = (float)(1 + p->value[KNOB_ALPHA] * (1 - (double)l / b->layers));
        b->threshold[l] = probed ? (float)p->value[KNOB_TAU] : NO_EXIT;
    }
}

static bool
specbound_draft(struct policy *p, struct round *r)
{
    struct specbound *b = p->state;
    set_rule(p, b);
    const struct exit_rule rule = {.temperature = b->temperature, .threshold = b->threshold};
    uint32_t d_max = (uint32_t)p->value[KNOB_D_MAX], w_max = (uint32_t)p->value[KNOB_W_MAX];
    bool bonus = p->value[KNOB_BONUS] > 0;
    const char *stop = "w_max";
    slot_t rows[VERIFY_NODES] = {round_slot(r, 0)};
    uint32_t n = 0;
    double exits = 0, confidence = 0;
    int deepest = -1;
    while (n < w_max && !round_full(r)) {
        struct exit_result exit = {0};
        if (!round_until(r, rows, n + 1, d_max, &rule, &exit))
            return false;
        if (!exit.exited) {
            stop = "difficult";
            break;
        }
        struct proposal draft = {
            .parent = (int32_t)n, .exit_layer = exit.depth, .guess = &exit.guess, .no_row = !bonus && n + 1 == w_max};
        if (!round_choose(r, rows[n], exit.depth, &exit.guess, &draft.token, &draft.q) || round_propose(r, &draft) < 0)
            return false;
        exits += exit.depth;
        confidence += (double)exit.guess.annealed;
        deepest = (int)exit.depth > deepest ? (int)exit.depth : deepest;
        n++;
        rows[n] = round_slot(r, (int32_t)n);
    }
    if (round_full(r) && n < w_max && stop[0] == 'w')
        stop = "budget";
    if (n > 0) {
        round_report(r, "exit", 0, exits / n);
        round_report(r, "annealed", 0, confidence / n);
    }
    round_summary(r, stop, deepest, p->value[KNOB_TAU], (int)d_max, (int)w_max);
    return true;
}

static void
specbound_close(struct policy *p)
{
    struct specbound *b = p->state;
    if (b == NULL)
        return;
    free(b->temperature);
    free(b->threshold);
    free(b);
}

extern const struct policy_ops policy_specbound;
const struct policy_ops policy_specbound = {
    .name = "specbound",
    .title = "SpecBound: bounded early exits",
    .paper = "Wen & Feng 2026, arXiv:2604.12247",
    .trained_heads = true,
    .open = specbound_open,
    .draft = specbound_draft,
    .close = specbound_close,
};
