/* Packed weights of the GPU. Unpacking returns every element of every type and shape, at the place that the matrix
 * instruction of the PTX manual needs (mma.m16n8k16, fragments of A and B). */
#include <math.h>

#include "kernels/codebooks.h"
#include "kernels/cuda/pack.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/rigs/block_scales.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

/* ---- fragments, as the manual has them ---- */

/* Stores the row and column of the element of A (16 x 16) in half `half` of register `reg` of lane `lane`. */
static void
fragment_a(uint32_t lane, uint32_t reg, uint32_t half, uint32_t *row, uint32_t *col)
{
    *row = lane / 4 + (reg == 1 || reg == 3 ? 8 : 0);
    *col = lane % 4 * 2 + half + (reg >= 2 ? 8 : 0);
}

TEST(a_units_places_are_the_fragments_of_a)
{
    for (uint32_t lane = 0, row, col; lane < WARP; lane++)
        for (uint32_t s = 0; s < 2; s++)
            for (uint32_t reg = 0; reg < 4; reg++)
                for (uint32_t half = 0; half < 2; half++) {
                    fragment_a(lane, reg, half, &row, &col);
                    assert_int_equal(unit_place(row, 16 * s + col), lane * 16 + s * 8 + reg * 2 + half);
                    assert_int_equal(unit_place_16(row, 16 * s + col), (s * WARP + lane) * 8 + reg * 2 + half);
                }
}

TEST(activations_places_are_the_fragments_of_b)
{
    const uint32_t units = 3, rows = 24;
    for (uint32_t tile = 0; tile < rows / TILE; tile++)
        for (uint32_t u = 0; u < units; u++)
            for (uint32_t lane = 0; lane < WARP; lane++)
                for (uint32_t i = 0; i < 8; i++) { /* (step, register, half) */
                    const uint32_t row = tile * TILE + lane / 4;
                    const uint32_t col = u * UNIT + i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2 + i % 2;
                    assert_int_equal(packed_place(units, row, col), ((tile * units + u) * WARP + lane) * 8 + i);
                }
}

/* ---- tensors ---- */

struct sample {
    struct tensor tensor;
    void *data;
};

static void
set_scales(enum weight_type type, unsigned char *data, size_t bytes)
{
    for (size_t b = 0; b < bytes; b += tensor_block_bytes(type)) {
        const uint16_t scale = f32_to_f16((float)(1 + random_below(1000)) / 1000),
                       least = f32_to_f16((float)random_below(99) / 100);
        block_set_scales(type, data + b, scale, least);
    }
}

static struct sample
random_tensor(enum weight_type type, uint32_t rows, uint32_t cols)
{
    const size_t bytes = tensor_row_bytes(type, cols) * rows;
    unsigned char *data = malloc(bytes);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)random_below(256);
    if (tensor_block_values(type) > 1)
        set_scales(type, data, bytes);
    else
        for (size_t i = 0; i < (size_t)rows * cols; i++) { /* values of moderate size */
            const float x = (float)random_below(20001) / 10000 - 1;
            const uint16_t f16 = f32_to_f16(x), bf16 = (uint16_t)(bits_of_float(x) >> 16);
            if (type == WEIGHT_F32)
                memcpy(data + 4 * i, &x, 4);
            else
                memcpy(data + 2 * i, type == WEIGHT_F16 ? &f16 : &bf16, 2);
        }
    return (struct sample){{.data = data, .type = type, .rows = rows, .cols = cols}, data};
}

/* ---- unpacking, by lanes ---- */

struct packed {
    struct packing plan;
    unsigned char *quants, *scales;
};

/* For types that are packed in pairs of units: returns the bits that a lane extracts for a value, as units.cuh does,
 * and its factor. */
static float
pair_value_at(const struct packed *m, uint32_t strip, uint32_t lane, uint32_t reg, uint32_t half, uint32_t col)
{
    const enum weight_type type = m->plan.type;
    const uint32_t pairs = m->plan.units / 2, pair = col / 64, unit = col % 64 / 32, step = col % 32 / 16, g = lane / 4,
                   second = reg % 2;
    const size_t pair_bytes = type == WEIGHT_Q6_K ? 768 : 512, block_bytes = type == WEIGHT_Q6_K   ? 32
                                                                             : type == WEIGHT_Q4_K ? 64
                                                                                                   : 0;
    const unsigned char *quants = m->quants + ((size_t)strip * pairs + pair) * pair_bytes;
    const unsigned char *of_strip = m->scales + strip * (pairs * 64 + pairs / 4 * block_bytes);
    const unsigned char *scales = of_strip + pair * 64 + g * 8;
    const unsigned char *d = of_strip + pairs * 64 + pair / 4 * block_bytes + (g * 2 + second) * block_bytes / 16;
    uint32_t word, high;
    memcpy(&word, quants + lane * 16 + (step * 2 + reg / 2) * 4, 4);
    const uint32_t low = word >> (16 * half + 8 * second + 4 * unit) & 15;
    if (type == WEIGHT_Q4_0)
        return f16_at(scales + unit * 4 + second * 2) * (float)((int)low - 8);
    scales += second * 4;
    if (type == WEIGHT_Q4_K)
        return f16_at(d) * (float)scales[unit] * (float)low - f16_at(d + 2) * (float)scales[2 + unit];
    memcpy(&high, quants + 512 + lane * 8 + step * 4, 4);
    high = high >> (16 * half + 8 * (reg / 2) + 2 * second + 4 * unit) & 3;
    return f16_at(d) * (float)(int8_t)scales[unit * 2 + step] * (float)((int)(low | high << 4) - 32);
}

static float
value_at(const struct packed *m, uint32_t strip, uint32_t row, uint32_t col)
{
    const struct packing *p = &m->plan;
    if (p->type == WEIGHT_F32) {
        float x;
        memcpy(&x, m->quants + (((size_t)strip * STRIP + row) * p->cols + col) * sizeof x, sizeof x);
        return x;
    }
    for (uint32_t lane = 0, r, c; lane < WARP; lane++)
        for (uint32_t i = 0; i < 8; i++) {
            fragment_a(lane, i / 2, i % 2, &r, &c);
            if (r != row || c != col % 16)
                continue;
            if (p->type == WEIGHT_Q4_0 || p->type == WEIGHT_Q4_K || p->type == WEIGHT_Q6_K)
                return pair_value_at(m, strip, lane, i / 2, i % 2, col);
            const size_t unit = (size_t)strip * p->units + col / UNIT;
            const size_t step = col % UNIT / 16, at = unit * STRIP * UNIT + lane * 16 + step * 8 + i;
            if (p->type == WEIGHT_Q8_0)
                return f16_at(m->scales + 2 * ((unit * 8 + row % 8) * 2 + row / 8)) * (float)(int8_t)m->quants[at];
            uint16_t half;
            memcpy(&half, m->quants + 2 * (unit * STRIP * UNIT + (step * WARP + lane) * 8 + i), 2);
            return p->type == WEIGHT_F16 ? f16_to_f32(half) : bf16_to_f32(half);
        }
    fail_msg("row %u, column %u: no lane holds it", row, col);
    return 0;
}

/* Packs random parts by several threads into memory with random contents. */
static void
pack(struct packed *m)
{
    const struct packing *p = &m->plan;
    const size_t quant = pack_quant_bytes(p), scale = pack_scale_bytes(p);
    m->quants = malloc(p->strips * quant + 1);
    m->scales = malloc(p->strips * scale + 1);
    assert_non_null(m->quants);
    assert_non_null(m->scales);
    memset(m->quants, 0x55, p->strips * quant);
    memset(m->scales, 0x55, p->strips * scale);
    for (uint32_t first = 0, n; first < p->strips; first += n) {
        n = 1 + random_below(p->strips - first);
        assert_true(
            pack_strips(p, first, n, 1 + random_below(3), m->quants + first * quant, m->scales + first * scale));
    }
}

/* Checks that every output is in exactly one packed row with all of its values, and that all other values are 0. */
static void
assert_round_trip(struct packed *m, const struct tensor *first, const struct tensor *second)
{
    const struct packing *p = &m->plan;
    pack(m);
    bool *seen = calloc(p->rows, sizeof *seen);
    float *want = malloc(p->cols * sizeof *want);
    assert_non_null(seen);
    assert_non_null(want);
    for (uint32_t packed = 0; packed < p->strips * STRIP; packed++) {
        const uint32_t output = p->source != NULL ? p->source[packed] : packed;
        bool rounded = false; /* a scale was rounded to F16 */
        memset(want, 0, p->cols * sizeof *want);
        if (output < p->rows) {
            assert_false(seen[output]);
            seen[output] = true;
            const struct tensor *t = output < first->rows ? first : second;
            rounded = p->type == WEIGHT_Q8_0 && (t->type == WEIGHT_IQ4_XS || grid_of(t->type) != NULL);
            tensor_row(t, output < first->rows ? output : output - first->rows, want);
            for (uint32_t k = 0; k < p->cols && t->type != p->type && p->type == WEIGHT_F16; k++)
                want[k] = f16_to_f32(f32_to_f16(want[k]));
        } else {
            if (p->source)
                assert_int_equal(output, UINT32_MAX);
        }
        const uint32_t cols = p->type == WEIGHT_F32 ? p->cols : p->units * UNIT;
        for (uint32_t k = 0; k < cols; k++) {
            const float got = value_at(m, packed / STRIP, packed % STRIP, k), wanted = k < p->cols ? want[k] : 0;
            if (rounded && fabsf(got - wanted) <= fabsf(wanted) * 0x1p-11f)
                continue;
            if (got != wanted || (wanted != 0 && signbit(got) != signbit(wanted))) /* padding may be -0 */
                fail_msg("seed %llu: packed row %u (output %u of %u), column %u of %u: %g, not %g",
                         (unsigned long long)seed, packed, output, p->rows, k, p->cols, (double)got, (double)wanted);
        }
    }
    for (uint32_t o = 0; o < p->rows; o++)
        if (!seen[o])
            fail_msg("seed %llu: output %u of %u is nowhere", (unsigned long long)seed, o, p->rows);
    free(seen);
    free(want);
    free(m->quants);
    free(m->scales);
    free(m->plan.source);
}

static const enum weight_type types[] = {WEIGHT_F32,   WEIGHT_F16,     WEIGHT_BF16,  WEIGHT_Q8_0,   WEIGHT_Q4_0,
                                         WEIGHT_Q4_K,  WEIGHT_Q6_K,    WEIGHT_MXFP4, WEIGHT_IQ4_NL, WEIGHT_IQ4_XS,
                                         WEIGHT_IQ3_S, WEIGHT_IQ2_XXS, WEIGHT_IQ1_S, WEIGHT_TQ1_0,  WEIGHT_IQ2_S};
#define TYPES (sizeof types / sizeof *types)

static enum weight_type
device_type(enum weight_type type)
{
    if (type == WEIGHT_F32 || type == WEIGHT_IQ2_S)
        return WEIGHT_F16;
    return type >= WEIGHT_MXFP4 ? WEIGHT_Q8_0 : type;
}

static uint32_t
random_cols(enum weight_type type)
{
    const uint32_t block = (uint32_t)tensor_block_values(type);
    return block == 1 ? 1 + random_below(150) : block * (1 + random_below(block == 32 ? 5 : 2));
}

TEST(unpacking_gives_back_every_element)
{
    for (int i = 0; i < 7 * (int)TYPES; i++) {
        const enum weight_type type = types[(size_t)i % TYPES];
        struct sample t = random_tensor(type, 1 + random_below(70), random_cols(type));
        struct packed m;
        m.plan = pack_plain(&t.tensor, i % 3 == 0);
        assert_int_equal(m.plan.type, i % 3 == 0 ? WEIGHT_F32 : device_type(type));
        assert_round_trip(&m, &t.tensor, NULL);
        free(t.data);
    }
}

/* In each head, rotated pairs are rows g and g+8 of a strip, and no strip contains two heads. */
TEST(rotated_pairs_are_side_by_side)
{
    for (int i = 0; i < 105; i++) {
        const enum weight_type type = types[(size_t)i % TYPES];
        const uint32_t head_dim = 2 * (1 + random_below(40)), heads = 1 + random_below(4),
                       rotated = random_below(head_dim / 2 + 1);
        const enum rope_layout rope = random_below(2) ? ROPE_HALVES : ROPE_ADJACENT;
        struct sample t = random_tensor(type, heads * head_dim, random_cols(type));
        struct packed m;
        m.plan = pack_heads(&t.tensor, head_dim, 2 * rotated, rope, i % 4 == 0);
        for (uint32_t packed = 0; m.plan.source != NULL && packed < m.plan.strips * STRIP; packed++) {
            const uint32_t o = m.plan.source[packed];
            if (o == UINT32_MAX)
                continue;
            assert_int_equal(o / head_dim, packed / STRIP / ((head_dim + STRIP - 1) / STRIP));
            const uint32_t j = o % head_dim, other = m.plan.source[packed ^ 8u];
            const bool first = packed % STRIP < 8;
            if (j >= 2 * rotated)
                continue;
            const uint32_t partner = rope == ROPE_ADJACENT ? j ^ 1u : j < rotated ? j + rotated : j - rotated;
            assert_int_equal(other, o - j + partner);
            assert_int_equal(first, j < partner);
        }
        assert_true(m.plan.source != NULL || (rotated == 0 && head_dim % STRIP == 0));
        assert_round_trip(&m, &t.tensor, NULL);
        free(t.data);
    }
}

TEST(gate_and_up_rows_alternate)
{
    for (int i = 0; i < 70; i++) {
        const enum weight_type type = types[(size_t)i % TYPES], other = i % 5 == 0 ? WEIGHT_F16 : type;
        const uint32_t ffn = 1 + random_below(60), cols = random_cols(type);
        struct sample gate = random_tensor(type, ffn, cols), up = random_tensor(other, ffn, cols);
        struct packed m;
        m.plan = pack_gate_up(&gate.tensor, &up.tensor, i % 9 == 0);
        for (uint32_t packed = 0; packed < m.plan.strips * STRIP; packed++) {
            const uint32_t unit = packed / STRIP * 8 + packed % 8;
            assert_int_equal(m.plan.source[packed], unit >= ffn ? UINT32_MAX : packed % STRIP < 8 ? unit : ffn + unit);
        }
        assert_round_trip(&m, &gate.tensor, &up.tensor);
        free(gate.data);
        free(up.data);
    }
}

TEST(blocks_that_do_not_fill_a_row_are_refused)
{
    assert_true(tensor_possible(&(struct tensor){.type = WEIGHT_Q8_0, .rows = 1, .cols = 64}));
    assert_false(tensor_possible(&(struct tensor){.type = WEIGHT_Q8_0, .rows = 1, .cols = 65}));
    assert_false(tensor_possible(&(struct tensor){.type = WEIGHT_Q4_K, .rows = 1, .cols = 128}));
    assert_true(tensor_possible(&(struct tensor){.type = WEIGHT_F16, .rows = 1, .cols = 7}));
    assert_false(tensor_possible(&(struct tensor){.type = WEIGHT_TYPES, .rows = 1, .cols = 256}));
}

TEST_SEED(seed, 1);
