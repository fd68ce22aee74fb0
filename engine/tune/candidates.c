#include "engine/tune/candidates.h"

#include <math.h>
#include <string.h>

#include "engine/measure/forecast.h"

#define POINTS  12 /* values of a knob that an ascent tries */
#define ASCENTS 2  /* passes over all knobs */
#define TRIED   (1 + ASCENTS * POLICY_KNOBS * POINTS)
#define TREE    4    /* nodes that a tree expands a step */
#define APART   0.1  /* distance of two presets, as a share of a knob's range, */
#define FURTHER 0.25 /* or of a whole number, as a share of the larger value */

struct point {
    double value[POLICY_KNOBS], score;
};

struct search {
    const struct policy_info *info;
    const struct policy_ops *ops;
    const struct layer_record *records;
    uint32_t n_records;
    double rho;
    const struct cost_model *cost;
    uint32_t n;
    struct point tried[TRIED];
};

/* Returns the mean speedup over the records that have forecasts of the policy; 0: none has. A record has forecasts for
 * all values of the knobs, or for none. */
static double
forecast_mean(const struct search *s, const double *value)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_records; i++) {
        struct forecast f;
        if (!forecast_make(s->ops, &s->records[i], value, s->rho, s->cost, &f))
            continue;
        sum += (double)f.speedup;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* Returns the mean ceiling over the records; NAN: that of some record is unknown. */
static double
ceiling_mean(const struct search *s, const double *value)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n_records; i++)
        sum += forecast_ceiling(s->ops, &s->records[i], value, s->rho, s->cost);
    return sum / s->n_records;
}

static int
knob_index(const struct policy_info *info, const char *name)
{
    return name != NULL ? policy_knob_index(info, name) : -1;
}

/* Tries values with n_min at most n_max, as lookup_ngram() does: settings of equal effect have equal values. The draft
 * vocabulary is that of the records, if they have one. */
static uint32_t
try(struct search *s, const double *value)
{
    struct point *p = &s->tried[s->n];
    const int least = knob_index(s->info, "n_min"), most = knob_index(s->info, "n_max");
    memcpy(p->value, value, sizeof p->value);
    if (least >= 0 && most >= 0)
        p->value[least] = fmin(value[least], value[most]);
    const uint32_t base = s->n_records > 0 ? forecast_base(s->ops, &s->records[0]) : 0;
    if (base > 0)
        p->value[s->ops->draft_vocab] = base;
    p->score = forecast_mean(s, p->value);
    return s->n++;
}

/* Moves to the best value of each knob in turn: first of values in its whole range, then of values between these. */
static void
ascend(struct search *s)
{
    const struct policy_info *info = s->info;
    double defaults[POLICY_KNOBS] = {0};
    for (uint32_t k = 0; k < info->n_knobs; k++)
        defaults[k] = info->knobs[k].def;
    uint32_t best = try(s, defaults);
    for (uint32_t k = 0; k < info->n_knobs * ASCENTS; k++) {
        const struct knob *knob = &info->knobs[k % info->n_knobs];
        double last = NAN, value[POLICY_KNOBS];
        memcpy(value, s->tried[best].value, sizeof value);
        const double here = value[k % info->n_knobs], range = knob->max - knob->min, apart = range / (POINTS - 1);
        const bool coarse = k < info->n_knobs;
        const double from = coarse ? knob->min : fmax(here - apart, knob->min),
                     to = coarse ? knob->max : fmin(here + apart, knob->max);
        for (uint32_t i = 0; i < POINTS; i++) {
            double *v = &value[k % info->n_knobs];
            if (!knob_check(knob, from + (to - from) * i / (POINTS - 1), v, NULL) || *v == last || *v == here)
                continue;
            last = *v;
            const uint32_t at = try(s, value);
            best = s->tried[at].score > s->tried[best].score ? at : best;
        }
    }
}

static bool
apart(const struct policy_info *info, const struct point *a, const struct point *b)
{
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        const struct knob *knob = &info->knobs[k];
        const double off = fabs(a->value[k] - b->value[k]);
        const double further = knob->kind == KNOB_INTEGER ? FURTHER * fmax(a->value[k], b->value[k]) : INFINITY;
        if (off > 0 && (knob->kind == KNOB_CHOICE || off >= fmin(APART * (knob->max - knob->min), further)))
            return true;
    }
    return false;
}

/* Returns the distance from the defaults, as a sum of shares of the knobs' ranges. */
static double
from_defaults(const struct policy_info *info, const struct point *p)
{
    double sum = 0;
    for (uint32_t k = 0; k < info->n_knobs; k++)
        if (p->value[k] != info->knobs[k].def) /* so the range is not empty */
            sum += fabs(p->value[k] - info->knobs[k].def) / (info->knobs[k].max - info->knobs[k].min);
    return sum;
}

/* Returns the best tested point that is apart from all chosen ones; of equal ones, whose knobs differ without effect,
 * the one next to the defaults. A point with the score of a chosen one is skipped. */
static const struct point *
next_best(const struct search *s, const struct point *const *chosen, uint32_t n)
{
    const struct point *best = NULL;
    for (uint32_t i = 1; i < s->n; i++) {
        const struct point *p = &s->tried[i];
        bool new = p->score > 0;
        for (uint32_t j = 0; j < n && new; j++)
            new = apart(s->info, p, chosen[j]) && fabs(p->score - chosen[j]->score) > 1e-9;
        if (new && (best == NULL || p->score > best->score ||
                    (!(p->score < best->score) && from_defaults(s->info, p) < from_defaults(s->info, best))))
            best = p;
    }
    return best;
}

struct preset
candidate_preset(const struct policy_info *info, const double *value)
{
    struct preset p = {.n_set = info->n_knobs};
    snprintf(p.policy, sizeof p.policy, "%s", info->name);
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        snprintf(p.set[k].name, sizeof p.set[k].name, "%s", info->knobs[k].name);
        knob_format(&info->knobs[k], value != NULL ? value[k] : info->knobs[k].def, p.set[k].text,
                    sizeof p.set[k].text);
    }
    return p;
}

/* Sets a knob of a preset to a value on its grid. */
static void
set_knob(struct preset *p, const struct policy_info *info, int knob, double wanted)
{
    double value;
    if (knob_check(&info->knobs[knob], wanted, &value, NULL))
        knob_format(&info->knobs[knob], value, p->set[knob].text, sizeof p->set[knob].text);
}

static bool
same(const struct preset *a, const struct preset *b)
{
    uint32_t k = 0;
    while (k < a->n_set && strcmp(a->set[k].text, b->set[k].text) == 0)
        k++;
    return k == a->n_set;
}

/* Adds settings of a policy without forecasts after the defaults: draft lengths, and trees and least confidences of
 * drafts if it has them. A length above the knob's range is the default. */
static uint32_t
add_lengths(const struct policy_info *info, const struct policy_ops *ops, struct candidate out[CANDIDATES_MOST])
{
    static const struct further {
        double share; /* of the default length */
        bool tree;
        double confidence;
    } lengths[] = {{0.5, false, 0}, {1.5, false, 0},  {1, true, 0},  {1.5, true, 0},
                   {0.75, true, 0}, {0.75, false, 0}, {2, false, 0}, {0.25, false, 0}},
      of_blocks[] = {{0.5, false, 0}, {1, false, 0.4}, {1, true, 0}, {0.25, false, 0}, {1, true, 0.2}};
    const int length = knob_index(info, ops->length), breadth = knob_index(info, ops->breadth),
              confidence = knob_index(info, ops->confidence);
    const struct further *all = confidence >= 0 ? of_blocks : lengths;
    const size_t n = confidence >= 0 ? sizeof of_blocks / sizeof *all : sizeof lengths / sizeof *all;
    uint32_t found = 1;
    for (size_t i = 0; length >= 0 && i < n && found < CANDIDATES_MOST; i++) {
        struct preset *p = &out[found].preset;
        if (all[i].tree && breadth < 0)
            continue;
        out[found] = out[0];
        set_knob(p, info, length, fmax(1, round(info->knobs[length].def * all[i].share)));
        if (all[i].tree)
            set_knob(p, info, breadth, TREE);
        if (all[i].confidence > 0)
            set_knob(p, info, confidence, all[i].confidence);
        uint32_t other = 0;
        while (other < found && !same(&out[other].preset, p))
            other++;
        found += other == found;
    }
    return found;
}

uint32_t
candidates_of(const struct policy_info *info, const struct policy_ops *ops, const struct layer_record *records,
              uint32_t n, double rho, const struct cost_model *cost, struct candidate out[CANDIDATES_MOST])
{
    uint32_t found = 1;
    out[0] = (struct candidate){.preset = candidate_preset(info, NULL), .forecast = NAN, .ceiling = NAN};
    struct search s = {.info = info, .ops = ops, .records = records, .n_records = n, .rho = rho, .cost = cost};
    if (ops->what_if != NULL && info->n_knobs > 0)
        ascend(&s);
    if (s.n > 0 && s.tried[0].score > 0) {
        const struct point *chosen[CANDIDATES_MOST] = {&s.tried[0]}, *next;
        while (found < CANDIDATES_MOST && (next = next_best(&s, chosen, found)) != NULL)
            chosen[found++] = next;
        const bool better = found > 1 && chosen[1]->score > chosen[0]->score;
        for (uint32_t i = 0; i < found; i++) {
            const struct point *p = chosen[better && i < 2 ? 1 - i : i];
            out[i] = (struct candidate){.preset = candidate_preset(info, p->value),
                                        .forecast = p->score,
                                        .ceiling = ceiling_mean(&s, p->value)};
        }
        return found;
    }
    return add_lengths(info, ops, out);
}

static bool
comes_before(const struct candidate *a, const struct candidate *b)
{
    const double fa = isnan(a->forecast) ? 1 : a->forecast, fb = isnan(b->forecast) ? 1 : b->forecast;
    return a->place != b->place ? a->place < b->place : fa > fb;
}

void
candidates_order(struct candidate *c, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) { /* equal ones keep their order */
        const struct candidate moved = c[i];
        uint32_t at = i;
        for (; at > 0 && comes_before(&moved, &c[at - 1]); at--)
            c[at] = c[at - 1];
        c[at] = moved;
    }
}
