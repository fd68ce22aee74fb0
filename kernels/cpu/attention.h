/* Attention of one row, and the rotations that tell it where everything is. */
#ifndef KERNELS_CPU_ATTENTION_H
#define KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/store.h"

/* The places a row sees, in position order: a piece of a trunk, then a tail that ends with itself. */
struct path {
    const slot_t *trunk, *tail;
    size_t n_trunk, n;
};

/* Query heads head .. head+n_heads-1, which share key-value head `kv_head` of layer l (1..L), over the path.
 * q, out: (n_heads, head_dim); q is scaled by 1/sqrt(head_dim) already. */
void attend(const struct store *, uint32_t l, uint32_t kv_head, const struct path *, size_t n_heads, const float *q,
            float *out);

/* Keys and values of one head into the store. k, v: (head_dim) */
void remember(const struct store *, uint32_t l, uint32_t kv_head, slot_t, void *keys_or_values, const float *kv);

/* turns (rope_dims/2, 2): cosine and sine of every pair's angle at a position. */
void rope_turns(const struct weights *, uint32_t position, float *turns);
/* Rotates one head's first rope_dims dimensions. */
void rope(const struct model_desc *, const float *turns, float *x);

#endif
