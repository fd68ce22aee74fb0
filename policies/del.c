/* DEL: dynamic exit layer and speculation length from cached hidden states (docs/policies/del.md).
 *
 * After each round, and after prefill over the last positions of the prompt, the hidden states of all layers at the
 * round's valid rows go through the head in one call: shadow tokens x̂_l and confidences cs_l. Sums decay by ω:
 *
 *   α_l = S(c_l) / S(n)                                            matched shadow tokens per position
 *   TPL(l, d) = (1 − α_l^(d+1)) / ((1 − α_l) (d l + L))            (eq. 1), (E, γ) its argmax
 *   τ_l = ½ (S(tcs_l)/S(c_l) + S(fcs_l)/S(n − c_l))                (eq. 3)
 *
 * Where this departs from the paper: α divides by S(n), not by S(u), which counts one position fewer than c and would
 * let α exceed 1; d = 0, an autoregressive step, is allowed in both length modes. */
#include <math.h>
#include <stdlib.h>

#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/del.h"

/* ---- sums, and the choice from them ---- */

bool
del_sums_open(struct del_sums *s, uint32_t layers)
{
    *s = (struct del_sums){.layers = layers};
    s->c = calloc(layers + 1, sizeof *s->c);
    s->tcs = calloc(layers + 1, sizeof *s->tcs);
    s->fcs = calloc(layers + 1, sizeof *s->fcs);
    return s->c != NULL && s->tcs != NULL && s->fcs != NULL;
}

void
del_sums_close(struct del_sums *s)
{
    free(s->c);
    free(s->tcs);
    free(s->fcs);
}

void
del_sums_decay(struct del_sums *s, double omega)
{
    s->n *= omega;
    for (uint32_t l = 1; l <= s->layers; l++) {
        s->c[l] *= omega;
        s->tcs[l] *= omega;
        s->fcs[l] *= omega;
    }
}

void
del_sums_add(struct del_sums *s, const struct prediction *row)
{
    s->n += 1;
    for (uint32_t l = 1; l <= s->layers; l++) {
        const struct prediction *g = &row[l - 1];
        if (g->token == row[s->layers - 1].token) {
            s->c[l] += 1;
            s->tcs[l] += (double)g->confidence;
        } else {
            s->fcs[l] += (double)g->confidence;
        }
    }
}

double
del_alpha(const struct del_sums *s, uint32_t layer)
{
    return s->n > 0 ? s->c[layer] / s->n : 0;
}

double
del_matched(const struct del_sums *s, uint32_t layer)
{
    return s->c[layer] > 0 ? s->tcs[layer] / s->c[layer] : 0;
}

double
del_mismatched(const struct del_sums *s, uint32_t layer)
{
    /* tests fcs and not n − c, because the difference of two decayed sums is not exactly 0 */
    return s->fcs[layer] > 0 ? s->fcs[layer] / (s->n - s->c[layer]) : 0;
}

double
del_tau(const struct del_sums *s, uint32_t layer)
{
    return 0.5 * (del_matched(s, layer) + del_mismatched(s, layer));
}

double
del_tpl(const struct del_sums *s, uint32_t layer, uint32_t length)
{
    double alpha = fmin(del_alpha(s, layer), 1 - 1e-6), tokens = 1;
    for (uint32_t i = 0; i < length; i++) /* 1 + α + … + α^d; summed, TPL(l, 0) is exactly 1/L in every layer */
        tokens = 1 + alpha * tokens;
    return tokens / ((double)length * layer + s->layers);
}

#define ROUNDING 1e-12 /* of a TPL, relative: values that are equal but for it are ties */

struct del_choice
del_choose(const struct del_sums *s, struct del_bounds within)
{
    struct del_choice best = {within.e_min, 0};
    double most = del_tpl(s, within.e_min, 0);
    for (uint32_t length = 0; length <= within.d_max; length++) /* of equal values the first counts */
        for (uint32_t layer = within.e_min; layer <= within.e_max; layer++) {
            const double tpl = del_tpl(s, layer, length);
            if (tpl > most * (1 + ROUNDING)) {
                most = tpl;
                best = (struct del_choice){layer, length};
            }
        }
    return best;
}

/* ---- the policy ---- */

enum { KNOB_OMEGA, KNOB_D_MAX, KNOB_WINDOW, KNOB_LENGTH, KNOB_E_FIXED, KNOB_E_MIN, KNOB_E_MAX };

enum { LENGTH_DYNAMIC, LENGTH_TPL };

#define ROWS_MOST 128 /* rows of one observation: the prompt's window, or a round */

static const char *const length_modes[] = {"dynamic", "tpl", NULL};

struct del {
    struct del_sums sums;
    struct context_probe *probes;   /* (ROWS_MOST * L) */
    struct prediction *predictions; /* (ROWS_MOST * L) */
};

static bool
del_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)sampling;
    struct del *d = p->state;
    if (!del_sums_open(&d->sums, model->layers) ||
        (d->probes = calloc((size_t)model->layers * ROWS_MOST, sizeof *d->probes)) == NULL ||
        (d->predictions = calloc((size_t)model->layers * ROWS_MOST, sizeof *d->predictions)) == NULL)
        return err_set(err, ERR_WORK, "out of memory opening del");
    const int layers = (int)model->layers;
    return policy_number(p, "omega", "ω", 0, 1, 0.01, 0.95, "weight of past rounds in the sums") &&
           policy_number(p, "d_max", "d_max", 1, DEL_LENGTH_MOST, 1, 18, "most drafts in a round") &&
           policy_number(p, "window", "W", 1, 64, 1, 32, "last positions of the prompt that are learned from") &&
           policy_choice(p, "length", "len", length_modes, LENGTH_DYNAMIC,
                         "stop on confidence below τ_E, or after γ tokens (the paper's DEL-E)") &&
           policy_number(p, "e_fixed", "E", 0, layers - 1, 1, 0, "the exit layer (the paper's DEL-γ); 0: chosen") &&
           policy_number(p, "e_min", "E_min", 1, layers - 1, 1, 1,
                         "shallowest exit that is chosen (the paper's DEL-E-lim: 4)") &&
           policy_number(p, "e_max", "E_max", 1, layers - 1, 1, layers - 1, "deepest exit that is chosen") &&
           policy_series(p, "E", "exit layer E", SERIES_LINE, 1, 1) &&
           policy_series(p, "gamma", "speculation length γ", SERIES_LINE, 1, 1) &&
           policy_series(p, "tau", "threshold τ_E", SERIES_LINE, 1, 1) &&
           policy_series(p, "band", "mismatched to matched at E", SERIES_BAND, 1, 1) &&
           policy_series(p, "alpha", "α by layer", SERIES_STRIP, 1, layers) &&
           policy_series(p, "tpl_l", "TPL(l, best d)·L by layer", SERIES_STRIP, 1, layers) &&
           policy_series(p, "tpl_d", "TPL(E, d)·L by length d", SERIES_STRIP, 1, DEL_LENGTH_MOST + 1);
}

/* Shadow tokens of all layers at trunk positions first..first+n-1, against the target's argmax there. */
static bool
learn(struct policy *p, struct round *r, uint32_t first, uint32_t n, double omega)
{
    struct del *d = p->state;
    uint32_t layers = r->layers, rows = 0;
    for (uint32_t i = 0; i < n && rows < ROWS_MOST; i++) {
        slot_t row = context_at(r->ctx, r->seq, first + i);
        if (!context_hidden_kept(r->ctx, row)) /* its hidden states are lost */
            continue;
        for (uint32_t l = 1; l <= layers; l++)
            d->probes[rows * layers + l - 1] = (struct context_probe){.slot = row, .layer = l, .temperature = 1};
        rows++;
    }
    if (rows == 0)
        return true;
    if (!round_predict(r, d->probes, (size_t)rows * layers, d->predictions))
        return false;
    del_sums_decay(&d->sums, omega);
    for (uint32_t i = 0; i < rows; i++)
        del_sums_add(&d->sums, &d->predictions[i * layers]);
    return true;
}

static bool
del_prefilled(struct policy *p, struct round *r)
{
    struct del *d = p->state;
    del_sums_decay(&d->sums, 0);
    uint32_t length = context_length(r->ctx, r->seq), window = (uint32_t)p->value[KNOB_WINDOW];
    uint32_t n = length < window ? length : window;
    return learn(p, r, length - n, n, 1);
}

/* ---- the rule ---- */

/* The bounds by the knobs; bounds that cross leave the shallowest layer. */
static struct del_bounds
bounds(const double *value)
{
    const uint32_t fixed = (uint32_t)value[KNOB_E_FIXED], d_max = (uint32_t)value[KNOB_D_MAX];
    if (fixed > 0)
        return (struct del_bounds){fixed, fixed, d_max};
    return (struct del_bounds){(uint32_t)value[KNOB_E_MIN], (uint32_t)fmax(value[KNOB_E_MIN], value[KNOB_E_MAX]),
                               d_max};
}

static struct chain_rule
rule_of(const struct del_sums *sums, const double *value, struct del_choice c)
{
    const bool dynamic = (int)value[KNOB_LENGTH] == LENGTH_DYNAMIC;
    return (struct chain_rule){.exit_layer = c.exit_layer,
                               .most =
                                   dynamic ? bounds(value).d_max : c.length, /* here d_max is a length, not a depth */
                               .full = dynamic ? "d_max" : "gamma",
                               .threshold = del_tau(sums, c.exit_layer),
                               .below = dynamic ? CHAIN_STOPS_BEFORE : CHAIN_CONTINUES};
}

/* ---- on rounds ---- */

static void
report(struct policy *p, struct round *r, struct del_choice c, uint32_t d_max)
{
    const struct del_sums *s = &((struct del *)p->state)->sums;
    round_report(r, "E", 0, c.exit_layer);
    round_report(r, "gamma", 0, c.length);
    round_report(r, "tau", 0, del_tau(s, c.exit_layer));
    round_report(r, "band", 0, del_mismatched(s, c.exit_layer));
    round_report(r, "band", 1, del_matched(s, c.exit_layer));
    for (uint32_t l = 1; l <= r->layers; l++) {
        double best = 0;
        for (uint32_t n = 0; n <= d_max; n++)
            best = fmax(best, del_tpl(s, l, n));
        round_report(r, "alpha", (int)l - 1, del_alpha(s, l));
        round_report(r, "tpl_l", (int)l - 1, best * r->layers);
    }
    for (uint32_t n = 0; n <= d_max; n++)
        round_report(r, "tpl_d", (int)n, del_tpl(s, c.exit_layer, n) * r->layers);
}

static bool
draft_one(struct policy *p, struct round *r)
{
    const struct del *d = p->state;
    const struct del_bounds within = bounds(p->value);
    const struct del_choice c = del_choose(&d->sums, within);
    const struct chain_rule rule = rule_of(&d->sums, p->value, c);
    report(p, r, c, within.d_max);
    if (c.length > 0)
        return chain_draft(&r, 1, &rule, NULL);
    round_summary(r, "one by one", (int)c.exit_layer, rule.threshold, -1, (int)rule.most);
    return true;
}

static bool
del_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, draft_one);
}

/* The valid rows are the committed ones: the pending token's and the accepted drafts'. */
static bool
del_observe(struct policy *p, struct round *r)
{
    uint32_t length = context_length(r->ctx, r->seq);
    return learn(p, r, length - r->emitted, r->emitted, p->value[KNOB_OMEGA]);
}

/* ---- on a record ---- */

/* Learns from rows first..first+n-1, from whether layers agree and how sure they are, with the draft vocabulary of a
 * round that begins at row `at`. */
static void
learn_rows(struct del_sums *sums, const struct layer_record *record, uint32_t first, uint32_t n, uint32_t at,
           double omega, struct prediction *row)
{
    if (n == 0)
        return;
    del_sums_decay(sums, omega);
    for (uint32_t i = first; i < first + n; i++) {
        for (uint32_t l = 1; l <= record->layers; l++) {
            const struct layer_prediction c = layer_record_drafts(record, i, l, at);
            row[l - 1] = (struct prediction){.token = c.agrees || record->accepts ? 1 : 0, .confidence = c.confidence};
        }
        del_sums_add(sums, row);
    }
}

/* Returns how many rows are learned from before the first round: the prompt's window, of which the record may have
 * fewer; later in a run all that the record has, in place of the rounds before. */
static uint32_t
lead(const struct layer_record *record, const double *value)
{
    const uint32_t prompt = record->first + record->begin, window = (uint32_t)value[KNOB_WINDOW];
    return !record->from_prompt ? record->begin : window < prompt ? window : prompt;
}

static bool
del_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    struct del_sums sums = {0};
    struct prediction *row = calloc(record->layers, sizeof *row);
    const uint32_t before = lead(record, value);
    const bool ok = before <= record->begin && del_sums_open(&sums, record->layers) && row != NULL;
    struct what_if w;
    what_if_begin(&w, record, out);
    if (ok)
        learn_rows(&sums, record, record->begin - before, before, record->begin, 1, row);
    while (ok && what_if_round(&w)) {
        const struct del_choice c = del_choose(&sums, bounds(value));
        const struct chain_rule rule = rule_of(&sums, value, c);
        if (c.length > 0)
            chain_what_if(&w, &rule);
        what_if_verify(&w);
        what_if_ask_all(&w);
        learn_rows(&sums, record, w.at, w.emitted, w.at, value[KNOB_OMEGA], row);
    }
    del_sums_close(&sums);
    free(row);
    return ok;
}

static void
del_close(struct policy *p)
{
    struct del *d = p->state;
    del_sums_close(&d->sums);
    free(d->probes);
    free(d->predictions);
}

const struct policy_ops policy_del = {
    .name = "del",
    .title = "DEL: dynamic exit layer and length",
    .paper = "Entezari Zarch et al. 2025, arXiv:2504.05598",
    .least_layers = 2,
    .state_size = sizeof(struct del),
    .open = del_open,
    .draft_vocab = KNOB_E_MAX + 1,
    .prefilled = del_prefilled,
    .draft = del_draft,
    .observe = del_observe,
    .what_if = del_what_if,
    .close = del_close,
    .no_command = "it cannot choose an exit layer in each round",
};
