#include "kernels/tensor.h"

#include <string.h>

#include "kernels/cpu/half.h"
#include "kernels/planted.h"

#define Q8_VALUES 32
#define Q8_BYTES  (2 + Q8_VALUES) /* a block in a file: an F16 scale, then 32 int8 */

void
tensor_row(const struct tensor *t, size_t row, float *y)
{
    const unsigned char *p = t->data;
    uint16_t half;
    if (p == NULL) {
        planted_row_f32(t, (uint32_t)row, y);
        return;
    }
    switch (t->type) {
    case WEIGHT_F32: memcpy(y, p + row * t->cols * sizeof *y, t->cols * sizeof *y); break;
    case WEIGHT_F16:
    case WEIGHT_BF16:
        p += row * t->cols * sizeof half;
        for (size_t k = 0; k < t->cols; k++) {
            memcpy(&half, p + k * sizeof half, sizeof half);
            y[k] = t->type == WEIGHT_F16 ? f16_to_f32(half) : bf16_to_f32(half);
        }
        break;
    default:
        p += row * (t->cols / Q8_VALUES) * Q8_BYTES;
        for (size_t k = 0; k < t->cols; k++) {
            const unsigned char *block = p + k / Q8_VALUES * Q8_BYTES;
            memcpy(&half, block, sizeof half);
            y[k] = f16_to_f32(half) * (float)(int8_t)block[2 + k % Q8_VALUES];
        }
    }
}
