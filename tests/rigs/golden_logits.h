/* Golden logits: a text file of them (see tests/golden/make_logits_golden.py), and how far a model is from it. */
#ifndef TESTS_RIGS_GOLDEN_LOGITS_H
#define TESTS_RIGS_GOLDEN_LOGITS_H

#include "engine/model/model.h"
#include "engine/planted/model_open.h"

#define GOLDEN_TOKENS 64
#define GOLDEN_ROWS   4
#define GOLDEN_VOCAB  4096

struct golden {
    token_t tokens[GOLDEN_TOKENS];
    uint32_t n_tokens, n_rows, vocab;
    struct {
        uint32_t position, layer;
        double logits[GOLDEN_VOCAB];
    } rows[GOLDEN_ROWS];
};

/* Fails the test on a file that isn't there or isn't one. */
void golden_read(struct golden *, const char *path);
/* The largest relative error (by norm) over the golden rows, on the CPU backend with an instruction set; on any backend. */
double golden_error(const struct model *, const struct golden *, const char *isa, bool exact);
double golden_error_on(const struct backend_ops *, const struct model *, const struct golden *,
                       const struct backend_options *);

#endif
