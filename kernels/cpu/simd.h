/* The kernels of cpu/isa.h written once, for any vector type. Included by one file per instruction set, after it has
 * defined
 *   vec, LANES, V_REGISTER                         a vector of LANES floats, as for quants.h
 *   v_max, v_fma(a, b, c) = a*b + c, v_abs, v_round (to even)
 *   v_exp2i(n)                                     2^n for integral n in [-126, 127]
 *   v_sum, v_most                                  across lanes, in a fixed order
 *   v_sum4(p, a, b, c, d)                          p[0..3] = the four sums, each in v_sum's order
 *   v_above(a, b)                                  bit i set where a[i] > b[i]
 *   v_load_f16, v_load_bf16, v_store_f16, v_store_i8 (integral values in [-127, 127])
 *   TILE_OUTS                                      outputs of a tile of TILE_ROWS rows that fits into the registers
 *   ATTEND_HEADS                                   heads of a tile of four slots that fits into the registers
 *   and the names that repacked.h and panels.h require
 * Multiplications that are added are always v_fma: the compiler must not choose, or two tiles could differ.
 *
 * v_max(a, b) returns b when either is not a number, so that a NaN in b survives.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/repacked.h"

/* Loads the last n < LANES elements of a row, padded with `pad`. */
SIMD_INLINE vec
load_tail(const float *p, size_t n, float pad)
{
    float part[LANES];
    for (size_t i = 0; i < LANES; i++)
        part[i] = i < n ? p[i] : pad;
    return v_load(part);
}

SIMD_INLINE void
store_tail(float *p, vec v, size_t n)
{
    float part[LANES];
    v_store(part, v);
    memcpy(p, part, n * sizeof *p);
}

SIMD_INLINE vec
load_any(const float *p, size_t i, size_t n, float pad)
{
    return i + LANES <= n ? v_load(p + i) : load_tail(p + i, n - i, pad);
}

SIMD_INLINE void
store_any(float *p, size_t i, size_t n, vec v)
{
    if (i + LANES <= n)
        v_store(p + i, v);
    else
        store_tail(p + i, v, n - i);
}

#define LOAD_HALF_ANY(load)                                                                                            \
    SIMD_INLINE vec load##_any(const uint16_t *p, size_t i, size_t n)                                                  \
    {                                                                                                                  \
        if (i + LANES <= n)                                                                                            \
            return v_##load(p + i);                                                                                    \
        uint16_t part[LANES] = {0};                                                                                    \
        memcpy(part, p + i, (n - i) * sizeof *p);                                                                      \
        return v_##load(part);                                                                                         \
    }
LOAD_HALF_ANY(load_f16)
LOAD_HALF_ANY(load_bf16)

SIMD_INLINE vec
load_f32_any(const float *p, size_t i, size_t n)
{
    return load_any(p, i, n, 0);
}

/* exp(x) to about 2 units in the last place: x = n ln 2 + r, |r| <= ln 2 / 2, and the series of exp(r) to r^7. Below
 * -87.3 the result is 2^-126, near enough to 0 for sums of exponentials. */
SIMD_INLINE vec
v_exp(vec x)
{
    x = v_max(v_set1(-87.3f), x);
    vec n = v_round(v_mul(x, v_set1(1.44269504f)));
    n = v_sub(v_zero(), v_max(v_set1(-127.0f), v_sub(v_zero(), n))); /* n <= 127 */
    vec r = v_fma(n, v_set1(-0.693359375f), x);
    r = v_fma(n, v_set1(2.12194440e-4f), r);
    vec p = v_set1(1.0f / 5040);
    p = v_fma(p, r, v_set1(1.0f / 720));
    p = v_fma(p, r, v_set1(1.0f / 120));
    p = v_fma(p, r, v_set1(1.0f / 24));
    p = v_fma(p, r, v_set1(1.0f / 6));
    p = v_fma(p, r, v_set1(0.5f));
    p = v_fma(p, r, v_set1(1.0f));
    p = v_fma(p, r, v_set1(1.0f));
    return v_mul(p, v_exp2i(n));
}

/* ---- matmul: weights row by row ---- */

#define TILE_ROWS ((size_t)4)

/* A tile keeps outs*rows sums in registers: every loaded weight is used for `rows` rows, every activation for `outs`
 * outputs. A sum runs over k in vectors, then across lanes, whatever the tile's shape. */
#define DEFINE_MATMUL(type, element)                                                                                   \
    SIMD_INLINE void tile_##type(const element *w, size_t cols, const size_t outs, const float *x, const size_t rows,  \
                                 float *y, size_t ld)                                                                  \
    {                                                                                                                  \
        vec sum[4 * TILE_ROWS];                                                                                        \
        UNROLL for (size_t i = 0; i < outs * rows; i++) sum[i] = v_zero();                                             \
        for (size_t k = 0; k < cols; k += LANES) {                                                                     \
            vec wk[TILE_OUTS];                                                                                         \
            UNROLL for (size_t o = 0; o < outs; o++) wk[o] = load_##type##_any(w + o * cols, k, cols);                 \
            if (k * sizeof *w % 64 == 0) /* prefetches the next stripe; a hint past the end is harmless */             \
                UNROLL for (size_t o = 0; o < outs; o++)                                                               \
                    __builtin_prefetch((const void *)((uintptr_t)w + ((outs + o) * cols + k) * sizeof *w));            \
            UNROLL for (size_t r = 0; r < rows; r++)                                                                   \
            {                                                                                                          \
                vec xk = load_f32_any(x + r * cols, k, cols);                                                          \
                UNROLL for (size_t o = 0; o < outs; o++) sum[o * rows + r] = v_fma(wk[o], xk, sum[o * rows + r]);      \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (size_t r = 0; r < rows; r++)                                                                       \
        {                                                                                                              \
            if (outs == 4)                                                                                             \
                v_sum4(y + r * ld, sum[r], sum[rows + r], sum[2 * rows + r], sum[3 * rows + r]);                       \
            else                                                                                                       \
                UNROLL for (size_t o = 0; o < outs; o++) y[r * ld + o] = v_sum(sum[o * rows + r]);                     \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    SIMD_INLINE void stripe_##type(const element *w, size_t cols, const size_t outs, const float *x, size_t n,         \
                                   float *y, size_t ld)                                                                \
    {                                                                                                                  \
        size_t r = 0;                                                                                                  \
        for (; r + TILE_ROWS <= n; r += TILE_ROWS)                                                                     \
            tile_##type(w, cols, outs, x + r * cols, TILE_ROWS, y + r * ld, ld);                                       \
        for (; r + 2 <= n; r += 2)                                                                                     \
            tile_##type(w, cols, outs, x + r * cols, 2, y + r * ld, ld);                                               \
        for (; r < n; r++)                                                                                             \
            tile_##type(w, cols, outs, x + r * cols, 1, y + r * ld, ld);                                               \
    }                                                                                                                  \
                                                                                                                       \
    static void matmul_##type(const struct matrix *m, const struct acts *x, size_t n, size_t first, size_t last,       \
                              float *y, size_t ld)                                                                     \
    {                                                                                                                  \
        const element *w = (const element *)m->data;                                                                   \
        size_t o = first;                                                                                              \
        for (; o + TILE_OUTS <= last; o += TILE_OUTS)                                                                  \
            stripe_##type(w + o * m->cols, m->cols, TILE_OUTS, x->x, n, y + o, ld);                                    \
        for (; o < last; o++)                                                                                          \
            stripe_##type(w + o * m->cols, m->cols, 1, x->x, n, y + o, ld);                                            \
    }
DEFINE_MATMUL(f32, float)
DEFINE_MATMUL(f16, uint16_t)
DEFINE_MATMUL(bf16, uint16_t)

#include "kernels/cpu/panels.h"

/* ---- rows ---- */

static void
rms_norm(const float *x, const float *weight, size_t n, float eps, float *y)
{
    vec squares = v_zero();
    for (size_t i = 0; i < n; i += LANES) {
        vec xi = load_any(x, i, n, 0);
        squares = v_fma(xi, xi, squares);
    }
    vec scale = v_set1(1.0f / sqrtf(v_sum(squares) / (float)n + eps));
    for (size_t i = 0; i < n; i += LANES)
        store_any(y, i, n, v_mul(v_mul(load_any(x, i, n, 0), scale), load_any(weight, i, n, 0)));
}

static void
quantise(const float *x, size_t n, struct act_block *blocks)
{
    for (struct act_block *b = blocks; b < blocks + n / Q8_BLOCK; b++, x += Q8_BLOCK) {
        vec peaks = v_zero();
        UNROLL for (size_t i = 0; i < Q8_BLOCK; i += LANES) peaks = v_max(peaks, v_abs(v_load(x + i)));
        const float peak = v_most(peaks);
        const vec inverse = v_set1(peak > Q8_TINY && peak <= FLT_MAX ? 127.0f / peak : 0);
        float sum[2];
        UNROLL for (size_t h = 0; h < 2; h++)
        {
            vec part = v_zero();
            UNROLL for (size_t i = h * Q8_BLOCK / 2; i < (h + 1) * Q8_BLOCK / 2; i += LANES)
            {
                const vec qi = v_round(v_mul(v_load(x + i), inverse));
                v_store_i8(b->q + i, qi);
                part = v_add(part, qi);
            }
            sum[h] = v_sum(part); /* exact: small integers */
        }
        const bool finite = fabsf(sum[0] + sum[1]) <= 127.0f * Q8_BLOCK;
        if (!finite) /* a broken row must remain recognisable */
            memset(b->q, 0, sizeof b->q);
        b->scale = finite ? peak / 127.0f : NAN;
        for (size_t h = 0; h < 2; h++) {
            b->less_half[h] = finite ? -(int32_t)sum[h] : 0;
            b->sum_half[h] = b->scale * sum[h];
        }
        b->less = b->less_half[0] + b->less_half[1];
        b->sum = b->scale * (sum[0] + sum[1]);
    }
}

static void
swiglu(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        vec g = load_any(gate, i, n, 0), u = load_any(up, i, n, 0);
        vec silu = v_div(g, v_add(v_set1(1.0f), v_exp(v_sub(v_zero(), g))));
        store_any(gate, i, n, v_mul(silu, u));
    }
}

/* ---- recurrent layers ---- */

/* Sums over the state's rows are STATE_ROWS partial ones. */
SIMD_INLINE vec
delta_sum(const vec part[STATE_ROWS])
{
    return v_add(v_add(part[0], part[1]), v_add(part[2], part[3]));
}

SIMD_INLINE void
delta_rule_with(float *s, size_t dim, const float *k, const float *q, const float *v, float decay, float beta,
                const bool corrects, const bool reads, float *out)
{
    for (size_t c = 0; c < STATE_COLS; c += LANES) {
        vec was[STATE_ROWS], sum[STATE_ROWS];
        UNROLL for (size_t j = 0; j < STATE_ROWS; j++) was[j] = sum[j] = v_zero();
        for (size_t i = 0; i < dim && corrects; i += STATE_ROWS)
            UNROLL for (size_t j = 0; j < STATE_ROWS; j++) was[j] =
                v_fma(v_set1(k[i + j]), v_load(s + (i + j) * STATE_COLS + c), was[j]);
        const vec keep = v_set1(decay), d = v_mul(v_set1(beta), v_sub(v_load(v + c), v_mul(keep, delta_sum(was))));
        for (size_t i = 0; i < dim; i += STATE_ROWS)
            UNROLL for (size_t j = 0; j < STATE_ROWS; j++)
            {
                float *at = s + (i + j) * STATE_COLS + c;
                const vec now = v_fma(v_set1(k[i + j]), d, v_mul(keep, v_load(at)));
                v_store(at, now);
                if (reads)
                    sum[j] = v_fma(v_set1(q[i + j]), now, sum[j]);
            }
        if (reads)
            v_store(out + c, delta_sum(sum));
    }
}

static void
delta_rule(float *s, size_t dim, const float *k, const float *q, const float *v, float decay, float beta, bool corrects,
           float *out)
{
    if (corrects && q != NULL)
        delta_rule_with(s, dim, k, q, v, decay, beta, true, true, out);
    else if (corrects)
        delta_rule_with(s, dim, k, q, v, decay, beta, true, false, out);
    else if (q != NULL)
        delta_rule_with(s, dim, k, q, v, decay, beta, false, true, out);
    else
        delta_rule_with(s, dim, k, q, v, decay, beta, false, false, out);
}

static void
convolve(const float *const *x, size_t taps, const float *w, size_t ld, const float *bias, bool silu, size_t n,
         float *y)
{
    for (size_t i = 0; i < n; i += LANES) {
        vec sum = bias != NULL ? load_any(bias, i, n, 0) : v_zero();
        for (size_t j = 0; j < taps; j++)
            if (x[j] != NULL)
                sum = v_fma(load_any(w + j * ld, i, n, 0), load_any(x[j], i, n, 0), sum);
        store_any(y, i, n, silu ? v_div(sum, v_add(v_set1(1.0f), v_exp(v_sub(v_zero(), sum)))) : sum);
    }
}

static void
to_f16(const float *x, size_t n, uint16_t *y)
{
    for (size_t i = 0; i < n; i += LANES) {
        uint16_t part[LANES];
        v_store_f16(part, load_any(x, i, n, 0));
        memcpy(y + i, part, (i + LANES <= n ? LANES : n - i) * sizeof *y);
    }
}

static void
from_f16(const uint16_t *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i += LANES)
        store_any(y, i, n, load_f16_any(x, i, n));
}

/* ---- attention ---- */

/* A pass reads the KV cache once. The next slots are usually the next in memory, so each slot prefetches the cache line
 * of a later one; the processor's own prefetching restarts at each block of keys and of values (1.2 times the time). */
#define AHEAD_KV 4096 /* bytes */

SIMD_INLINE void
ahead_f16(const uint16_t *p, size_t i)
{
    if (i * sizeof *p % 64 == 0) /* a hint past the end is harmless */
        __builtin_prefetch((const void *)((uintptr_t)(p + i) + AHEAD_KV));
}

/* Keys and values in F32 have just been converted, or are for comparison. */
SIMD_INLINE void
ahead_f32(const float *p, size_t i)
{
    (void)p, (void)i;
}

/* Heads that share a key-value head are computed together, ATTEND_HEADS at a time: a key or value is loaded and
 * converted once for all of them, and four sums are added across lanes together. The order of a sum does not depend on
 * its tile. */
#define DEFINE_ATTENTION(type, element)                                                                                \
    SIMD_INLINE void dots4_##type(const float *q, const size_t heads, const size_t dim, const element *const key[4],   \
                                  float *scores)                                                                       \
    {                                                                                                                  \
        vec sum[ATTEND_HEADS][4];                                                                                      \
        UNROLL for (size_t h = 0; h < heads; h++) UNROLL for (size_t i = 0; i < 4; i++) sum[h][i] = v_zero();          \
        for (size_t d = 0; d < dim; d += LANES) {                                                                      \
            vec qd[ATTEND_HEADS];                                                                                      \
            UNROLL for (size_t h = 0; h < heads; h++) qd[h] = load_f32_any(q + h * dim, d, dim);                       \
            UNROLL for (size_t i = 0; i < 4; i++)                                                                      \
            {                                                                                                          \
                ahead_##type(key[i], d);                                                                               \
                const vec k = load_##type##_any(key[i], d, dim);                                                       \
                UNROLL for (size_t h = 0; h < heads; h++) sum[h][i] = v_fma(qd[h], k, sum[h][i]);                      \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (size_t h = 0; h < heads; h++)                                                                      \
            v_sum4(scores + h * ATTEND_BLOCK, sum[h][0], sum[h][1], sum[h][2], sum[h][3]);                             \
    }                                                                                                                  \
                                                                                                                       \
    SIMD_INLINE void dots_dim_##type(const float *q, size_t heads, const size_t dim, const element *base,              \
                                     size_t stride, const slot_t *at, size_t n, float *scores)                         \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i += 4) { /* beyond n the last place again: scores has room for whole blocks */      \
            const element *key[4];                                                                                     \
            UNROLL for (size_t j = 0; j < 4; j++) key[j] = base + at[i + j < n ? i + j : n - 1] * stride;              \
            size_t h = 0;                                                                                              \
            for (; h + ATTEND_HEADS <= heads; h += ATTEND_HEADS)                                                       \
                dots4_##type(q + h * dim, ATTEND_HEADS, dim, key, scores + h * ATTEND_BLOCK + i);                      \
            for (; h + 2 <= heads; h += 2)                                                                             \
                dots4_##type(q + h * dim, 2, dim, key, scores + h * ATTEND_BLOCK + i);                                 \
            if (h < heads)                                                                                             \
                dots4_##type(q + h * dim, 1, dim, key, scores + h * ATTEND_BLOCK + i);                                 \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* `wide` vectors of the output stay in registers while all values are added. */                                   \
    SIMD_INLINE void mix_tile_##type(const float *p, const size_t heads, const size_t dim, const size_t wide,          \
                                     size_t d, const element *base, size_t stride, const slot_t *at, size_t n,         \
                                     const float *keep, float *out)                                                    \
    {                                                                                                                  \
        vec sum[ATTEND_HEADS][4];                                                                                      \
        UNROLL for (size_t h = 0; h < heads; h++) UNROLL for (size_t j = 0; j < wide; j++) sum[h][j] =                 \
            v_mul(load_f32_any(out + h * dim, d + j * LANES, dim), v_set1(keep[h]));                                   \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const element *value = base + at[i] * stride;                                                              \
            vec pi[ATTEND_HEADS];                                                                                      \
            UNROLL for (size_t h = 0; h < heads; h++) pi[h] = v_set1(p[h * ATTEND_BLOCK + i]);                         \
            UNROLL for (size_t j = 0; j < wide; j++)                                                                   \
            {                                                                                                          \
                ahead_##type(value, d + j * LANES);                                                                    \
                const vec v = load_##type##_any(value, d + j * LANES, dim);                                            \
                UNROLL for (size_t h = 0; h < heads; h++) sum[h][j] = v_fma(pi[h], v, sum[h][j]);                      \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (size_t h = 0; h < heads; h++) UNROLL for (size_t j = 0; j < wide; j++)                             \
            store_any(out + h * dim, d + j * LANES, dim, sum[h][j]);                                                   \
    }                                                                                                                  \
                                                                                                                       \
    SIMD_INLINE void mix_heads_##type(const float *p, const size_t heads, const size_t dim, const element *base,       \
                                      size_t stride, const slot_t *at, size_t n, const float *keep, float *out)        \
    {                                                                                                                  \
        size_t d = 0;                                                                                                  \
        for (; d + 4 * LANES <= dim; d += 4 * LANES)                                                                   \
            mix_tile_##type(p, heads, dim, 4, d, base, stride, at, n, keep, out);                                      \
        for (; d < dim; d += LANES)                                                                                    \
            mix_tile_##type(p, heads, dim, 1, d, base, stride, at, n, keep, out);                                      \
    }                                                                                                                  \
                                                                                                                       \
    SIMD_INLINE void mix_dim_##type(const float *p, size_t heads, const size_t dim, const element *base,               \
                                    size_t stride, const slot_t *at, size_t n, const float *keep, float *out)          \
    {                                                                                                                  \
        size_t h = 0;                                                                                                  \
        for (; h + ATTEND_HEADS <= heads; h += ATTEND_HEADS)                                                           \
            mix_heads_##type(p + h * ATTEND_BLOCK, ATTEND_HEADS, dim, base, stride, at, n, keep + h, out + h * dim);   \
        for (; h + 2 <= heads; h += 2)                                                                                 \
            mix_heads_##type(p + h * ATTEND_BLOCK, 2, dim, base, stride, at, n, keep + h, out + h * dim);              \
        if (h < heads)                                                                                                 \
            mix_heads_##type(p + h * ATTEND_BLOCK, 1, dim, base, stride, at, n, keep + h, out + h * dim);              \
    }                                                                                                                  \
                                                                                                                       \
    static void dots_##type(const float *q, size_t heads, size_t dim, const element *base, size_t stride,              \
                            const slot_t *at, size_t n, float *scores)                                                 \
    {                                                                                                                  \
        if (dim == 64) /* common sizes, as constants for the compiler */                                               \
            dots_dim_##type(q, heads, 64, base, stride, at, n, scores);                                                \
        else if (dim == 128)                                                                                           \
            dots_dim_##type(q, heads, 128, base, stride, at, n, scores);                                               \
        else                                                                                                           \
            dots_dim_##type(q, heads, dim, base, stride, at, n, scores);                                               \
    }                                                                                                                  \
                                                                                                                       \
    static void mix_##type(const float *p, size_t heads, size_t dim, const element *base, size_t stride,               \
                           const slot_t *at, size_t n, const float *keep, float *out)                                  \
    {                                                                                                                  \
        if (dim == 64)                                                                                                 \
            mix_dim_##type(p, heads, 64, base, stride, at, n, keep, out);                                              \
        else if (dim == 128)                                                                                           \
            mix_dim_##type(p, heads, 128, base, stride, at, n, keep, out);                                             \
        else                                                                                                           \
            mix_dim_##type(p, heads, dim, base, stride, at, n, keep, out);                                             \
    }
DEFINE_ATTENTION(f32, float)
DEFINE_ATTENTION(f16, uint16_t)

static float
most(const float *x, size_t n)
{
    vec m = v_set1(-INFINITY);
    for (size_t i = 0; i < n; i += LANES)
        m = v_max(m, load_any(x, i, n, -INFINITY));
    return v_most(m);
}

static float
exp_sum(float *x, size_t n, float max)
{
    vec sum = v_zero(), m = v_set1(max);
    for (size_t i = 0; i < n; i += LANES) {
        vec e = v_exp(v_sub(load_any(x, i, n, -INFINITY), m));
        store_any(x, i, n, e);
        sum = v_add(sum, e);
    }
    return v_sum(sum);
}

/* ---- softmax statistics ---- */

static struct piece
piece(const float *z, size_t n, float temperature)
{
    struct piece p = {.max = most(z, n)};
    vec floor = v_set1(-100.0f); /* exp(-100) counts as 0; avoids 0 * -inf in the sums */
    vec max = v_set1(p.max), cold = v_set1(1.0f / temperature), sum = v_zero(), weighted = v_zero(), warm = v_zero();
    for (size_t i = 0; i < n; i += LANES) {
        vec d = v_max(floor, v_sub(load_any(z, i, n, -INFINITY), max)), e = v_exp(d);
        sum = v_add(sum, e);
        weighted = v_fma(e, d, weighted);
        if (temperature != 1.0f)
            warm = v_add(warm, v_exp(v_mul(d, cold)));
    }
    p.sum = v_sum(sum);
    p.weighted = v_sum(weighted);
    p.annealed = temperature != 1.0f ? v_sum(warm) : p.sum;
    return p;
}

static float
kl_term(const float *f, const float *z, size_t n, float max)
{
    vec sum = v_zero(), m = v_set1(max);
    for (size_t i = 0; i < n; i += LANES) {
        vec fi = load_any(f, i, n, max), zi = load_any(z, i, n, max);
        sum = v_fma(v_exp(v_sub(fi, m)), v_sub(fi, zi), sum);
    }
    return v_sum(sum);
}

static size_t
next_above(const float *z, size_t i, size_t n, float bar)
{
    vec b = v_set1(bar);
    for (; i < n; i += LANES) {
        unsigned above = v_above(load_any(z, i, n, -INFINITY), b);
        if (above != 0)
            return i + (size_t)__builtin_ctz(above);
    }
    return n;
}

static size_t
count_above(const float *z, size_t n, float bar)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i += LANES)
        count += (size_t)__builtin_popcount(v_above(load_any(z, i, n, -INFINITY), v_set1(bar)));
    return count;
}

#define SIMD_KERNELS                                                                                                   \
    .matmul =                                                                                                          \
        {[WEIGHT_F32] = matmul_f32, [WEIGHT_F16] = matmul_f16, [WEIGHT_BF16] = matmul_bf16, INTERLEAVED_KERNELS},      \
    .rms_norm = rms_norm, .quantise = quantise, .swiglu = swiglu, .delta_rule = delta_rule, .convolve = convolve,      \
    .to_f16 = to_f16, .from_f16 = from_f16, .most = most, .dots_f16 = dots_f16, .dots_f32 = dots_f32,                  \
    .mix_f16 = mix_f16, .mix_f32 = mix_f32, .exp_sum = exp_sum, .piece = piece, .kl_term = kl_term,                    \
    .next_above = next_above, .count_above = count_above
