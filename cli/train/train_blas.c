#include "cli/train/train_blas.h"

#include <stdio.h>

struct blas *
train_blas(const struct engine *e)
{
    struct blas *b;
    struct err why;
    if (!blas_open(&b, e, &why))
        fprintf(stderr, "specscope: training multiplies on the CPU: %s\n", why.text);
    return b;
}
