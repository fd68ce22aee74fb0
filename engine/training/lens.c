#include "engine/training/lens.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernels/tensor.h"

bool
lens_open(struct lens *lens, const struct model_desc *d, struct err *err)
{
    struct final_norm norm;
    const struct model_form *f = &d->form;
    if (f->centred || f->logit_cap > 0 || f->logit_scale > 0 || tensor_present(&d->head_bias))
        return err_set(
            err, ERR_WORK,
            "heads are not trained for this model: its head has a centred norm, a bias, a scale or a cap, whose "
            "gradients are not there yet; the lens needs no training");
    if (!final_norm_open(&norm, d, err))
        return false;
    float *head = malloc((size_t)d->vocab * d->width * sizeof *head);
    if (head == NULL) {
        final_norm_free(&norm);
        return err_set(err, ERR_WORK, "out of memory: the head in F32 takes %.1f GB",
                       (double)d->vocab * d->width * sizeof *head * 1e-9);
    }
    for (uint32_t v = 0; v < d->vocab; v++)
        tensor_row(&d->head, v, head + (size_t)v * d->width);
    *lens = (struct lens){.width = d->width, .vocab = d->vocab, .norm = norm, .head = head};
    return true;
}

void
lens_free(struct lens *lens)
{
    final_norm_free(&lens->norm);
    free((float *)(uintptr_t)lens->head);
    *lens = (struct lens){.width = 0};
}
