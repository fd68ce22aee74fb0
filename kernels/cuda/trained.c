/* Trained heads on their way to the device. */
#include <inttypes.h>
#include <stdlib.h>

#include "kernels/cuda/weights.h"
#include "kernels/tensor.h"

/* Tells the device of w->sizes. A copy from pageable memory may return while it is on its way, and the stores' streams do
 * not wait for the default one's: all copies so far are there when it returns true. */
static bool
send_model(struct weights *w, struct err *err)
{
    static const char doing[] = "taking trained heads over";
    return cuda_did(w->backend,
                    cudaMemcpy((void *)(uintptr_t)w->model, &w->sizes, sizeof w->sizes, cudaMemcpyHostToDevice), doing,
                    err) &&
           cuda_did(w->backend, cudaStreamSynchronize(NULL), doing, err);
}

static bool
copy_bytes(struct weights *w, const void *from, size_t bytes, const void **to, struct err *err)
{
    void *there;
    if (!memory_take(&w->trained, w->backend, bytes, false, "the trained heads", &there, err) ||
        !cuda_did(w->backend, cudaMemcpy(there, from, bytes, cudaMemcpyHostToDevice), "copying trained heads", err))
        return false;
    *to = there;
    return true;
}

/* NULL for an absent one. */
static bool
copy_tensor(struct weights *w, const struct tensor *t, uint32_t rows, const float **to, struct err *err)
{
    const void *there = NULL;
    *to = NULL;
    if (t->data == NULL)
        return true;
    if (!tensor_fits_head(t, rows, w->desc.width, err))
        return false;
    const bool ok = copy_bytes(w, t->data, (size_t)rows * t->cols * sizeof(float), &there, err);
    *to = there;
    return ok;
}

static bool
copy_heads(struct weights *w, const struct exit_head *by_layer, struct dev_head *heads, struct err *err)
{
    const struct model_desc *d = &w->desc;
    const void *there = NULL;
    for (uint32_t l = 1; l < d->n_layers; l++) {
        struct dev_head *h = &heads[l];
        if (!copy_tensor(w, &by_layer[l].a, d->width, &h->a, err) || !copy_tensor(w, &by_layer[l].b, 1, &h->b, err) ||
            !copy_tensor(w, &by_layer[l].weight, d->vocab, &h->full, err))
            return false;
        if ((h->a == NULL) != (h->b == NULL) || (h->a != NULL && h->full != NULL))
            return err_set(err, ERR_WORK, "the trained head of layer %" PRIu32 " is neither affine nor full", l);
    }
    if (!copy_bytes(w, heads, (d->n_layers + 1u) * sizeof *heads, &there, err))
        return false;
    w->sizes.trained = there;
    return send_model(w, err);
}

bool
cuda_weights_heads(struct weights *w, const struct exit_head *by_layer, struct err *err)
{
    if (!device_here(w->backend, err))
        return false;
    const bool had = w->sizes.trained != NULL;
    w->sizes.trained = NULL;
    if (had && !send_model(w, err))
        return false;
    memory_free(&w->trained);
    w->trained = (struct memory){.pieces = NULL};
    if (by_layer == NULL)
        return true;
    struct dev_head *heads = calloc(w->desc.n_layers + 1u, sizeof *heads);
    const bool ok = heads != NULL ? copy_heads(w, by_layer, heads, err)
                                  : err_set(err, ERR_WORK, "not enough memory for the trained heads");
    free(heads);
    if (ok)
        return true;
    w->sizes.trained = NULL;
    memory_free(&w->trained);
    w->trained = (struct memory){.pieces = NULL};
    return false;
}
