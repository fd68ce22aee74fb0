/* Tiny Llama models with random weights, as GGUF files, for tests in which a trained model would be too slow or too
 * regular. The same options give the same bytes on every machine (integer random numbers, no libm).
 *
 * A struct tinymodel of zeros is a valid choice: every 0 means the default given below. As a program:
 * `build/tests/tinymodel OUT.gguf --layers 4 --types mixed …` (tinymodel_main.c). */
#pragma once

#include <stddef.h>

#include "kernels/backend.h"

#define TINYMODEL_FIRST_PIECE 259u /* ids below: <unk> <s> </s>, then the 256 byte tokens <0x00>… */
#define TINYMODEL_MIN_VOCAB   288u

struct tinymodel {
    uint64_t seed;
    uint32_t n_layers;        /* 4 */
    uint32_t first_layers;    /* all; fewer: the file has the first so many, a draft model for the whole one */
    uint32_t width;           /* 64; rows of Q8_0 tensors need a multiple of 32 */
    uint32_t heads, kv_heads; /* 4, 2; heads is a multiple of kv_heads */
    uint32_t head_dim;        /* width / heads; even */
    uint32_t ffn;             /* 2 * width */
    uint32_t vocab;           /* 320; at least TINYMODEL_MIN_VOCAB */
    uint32_t padding;         /* unused tokens beyond these, as likely as others: 0 */
    uint32_t ctx;             /* 512: the context length in the file; nothing depends on it */
    bool tied;                /* no output.weight: the head is the embedding */

    enum weight_type embedding, attention, mlp, head; /* F32, being 0; the norms are always F32 */
    bool mixed; /* instead: every matrix of every layer takes the next of F32, F16, BF16, Q8_0 (where 32 divides it) */

    uint32_t rope_dims; /* head_dim */
    float rope_base;    /* 10000 */
    float rope_linear;  /* 1: linear scaling factor, positions are divided by it */
    bool rope_factors;  /* write rope_freqs.weight: 1, then growing to 8 */

    /* Layers after calm_after add `calm` times as much to the residual stream as they would; with 0.1, exits from
     * layer calm_after on agree with the final layer most of the time, with 0 always. calm_after = 0: off. */
    uint32_t calm_after;
    float calm;
    /* 4: standard deviation of a piece's logit; larger is more confident. Byte and control tokens have a quarter of it,
     * except </s>. */
    float sharpness;

    bool nasty;           /* the first TINYMODEL_NASTY pieces must never reach a terminal or a CSV file unescaped */
    bool no_space_prefix; /* tokenizer.ggml.add_space_prefix = false */
    uint32_t version;     /* 3: of GGUF; 2 differs only in the number */
    const char *arch;     /* "llama" */
    const char *chat_template; /* none */
};

/* Escape sequences, C0 and C1 bytes, bidi overrides, broken UTF-8, an embedded NUL, quotes, commas, newlines, … */
#define TINYMODEL_NASTY 24u

/* Returns the file's bytes in memory that the caller frees. Fails for shapes that no model can have. */
bool tinymodel_build(const struct tinymodel *, unsigned char **bytes, size_t *len, struct err *);
bool tinymodel_write(const char *path, const struct tinymodel *, struct err *);
/* Writes to a new file in $TMPDIR (or /tmp), its name in path (at least 64 bytes); the caller unlinks it. */
bool tinymodel_write_temp(char *path, size_t size, const struct tinymodel *, struct err *);
