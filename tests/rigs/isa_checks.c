#include "tests/rigs/isa_checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/repack.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/rigs/block_scales.h"
#include "tests/rigs/isa_checks_internal.h"

#define MOST_ROWS 96
#define MOST_N    70

/* Random weights in a type, and what they mean. data: room for F32. */
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

/* Random blocks as in a file, interleaved; q, scale: room for MOST_ROWS by MOST_COLS. */
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
        for (size_t k = 0; k < m.cols; k++) /* what the kernel is given is what it must multiply */
            x[r * m.cols + k] =
                (float)q[r * stride + k / Q8_BLOCK].q[k % Q8_BLOCK] * q[r * stride + k / Q8_BLOCK].scale;
    }
    for (size_t i = 0; i < n * m.rows; i++)
        y[i] = 77;
    multiply(c->isa, &m, &acts, n, first, last, y, m.rows);
    for (size_t r = 0; r < n; r++)
        for (size_t o = 0; o < m.rows; o++) {
            double sum = 77, size = 77; /* outside first..last nothing may be written */
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
    /* A row alone, with all outputs, has the same bits. */
    size_t r = between(c, 0, n - 1);
    const struct acts alone = {.x = x + r * m.cols, .q = q + r * stride, .cols = m.cols, .stride = acts.stride};
    multiply(c->isa, &m, &alone, 1, 0, m.rows, one, m.rows);
    bool same = memcmp(one + first, y + r * m.rows + first, (last - first) * sizeof *y) == 0;
    expect(c, same, "matmul's bits depend on the other rows", 0, 0);
}

int
isa_checks(const struct cpu_isa *isa, uint64_t seed)
{
    struct checks c = {.isa = isa, .state = seed};
    printf("%s: seed %llu\n", isa->name, (unsigned long long)seed);
    for (int round = 0; round < 40; round++) {
        for (enum weight_type t = WEIGHT_F32; t < WEIGHT_TYPES; t++)
            if (isa->matmul[t] != NULL) /* the others are dequantised, by nobody's instructions */
                check_matmul(&c, t);
        isa_check_rows(&c);
        isa_check_attention(&c);
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
