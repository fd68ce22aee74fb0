/* A backend whose hidden states are hashes. The hash covers what a row attends to, in which order, at which layer, and
 * which sublayers were skipped. So any mistake in slots, tables, depths or ring places changes every later number
 * exactly, and the backend is fast. It also checks the contract of kernels/backend.h, and its cancel is harsher than
 * that of any real backend: it clears all trunk tables and every embedding since the last wait(). */
#pragma once

#include "tests/rigs/naive_model.h"

#define SYMBOLIC_WIDTH 4 /* a hidden state: 4 times 16 bits of its hash */

extern const struct backend_ops symbolic_backend;

/* Cancels once, before the n-th layer from now on; a negative number cancels never. */
void symbolic_cancel_before(struct weights *, int layer);
/* Makes store() fail from now on. */
void symbolic_fail_kv_cache(struct weights *, bool);
/* The context's calls so far: of trunk() and entries in them, of embed(), of wait(). */
struct symbolic_calls {
    uint32_t trunks, trunk_entries, embeds, waits;
};
struct symbolic_calls symbolic_calls(const struct weights *);

/* Like naive_hidden(), with out (depth + 1, SYMBOLIC_WIDTH). */
void symbolic_hidden(const struct naive_token *path, size_t n, uint32_t depth, double *out);
