/* Sets of tokens (kernels/backend.h): their rows of the head, and products with them.
 *
 * If the head's weights are interleaved, the rows are gathered in the format of the file and interleaved again: those
 * of the largest base of all sets once, and those of each set's recent tokens by itself, a group of sixteen at a time.
 * Other weights are read where they are.
 *
 * The outputs of a set begin with its base. Those of its recent tokens begin at the next piece, so that pieces of the
 * base are the same for all sets. */
#pragma once

#include "kernels/cpu/forward.h"

/* The places of a row's outputs, for set 0 those of the whole head: [0, base) and [recent, end). */
struct outputs {
    size_t base, recent, end;
};
struct outputs draft_outputs(const struct kv_cache *, uint32_t set);

/* Returns the token of an output of a set other than 0. */
token_t draft_token(const struct kv_cache *, uint32_t set, size_t output);

/* Allocates the sets of a KV cache; returns false if there is no memory. */
bool draft_open(struct kv_cache *);
void draft_close(struct kv_cache *);
/* backend_ops.draft_set */
bool cpu_draft_set(struct kv_cache *, uint32_t set, uint32_t base, const token_t *recent, size_t n);

/* Computes the outputs `part` (which begins at a group) of n rows for a set other than 0, without bias and scale. z
 * starts at their first output. full: a matrix that takes the head's place, which is not interleaved; or NULL. */
void draft_multiply(const struct worker *, uint32_t set, const struct matrix *full, const struct acts *, size_t n,
                    struct range part, float *z, size_t ld);
