/* A backend whose hidden states are hashes. What a row attends to, in which order, at which layer, with what skipped,
 * goes into the hash, so any mistake in slots, tables, depths or ring places changes every number after it: exactly,
 * and in no time. It checks the contract of kernels/backend.h and has a worse temper than any real backend: a cancel
 * forgets all trunk tables and every embedding since the last wait(). */
#ifndef TESTS_RIGS_SYMBOLIC_BACKEND_H
#define TESTS_RIGS_SYMBOLIC_BACKEND_H

#include "tests/rigs/naive_model.h"

#define SYMBOLIC_WIDTH 4 /* a hidden state: 4 times 16 bits of its hash */

extern const struct backend_ops symbolic_backend;

/* From now on: a cancel strikes before the n-th layer from here, once; negative: never. */
void symbolic_cancel_before(struct weights *, int layer);
/* store() fails. */
void symbolic_fail_kv_cache(struct weights *, bool);
/* What the context has asked for so far: calls of trunk() and entries in them, of embed(), of wait(). */
struct symbolic_calls {
    uint32_t trunks, trunk_entries, embeds, waits;
};
struct symbolic_calls symbolic_calls(const struct weights *);

/* As naive_hidden(), out (depth + 1, SYMBOLIC_WIDTH). */
void symbolic_hidden(const struct naive_token *path, size_t n, uint32_t depth, double *out);

#endif
