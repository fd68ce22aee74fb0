/* Runs random programs of all operations of a context. It checks them against a shadow of the context's bookkeeping, a
 * model without caches, and a second context that computes the same paths one row at a time. */
#pragma once

#include "tests/rigs/naive_model.h"

struct row_world {
    const struct backend_ops *ops;
    struct backend *backend;
    struct weights *weights;
    const struct model_desc *desc;
    /* The oracle. Writes the hidden states (depth + 1, width) of a path's last token, and the logits (vocab) of a
     * hidden state, or NULL. */
    bool (*hidden)(const void *model, const struct naive_token *path, size_t n, uint32_t depth, double *out);
    void (*logits)(const void *model, const double *hidden, double *out);
    const void *model;
    double tolerance; /* |got - expected| / |expected| of a vector; 0: exactly */
    void (*cancel_before)(struct weights *,
                          int layer); /* cancels during a forward pass, or NULL: only from the start */
};

/* Counts a program's operations, so that a test can check that none was left out. */
struct row_counts {
    unsigned append, advance, until, prediction, verify, keep, discard, truncate, fork, drop, prefill, cancelled,
        refused, full, compared;
};

/* Runs n random operations. Fails the cmocka test at the first difference, after printing seed and operation. */
void row_program_run(const struct row_world *, uint64_t seed, unsigned n, struct row_counts *);
