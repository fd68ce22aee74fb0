/* Attention of one row, and the rotations that tell it where everything is. */
#ifndef KERNELS_CPU_ATTENTION_H
#define KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/store.h"

/* The places a row sees, in position order: a piece of a trunk, then a tail that ends with itself. */
struct path {
    const slot_t *trunk, *tail;
    size_t n_trunk, n;
    size_t first; /* position: those before it are not seen */
};

#define ATTEND_ROWS 8 /* that go over a trunk together */

/* What a thread widens keys and values into: (ATTEND_BLOCK, head_dim) each. */
struct widened {
    float *keys, *values;
};

/* What heads have of their own, the first of some at [0]; or NULL. */
struct of_heads {
    const float *sinks;  /* scores of a place before all, whose value is 0 (Xiao et al. 2023, as gpt-oss has it) */
    const float *slopes; /* form.alibi */
};

/* Some query heads of n <= ATTEND_ROWS rows, all on key-value head `kv_head` of layer l (1..L), each row over its own
 * path. Row i's heads are at q + i * ld and go to out + i * ld, (n_heads, head_dim); q is scaled (form.attention_scale). */
void attend(const struct store *, struct widened, uint32_t l, uint32_t kv_head, const struct path *, size_t n,
            size_t n_heads, const float *q, struct of_heads, float *out, size_t ld);

/* Keys and values of one head into the store. k, v: (head_dim) */
void remember(const struct store *, uint32_t l, uint32_t kv_head, slot_t, void *keys_or_values, const float *kv);

/* turns (rope_dims/2, 2): cosine and sine of every pair's angle at a position, with these radians per position, times a gain. */
void rope_turns(const struct weights *, const double *rope, float gain, uint32_t position, float *turns);
/* Rotates one head's first rope_dims dimensions. */
void rope(const struct model_desc *, const float *turns, float *x);

#endif
