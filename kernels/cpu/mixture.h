/* The MLP of a layer of experts. The rows of a call are put in order by the expert that they go to, so that each expert that
 * any of them goes to is read once; what it says of a row is added to the row in the order of the experts' indices. So a
 * row's bits hang on nothing but the row. */
#ifndef KERNELS_CPU_MIXTURE_H
#define KERNELS_CPU_MIXTURE_H

#include "kernels/cpu/worker.h"

/* What the parts of a store for layers of experts take, of `rows` rows; nothing where the model has none. False: no memory. */
bool mixture_take(struct store *, size_t rows);

/* The store's y (n, width) = the sum over a row's experts of weight * expert(x), x as prepared. `rows` (n): which of the sweep's they are. */
void mixture(struct store *, uint32_t l, size_t n, const uint32_t *rows);

#endif
