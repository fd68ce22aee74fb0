#include "tests/rigs/block_scales.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"

/* Offsets of the scale and of the second scale; 0 for the second: there is none. */
static const struct {
    unsigned char scale, second;
} places[WEIGHT_TYPES] = {
    [WEIGHT_Q4_1] = {0, 2},   [WEIGHT_Q5_1] = {0, 2},   [WEIGHT_Q2_K] = {80, 82},
    [WEIGHT_Q3_K] = {108, 0}, [WEIGHT_TQ1_0] = {52, 0}, [WEIGHT_TQ2_0] = {64, 0},
    [WEIGHT_Q4_K] = {0, 2},   [WEIGHT_Q5_K] = {0, 2},   [WEIGHT_Q6_K] = {208, 0},
};

bool
block_has_second(enum weight_type type)
{
    return places[type].second > 0;
}

void
block_set_scales(enum weight_type type, unsigned char *block, uint16_t scale, uint16_t second)
{
    if (type == WEIGHT_MXFP4) { /* e encodes 2^(e - 128) */
        int exponent;
        (void)frexpf(f16_to_f32(scale), &exponent);
        block[0] = (unsigned char)(exponent - 1 + 128);
        return;
    }
    if (type == WEIGHT_IQ1_M) { /* four bits each, in the high bits of four numbers of sixteen bits */
        for (int i = 0; i < 4; i++)
            block[49 + 2 * i] = (unsigned char)((block[49 + 2 * i] & 15) | (scale >> 4 * i & 15) << 4);
        return;
    }
    memcpy(block + places[type].scale, &scale, sizeof scale);
    if (block_has_second(type))
        memcpy(block + places[type].second, &second, sizeof second);
}
