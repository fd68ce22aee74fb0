/* GGUF's types whose bits are places in tables: the tables, which are facts of the format, and blocks taken apart. */
#ifndef KERNELS_CODEBOOKS_H
#define KERNELS_CODEBOOKS_H

#include "kernels/backend.h"
#include "kernels/half.h"

/* ---- sixteen numbers for four bits ---- */

/* X(value) of each code. MXFP4's are twice the numbers of E2M1 (OCP Microscaling Formats 1.0). */
#define MXFP4_VALUES(X) X(0) X(1) X(2) X(3) X(4) X(6) X(8) X(12) X(0) X(-1) X(-2) X(-3) X(-4) X(-6) X(-8) X(-12)
#define IQ4_VALUES(X)                                                                                                  \
    X(-127) X(-104) X(-83) X(-65) X(-49) X(-35) X(-22) X(-10) X(1) X(13) X(25) X(38) X(53) X(69) X(89) X(113)

#define CODEBOOK_ENTRY(value) value,
static const int8_t mxfp4_values[16] = {MXFP4_VALUES(CODEBOOK_ENTRY)};
static const int8_t iq4_values[16] = {IQ4_VALUES(CODEBOOK_ENTRY)};
#undef CODEBOOK_ENTRY

/* MXFP4's scale from its exponent: half of 2^(e - 127), as the values are doubled. */
static inline float
e8m0_half(uint8_t e)
{
    return float_of_bits(e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23);
}

/* IQ4_XS, scale j (0..7) of a block: four bits in a half of byte 4 + j / 2, two above them in bytes 2 and 3; less 32. */
static inline int
iq4_xs_scale(const unsigned char *block, unsigned j)
{
    return ((block[4 + j / 2] >> j % 2 * 4 & 15) | (block[2 + j / 4] >> j % 4 * 2 & 3) << 4) - 32;
}

/* ---- grids: a number of 8 to 11 bits names four or eight values at once ---- */

/* A row of a grid is one word of four bytes (IQ3) or two (IQ2, IQ1), inputs from the lowest byte on. IQ2's and IQ3's are
 * magnitudes, which have signs; IQ1's are 8 g + 17 for g of -1, 0 and 1. */
#define GRID_IQ1_ZERO 16u

/* NULL: the type has no grid. Rows: 256 of IQ2_XXS and IQ3_XXS, 512 of IQ2_XS and IQ3_S, 1024 of IQ2_S, 2048 of IQ1. */
const uint32_t *grid_of(enum weight_type);

/* Words in a row. */
static inline unsigned
grid_words(enum weight_type type)
{
    return type == WEIGHT_IQ3_S || type == WEIGHT_IQ3_XXS ? 1 : 2;
}

#define GRID_MINUS 0x800u /* beside IQ1's row: its values are 8 g - 1, else 8 g + 1 */

/* A block of 256 inputs. A value is d * scale * its integer, times grid_unit(). */
struct grid_block {
    uint16_t d;         /* F16 */
    uint16_t rows[64];  /* of the grid, of the inputs in order; 32 of those with two words */
    uint8_t signs[32];  /* bit i of j: input 8 * j + i is less than 0; not IQ1's */
    uint8_t scales[16]; /* of sixteen inputs, an odd number below 32; the same one twice where 32 inputs share it */
};

void grid_block(enum weight_type, const unsigned char *block, struct grid_block *);

static inline float
grid_unit(enum weight_type type)
{
    return type == WEIGHT_IQ3_S ? 1.0f : type == WEIGHT_IQ3_XXS ? 0.25f : 0.125f;
}

/* y (256): the values. */
void grid_values(enum weight_type, const unsigned char *block, float *y);

#endif
