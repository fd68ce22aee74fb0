#include "engine/model/final_norm.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/tensor.h"

bool
final_norm_open(struct final_norm *n, const struct model_desc *d, struct err *err)
{
    *n = (struct final_norm){.width = d->width,
                             .eps = d->rms_eps,
                             .centred = d->form.centred,
                             .weight = calloc(d->width, 2 * sizeof *n->weight)};
    if (n->weight == NULL)
        return err_set(err, ERR_WORK, "out of memory for a norm");
    tensor_row(&d->final_norm, 0, n->weight);
    if (tensor_present(&d->final_norm_bias))
        tensor_row(&d->final_norm_bias, 0, n->weight + d->width);
    return true;
}

void
final_norm_free(struct final_norm *n)
{
    free(n->weight);
    *n = (struct final_norm){.width = 0};
}

float
final_norm_apply(const struct final_norm *n, const float *h, float *out)
{
    const float *bias = n->weight + n->width;
    double squares = 0, sum = 0;
    for (uint32_t i = 0; n->centred && i < n->width; i++)
        sum += (double)h[i];
    const float mean = (float)(sum / n->width);
    for (uint32_t i = 0; i < n->width; i++)
        squares += (double)(h[i] - mean) * (double)(h[i] - mean);
    const float inverse = (float)(1 / sqrt(squares / (double)n->width + (double)n->eps));
    for (uint32_t i = 0; i < n->width; i++)
        out[i] = (h[i] - mean) * inverse * n->weight[i] + bias[i];
    return inverse;
}
