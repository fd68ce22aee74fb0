#include "kernels/cpu/route.h"

#include <math.h>

static void
softmax(float *z, uint32_t n)
{
    float most = z[0], sum = 0;
    for (uint32_t e = 1; e < n; e++)
        most = z[e] > most ? z[e] : most;
    for (uint32_t e = 0; e < n; e++) {
        z[e] = expf(z[e] - most);
        sum += z[e];
    }
    for (uint32_t e = 0; e < n; e++)
        z[e] /= sum;
}

/* Returns the index of the largest of n values that is not taken, the first among equals. */
static uint32_t
largest(const float *x, const bool *taken, uint32_t n)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if (!taken[i] && (best == n || x[i] > x[best]))
            best = i;
    return best;
}

/* Marks the experts of groups that are not chosen as taken. */
static void
leave_groups_out(const struct experts_form *f, const float *x, bool *taken)
{
    const uint32_t each = f->n / f->groups;
    float sums[EXPERTS_MOST];
    bool chosen[EXPERTS_MOST] = {false};
    for (uint32_t g = 0; g < f->groups; g++)
        sums[g] = experts_two_best(x + g * each, each);
    for (uint32_t k = 0; k < f->groups_used; k++)
        chosen[largest(sums, chosen, f->groups)] = true;
    for (uint32_t e = 0; e < f->n; e++)
        taken[e] = !chosen[e / each];
}

static void
sort_by_expert(struct route *routes, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct route r = routes[i];
        uint32_t at = i;
        for (; at > 0 && routes[at - 1].expert > r.expert; at--)
            routes[at] = routes[at - 1];
        routes[at] = r;
    }
}

/* SparseMixer: chooses one expert after the other, each weighted by a softmax over the logits close to it. */
static void
mix_sparsely(const struct experts_form *f, const float *z, bool *taken, struct route *out)
{
    for (uint32_t k = 0; k < f->used; k++) {
        const uint32_t best = largest(z, taken, f->n);
        const float m = z[best];
        float sum = 0;
        for (uint32_t e = 0; e < f->n; e++) {
            const float size = fabsf(z[e]) > m ? fabsf(z[e]) : m;
            if (!taken[e] && !((m - z[e]) / size > 2 * f->jitter))
                sum += expf(z[e] - m);
        }
        taken[best] = true;
        out[k] = (struct route){best, 1 / sum};
    }
    sort_by_expert(out, f->used);
}

void
route(const struct experts_form *f, float *z, const float *bias, const float *correction, struct route *out)
{
    float choice[EXPERTS_MOST], sum = 0;
    bool taken[EXPERTS_MOST] = {false};
    for (uint32_t e = 0; e < f->n; e++)
        choice[e] = z[e] += bias != NULL ? bias[e] : 0;
    if (f->routing == ROUTE_SPARSEMIXER) {
        mix_sparsely(f, z, taken, out);
        return;
    }
    if (f->routing == ROUTE_SOFTMAX)
        softmax(z, f->n);
    for (uint32_t e = 0; f->routing == ROUTE_SIGMOID && e < f->n; e++)
        z[e] = 1 / (1 + expf(-z[e]));
    /* otherwise by logits, which have the same order as the scores */
    const bool by_scores = correction != NULL || f->groups > 1;
    for (uint32_t e = 0; by_scores && e < f->n; e++)
        choice[e] = z[e] + (correction != NULL ? correction[e] : 0);
    if (f->groups > 1)
        leave_groups_out(f, choice, taken);
    for (uint32_t k = 0; k < f->used; k++) {
        const uint32_t e = largest(choice, taken, f->n);
        taken[e] = true;
        out[k] = (struct route){e, z[e]};
    }
    sort_by_expert(out, f->used);
    for (uint32_t k = 0; k < f->used; k++)
        sum += out[k].weight;
    const float scale = form_factor(f->scale) / (f->renormalised && sum > 0 ? sum : 1);
    for (uint32_t k = 0; k < f->used; k++)
        out[k].weight *= scale;
}
