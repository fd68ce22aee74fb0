#include "tests/rigs/isa_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/repack.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/rigs/block_scales.h"

#define MOST_COLS 800
#ifndef ISA_ROUNDS
#define ISA_ROUNDS 40
#endif

struct checks {
    const struct cpu_isa *isa;
    uint64_t state;
    int failures;
};

static uint32_t
next(struct checks *c)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33);
}

static size_t
between(struct checks *c, size_t low, size_t high)
{
    return low + next(c) % (high - low + 1);
}

static float
real(struct checks *c)
{
    return (float)next(c) / 0x1p30f - 1.0f;
}

static void
fill(struct checks *c, float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = real(c) * scale;
}

/* Returns the distance of sums relative to their terms: `sizes` are the sums of the terms' absolute values. Terms may
 * cancel, but errors do not. */
static double
distance_of_sums(const float *a, const double *b, const double *sizes, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += (a[i] - b[i]) * (a[i] - b[i]);
        norm += sizes[i] * sizes[i];
    }
    return norm > 0 ? sqrt(diff / norm) : sqrt(diff);
}

static void
expect(struct checks *c, bool ok, const char *what, double value, double bound)
{
    if (ok)
        return;
    c->failures++;
    printf("%s: %s: %g, bound %g\n", c->isa->name, what, value, bound);
}

/* ---- products ---- */

#define MOST_ROWS 96
#define MOST_N    70

/* Makes random weights of a type, and their values in plain. data: room for F32. */
static void
make_plain(struct checks *c, struct matrix *m, void *data, double *plain)
{
    m->data = data;
    for (size_t i = 0; i < (size_t)m->rows * m->cols; i++) {
        float x = real(c);
        uint16_t half = m->type == WEIGHT_F16 ? f32_to_f16(x) : (uint16_t)(bits_of_float(x) >> 16);
        if (m->type == WEIGHT_F32)
            memcpy((char *)data + 4 * i, &x, 4);
        else
            memcpy((char *)data + 2 * i, &half, 2);
        plain[i] = m->type == WEIGHT_F32 ? x : m->type == WEIGHT_F16 ? f16_to_f32(half) : bf16_to_f32(half);
    }
}

/* Makes random blocks as in a file and repacks them; q, scale: room for MOST_ROWS by MOST_COLS. */
static void
make_blocks(struct checks *c, struct matrix *m, unsigned char *q, unsigned char *scale, double *plain)
{
    static unsigned char rows[Q8_GROUP * MOST_COLS * 2];
    static float values[MOST_COLS];
    const size_t row = tensor_row_bytes(m->type, m->cols), block = tensor_block_bytes(m->type);
    const size_t q_bytes = m->cols / Q8_BLOCK * quant_bytes(m->type);
    const size_t s_bytes = m->cols / tensor_block_values(m->type) * scale_bytes(m->type);
    m->q = q;
    m->scale = scale;
    for (size_t first = 0; first < m->rows; first += Q8_GROUP) {
        const size_t n = m->rows - first < Q8_GROUP ? m->rows - first : Q8_GROUP;
        for (size_t i = 0; i < n * row; i++)
            rows[i] = (unsigned char)next(c);
        for (size_t i = 0; i < n * row; i += block)
            block_set_scales(m->type, rows + i, f32_to_f16(real(c) * 0.01f), f32_to_f16(real(c) * 0.01f));
        memset(q, 0, q_bytes);
        memset(scale, 0, s_bytes);
        repack(m->type, rows, n, m->cols, c->isa->q8_flip, q, scale);
        q += q_bytes;
        scale += s_bytes;
        for (size_t r = 0; r < n; r++) {
            tensor_blocks(m->type, rows + r * row, m->cols, values);
            for (size_t k = 0; k < m->cols; k++)
                plain[(first + r) * m->cols + k] = (double)values[k];
        }
    }
}

static void
check_matmul(struct checks *c, enum weight_type type)
{
    static float data[MOST_ROWS * MOST_COLS], x[MOST_N * MOST_COLS], y[MOST_N * MOST_ROWS], one[MOST_ROWS];
    static unsigned char scales[MOST_ROWS * MOST_COLS];
    static double plain[MOST_ROWS * MOST_COLS], want[MOST_N * MOST_ROWS];
    static double sizes[MOST_N * MOST_ROWS];
    static struct act_block q[MOST_N * (MOST_COLS / Q8_BLOCK + 1)];
    struct matrix m = {
        .type = type, .rows = (uint32_t)between(c, 1, MOST_ROWS), .cols = (uint32_t)between(c, 1, MOST_COLS)};
    const uint32_t block = (uint32_t)tensor_block_values(type);
    m.cols = m.cols < block ? block : m.cols / block * block;
    const size_t n = between(c, 1, between(c, 0, 7) == 0 ? MOST_N : 19), stride = acts_stride(m.cols);
    const size_t first = between(c, 0, m.rows - 1), last = between(c, first + 1, m.rows);
    if (interleaves(type))
        make_blocks(c, &m, (unsigned char *)data, scales, plain);
    else
        make_plain(c, &m, data, plain);
    fill(c, x, n * m.cols, 3);
    const struct acts acts = {.x = x, .q = q, .cols = m.cols, .stride = (uint32_t)stride};
    for (size_t r = 0; r < n && interleaves(type); r++) {
        c->isa->quantise(x + r * m.cols, m.cols, q + r * stride);
        for (size_t k = 0; k < m.cols; k++) /* the kernel multiplies the quantised numbers */
            x[r * m.cols + k] =
                (float)q[r * stride + k / Q8_BLOCK].q[k % Q8_BLOCK] * q[r * stride + k / Q8_BLOCK].scale;
    }
    for (size_t i = 0; i < n * m.rows; i++)
        y[i] = 77;
    multiply(c->isa, &m, &acts, n, first, last, y, m.rows);
    for (size_t r = 0; r < n; r++)
        for (size_t o = 0; o < m.rows; o++) {
            double sum = 77, size = 77; /* a kernel must not write outside first..last */
            if (o >= first && o < last) {
                sum = size = 0;
                for (size_t k = 0; k < m.cols; k++) {
                    const double term = plain[o * m.cols + k] * x[r * m.cols + k];
                    sum += term;
                    size += fabs(term);
                }
            }
            want[r * m.rows + o] = sum;
            sizes[r * m.rows + o] = size;
        }
    char name[32];
    snprintf(name, sizeof name, "matmul of type %d", (int)type);
    double error = distance_of_sums(y, want, sizes, n * m.rows);
    expect(c, error < 5e-7, name, error, 5e-7);
    for (size_t r = 0; r < n; r++)
        for (size_t o = 0; o < m.rows; o++)
            if (o < first || o >= last)
                expect(c, y[r * m.rows + o] == 77.0f, "matmul writes outside its part", y[r * m.rows + o], 77);
    /* A row that is computed alone, with all outputs, must have the same bits. */
    size_t r = between(c, 0, n - 1);
    const struct acts alone = {.x = x + r * m.cols, .q = q + r * stride, .cols = m.cols, .stride = acts.stride};
    multiply(c->isa, &m, &alone, 1, 0, m.rows, one, m.rows);
    bool same = memcmp(one + first, y + r * m.rows + first, (last - first) * sizeof *y) == 0;
    expect(c, same, "matmul's bits depend on the other rows", 0, 0);
}

static double
distance(const float *a, const double *b, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return norm > 0 ? sqrt(diff / norm) : sqrt(diff);
}

/* ---- rows ---- */

/* Fills in n numbers. x: room for MOST_COLS. */
static void
check_quantise(struct checks *c, float *x, size_t n)
{
    static struct act_block q[MOST_COLS / Q8_BLOCK];
    n = n / Q8_BLOCK * Q8_BLOCK;
    if (n > 32)
        memset(x, 0, Q8_BLOCK * sizeof *x); /* a block of zeros */
    c->isa->quantise(x, n, q);
    for (size_t b = 0; b < n / Q8_BLOCK; b++) {
        int32_t sum[2] = {0};
        for (size_t i = 0; i < Q8_BLOCK; i++) {
            sum[i / 16] += q[b].q[i];
            float error = fabsf((float)q[b].q[i] * q[b].scale - x[b * Q8_BLOCK + i]);
            expect(c, error <= 0.501f * q[b].scale, "quantise", (double)error, 0.501 * (double)q[b].scale);
        }
        expect(c, q[b].less == -sum[0] - sum[1], "quantise's sum", q[b].less, sum[0] + sum[1]);
        expect(c, q[b].sum == q[b].scale * (float)(sum[0] + sum[1]), "quantise's scaled sum", q[b].sum, 0);
        for (size_t h = 0; h < 2; h++) {
            expect(c, q[b].less_half[h] == -sum[h], "quantise's sum of half a block", q[b].less_half[h], sum[h]);
            expect(c, q[b].sum_half[h] == q[b].scale * (float)sum[h], "the same, scaled", q[b].sum_half[h], 0);
        }
    }
    if (n == 0)
        return;
    x[between(c, 0, Q8_BLOCK - 1)] = between(c, 0, 1) == 0 ? NAN : -INFINITY;
    c->isa->quantise(x, n, q);
    expect(c, isnan(q[0].scale), "quantise hides what is not a number", 0, 0);
}

static void
isa_check_rows(struct checks *c)
{
    static float x[MOST_COLS], w[MOST_COLS], y[MOST_COLS];
    static double want[MOST_COLS], sizes[MOST_COLS];
    static uint16_t half[MOST_COLS + 1];
    const size_t n = between(c, 1, MOST_COLS);
    fill(c, x, n, 5);
    fill(c, w, n, 2);
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        want[i] = x[i] * w[i] / sqrt(squares / (double)n + 1e-5);
    c->isa->rms_norm(x, w, n, 1e-5f, y);
    expect(c, distance(y, want, n) < 1e-6, "rms_norm", distance(y, want, n), 1e-6);

    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * (i % 7 == 0 ? 30.0f : 1.0f);
        want[i] = y[i] / (1 + exp(-(double)y[i])) * w[i];
        sizes[i] = fabs((double)y[i] * w[i]); /* far below zero, the result is smaller than any float */
    }
    c->isa->swiglu(y, w, n);
    const double off = distance_of_sums(y, want, sizes, n);
    expect(c, off < 1e-6, "swiglu", off, 1e-6);

    half[n] = 0xabcd;
    c->isa->to_f16(x, n, half);
    bool same = half[n] == 0xabcd;
    for (size_t i = 0; i < n; i++)
        same = same && half[i] == f32_to_f16(x[i]);
    expect(c, same, "to_f16", 0, 0);

    c->isa->from_f16(half, n, y);
    for (size_t i = 0; i < n; i++)
        same = same && y[i] == f16_to_f32(half[i]);
    expect(c, same, "from_f16", 0, 0);

    check_quantise(c, x, n);
}

/* ---- attention ---- */

enum { SLOTS = 20, DIM = 160, HEADS = 9 }; /* more heads than a tile has */

/* Queries and weights of some heads, and slots of a KV cache. */
struct attention {
    float q[HEADS * DIM], keys[SLOTS * DIM], scores[HEADS * ATTEND_BLOCK], out[HEADS * DIM], copy[HEADS * DIM];
    float p[HEADS * ATTEND_BLOCK];
    uint16_t halves[SLOTS * DIM]; /* keys, in F16 */
    slot_t at[ATTEND_BLOCK];
    size_t dim, n, stride, heads;
    size_t at_head, part; /* one head and one slot, which a separate call computes */
};

static void
make_attention(struct checks *c, struct attention *a)
{
    a->dim = 2 * between(c, 1, DIM / 2), a->n = between(c, 1, ATTEND_BLOCK), a->stride = between(c, a->dim, DIM);
    a->heads = between(c, 1, HEADS), a->at_head = between(c, 0, a->heads - 1), a->part = between(c, 0, a->n - 1);
    fill(c, a->q, a->heads * a->dim, 1);
    fill(c, a->p, HEADS * ATTEND_BLOCK, 1);
    fill(c, a->out, a->heads * a->dim, 1);
    memcpy(a->copy, a->out, sizeof a->copy);
    fill(c, a->keys, SLOTS * DIM, 1);
    for (size_t i = 0; i < SLOTS * DIM; i++) {
        a->halves[i] = f32_to_f16(a->keys[i]);
        a->keys[i] = f16_to_f32(a->halves[i]);
    }
    for (size_t i = 0; i < a->n; i++)
        a->at[i] = (slot_t)between(c, 0, SLOTS - 1);
}

static void
check_dots(struct checks *c, struct attention *a)
{
    static double want[HEADS * ATTEND_BLOCK], sizes[HEADS * ATTEND_BLOCK];
    static float got[HEADS * ATTEND_BLOCK], one[ATTEND_BLOCK];
    for (int half = 0; half < 2; half++) {
        const char *what = half == 1 ? "dots_f16" : "dots_f32";
        if (half == 1)
            c->isa->dots_f16(a->q, a->heads, a->dim, a->halves, a->stride, a->at, a->n, a->scores);
        else
            c->isa->dots_f32(a->q, a->heads, a->dim, a->keys, a->stride, a->at, a->n, a->scores);
        for (size_t h = 0; h < a->heads; h++)
            for (size_t i = 0; i < a->n; i++) {
                want[h * a->n + i] = sizes[h * a->n + i] = 0;
                for (size_t d = 0; d < a->dim; d++) {
                    const double term = (double)a->q[h * a->dim + d] * a->keys[a->at[i] * a->stride + d];
                    want[h * a->n + i] += term;
                    sizes[h * a->n + i] += fabs(term);
                }
                got[h * a->n + i] = a->scores[h * ATTEND_BLOCK + i];
            }
        const double away = distance_of_sums(got, want, sizes, a->heads * a->n);
        expect(c, away < 2e-6, what, away, 2e-6);
    }
    c->isa->dots_f16(a->q + a->at_head * a->dim, 1, a->dim, a->halves, a->stride, a->at + a->part, 1, one);
    expect(c, memcmp(one, a->scores + a->at_head * ATTEND_BLOCK + a->part, sizeof *one) == 0,
           "dots_f16's bits depend on other places or heads", 0, 0);
}

static void
check_mix(struct checks *c, struct attention *a)
{
    static double want[HEADS * DIM], sizes[HEADS * DIM];
    const float keep[HEADS] = {0.25f, 1, 0};
    for (size_t h = 0; h < a->heads; h++)
        for (size_t d = 0; d < a->dim; d++) {
            want[h * a->dim + d] = (double)keep[h] * a->out[h * a->dim + d];
            sizes[h * a->dim + d] = fabs(want[h * a->dim + d]);
            for (size_t i = 0; i < a->n; i++) {
                const double term = (double)a->p[h * ATTEND_BLOCK + i] * a->keys[a->at[i] * a->stride + d];
                want[h * a->dim + d] += term;
                sizes[h * a->dim + d] += fabs(term);
            }
        }
    c->isa->mix_f32(a->p, a->heads, a->dim, a->keys, a->stride, a->at, a->n, keep, a->out);
    double off = distance_of_sums(a->out, want, sizes, a->heads * a->dim);
    expect(c, off < 2e-6, "mix_f32", off, 2e-6);
    memcpy(a->q, a->copy, sizeof a->q);
    c->isa->mix_f16(a->p, a->heads, a->dim, a->halves, a->stride, a->at, a->n, keep, a->copy);
    off = distance_of_sums(a->copy, want, sizes, a->heads * a->dim);
    expect(c, off < 2e-6, "mix_f16", off, 2e-6);
    c->isa->mix_f16(a->p + a->at_head * ATTEND_BLOCK, 1, a->dim, a->halves, a->stride, a->at, a->n, keep + a->at_head,
                    a->q + a->at_head * a->dim);
    expect(c, memcmp(a->q + a->at_head * a->dim, a->copy + a->at_head * a->dim, a->dim * sizeof *a->q) == 0,
           "mix_f16's bits depend on other heads", 0, 0);
}

static void
isa_check_attention(struct checks *c)
{
    static struct attention a;
    make_attention(c, &a);
    check_dots(c, &a);
    check_mix(c, &a);
}

/* ---- recurrent layers ---- */

static void
isa_check_recurrent(struct checks *c)
{
    enum { ROWS = 24, N = 37, TAPS = 4 };
    static _Alignas(64) float s[2][ROWS * STATE_COLS], out[2][STATE_COLS], k[ROWS], q[ROWS], v[STATE_COLS];
    static float x[TAPS][N], w[TAPS * N], bias[N], y[2][N + 1];
    const struct cpu_isa *const both[2] = {&cpu_isa_reference, c->isa};
    const bool corrects = between(c, 0, 1), reads = between(c, 0, 2), biased = between(c, 0, 1),
               silu = between(c, 0, 1);
    const size_t dim = between(c, 1, ROWS / STATE_ROWS) * STATE_ROWS, n = between(c, 1, N);
    const float *const from[TAPS] = {between(c, 0, 1) ? NULL : x[0], x[1], x[2], x[3]};
    fill(c, s[0], ROWS * STATE_COLS, 1);
    fill(c, k, ROWS, 0.2f);
    fill(c, q, ROWS, 1);
    fill(c, v, STATE_COLS, 1);
    fill(c, x[0], TAPS * N, 1);
    fill(c, w, TAPS * N, 1);
    fill(c, bias, N, 1);
    fill(c, out[0], STATE_COLS, 1);
    memcpy(s[1], s[0], sizeof s[0]);
    memcpy(out[1], out[0], sizeof out[0]);
    for (size_t b = 0; b < 2; b++) {
        both[b]->delta_rule(s[b], dim, k, reads ? q : NULL, v, 0.9f, 0.7f, corrects, out[b]);
        y[b][n] = 77;
        both[b]->convolve(from, TAPS, w, N, biased ? bias : NULL, silu, n, y[b]);
        expect(c, y[b][n] == 77, "convolution ends", (double)n, N);
    }
    double worst = 0;
    for (size_t i = 0; i < ROWS * STATE_COLS; i++)
        worst = fmax(worst, fabsf(s[0][i] - s[1][i]));
    for (size_t i = 0; i < STATE_COLS; i++)
        worst = fmax(worst, fabsf(out[0][i] - out[1][i]));
    expect(c, worst < 1e-5, "delta rule", worst, 1e-5);
    worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabsf(y[0][i] - y[1][i]));
    expect(c, worst < 1e-5, "convolution", worst, 1e-5);
}

/* ---- softmax ---- */

static void
isa_check_softmax(struct checks *c)
{
    static float z[MOST_COLS], f[MOST_COLS], e[MOST_COLS];
    size_t n = between(c, 1, 512);
    fill(c, z, n, 12);
    fill(c, f, n, 12);
    if (n > 3 && between(c, 0, 3) == 0)
        z[between(c, 0, n - 1)] = -INFINITY;
    float temperature = between(c, 0, 1) == 0 ? 1.0f : 1.3f, max = -INFINITY, f_max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        max = z[i] > max ? z[i] : max;
        f_max = f[i] > f_max ? f[i] : f_max;
    }
    double sum = 0, weighted = 0, annealed = 0, kl = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fmax(z[i] - max, -100);
        sum += exp(d);
        weighted += exp(d) * d;
        annealed += exp(d / temperature);
    }
    expect(c, c->isa->most(z, n) == max, "most", c->isa->most(z, n), max);
    struct piece p = c->isa->piece(z, n, temperature);
    expect(c, p.max == max, "piece's maximum", p.max, max);
    expect(c, fabs(p.sum / sum - 1) < 1e-5, "piece's sum", p.sum, sum);
    expect(c, fabs(p.annealed / annealed - 1) < 1e-5, "piece's annealed sum", p.annealed, annealed);
    expect(c, fabs(p.weighted - weighted) <= 1e-5 * (1 + fabs(weighted)), "piece's weighted sum", p.weighted, weighted);
    memcpy(e, z, n * sizeof *e);
    double got = c->isa->exp_sum(e, n, max), worst = 0;
    expect(c, fabs(got / sum - 1) < 1e-5, "exp_sum", got, sum);
    for (size_t i = 0; i < n; i++) {
        float d = z[i] - max; /* rounded like the kernel's */
        worst = fmax(worst, fabs(e[i] - exp(d)) / (exp(d) + 1e-30));
    }
    expect(c, worst < 4e-7, "exp", worst, 4e-7);
    for (size_t i = 0; i < n; i++) {
        z[i] = z[i] == -INFINITY ? 0 : z[i];
        kl += exp((double)f[i] - f_max) * ((double)f[i] - z[i]);
    }
    double term = c->isa->kl_term(f, z, n, f_max);
    expect(c, fabs(term - kl) < 1e-4 * (1 + fabs(kl)), "kl_term", term, kl);

    float bar = z[between(c, 0, n - 1)];
    size_t from = between(c, 0, n - 1), found = from, count = 0;
    while (found < n && !(z[found] > bar))
        found++;
    for (size_t i = 0; i < n; i++)
        count += z[i] > bar;
    expect(c, c->isa->next_above(z, from, n, bar) == found, "next_above", 0, 0);
    expect(c, c->isa->count_above(z, n, bar) == count, "count_above", 0, 0);
    z[between(c, 0, n - 1)] = NAN;
    expect(c, !isfinite(c->isa->piece(z, n, temperature).sum), "piece hides what is not a number", 0, 0);
}

/* ---- all checks ---- */

int
isa_checks(const struct cpu_isa *isa, uint64_t seed)
{
    struct checks c = {.isa = isa, .state = seed};
    printf("%s: seed %llu\n", isa->name, (unsigned long long)seed);
    for (int round = 0; round < ISA_ROUNDS; round++) {
        for (enum weight_type t = WEIGHT_F32; t < WEIGHT_TYPES; t++)
            if (isa->matmul[t] != NULL) /* types without a kernel are dequantised by portable code */
                check_matmul(&c, t);
        isa_check_rows(&c);
        isa_check_attention(&c);
        isa_check_recurrent(&c);
        isa_check_softmax(&c);
    }
    return c.failures;
}

#ifdef ISA_CHECKS_MAIN /* for qemu: see test_isa.c */
int
main(void)
{
    int failures = 0;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        if (cpu_isas[i]->usable())
            failures += isa_checks(cpu_isas[i], 20240607);
    return failures != 0;
}
#endif
