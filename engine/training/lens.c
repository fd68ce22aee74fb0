#include "engine/training/lens.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernels/tensor.h"

bool
lens_open(struct lens *lens, const struct model_desc *d, struct err *err)
{
    struct final_norm norm;
    if (!final_norm_open(&norm, d, err))
        return false;
    const bool biased = tensor_present(&d->head_bias);
    float *head = malloc((size_t)d->vocab * d->width * sizeof *head), *bias = NULL;
    if (head != NULL && biased)
        bias = malloc(d->vocab * sizeof *bias);
    if (head == NULL || (biased && bias == NULL)) {
        free(head);
        final_norm_free(&norm);
        return err_set(err, ERR_WORK, "out of memory: the head in F32 takes %.1f GB",
                       (double)d->vocab * d->width * sizeof *head * 1e-9);
    }
    for (uint32_t v = 0; v < d->vocab; v++)
        tensor_row(&d->head, v, head + (size_t)v * d->width);
    if (biased)
        tensor_row(&d->head_bias, 0, bias);
    *lens = (struct lens){.width = d->width,
                          .vocab = d->vocab,
                          .norm = norm,
                          .head = head,
                          .bias = bias,
                          .scale = d->form.logit_scale,
                          .cap = d->form.logit_cap};
    return true;
}

void
lens_free(struct lens *lens)
{
    final_norm_free(&lens->norm);
    free((float *)(uintptr_t)lens->head);
    free((float *)(uintptr_t)lens->bias);
    *lens = (struct lens){.width = 0};
}
