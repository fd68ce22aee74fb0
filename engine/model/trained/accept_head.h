/* An acceptance head (SpecDec++): reads a draft model's final hidden state of the row whose input is a candidate, and
 * returns the probability that the target accepts that candidate.
 *
 *     x_0 = norm(h)                       h: after the last layer; norm: the draft model's final one
 *     x_{i+1} = x_i + SiLU(W_i x_i + b_i)    i = 0..D-1
 *     (z_reject, z_accept) = V x_D + c,   p̂ = softmax(z)[accept] = sigmoid(z_accept - z_reject)
 *
 * The checkpoints that SpecDec++ has published are also accepted. In them all blocks are the same one, and the file
 * contains its weights once. */
#pragma once

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
    uint32_t draft_layers;            /* number of the draft model's layers that are used (self:E); 0: all */
    char draft[64], target[64];       /* their names, for messages */
    char path[512];                   /* the file that it was read from; "": none */
    uint64_t hash;                    /* of that file */
};

/* Makes a head of zeros, whose probability is 1/2 for every candidate. */
bool accept_head_new(struct accept_head **, uint32_t width, uint32_t n_blocks, bool shared, struct err *);
void accept_head_free(struct accept_head *);

/* Returns the bytes of memory of a head and its predictor. */
uint64_t accept_head_bytes(uint32_t width, uint32_t n_blocks, bool shared);

/* The draft model, or a model's first layers, that a head must have been trained for. */
struct accept_whose {
    const struct model *draft;
    uint32_t layers; /* 0: all */
};

/* The file is in the safetensors format: model.{i}.linear.weight|bias, model.{D}.weight|bias, in F32, and metadata
 * with the names of both models. */
extern const struct file_kind accept_head_file;
bool accept_head_write(const struct accept_head *, const char *path, struct err *);
/* Accepts any type of tensor. Fails with one line if the head is of another draft model, or if the file is not a
 * head. */
bool accept_head_read(struct accept_head **, const char *path, const struct accept_whose *, struct err *);
/* Finds the number of blocks of the head in a file, and the bytes of memory that it will take. */
bool accept_head_measure(const char *path, const struct model *draft, uint32_t *n_blocks, uint64_t *bytes,
                         struct err *);
/* The same as accept_head_read(); unless bytes is NULL, the file is in memory. */
bool accept_head_parse(struct accept_head **, const char *path, const void *bytes, size_t len,
                       const struct accept_whose *, struct err *);

/* An acceptance head in a layout for many calls, as drafting with SpecDec++ makes them.
 *
 * Weights are stored by groups of outputs, input by input. Each output adds its products in the order of the inputs,
 * so p̂ does not depend on the number of threads. */

struct accept_predictor;

/* Copies the head's present weights. threads: 0 or 1 for the calling thread only, which small heads always use. */
bool accept_predictor_open(struct accept_predictor **, const struct accept_head *, uint32_t threads, struct err *);
void accept_predictor_close(struct accept_predictor *); /* may be NULL */

/* Returns p̂ of one row; x (width) is norm(h). Not thread-safe. */
double accept_predictor_ask(struct accept_predictor *, const float *x);
