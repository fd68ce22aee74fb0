/* The lossless matrix of one model: runs every policy of the registry, and one whose drafts come from no layer, under
 * settings of its knobs, and compares the tokens with those of autoregressive decoding. Fails the running cmocka test
 * at the first difference. */
#pragma once

#include "engine/model/trained/exit_heads.h"

#define LOSSLESS_SETTINGS 6

struct lossless_matrix {
    const char *backend;
    uint32_t prompts, tokens;
    bool changing;        /* knobs change at random each round */
    int settings;         /* 0: all */
    enum head_kind heads; /* random ones, which every policy uses; they must not change the text */
    uint32_t batch;       /* number of prompts at a time in one session; 0: each in its own */
};

#define MATRIX(...) (&(struct lossless_matrix){__VA_ARGS__})

struct lossless_result {
    uint64_t compared; /* runs */
    uint64_t accepted; /* drafts */
};

struct lossless_model {
    const char *path, *draft; /* a path, "self:E" */
    const char *lora;         /* an adapter for the model, not for its draft; NULL: none */
    const char *isa;          /* NULL: the best one here */
    int first;                /* setting */
    uint32_t share;           /* the seed selects one of so many policies; 0: all */
    const char *only;         /* the only policy, which must be able to run; NULL: all that can run */
};

/* The seed determines the knobs that are drawn, and whether one or two threads compute. */
struct lossless_result lossless_run(const struct lossless_model *, const struct lossless_matrix *, uint64_t seed);
