/* What is read is ggml's (kernels/tensor.c), what is written layout.h's: every number stays as it was, and only moves. */
#include "kernels/cuda/pack_pairs.h"

#include <string.h>

#include "kernels/tensor.h"

#define PAIRS_OF_SUPER (SUPER / PAIR)

/* A pair's places in a strip, of one row. */
struct pair_row {
    uint32_t r, nibbles[UNIT], highs[UNIT];
};

static struct pair_row
places_of(uint32_t r)
{
    struct pair_row p = {.r = r};
    for (uint32_t k = 0; k < UNIT; k++) {
        p.nibbles[k] = nibble_place(r, k);
        p.highs[k] = high_place(r, k);
    }
    return p;
}

/* F16 d of a unit (Q4_0), `unit` 0 or 1. */
static void
put_unit_scale(const struct pair_row *p, uint32_t unit, const unsigned char *d, unsigned char *scales)
{
    memcpy(scales + p->r % 8 * 8 + unit * 4 + p->r / 8 * 2, d, 2);
}

/* F16 numbers of a block, n of them side by side. */
static void
put_super_scales(const struct pair_row *p, size_t n, const unsigned char *d, unsigned char *to)
{
    memcpy(to + (p->r % 8 * 2 + p->r / 8) * n * 2, d, n * 2);
}

/* ---- Q4_0: two blocks, each F16 d and 16 bytes of values k and k + 16 ---- */

static void
pair_q4_0(const struct pair_row *p, const unsigned char *first, const unsigned char *second, unsigned char *quants,
          unsigned char *scales)
{
    static const unsigned char none[18] = {0}; /* d = 0: what a last, odd block is paired with */
    const unsigned char *a = first + 2, *b = (second != NULL ? second : none) + 2;
    put_unit_scale(p, 0, a - 2, scales);
    put_unit_scale(p, 1, b - 2, scales);
    for (uint32_t k = 0; k < UNIT / 2; k++) {
        quants[p->nibbles[k]] = (unsigned char)((a[k] & 15) | b[k] << 4);
        quants[p->nibbles[k + UNIT / 2]] = (unsigned char)(a[k] >> 4 | (b[k] & 0xf0));
    }
}

/* ---- Q4_K: F16 d and dmin, 12 bytes of scales and minima, 32 bytes for each pair of sub-blocks ---- */

/* Scale j (0..7), or with `above` 4 its minimum: six bits. Those of 0..3 are in the low bits of byte j + above; of the
 * others four bits are in a half of byte j + 4, and two above those of j - 4. */
static unsigned char
six_bits(const unsigned char *s, uint32_t j, uint32_t above)
{
    if (j < 4)
        return s[j + above] & 63;
    return (unsigned char)((above == 0 ? s[j + 4] & 15 : s[j + 4] >> 4) | s[j - 4 + above] >> 6 << 4);
}

static void
super_q4_k(const struct pair_row *p, const unsigned char *from, unsigned char *quants, unsigned char *scales,
           unsigned char *supers)
{
    put_super_scales(p, 2, from, supers);
    for (uint32_t pair = 0; pair < PAIRS_OF_SUPER; pair++, quants += PAIR_NIBBLES, scales += PAIR_SCALES) {
        unsigned char *own = scales + p->r % 8 * 8 + p->r / 8 * 4;
        for (uint32_t unit = 0; unit < 2; unit++) {
            own[unit] = six_bits(from + 4, 2 * pair + unit, 0);
            own[2 + unit] = six_bits(from + 4, 2 * pair + unit, 4);
        }
        for (uint32_t k = 0; k < UNIT; k++) /* one sub-block's in the lower halves, the next one's in the upper ones */
            quants[p->nibbles[k]] = from[16 + pair * UNIT + k];
    }
}

/* ---- Q6_K: 128 bytes of low bits, 64 of high bits, 16 int8 scales, F16 d ---- */

/* A half of a block is four units: low bits of units 0 and 1 in the lower halves of 64 bytes, of 2 and 3 in the upper ones;
 * high bits of all four in one of 32 bytes. */
static void
super_q6_k(const struct pair_row *p, const unsigned char *from, unsigned char *quants, unsigned char *scales,
           unsigned char *supers)
{
    put_super_scales(p, 1, from + 208, supers);
    for (uint32_t pair = 0; pair < PAIRS_OF_SUPER; pair++) {
        const unsigned char *low = from + pair / 2 * 64, *high = from + 128 + pair / 2 * 32, *steps = from + 192;
        const uint32_t upper = pair % 2 * 4;
        unsigned char *own = scales + p->r % 8 * 8 + p->r / 8 * 4, *highs = quants + PAIR_NIBBLES;
        memcpy(own, steps + pair * 4, 4);
        for (uint32_t k = 0; k < UNIT; k++) {
            const uint32_t two = (uint32_t)high[k] >> upper;
            quants[p->nibbles[k]] =
                (unsigned char)((low[k] >> upper & 15u) | ((uint32_t)low[UNIT + k] >> upper & 15u) << 4);
            highs[p->highs[k]] |= (unsigned char)(((two & 3u) | (two >> 2 & 3u) << 4) << (p->r / 8 * 2));
        }
        quants += PAIR_NIBBLES + PAIR_HIGHS;
        scales += PAIR_SCALES;
    }
}

void
pack_pairs(enum weight_type type, uint32_t r, uint32_t cols, const unsigned char *from, unsigned char *quants,
           unsigned char *scales)
{
    const struct pair_row places = places_of(r);
    const size_t block = tensor_block_bytes(type), units = units_of(cols);
    if (type == WEIGHT_Q4_0) {
        for (uint32_t k = 0; k < cols; k += PAIR, from += 2 * block, quants += PAIR_NIBBLES, scales += PAIR_SCALES)
            pair_q4_0(&places, from, k + UNIT < cols ? from + block : NULL, quants, scales);
        return;
    }
    unsigned char *supers = scales + units / 2 * PAIR_SCALES;
    const size_t super_quants = strip_quants(type, SUPER / UNIT), super_bytes = STRIP * 2 * super_scales(type);
    for (uint32_t k = 0; k < cols; k += SUPER) {
        (type == WEIGHT_Q4_K ? super_q4_k : super_q6_k)(&places, from, quants, scales, supers);
        from += block;
        quants += super_quants;
        scales += PAIRS_OF_SUPER * PAIR_SCALES;
        supers += super_bytes;
    }
}
