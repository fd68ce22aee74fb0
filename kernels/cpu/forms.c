#include "kernels/cpu/weights.h"

#include <math.h>

#define SUMS 16 /* number of parallel sums */

static float
added(const float sums[SUMS])
{
    float half[SUMS / 2];
    for (size_t i = 0; i < SUMS / 2; i++)
        half[i] = sums[i] + sums[i + SUMS / 2];
    return ((half[0] + half[4]) + (half[1] + half[5])) + ((half[2] + half[6]) + (half[3] + half[7]));
}

/* Subtracts the mean first: squares of large numbers would lose the deviations to rounding. */
static void
layer_norm(const float *x, const float *weight, size_t n, float eps, float *y)
{
    float sums[SUMS] = {0}, squares[SUMS] = {0};
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sums[k] += x[i + k];
    for (size_t k = 0; i + k < n; k++)
        sums[k] += x[i + k];
    const float mean = added(sums) / (float)n;
    for (i = 0; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            squares[k] += (x[i + k] - mean) * (x[i + k] - mean);
    for (size_t k = 0; i + k < n; k++)
        squares[k] += (x[i + k] - mean) * (x[i + k] - mean);
    const float scale = 1.0f / sqrtf(added(squares) / (float)n + eps);
    for (i = 0; i < n; i++)
        y[i] = (x[i] - mean) * scale * weight[i];
}

void
form_norm(const struct weights *w, const struct norm *norm, const float *x, size_t n, float *y)
{
    if (w->desc.form.layer_norm)
        layer_norm(x, norm->weight, n, w->desc.rms_eps, y);
    else
        w->backend->isa->rms_norm(x, norm->weight, n, w->desc.rms_eps, y);
    for (size_t i = 0; norm->bias != NULL && i < n; i++)
        y[i] += norm->bias[i];
}

static float
activated(enum activation kind, float x)
{
    switch (kind) {
    case ACT_SILU: return x / (1.0f + expf(-x));
    case ACT_GELU_TANH: /* (1 + tanh a) / 2 = 1 / (1 + e^-2a) */
        return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
    case ACT_GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case ACT_RELU_SQUARED:
    case ACT_XIELU:                 /* has its own function, with parameters */
    case ACT_SWIGLU_CLAMPED: break; /* not a function of x alone */
    }
    return x > 0 ? x * x : x * 0; /* preserves NAN */
}

static void
xielu(const struct xielu *a, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float linear = a->beta * x[i], below = expm1f(x[i] < a->eps ? x[i] : a->eps) - x[i];
        x[i] = x[i] > 0 ? a->alpha_p * x[i] * x[i] + linear : below * a->alpha_n + linear;
    }
}

static float
at_most(float x, float most)
{
    return x > most ? most : x;
}

static void
swiglu_clamped(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float g = at_most(gate[i], 7), u = -at_most(-at_most(up[i], 7), 7);
        gate[i] = g / (1.0f + expf(-1.702f * g)) * (1 + u);
    }
}

void
form_activate(const struct weights *w, uint32_t layer, float *gate, const float *up, size_t n)
{
    const enum activation kind = w->desc.form.activation;
    if (kind == ACT_SILU && up != NULL) {
        w->backend->isa->swiglu(gate, up, n);
        return;
    }
    if (kind == ACT_XIELU)
        xielu(&w->layer_forms[layer].xielu, gate, n);
    if (kind == ACT_SWIGLU_CLAMPED && up != NULL) {
        swiglu_clamped(gate, up, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        gate[i] = (kind == ACT_XIELU ? gate[i] : activated(kind, gate[i])) * (up != NULL ? up[i] : 1);
}

void
form_cap(float cap, float *x, size_t n)
{
    for (size_t i = 0; cap > 0 && i < n; i++)
        x[i] = cap * tanhf(x[i] / cap);
}

void
form_clip(float most, float *x, size_t n, size_t ld, struct range part)
{
    for (size_t i = 0; most > 0 && i < n; i++)
        for (size_t o = part.first; o < part.last; o++) {
            float *at = x + i * ld + o;
            *at = *at > most ? most : *at < -most ? -most : *at;
        }
}
