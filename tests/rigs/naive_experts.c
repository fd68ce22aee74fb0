/* Experts in double precision, as papers define them: routes of one row, and the sum of its experts' outputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/naive_model_internal.h"

/* A score and its expert's index. Larger scores come first; among equal ones the lower index does. */
struct placed {
    double score;
    uint32_t place;
};

static int
by_score(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Excludes experts of all groups except the best ones: their scores become -infinity. */
static void
keep_groups(const struct experts_form *f, double *choice)
{
    const uint32_t each = f->n / f->groups;
    struct placed groups[64], inside[64];
    for (uint32_t g = 0; g < f->groups; g++) {
        for (uint32_t i = 0; i < each; i++)
            inside[i] = (struct placed){choice[g * each + i], i};
        qsort(inside, each, sizeof *inside, by_score);
        groups[g] = (struct placed){inside[0].score + inside[1].score, g};
    }
    qsort(groups, f->groups, sizeof *groups, by_score);
    for (uint32_t g = f->groups_used; g < f->groups; g++)
        for (uint32_t i = 0; i < each; i++)
            choice[groups[g].place * each + i] = -INFINITY;
}

static void
mix_sparsely(const struct experts_form *f, const double *z, double *weight)
{
    bool gone[64] = {false};
    for (uint32_t e = 0; e < f->n; e++)
        weight[e] = 0;
    for (uint32_t k = 0; k < f->used; k++) {
        uint32_t best = f->n;
        double sum = 0;
        for (uint32_t e = 0; e < f->n; e++)
            best = !gone[e] && (best == f->n || z[e] > z[best]) ? e : best;
        for (uint32_t e = 0; e < f->n; e++)
            if (!gone[e] && z[best] - z[e] <= 2 * (double)f->jitter * fmax(fabs(z[e]), z[best]))
                sum += exp(z[e] - z[best]);
        weight[best] = 1 / sum;
        gone[best] = true;
    }
}

/* Computes the weight of every expert; experts that the row does not use have weight 0. */
static void
route(const struct experts_form *f, const struct naive_layer *w, double *z, double *weight)
{
    double choice[64], sum = 0;
    struct placed order[64];
    for (uint32_t e = 0; e < f->n; e++) {
        z[e] += w->brouter.at != NULL ? w->brouter.at[e] : 0;
        sum += exp(z[e]);
    }
    if (f->routing == ROUTE_SPARSEMIXER) {
        mix_sparsely(f, z, weight);
        return;
    }
    for (uint32_t e = 0; e < f->n; e++) {
        weight[e] = f->routing == ROUTE_SOFTMAX ? exp(z[e]) / sum : 1 / (1 + exp(-z[e]));
        choice[e] = weight[e] + (w->correction.at != NULL ? w->correction.at[e] : 0);
    }
    if (f->groups > 1)
        keep_groups(f, choice);
    for (uint32_t e = 0; e < f->n; e++)
        order[e] = (struct placed){choice[e], e};
    qsort(order, f->n, sizeof *order, by_score);
    sum = 0;
    for (uint32_t k = 0; k < f->n; k++) {
        if (k < f->used)
            sum += weight[order[k].place];
        else
            weight[order[k].place] = 0;
    }
    for (uint32_t e = 0; e < f->n; e++)
        weight[e] *= (double)form_factor(f->scale) / (f->renormalised ? sum : 1);
}

static void
add_expert(const struct naive_model *m, const struct xielu *own, const struct naive_expert *e, double weight, double *x,
           double *gate, double *up, double *out, double *back)
{
    const struct naive_matrix *all = e->all;
    const bool gated = all[EXPERT_GATE].at != NULL;
    naive_multiply(m, &all[EXPERT_UP], x, up);
    if (gated)
        naive_multiply(m, &all[EXPERT_GATE], x, gate);
    for (uint32_t i = 0; i < all[EXPERT_UP].rows; i++) {
        up[i] += all[EXPERT_BUP].at != NULL ? all[EXPERT_BUP].at[i] : 0;
        gate[i] += all[EXPERT_BGATE].at != NULL ? all[EXPERT_BGATE].at[i] : 0;
        up[i] = naive_activated(m->desc.form.activation, own, gated, gate[i], up[i]);
    }
    naive_multiply(m, &all[EXPERT_DOWN], up, out);
    for (uint32_t i = 0; i < m->desc.width; i++)
        back[i] += weight * (out[i] + (all[EXPERT_BDOWN].at != NULL ? all[EXPERT_BDOWN].at[i] : 0));
}

bool
naive_experts(const struct naive_model *m, const struct naive_layer *w, const struct xielu *own, const double *routed,
              double *x, double *back)
{
    const struct experts_form *f = &m->desc.form.experts;
    const uint32_t ffn = f->ffn > f->shared_ffn ? f->ffn : f->shared_ffn, width = m->desc.width;
    double z[64], weight[64], mix = 0, *gate = calloc(2 * (size_t)ffn + width, sizeof *gate);
    if (gate == NULL)
        return false;
    for (uint32_t e = 0; e < f->n; e++) { /* the router's input is not rounded, even if other values are held in F16 */
        z[e] = 0;
        for (uint32_t i = 0; i < width; i++)
            z[e] += w->router.at[(size_t)e * width + i] * routed[i];
    }
    for (uint32_t i = 0; i < width && w->shared_mix.at != NULL; i++)
        mix += w->shared_mix.at[i] * x[i];
    route(f, w, z, weight);
    for (uint32_t e = 0; e < f->n && w->expert_scale.at != NULL; e++)
        weight[e] *= w->expert_scale.at[e];
    if (m->routes != NULL) /* the last token of the path is computed last */
        memcpy(m->routes + (size_t)(w - m->doubles + 1) * f->n, weight, f->n * sizeof *weight);
    for (uint32_t i = 0; i < width; i++)
        back[i] = 0;
    for (uint32_t e = 0; e < f->n; e++)
        if (weight[e] > 0 || weight[e] < 0)
            add_expert(m, own, &w->experts[e], weight[e], x, gate, gate + ffn, gate + 2 * (size_t)ffn, back);
    if (f->shared_ffn > 0)
        add_expert(m, own, &w->experts[f->n], w->shared_mix.at != NULL ? 1 / (1 + exp(-mix)) : 1, x, gate, gate + ffn,
                   gate + 2 * (size_t)ffn, back);
    free(gate);
    return true;
}

void
naive_model_routes(struct naive_model *m, double *out)
{
    m->routes = out;
}
