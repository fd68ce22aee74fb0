#include "kernels/cuda/pack_bytes.h"

#include <math.h>
#include <string.h>

#include "kernels/codebooks.h"
#include "kernels/tensor.h"

#define BLOCK      32u
#define MOST_BLOCK 256u

bool
packs_as_bytes(enum weight_type type)
{
    switch (type) {
    case WEIGHT_MXFP4:
    case WEIGHT_IQ4_NL:
    case WEIGHT_IQ4_XS:
    case WEIGHT_IQ3_S:
    case WEIGHT_IQ3_XXS:
    case WEIGHT_IQ2_XXS:
    case WEIGHT_IQ1_S:
    case WEIGHT_TQ1_0:
    case WEIGHT_TQ2_0: return true;
    default: return false; /* IQ2_S, IQ2_XS and IQ1_M have scales for sixteen columns */
    }
}

/* What each thirty-two columns of a block are integers times. */
static void
scales_of(enum weight_type type, const unsigned char *block, float scales[MOST_BLOCK / BLOCK])
{
    struct grid_block g;
    if (grid_of(type) != NULL)
        grid_block(type, block, &g);
    for (unsigned j = 0; j < tensor_block_values(type) / BLOCK; j++)
        switch (type) {
        case WEIGHT_MXFP4: scales[j] = e8m0_half(block[0]); break;
        case WEIGHT_IQ4_NL: scales[j] = f16_at(block); break;
        case WEIGHT_IQ4_XS: scales[j] = f16_at(block) * (float)iq4_xs_scale(block, j); break;
        case WEIGHT_TQ1_0: scales[j] = f16_at(block + 52); break;
        case WEIGHT_TQ2_0: scales[j] = f16_at(block + 64); break;
        default: scales[j] = f16_to_f32(g.d) * grid_unit(type) * (float)g.scales[2 * j];
        }
}

void
row_as_bytes(enum weight_type type, const unsigned char *row, uint32_t cols, unsigned char *out)
{
    const uint32_t values = (uint32_t)tensor_block_values(type);
    float x[MOST_BLOCK], scales[MOST_BLOCK / BLOCK];
    for (uint32_t k = 0; k < cols; k += values, row += tensor_block_bytes(type)) {
        tensor_blocks(type, row, values, x);
        scales_of(type, row, scales);
        for (uint32_t i = 0; i < values; i++) {
            const float scale = scales[i / BLOCK];
            if (i % BLOCK == 0) {
                const uint16_t half = f32_to_f16(scale);
                memcpy(out, &half, sizeof half);
                out += sizeof half;
            }
            *out++ = (unsigned char)(scale != 0 ? lrintf(x[i] / scale) : 0); /* no rest: it is what x was made of */
        }
    }
}
