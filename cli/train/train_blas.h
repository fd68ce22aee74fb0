/* Who multiplies for the commands that train. */
#ifndef CLI_TRAIN_TRAIN_BLAS_H
#define CLI_TRAIN_TRAIN_BLAS_H

#include "engine/training/blas.h"

/* The device's products where the engine has a device; else NULL, and where it might have some a line says why not. */
struct blas *train_blas(const struct engine *);

#endif
