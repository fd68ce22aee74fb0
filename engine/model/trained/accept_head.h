/* An acceptance head (SpecDec++): reads a draft model's final hidden state of the row whose input is a candidate, and returns
 * the probability that the target accepts that candidate.
 *
 *     x_0 = norm(h)                       h: after the last layer; norm: the draft model's final one
 *     x_{i+1} = x_i + SiLU(W_i x_i + b_i)    i = 0..D-1
 *     (z_reject, z_accept) = V x_D + c,   p̂ = softmax(z)[accept] = sigmoid(z_accept - z_reject)
 *
 * The released checkpoints of SpecDec++ are read too: there all blocks are one, and only the first's weights are in the file. */
#ifndef ENGINE_MODEL_TRAINED_ACCEPT_HEAD_H
#define ENGINE_MODEL_TRAINED_ACCEPT_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/file_replace.h"

#define ACCEPT_HEAD_BLOCKS 8 /* at most */

struct model;

struct accept_block {
    float *w, *b; /* (width, width), (width) */
};

struct accept_head {
    uint32_t width, n_blocks;
    bool shared;                                   /* all blocks are the first one */
    struct accept_block block[ACCEPT_HEAD_BLOCKS]; /* (n_blocks) into values */
    float *v, *c;                                  /* (2, width), (2): reject, accept */
    float *values;                                 /* owns all of them, in this order */
    size_t n_values;
    uint64_t draft_hash, target_hash; /* of the two models; 0: not in the file */
    uint32_t draft_layers;            /* of the draft model, which are its own (self:E); 0: all */
    char draft[64], target[64];       /* their names, for messages */
    char path[512];                   /* the file that it was read from; "": none */
    uint64_t hash;                    /* of that file */
};

/* Zeros: every candidate is as likely accepted as not. */
bool accept_head_new(struct accept_head **, uint32_t width, uint32_t n_blocks, bool shared, struct err *);
void accept_head_free(struct accept_head *);

/* Bytes of memory of a head and its predictor. */
uint64_t accept_head_bytes(uint32_t width, uint32_t n_blocks, bool shared);

/* What a file has to be of: a draft model, or a model's first layers. */
struct accept_whose {
    const struct model *draft;
    uint32_t layers; /* 0: all */
};

/* A safetensors file: model.{i}.linear.weight|bias, model.{D}.weight|bias, F32, and metadata that names both models. */
extern const struct file_kind accept_head_file;
bool accept_head_write(const struct accept_head *, const char *path, struct err *);
/* Any type of tensor is read. Refuses a head of another draft model, and files that are none, in one line. */
bool accept_head_read(struct accept_head **, const char *path, const struct accept_whose *, struct err *);
/* How many blocks the head in the file has, and how much memory it will take. */
bool accept_head_measure(const char *path, const struct model *draft, uint32_t *n_blocks, uint64_t *bytes,
                         struct err *);
/* The same as reading, on bytes (fuzzing, tests); `name` names them in messages. */
bool accept_head_parse(struct accept_head **, const char *name, const void *bytes, size_t len,
                       const struct accept_whose *, struct err *);

/* An acceptance head in a layout for many calls, as drafting with SpecDec++ makes them.
 *
 * Weights are stored by groups of outputs, input by input. Each output adds its products in the order of the inputs, so p̂ does not
 * depend on the number of threads. */

struct accept_predictor;

/* Copies the head's weights as they are now. threads: 0 or 1 for the caller's alone; small heads use no more. */
bool accept_predictor_open(struct accept_predictor **, const struct accept_head *, uint32_t threads, struct err *);
void accept_predictor_close(struct accept_predictor *); /* NULL: nothing */

/* p̂ of one row; x (width) is norm(h). One caller at a time. */
double accept_predictor_ask(struct accept_predictor *, const float *x);

#endif
