#include "kernels/codebooks.h"

#include <pthread.h>

#include "kernels/codebook_grids.h"

/* ---- grids as words: four numbers of a row in each ---- */

static uint32_t grid_iq1[2048 * 2], grid_iq2_xxs[256 * 2], grid_iq2_xs[512 * 2], grid_iq2_s[1024 * 2],
    grid_iq3_xxs[256], grid_iq3_s[512];

/* Writes the rows of a set (codebook_grids.h): eight numbers out of three, or four out of eight. */
static void
list_rows(uint32_t *rows, const char *set, const uint8_t *numbers, unsigned n_numbers)
{
    const unsigned digits = n_numbers == 3 ? 8 : 4;
    for (unsigned k = 0; set[k / 4] != '\0'; k++) {
        const int four = set[k / 4] <= '9' ? set[k / 4] - '0' : set[k / 4] - 'a' + 10;
        if ((four >> k % 4 & 1) == 0)
            continue;
        for (unsigned i = 0, rest = k; i < digits; i++, rest /= n_numbers)
            rows[i / 4] |= (uint32_t)numbers[rest % n_numbers] << i % 4 * 8;
        rows += digits / 4;
    }
}

static void
list_all_rows(void)
{
    static const uint8_t iq1[] = {9, 17, 25}, iq2[] = {8, 25, 43}, iq3_xxs[] = {4, 12, 20, 28, 36, 44, 52, 62},
                         iq3_s[] = {1, 3, 5, 7, 9, 11, 13, 15};
    list_rows(grid_iq1, set_iq1, iq1, 3);
    list_rows(grid_iq2_xxs, set_iq2_xxs, iq2, 3);
    list_rows(grid_iq2_xs, set_iq2_xs, iq2, 3);
    list_rows(grid_iq2_s, set_iq2_s, iq2, 3);
    list_rows(grid_iq3_xxs, set_iq3_xxs, iq3_xxs, 8);
    list_rows(grid_iq3_s, set_iq3_s, iq3_s, 8);
}

const uint32_t *
grid_of(enum weight_type type)
{
    static pthread_once_t listed = PTHREAD_ONCE_INIT;
    pthread_once(&listed, list_all_rows);
    switch (type) {
    case WEIGHT_IQ1_S:
    case WEIGHT_IQ1_M: return grid_iq1;
    case WEIGHT_IQ2_XXS: return grid_iq2_xxs;
    case WEIGHT_IQ2_XS: return grid_iq2_xs;
    case WEIGHT_IQ2_S: return grid_iq2_s;
    case WEIGHT_IQ3_XXS: return grid_iq3_xxs;
    case WEIGHT_IQ3_S: return grid_iq3_s;
    default: return NULL;
    }
}

/* ---- blocks: j counts thirty-two inputs (0..7), l eights of those (0..3) ---- */

static uint32_t
word_at(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned
short_at(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

/* Seven of eight signs are stored: the number of set bits is even. */
static uint8_t
eight_signs(unsigned seven)
{
    return (uint8_t)(seven | (unsigned)__builtin_parity(seven) << 7);
}

static void
scale_32(struct grid_block *g, unsigned j, unsigned code)
{
    g->scales[2 * j] = g->scales[2 * j + 1] = (uint8_t)(2 * code + 1);
}

/* Decodes a word: four times seven signs, and the scale in the upper bits. */
static void
signs_and_scale(struct grid_block *g, unsigned j, uint32_t word)
{
    for (unsigned l = 0; l < 4; l++)
        g->signs[4 * j + l] = eight_signs(word >> 7 * l & 127);
    scale_32(g, j, word >> 28);
}

/* One byte per thirty-two inputs: the scales of two sixteens. */
static void
scales_16(struct grid_block *g, const unsigned char *s)
{
    for (unsigned j = 0; j < 16; j++)
        g->scales[j] = (uint8_t)(2 * (s[j / 2] >> j % 2 * 4 & 15) + 1);
}

static void
iq2_xxs(const unsigned char *b, struct grid_block *g)
{
    for (unsigned j = 0; j < 8; j++) {
        for (unsigned l = 0; l < 4; l++)
            g->rows[4 * j + l] = b[2 + 8 * j + l];
        signs_and_scale(g, j, word_at(b + 2 + 8 * j + 4));
    }
}

static void
iq2_xs(const unsigned char *b, struct grid_block *g)
{
    for (unsigned i = 0; i < 32; i++) {
        const unsigned both = short_at(b + 2 + 2 * i);
        g->rows[i] = both & 511;
        g->signs[i] = eight_signs(both >> 9);
    }
    scales_16(g, b + 66);
}

static void
iq2_s(const unsigned char *b, struct grid_block *g)
{
    for (unsigned i = 0; i < 32; i++) {
        g->rows[i] = (uint16_t)(b[2 + i] | (b[66 + i / 4] >> i % 4 * 2 & 3) << 8);
        g->signs[i] = b[34 + i];
    }
    scales_16(g, b + 74);
}

static void
iq3_xxs(const unsigned char *b, struct grid_block *g)
{
    for (unsigned i = 0; i < 64; i++)
        g->rows[i] = b[2 + i];
    for (unsigned j = 0; j < 8; j++)
        signs_and_scale(g, j, word_at(b + 66 + 4 * j));
}

static void
iq3_s(const unsigned char *b, struct grid_block *g)
{
    for (unsigned i = 0; i < 64; i++)
        g->rows[i] = (uint16_t)(b[2 + i] | (b[66 + i / 8] >> i % 8 & 1) << 8);
    for (unsigned i = 0; i < 32; i++)
        g->signs[i] = b[74 + i];
    for (unsigned j = 0; j < 8; j++)
        scale_32(g, j, b[106 + j / 2] >> j % 2 * 4 & 15);
}

static void
iq1_s(const unsigned char *b, struct grid_block *g)
{
    for (unsigned j = 0; j < 8; j++) { /* per eight inputs three bits of the index, then three bits of the scale and */
                                       /* one common sign */
        const unsigned high = short_at(b + 34 + 2 * j);
        for (unsigned l = 0; l < 4; l++)
            g->rows[4 * j + l] =
                (uint16_t)(b[2 + 4 * j + l] | (high >> 3 * l & 7) << 8 | (high >> 15 != 0 ? GRID_MINUS : 0));
        scale_32(g, j, high >> 12 & 7);
    }
}

/* d is in the upper four bits of four numbers; their lower bits contain four scales each. */
static void
iq1_m(const unsigned char *b, struct grid_block *g)
{
    g->d = 0;
    for (unsigned i = 0; i < 4; i++)
        g->d |= (uint16_t)(short_at(b + 48 + 2 * i) >> 12 << 4 * i);
    for (unsigned i = 0; i < 32; i++) {
        const unsigned high = b[32 + i / 2] >> i % 2 * 4 & 15u;
        g->rows[i] = (uint16_t)(b[i] | high << 8); /* the fourth upper bit is GRID_MINUS */
    }
    for (unsigned i = 0; i < 16; i++)
        g->scales[i] = (uint8_t)(2 * (short_at(b + 48 + i / 4 * 2) >> i % 4 * 3 & 7) + 1);
}

void
grid_block(enum weight_type type, const unsigned char *b, struct grid_block *g)
{
    g->d = (uint16_t)short_at(b);
    switch (type) {
    case WEIGHT_IQ2_XXS: iq2_xxs(b, g); break;
    case WEIGHT_IQ2_XS: iq2_xs(b, g); break;
    case WEIGHT_IQ2_S: iq2_s(b, g); break;
    case WEIGHT_IQ3_XXS: iq3_xxs(b, g); break;
    case WEIGHT_IQ3_S: iq3_s(b, g); break;
    case WEIGHT_IQ1_S: iq1_s(b, g); break;
    default: iq1_m(b, g);
    }
}

/* ---- values ---- */

void
grid_values(enum weight_type type, const unsigned char *block, float *y)
{
    const uint32_t *grid = grid_of(type);
    const unsigned words = grid_words(type);
    const bool shifted = type == WEIGHT_IQ1_S || type == WEIGHT_IQ1_M;
    struct grid_block g;
    grid_block(type, block, &g);
    const float d = f16_to_f32(g.d) * grid_unit(type);
    for (unsigned k = 0; k < 256; k += 4) {
        const unsigned row = g.rows[k / 4 / words], which = row & (GRID_MINUS - 1);
        const uint32_t word = grid[which * words + k / 4 % words];
        const unsigned minus = shifted ? 0 : g.signs[k / 8] >> k % 8;
        const int zero = !shifted ? 0 : row < GRID_MINUS ? (int)GRID_IQ1_ZERO : (int)GRID_IQ1_ZERO + 2;
        const float each = d * (float)g.scales[k / 16];
        for (unsigned i = 0; i < 4; i++) {
            const int value = (int)(word >> 8 * i & 255) - zero;
            y[k + i] = each * (float)(minus >> i & 1 ? -value : value);
        }
    }
}
