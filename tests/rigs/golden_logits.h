/* Golden logits: a text file of them (see tests/golden/make_logits_golden.py), and how far a model is from it; and the
 * tokens that greedy decoding gives then, where the file has them (make_models_golden.py). */
#ifndef TESTS_RIGS_GOLDEN_LOGITS_H
#define TESTS_RIGS_GOLDEN_LOGITS_H

#include "engine/model/model.h"
#include "engine/model/model_open.h"

#define GOLDEN_TOKENS 64
#define GOLDEN_ROWS   4
#define GOLDEN_VOCAB  4096
#define GOLDEN_SAID   24

/* What greedy decoding says after the tokens; of fresh tokens it says those that the text hasn't had. */
struct golden_said {
    uint32_t n; /* 0: the file has none */
    bool fresh;
    token_t tokens[GOLDEN_SAID];
    token_t second[GOLDEN_SAID]; /* whose logit floats cannot tell from it, and which will do; TOKEN_NONE: no other */
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

/* Fails the test on a file that isn't there or isn't one. */
void golden_read(struct golden *, const char *path);
/* The largest relative error (by norm) over the golden rows, on the CPU backend with an instruction set; on any
 * backend. */
double golden_error(const struct model *, const struct golden *, const char *isa, bool exact);
double golden_error_on(const struct backend_ops *, const struct model *, const struct golden *,
                       const struct backend_options *);
/* How many of the tokens it would not have said, when it computes exactly; it goes on with the golden one. Fails the
 * test on a golden file that has no such tokens. */
uint32_t golden_strays(const struct backend_ops *, const struct model *, const struct golden *,
                       const struct backend_options *);

/* Fails the test unless every path that begins with the folder and ends with the ending, with a name in between, has it
 * in the list: a golden file that no test compares. */
void golden_assert_listed(const char *folder, const char *ending, const char *const *names, size_t n);

#endif
