/* The portable instruction set: the reference in tests of the others, and the fallback on other processors. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/isa.h"
#include "kernels/half.h"
#include "kernels/openmp.h"

static bool
usable(void)
{
    return true;
}

/* ---- matmul ---- */

static float
weight_at(const struct matrix *w, size_t o, size_t k)
{
    size_t i = o * w->cols + k;
    uint16_t half;
    float x;
    switch (w->type) {
    case WEIGHT_F32: memcpy(&x, (const char *)w->data + 4 * i, sizeof x); return x;
    case WEIGHT_F16: memcpy(&half, (const char *)w->data + 2 * i, sizeof half); return f16_to_f32(half);
    default: memcpy(&half, (const char *)w->data + 2 * i, sizeof half); return bf16_to_f32(half);
    }
}

static void
matmul(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last, float *y, size_t ld)
{
    for (size_t r = 0; r < n; r++)
        for (size_t o = first; o < last; o++) {
            const float *xr = x->x + r * w->cols;
            float sum[4] = {0}; /* four sums lose less precision than one */
            for (size_t k = 0; k < w->cols; k++)
                sum[k % 4] += weight_at(w, o, k) * xr[k];
            y[r * ld + o] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
}

/* Computes the outputs of a group side by side, as their weights are stored. */
static void
matmul_q8(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last, float *y, size_t ld)
{
    size_t blocks = w->cols / Q8_BLOCK;
    for (size_t r = 0; r < n; r++)
        for (size_t g = first / Q8_GROUP; g * Q8_GROUP < last; g++) {
            float sum[Q8_GROUP] = {0};
            for (size_t b = 0; b < blocks; b++) {
                size_t at = g * blocks + b;
                const struct act_block *xb = &x->q[r * x->stride + b];
                int32_t dot[Q8_GROUP] = {0};
                uint16_t scale[Q8_GROUP];
                for (size_t k = 0; k < Q8_BLOCK; k += 4) {
                    const int8_t *q = (const int8_t *)w->q + (at * Q8_BLOCK + k) * Q8_GROUP, *xk = &xb->q[k];
                    PARALLEL(omp simd)
                    for (size_t i = 0; i < Q8_GROUP; i++)
                        dot[i] += q[4 * i] * xk[0] + q[4 * i + 1] * xk[1] + q[4 * i + 2] * xk[2] + q[4 * i + 3] * xk[3];
                }
                memcpy(scale, w->scale + at * sizeof scale, sizeof scale);
                for (size_t i = 0; i < Q8_GROUP; i++)
                    sum[i] += (float)dot[i] * (f16_to_f32(scale[i]) * xb->scale);
            }
            for (size_t o = g * Q8_GROUP; o < (g + 1) * Q8_GROUP; o++)
                if (o >= first && o < last)
                    y[r * ld + o] = sum[o % Q8_GROUP];
        }
}

/* ---- rows ---- */

static void
rms_norm(const float *x, const float *weight, size_t n, float eps, float *y)
{
    float squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    float scale = 1.0f / sqrtf(squares / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * scale * weight[i];
}

static void
quantise(const float *x, size_t n, struct act_block *blocks)
{
    for (struct act_block *b = blocks; b < blocks + n / Q8_BLOCK; b++, x += Q8_BLOCK) {
        float peak = 0;
        for (size_t i = 0; i < Q8_BLOCK; i++)
            peak = fabsf(x[i]) > peak || isnan(x[i]) ? fabsf(x[i]) : peak;
        const bool finite = peak <= FLT_MAX;
        const float inverse = finite && peak > Q8_TINY ? 127.0f / peak : 0;
        *b = (struct act_block){.scale = finite ? peak / 127.0f : NAN};
        for (size_t i = 0; i < Q8_BLOCK; i++) {
            b->q[i] = (int8_t)(finite ? rintf(x[i] * inverse) : 0);
            b->less_half[i / 16] -= b->q[i];
        }
        b->less = b->less_half[0] + b->less_half[1];
        b->sum = -b->scale * (float)b->less;
        for (size_t h = 0; h < 2; h++)
            b->sum_half[h] = -b->scale * (float)b->less_half[h];
    }
}

static void
swiglu(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

/* ---- recurrent layers ---- */

static void
delta_rule(float *s, size_t dim, const float *k, const float *q, const float *v, float decay, float beta, bool corrects,
           float *out)
{
    for (size_t c = 0; c < STATE_COLS; c++) {
        float was = 0, sum = 0;
        for (size_t i = 0; i < dim && corrects; i++)
            was += k[i] * s[i * STATE_COLS + c];
        const float d = beta * (v[c] - decay * was);
        for (size_t i = 0; i < dim; i++) {
            float *at = &s[i * STATE_COLS + c];
            *at = decay * *at + k[i] * d;
            sum += q != NULL ? q[i] * *at : 0;
        }
        if (q != NULL)
            out[c] = sum;
    }
}

static void
convolve(const float *const *x, size_t taps, const float *w, size_t ld, const float *bias, bool silu, size_t n,
         float *y)
{
    for (size_t i = 0; i < n; i++) {
        float sum = bias != NULL ? bias[i] : 0;
        for (size_t j = 0; j < taps; j++)
            sum += x[j] != NULL ? w[j * ld + i] * x[j][i] : 0;
        y[i] = silu ? sum / (1.0f + expf(-sum)) : sum;
    }
}

static void
to_f16(const float *x, size_t n, uint16_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = f32_to_f16(x[i]);
}

static void
from_f16(const uint16_t *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = f16_to_f32(x[i]);
}

/* ---- attention ---- */

/* dots and mix for keys and values of one type; value(x) converts an element to F32. */
#define ATTENTION(suffix, type, value)                                                                                 \
    static void dots_##suffix(const float *q, size_t heads, size_t dim, const type *base, size_t stride,               \
                              const slot_t *at, size_t n, float *scores)                                               \
    {                                                                                                                  \
        for (size_t h = 0; h < heads; h++)                                                                             \
            for (size_t i = 0; i < n; i++) {                                                                           \
                const type *key = base + at[i] * stride;                                                               \
                float sum = 0;                                                                                         \
                for (size_t d = 0; d < dim; d++)                                                                       \
                    sum += q[h * dim + d] * value(key[d]);                                                             \
                scores[h * ATTEND_BLOCK + i] = sum;                                                                    \
            }                                                                                                          \
    }                                                                                                                  \
    static void mix_##suffix(const float *p, size_t heads, size_t dim, const type *base, size_t stride,                \
                             const slot_t *at, size_t n, const float *keep, float *out)                                \
    {                                                                                                                  \
        for (size_t h = 0; h < heads; h++)                                                                             \
            for (size_t d = 0; d < dim; d++) {                                                                         \
                float sum = out[h * dim + d] * keep[h];                                                                \
                for (size_t i = 0; i < n; i++)                                                                         \
                    sum += p[h * ATTEND_BLOCK + i] * value(base[at[i] * stride + d]);                                  \
                out[h * dim + d] = sum;                                                                                \
            }                                                                                                          \
    }
#define AS_IT_IS(x) (x)

ATTENTION(f16, uint16_t, f16_to_f32)
ATTENTION(f32, float, AS_IT_IS)

static float
most(const float *x, size_t n)
{
    float m = -INFINITY;
    for (size_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static float
exp_sum(float *x, size_t n, float max)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(x[i] - max);
        sum += x[i];
    }
    return sum;
}

/* ---- softmax statistics ---- */

static struct piece
piece(const float *z, size_t n, float temperature)
{
    struct piece p = {.max = -INFINITY};
    for (size_t i = 0; i < n; i++)
        p.max = z[i] > p.max ? z[i] : p.max;
    for (size_t i = 0; i < n; i++) {
        float d = z[i] - p.max;
        d = d < -100.0f ? -100.0f : d; /* exp counts as 0 there; avoids 0 * -inf in the sum */
        p.sum += expf(d);
        p.weighted += expf(d) * d;
        p.annealed += expf(d / temperature);
    }
    return p;
}

static float
kl_term(const float *f, const float *z, size_t n, float max)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += expf(f[i] - max) * (f[i] - z[i]);
    return sum;
}

static size_t
next_above(const float *z, size_t i, size_t n, float bar)
{
    while (i < n && !(z[i] > bar))
        i++;
    return i;
}

static size_t
count_above(const float *z, size_t n, float bar)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += z[i] > bar;
    return count;
}

const struct cpu_isa cpu_isa_reference = {
    .name = "reference",
    .family = "reference",
    .usable = usable,
    .matmul = {[WEIGHT_F32] = matmul, [WEIGHT_F16] = matmul, [WEIGHT_BF16] = matmul, [WEIGHT_Q8_0] = matmul_q8},
    .rms_norm = rms_norm,
    .quantise = quantise,
    .swiglu = swiglu,
    .delta_rule = delta_rule,
    .convolve = convolve,
    .to_f16 = to_f16,
    .from_f16 = from_f16,
    .dots_f16 = dots_f16,
    .dots_f32 = dots_f32,
    .mix_f16 = mix_f16,
    .mix_f32 = mix_f32,
    .most = most,
    .exp_sum = exp_sum,
    .piece = piece,
    .kl_term = kl_term,
    .next_above = next_above,
    .count_above = count_above,
};
