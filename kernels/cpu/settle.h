/* Weights in blocks lie in the file until they have been used. Interleaving all of them takes longer than the first token
 * does, most of it for fresh memory: so the first sweep that comes to a layer interleaves sixteen outputs at a time into a
 * buffer that stays in the cache, multiplies, and forgets them. The second one puts the layer into memory for good, and
 * gives the file's pages back. Either way the kernels see the same interleaved weights, and come to the same bits.
 *
 * A unit is what settles together: a layer, or the head (unit 0). */
#ifndef KERNELS_CPU_SETTLE_H
#define KERNELS_CPU_SETTLE_H

#include "kernels/cpu/weights.h"
#include "kernels/team.h"

enum settling {
    UNIT_IN_FILE, /* nobody has used it */
    UNIT_USED,    /* once: who comes next settles it */
    UNIT_MOVING,  /* one team is about it; others go on as before it */
    UNIT_SETTLED
};

struct unit {
    _Atomic enum settling state;
};

/* What a team does with a unit that it is about to use. */
enum use {
    USE_MEMORY, /* multiply() */
    USE_FILE,   /* multiply_from_file() */
    USE_SETTLE  /* settle_unit(); then as USE_MEMORY */
};

/* After load: which units there is nothing to do for. */
void settle_open(struct weights *);
enum use settle_use(struct weights *, uint32_t unit);
void settle_unit(struct weights *, uint32_t unit);

/* A row of the embedding was read: now and then its pages are given back. */
void settle_embedded(struct weights *);

static inline bool
settled(struct weights *w)
{
    return atomic_load_explicit(&w->unsettled, memory_order_acquire) == 0;
}

/* A group of sixteen outputs, interleaved: room for one of the widest matrix of the model. */
struct group_buffer {
    unsigned char *q, *scale;
};
void settle_group_bytes(const struct weights *, size_t *q, size_t *scale); /* 0: no matrix is interleaved */

/* Outputs `part` of a matrix, which begin at a group. */
struct matrix matrix_part(const struct matrix *, struct range part);

/* multiply() (dequantise.h) for a matrix that has not settled. */
void multiply_from_file(const struct cpu_isa *, const struct matrix *, const struct acts *x, size_t n, size_t first,
                        size_t last, float *y, size_t ld, struct group_buffer);

/* backend_ops.settle */
void cpu_weights_settle(struct weights *, const atomic_bool *cancel);

#endif
