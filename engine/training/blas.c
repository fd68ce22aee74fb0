#include "engine/training/blas.h"

#include <stdlib.h>

#include "kernels/blas_library.h"

uint32_t
blas_callers(uint32_t wanted, struct err *err)
{
    const struct blas_library *library = blas_library(wanted, err);
    return library == NULL ? 0 : library->sequential && wanted > 1 ? 1 : wanted;
}

/* ---- products on a device ---- */

struct blas {
    const struct product_ops *ops;
    struct products *products;
    atomic_bool failed;
    atomic_flag reporting; /* who has it writes err, once */
    struct err err;
};

bool
blas_open(struct blas **out, const struct engine *e, struct err *err)
{
    *out = NULL;
    if (e->ops->products == NULL)
        return true;
    struct blas *b = calloc(1, sizeof *b);
    if (b == NULL)
        return err_set(err, ERR_WORK, "not enough memory for products on a device");
    b->ops = e->ops->products;
    if (!b->ops->open(e->backend, &b->products, err)) {
        free(b);
        return false;
    }
    atomic_init(&b->failed, false);
    atomic_flag_clear(&b->reporting);
    *out = b;
    return true;
}

void
blas_close(struct blas *b)
{
    if (b == NULL)
        return;
    b->ops->close(b->products);
    free(b);
}

void
blas_keep(struct blas *b, const float *values, size_t n)
{
    if (b != NULL)
        (void)b->ops->keep(b->products, values, n, NULL);
}

static void
fail(struct blas *b, const struct err *why)
{
    if (atomic_flag_test_and_set(&b->reporting))
        return;
    b->err = *why;
    atomic_store(&b->failed, true);
}

void
blas_multiply(struct blas *b, const struct host_product *p)
{
    if (b != NULL && !atomic_load(&b->failed)) {
        struct err why = {.kind = ERR_NONE};
        if (b->ops->multiply(b->products, p, &why))
            return;
        fail(b, &why);
    }
    const struct blas_library *library = blas_library(1, NULL); /* not NULL: training has loaded it */
    library->multiply(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans,
                      p->transpose_b ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n, (int)p->k, 1, p->a,
                      (int)p->stride_a, p->b, (int)p->stride_b, p->beta, p->c, (int)p->n);
}

bool
blas_failed(struct blas *b, struct err *err)
{
    if (b == NULL || !atomic_load(&b->failed))
        return false;
    *err = b->err;
    return true;
}
