/* Golden logits: reads a text file of them (tests/golden/make_logits_golden.py) and measures a model's distance from
 * them. A file may also contain the tokens that greedy decoding generates next (make_models_golden.py). */
#pragma once

#include "engine/model/model.h"
#include "engine/model/model_open.h"

#define GOLDEN_TOKENS 64
#define GOLDEN_ROWS   4
#define GOLDEN_VOCAB  4096
#define GOLDEN_SAID   24

/* The tokens that greedy decoding generates after the text. If `fresh`, it chooses among tokens that are not in the
 * text. */
struct golden_said {
    uint32_t n; /* 0: the file has no such tokens */
    bool fresh;
    token_t tokens[GOLDEN_SAID];
    token_t second[GOLDEN_SAID]; /* also accepted, since floats cannot separate the logits; TOKEN_NONE: no other */
};

struct golden {
    token_t tokens[GOLDEN_TOKENS];
    uint32_t n_tokens, n_rows, vocab;
    struct {
        uint32_t position, layer;
        double logits[GOLDEN_VOCAB];
    } rows[GOLDEN_ROWS];
    struct golden_said said[2];
    uint32_t n_said;
};

/* Fails the test if the file is missing or invalid. */
void golden_read(struct golden *, const char *path);
/* Returns the largest relative error (by norm) over the golden rows, on the CPU backend with an instruction set, or on
 * any backend. */
double golden_error(const struct model *, const struct golden *, const char *isa, bool exact);
double golden_error_on(const struct backend_ops *, const struct model *, const struct golden *,
                       const struct backend_options *);
/* Returns how many of the golden tokens the model would not generate if it computes exactly. After each token it
 * continues with the golden one. Fails the test on a golden file without such tokens. */
uint32_t golden_strays(const struct backend_ops *, const struct model *, const struct golden *,
                       const struct backend_options *);

/* Fails the test unless the list contains the name of every path that consists of the folder, a name and the ending. So
 * no golden file is left without a test. */
void golden_assert_listed(const char *folder, const char *ending, const char *const *names, size_t n);
