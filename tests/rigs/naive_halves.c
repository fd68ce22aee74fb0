#include <math.h>

#include "tests/rigs/naive_model_internal.h"

/* Rounds x to the nearest half; x is within their range. */
static double
nearest_half(double x)
{
    int exponent;
    frexp(x, &exponent); /* x < 2^exponent, and a half has 11 bits, none of them below 2^-24 */
    const double step = ldexp(1, exponent - 11 > -24 ? exponent - 11 : -24);
    return nearbyint(x / step) * step;
}

static void
round_all(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = nearest_half(x[i]);
}

void
naive_hold(const struct naive_model *m, double *x, size_t n)
{
    if (m->halves)
        round_all(x, n);
}

/* Rounds a matrix, unless it is of a type that the device stores. */
static void
hold_matrix(const struct tensor *t, struct naive_matrix *w)
{
    switch (t->type) {
    case WEIGHT_F16:
    case WEIGHT_BF16:
    case WEIGHT_Q8_0:
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_K:
    case WEIGHT_Q6_K: return;
    default: round_all(w->at, (size_t)w->rows * w->cols);
    }
}

void
naive_model_in_halves(struct naive_model *m)
{
    m->halves = true;
    hold_matrix(&m->desc.embedding, &m->embedding);
    hold_matrix(&m->desc.head, &m->head);
    for (uint32_t l = 0; l < m->desc.n_layers; l++) {
        for (int i = 0; i < LAYER_TENSORS; i++)
            if (layer_tensors[i].kind == LAYER_MATRIX && i != LAYER_ROUTER) /* the router is read in F32 */
                hold_matrix(&m->layers[l].all[i], &m->doubles[l].all[i]);
        for (uint32_t e = 0; m->layers[l].experts != NULL && e < experts_listed(&m->desc); e++)
            for (int i = 0; i < (int)EXPERT_MATRICES; i++)
                if (tensor_present(&m->layers[l].experts[e].all[i]))
                    hold_matrix(&m->layers[l].experts[e].all[i], &m->doubles[l].experts[e].all[i]);
    }
}
