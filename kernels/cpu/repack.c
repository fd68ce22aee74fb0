#include "kernels/cpu/repack.h"

#include "kernels/tensor.h"

#define LOW_BITS(n) (0x01010101u * ((1u << (n)) - 1)) /* mask of n bits in each byte */

#define LINE 64 /* bytes of a cache line or a part of one */
#define FOUR 4  /* outputs that are moved together: their words fit one vector on any processor */

typedef uint32_t words __attribute__((vector_size(FOUR * sizeof(uint32_t))));

/* The same block of four outputs. */
struct four {
    const unsigned char *of[FOUR];
};

static const unsigned char nothing[256]; /* for missing outputs of a group */

SIMD_INLINE uint32_t
word_at(const unsigned char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

SIMD_INLINE words
words_at(const struct four *b, size_t at)
{
    return (words){word_at(b->of[0] + at), word_at(b->of[1] + at), word_at(b->of[2] + at), word_at(b->of[3] + at)};
}

/* Loads four consecutive words of four outputs, transposed: one vector per word. */
SIMD_INLINE void
quad_at(const struct four *b, size_t at, words quad[FOUR])
{
    words row[FOUR];
    UNROLL for (size_t k = 0; k < FOUR; k++) memcpy(&row[k], b->of[k] + at, sizeof row[k]);
    const words low0 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const words low1 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const words high0 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    const words high1 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    quad[0] = __builtin_shufflevector(low0, low1, 0, 1, 4, 5);
    quad[1] = __builtin_shufflevector(low0, low1, 2, 3, 6, 7);
    quad[2] = __builtin_shufflevector(high0, high1, 0, 1, 4, 5);
    quad[3] = __builtin_shufflevector(high0, high1, 2, 3, 6, 7);
}

/* The same, with `bits` bits from bit `shift` on of each byte. */
SIMD_INLINE void
bits_at(const struct four *b, size_t at, size_t shift, unsigned bits, words quad[FOUR])
{
    quad_at(b, at, quad);
    UNROLL for (size_t k = 0; k < FOUR; k++) quad[k] = quad[k] >> (unsigned)shift & LOW_BITS(bits);
}

/* Spreads four bits to the lowest bits of four bytes: bit i moves from i to 8 * i, a shift by 7 * i. */
SIMD_INLINE words
spread(words bits)
{
    bits &= 15u;
    return (bits | bits << 7 | bits << 14 | bits << 21) & LOW_BITS(1);
}

/* Loads one bit per input, for the sixteen inputs of the block's half `h`. */
SIMD_INLINE void
spread_at(const struct four *b, size_t at, size_t h, words quad[FOUR])
{
    const words bits = words_at(b, at) >> (unsigned)(16 * h);
    UNROLL for (size_t k = 0; k < FOUR; k++) quad[k] = spread(bits >> (unsigned)(4 * k));
}

/* TQ1_0: byte b contains five ternary digits, of inputs that are not adjacent; b * 3^n * 3 / 256 is the n'th digit. Two
 * bytes of each four are processed at a time, in 16-bit fields. */
SIMD_INLINE words
digits_at(const struct four *b, size_t at, size_t n)
{
    static const uint32_t powers[] = {1, 3, 9, 27, 81};
    const uint32_t bytes = 0x00ff00ffu;
    const words w = words_at(b, at), even = ((w & bytes) * powers[n] & bytes) * 3 >> 8 & bytes;
    const words odd = ((w >> 8 & bytes) * powers[n] & bytes) * 3 >> 8 & bytes;
    return even | odd << 8;
}

/* Of the first 160 inputs 32 are adjacent, of the next 80 sixteen, of the last sixteen four. */
SIMD_INLINE words
ternary_at(const struct four *b, size_t i, size_t j)
{
    const size_t k = 32 * i + 4 * j;
    if (k < 160)
        return digits_at(b, 4 * j, i);
    if (k < 240)
        return digits_at(b, 32 + k % 16, (k - 160) / 16);
    return digits_at(b, 48, (k - 240) / 4);
}

/* ---- quants of a block of the file: `i` counts blocks of 32 in it, `h` their halves, of four steps of four inputs
 * ---- */

SIMD_INLINE void
low_at(const enum weight_type type, const struct four *b, size_t i, size_t h, words quad[FOUR])
{
    switch (type) {
    case WEIGHT_Q8_0: quad_at(b, 2 + 16 * h, quad); break;
    /* Byte k contains input k in its lower half and input k + 16 in its upper half. */
    case WEIGHT_MXFP4: bits_at(b, 1, 4 * h, 4, quad); break;
    case WEIGHT_Q4_0:
    case WEIGHT_IQ4_NL: bits_at(b, 2, 4 * h, 4, quad); break;
    case WEIGHT_Q4_1: bits_at(b, 4, 4 * h, 4, quad); break;
    case WEIGHT_Q5_0: bits_at(b, 6, 4 * h, 4, quad); break;
    case WEIGHT_Q5_1: bits_at(b, 8, 4 * h, 4, quad); break;
    case WEIGHT_IQ4_XS: bits_at(b, 8 + 16 * i, 4 * h, 4, quad); break;
    case WEIGHT_TQ2_0: bits_at(b, i / 4 * 32 + 16 * h, i % 4 * 2, 2, quad); break;
    case WEIGHT_Q4_K: bits_at(b, 16 + i / 2 * 32 + 16 * h, i % 2 * 4, 4, quad); break;
    case WEIGHT_Q5_K: bits_at(b, 48 + i / 2 * 32 + 16 * h, i % 2 * 4, 4, quad); break;
    case WEIGHT_Q6_K: bits_at(b, i / 4 * 64 + i % 2 * 32 + 16 * h, i % 4 / 2 * 4, 4, quad); break;
    case WEIGHT_Q2_K: bits_at(b, 16 + i / 4 * 32 + 16 * h, i % 4 * 2, 2, quad); break;
    case WEIGHT_Q3_K: bits_at(b, 32 + i / 4 * 32 + 16 * h, i % 4 * 2, 2, quad); break;
    case WEIGHT_TQ1_0: UNROLL for (size_t k = 0; k < FOUR; k++) quad[k] = ternary_at(b, i, 4 * h + k); break;
    default: break;
    }
}

SIMD_INLINE void
high_at(const enum weight_type type, const struct four *b, size_t i, size_t h, words quad[FOUR])
{
    switch (type) {
    case WEIGHT_Q5_0: spread_at(b, 2, h, quad); break;
    case WEIGHT_Q5_1: spread_at(b, 4, h, quad); break;
    case WEIGHT_Q5_K: bits_at(b, 16 + 16 * h, i, 1, quad); break;
    case WEIGHT_Q3_K: bits_at(b, 16 * h, i, 1, quad); break;
    case WEIGHT_Q6_K: bits_at(b, 128 + i / 4 * 32 + 16 * h, i % 4 * 2, 2, quad); break;
    default: break;
    }
}

/* Stores a block of 32 of four outputs in their lanes of the planes. */
SIMD_INLINE void
place_quants(const enum weight_type type, const struct four *b, size_t i, size_t lane, uint32_t flip, unsigned char *q)
{
    const unsigned low = low_bits(type), high = high_bits(type);
    words planes[STEPS] = {{0}};
    UNROLL for (size_t j = 0; j < STEPS; j += FOUR)
    {
        words lows[FOUR] = {{0}}, highs[FOUR] = {{0}};
        low_at(type, b, i, j / FOUR, lows);
        high_at(type, b, i, j / FOUR, highs);
        UNROLL for (size_t k = 0; k < FOUR; k++)
        {
            planes[(j + k) * low / 8] |= (lows[k] ^ flip) << (unsigned)((j + k) * low % 8);
            if (high > 0)
                planes[low + (j + k) * high / 8] |= highs[k] << (unsigned)((j + k) * high % 8);
        }
    }
    UNROLL for (size_t p = 0; p < low + high; p++) memcpy(q + p * PLANE + 4 * lane, &planes[p], sizeof planes[p]);
}

/* Stores the row indices of a block of 32 of four outputs, with signs and upper bits. */
static void
place_rows(enum weight_type type, const struct grid_block *four, size_t i, size_t lane, unsigned char *q)
{
    const size_t n = 4 * row_planes(type), top_bits = row_top_bits(type);
    for (size_t k = 0; k < FOUR; k++) {
        const struct grid_block *g = &four[k];
        unsigned char *at = q + 4 * (lane + k), *tops = q + row_planes(type) * PLANE + lane + k;
        unsigned top = 0;
        for (size_t r = 0; r < n; r++) {
            at[r / 4 * PLANE + r % 4] = (unsigned char)g->rows[i * n + r];
            top |= (unsigned)(g->rows[i * n + r] >> 8) << (r * top_bits);
        }
        if (has_grid_signs(type)) {
            memcpy(at + row_planes(type) * PLANE, g->signs + 4 * i, 4);
            tops += PLANE;
        }
        for (size_t byte = 0; byte < n * top_bits / 8; byte++)
            tops[byte * Q8_GROUP] = (unsigned char)(top >> 8 * byte);
    }
}

/* ---- scales ---- */

static void
place_half(const unsigned char *from, size_t lane, unsigned char *to)
{
    memcpy(to + 2 * lane, from, 2);
}

/* Returns scale j (0..15) of Q3_K: four bits in a half of byte j % 8, two upper bits in byte 8 + j % 4; minus 32. */
static unsigned char
signed_six_bits(const unsigned char *s, size_t j)
{
    const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4, high = s[8 + j % 4] >> (j / 4 * 2) & 3;
    return (unsigned char)((low | high << 4) - 32);
}

static void
place_grid_scales(enum weight_type type, const struct grid_block *g, size_t lane, unsigned char *to)
{
    memcpy(to + 2 * lane, &g->d, sizeof g->d);
    for (size_t j = 0; j < 8; j++) {
        const unsigned first = g->scales[2 * j], second = g->scales[2 * j + 1];
        to[(2 + j) * Q8_GROUP + lane] =
            (unsigned char)(scaled_inputs(type) == 32 ? first : first / 2 | second / 2 << 4);
    }
}

static void
place_scales(enum weight_type type, const unsigned char *b, size_t lane, unsigned char *to)
{
    unsigned char *bytes = to + (has_minima(type) ? 2 : 1) * Q8_GROUP * 2 + lane;
    switch (type) {
    case WEIGHT_MXFP4: to[lane] = b[0]; break;
    case WEIGHT_Q4_1:
    case WEIGHT_Q5_1:
        place_half(b, lane, to);
        place_half(b + 2, lane, to + 2 * Q8_GROUP);
        break;
    case WEIGHT_Q4_K:
    case WEIGHT_Q5_K:
        place_half(b, lane, to);
        place_half(b + 2, lane, to + 2 * Q8_GROUP);
        for (size_t j = 0; j < 8; j++) {
            bytes[2 * j * Q8_GROUP] = tensor_six_bits(b + 4, j, 0);
            bytes[(2 * j + 1) * Q8_GROUP] = tensor_six_bits(b + 4, j, 4);
        }
        break;
    case WEIGHT_Q6_K:
        place_half(b + 208, lane, to);
        for (size_t j = 0; j < 16; j++)
            bytes[j * Q8_GROUP] = b[192 + j];
        break;
    case WEIGHT_Q3_K:
        place_half(b + 108, lane, to);
        for (size_t j = 0; j < 16; j++)
            bytes[j * Q8_GROUP] = signed_six_bits(b + 96, j);
        break;
    case WEIGHT_Q2_K:
        place_half(b + 80, lane, to);
        place_half(b + 82, lane, to + 2 * Q8_GROUP);
        for (size_t j = 0; j < 16; j++)
            bytes[j * Q8_GROUP] = b[j];
        break;
    case WEIGHT_IQ4_XS:
        place_half(b, lane, to);
        for (size_t j = 0; j < 8; j++)
            bytes[j * Q8_GROUP] = (unsigned char)iq4_xs_scale(b, (unsigned)j);
        break;
    case WEIGHT_TQ1_0: place_half(b + 52, lane, to); break;
    case WEIGHT_TQ2_0: place_half(b + 64, lane, to); break;
    default: place_half(b, lane, to); /* Q8_0, Q4_0, Q5_0, IQ4_NL */
    }
}

/* ---- all ---- */

SIMD_INLINE void
repack_type(const enum weight_type type, const unsigned char *rows, size_t n, size_t cols, uint32_t flip,
            unsigned char *q, unsigned char *scale)
{
    const size_t bytes = tensor_block_bytes(type), per = blocks_per_scale(type), blocks = cols / (Q8_BLOCK * per);
    for (size_t lane = 0; lane < n; lane += FOUR)
        for (size_t s = 0; s < blocks; s++) {
            struct four b;
            for (size_t k = 0; k < FOUR; k++)
                b.of[k] = lane + k < n ? rows + ((lane + k) * blocks + s) * bytes : nothing;
            for (size_t at = 0; at < FOUR * bytes; at += LINE) /* prefetches a share of the next four outputs */
                __builtin_prefetch(rows + ((lane + FOUR) * blocks + FOUR * s) * bytes + at, 0, 2);
            for (size_t i = 0; i < per; i++)
                place_quants(type, &b, i, lane, flip, q + (s * per + i) * quant_bytes(type));
            for (size_t k = 0; k < FOUR && lane + k < n; k++)
                place_scales(type, b.of[k], lane + k, scale + s * scale_bytes(type));
        }
}

/* Interleaves types with grids. */
static void
repack_rows(enum weight_type type, const unsigned char *rows, size_t n, size_t cols, unsigned char *q,
            unsigned char *scale)
{
    const size_t bytes = tensor_block_bytes(type), blocks = cols / (Q8_BLOCK * 8);
    for (size_t lane = 0; lane < Q8_GROUP; lane += FOUR)
        for (size_t s = 0; s < blocks; s++) {
            struct grid_block four[FOUR];
            for (size_t k = 0; k < FOUR; k++)
                grid_block(type, lane + k < n ? rows + ((lane + k) * blocks + s) * bytes : nothing, &four[k]);
            for (size_t i = 0; i < 8; i++)
                place_rows(type, four, i, lane, q + (s * 8 + i) * quant_bytes(type));
            for (size_t k = 0; k < FOUR; k++)
                place_grid_scales(type, &four[k], lane + k, scale + s * scale_bytes(type));
        }
}

void
repack(enum weight_type type, const unsigned char *rows, size_t n, size_t cols, uint8_t flip, unsigned char *q,
       unsigned char *scale)
{
#define ONE(name, kind)                                                                                                \
    case kind:                                                                                                         \
        if (has_grid(kind))                                                                                            \
            repack_rows(kind, rows, n, cols, q, scale);                                                                \
        else                                                                                                           \
            repack_type(kind, rows, n, cols, kind == WEIGHT_Q8_0 ? flip * 0x01010101u : 0, q, scale);                  \
        break;
    switch (type) {
        INTERLEAVED_TYPES(ONE)
        SAME_TYPES(ONE)
    default: break;
    }
#undef ONE
}
