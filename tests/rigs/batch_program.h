/* Runs sequences that share a context: they draft, are verified, grow and are cut together. Each sequence also has a
 * context of its own, in which the same rows are computed one by one. The results of both contexts must have the same
 * bits, and committed rows must be the oracle's. */
#pragma once

#include "tests/rigs/naive_model.h"

enum { BATCH_MOST = 16, BATCH_NODES = 17, BATCH_CTX = 400 }; /* sequences, rows of a round, positions, at most */

struct batch_world {
    const struct backend_ops *ops;
    struct backend *backend;
    struct weights *weights;
    const struct model_desc *desc;
    const struct naive_model *model; /* the oracle; NULL: hashes are compared exactly */
    double tolerance;                /* |got - expected| / |expected| of a hidden state */
    uint32_t n, ctx;                 /* sequences, and positions of each, at most */
};

/* Runs random rounds of all sequences. Fails the cmocka test at the first difference. */
void batch_program_run(const struct batch_world *, uint64_t seed, unsigned rounds);
