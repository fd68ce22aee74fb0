#include "kernels/cpu/dequantise.h"

#include "kernels/tensor.h"

#define PART 256 /* values in F32 at a time: a multiple of every block, and what the sums are grouped by */

void
matmul_dequantised(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last, float *y,
                   size_t ld)
{
    const size_t row_bytes = tensor_row_bytes(w->type, w->cols);
    float part[PART];
    for (size_t o = first; o < last; o++) {
        const char *row = (const char *)w->data + o * row_bytes;
        for (size_t k = 0; k < w->cols; k += PART) {
            const size_t m = w->cols - k < PART ? w->cols - k : PART;
            tensor_blocks(w->type, row + tensor_row_bytes(w->type, k), m, part);
            for (size_t r = 0; r < n; r++) {
                const float *xr = x->x + r * w->cols + k;
                float sum[8] = {0}; /* several sums lose less than one, and are several at a time */
                for (size_t i = 0; i < m; i++)
                    sum[i % 8] += part[i] * xr[i];
                const float all = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
                y[r * ld + o] = k == 0 ? all : y[r * ld + o] + all;
            }
        }
    }
}
