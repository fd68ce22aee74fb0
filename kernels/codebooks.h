/* Tables of those GGUF types that encode values as table indices, and functions to decode their blocks. The tables are
 * part of the format. */
#pragma once

#include "kernels/backend.h"
#include "kernels/half.h"

/* ---- sixteen numbers for four bits ---- */

/* Calls X(value) for each code. MXFP4's values are doubled values of E2M1 (OCP Microscaling Formats 1.0). */
#define MXFP4_VALUES(X) X(0) X(1) X(2) X(3) X(4) X(6) X(8) X(12) X(0) X(-1) X(-2) X(-3) X(-4) X(-6) X(-8) X(-12)
#define IQ4_VALUES(X)                                                                                                  \
    X(-127) X(-104) X(-83) X(-65) X(-49) X(-35) X(-22) X(-10) X(1) X(13) X(25) X(38) X(53) X(69) X(89) X(113)

#define CODEBOOK_ENTRY(value) value,
static const int8_t mxfp4_values[16] = {MXFP4_VALUES(CODEBOOK_ENTRY)};
static const int8_t iq4_values[16] = {IQ4_VALUES(CODEBOOK_ENTRY)};
#undef CODEBOOK_ENTRY

/* Returns MXFP4's scale for an exponent e: half of 2^(e - 127), because the values are doubled. */
static inline float
e8m0_half(uint8_t e)
{
    return float_of_bits(e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23);
}

/* Returns scale j (0..7) of an IQ4_XS block: four bits are in one half of byte 4 + j / 2, two upper bits in bytes 2 and
 * 3; 32 is subtracted. */
static inline int
iq4_xs_scale(const unsigned char *block, unsigned j)
{
    return ((block[4 + j / 2] >> j % 2 * 4 & 15) | (block[2 + j / 4] >> j % 4 * 2 & 3) << 4) - 32;
}

/* ---- grids: a number of 8 to 11 bits names four or eight values at once ---- */

/* A row of a grid is one word of four bytes (IQ3) or two (IQ2, IQ1), with inputs from the lowest byte on. Bytes of IQ2
 * and IQ3 are magnitudes, whose signs are stored separately; bytes of IQ1 are 8 g + 17 for g of -1, 0 and 1. */
#define GRID_IQ1_ZERO 16u

/* Returns the grid of a type, or NULL if it has none. Rows: 256 for IQ2_XXS and IQ3_XXS, 512 for IQ2_XS and IQ3_S, 1024
 * for IQ2_S, 2048 for IQ1. */
const uint32_t *grid_of(enum weight_type);

/* Returns the number of words in a row. */
static inline unsigned
grid_words(enum weight_type type)
{
    return type == WEIGHT_IQ3_S || type == WEIGHT_IQ3_XXS ? 1 : 2;
}

#define GRID_MINUS 0x800u /* flag in an IQ1 row index: values are 8 g - 1 if set, else 8 g + 1 */

/* A decoded block of 256 inputs. A value is d * scale * its integer * grid_unit(). */
struct grid_block {
    uint16_t d;         /* F16 */
    uint16_t rows[64];  /* indices into the grid, in the order of inputs; 32 of them for grids with two words */
    uint8_t signs[32];  /* bit i of byte j: input 8 * j + i is negative; unused for IQ1 */
    uint8_t scales[16]; /* one per sixteen inputs, odd and below 32; two equal ones if 32 inputs share a scale */
};

void grid_block(enum weight_type, const unsigned char *block, struct grid_block *);

static inline float
grid_unit(enum weight_type type)
{
    return type == WEIGHT_IQ3_S ? 1.0f : type == WEIGHT_IQ3_XXS ? 0.25f : 0.125f;
}

/* Decodes a block to y (256). */
void grid_values(enum weight_type, const unsigned char *block, float *y);
