/* The loss of one layer's trained head and its gradient: what training a head comes down to.
 *
 * A head at layer l predicts the model's own final distribution p from the hidden state h after layer l:
 *     affine:  z = W · norm(h + A·h + b)       (Belrose et al. 2023, the tuned lens; W and norm are the model's)
 *     full:    z = W_l · norm(h)               (SpecBound, AdaDecode; W_l starts as W)
 *     loss  =  mean over rows of Σ_{v in S} p_v log(p_v / (p(S) q_v)), nats, q = softmax over S of z
 * S is the draft vocabulary, or all tokens; the loss is then KL(p || q). Otherwise it is p(S) times the KL of p and q
 * within S: a head that drafts tokens of S alone has nothing to learn from the probability of all others, and a row
 * counts for as much as S has of it. The model's weights stay as they are; what its own head does besides (LayerNorm, a
 * bias, a scale or a cap of logits) is done by all of these. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "engine/model/model.h"
#include "engine/model/trained/exit_heads.h"

struct blas;

struct lens { /* a model's own head in F32, or its rows of a draft vocabulary */
    struct blocks blocks;
    uint32_t width, vocab;
    struct final_norm norm;
    const float *head;  /* (vocab, width) */
    const float *bias;  /* (vocab) of logits, or NULL */
    const token_t *ids; /* (vocab) the rows' tokens, borrowed; NULL: all, in order */
    float scale, cap;   /* logits become cap tanh(scale (z + bias) / cap); 0: they are not scaled, not capped */
    struct blas *blas;  /* computes all products of training; borrowed; NULL: the BLAS here */
};

/* Copies the model's tensors, whatever their types, of n tokens, or of all (ids NULL); to be freed with lens_free(). */
bool lens_open(struct lens *, const struct model_desc *, const token_t *ids, uint32_t n, struct err *);
void lens_free(struct lens *);

/* What the last layer makes of a row, over all tokens. */
struct head_target {
    float log_sum;  /* log Σ exp(z): log p_v = z_v - log_sum */
    token_t choice; /* its first choice */
};

struct head_batch {
    size_t n;
    const float *hidden; /* (n) rows of width, `stride` floats apart */
    size_t stride;
    const float *final;               /* (n, vocab) p_v of the lens' tokens */
    const float *mass;                /* (n) p(S), their sum */
    const double *inside;             /* (n) Σ p_v log(p_v / p(S)), nats */
    const struct head_target *target; /* (n) */
};

struct head_score {
    double loss;      /* mean, nats */
    double agreement; /* share of rows whose first choice is the last layer's, in [0, 1] */
};

/* Buffers for batches of up to n rows, in the blocks. NULL: no memory. */
struct head_work;
struct head_work *head_work_open(const struct lens *, size_t n, struct blocks *);

/* Targets (n) from hidden states after the last layer; the lens has all tokens. */
void head_targets(const struct lens *, struct head_work *, const float *hidden, size_t stride, size_t n,
                  struct head_target *);
/* The final distribution of the lens' tokens, from hidden states after the last layer: batch->n, ->hidden, ->stride and
 * ->target are those of these states; fills final, mass and inside. */
void head_final(const struct lens *, struct head_work *, const struct head_batch *, float *final, float *mass,
                double *inside);

/* kind HEAD_LENS needs no weights. gradient: as the weights, overwritten; NULL: the score alone. */
struct head_score head_loss(const struct lens *, enum head_kind, const struct head_weights *, const struct head_batch *,
                            struct head_work *, struct head_weights *gradient);

/* Trains a set of heads by AdamW, all layers side by side: they share rows and nothing else. */

struct head_training_options {
    uint32_t threads;          /* 0: one */
    size_t batch;              /* rows in a step, at most; 256 */
    float decay;               /* of A, or of the distance to the LM head, a step and rate; 0.01 */
    const atomic_bool *cancel; /* or NULL; when it is true, layers are left out: results are then of no use */
};

struct head_training;

struct head_rows {
    float *hidden; /* (n, n_trained + 1, width) the residual stream after each trained layer, then after L */
    struct head_target *target; /* (n) */
};

/* The heads and what the lenses point to stay the caller's and must outlive the training. The lens has the draft
 * vocabulary, or is `whole`, which has all tokens. Full heads, for which it is, are set to the LM head. */
bool head_training_open(struct head_training **, struct exit_heads *, const struct lens *, const struct lens *whole,
                        const struct head_training_options *, struct err *);
void head_training_close(struct head_training *);

/* Fills the targets of n rows from their hidden states after the last layer. */
void head_training_targets(struct head_training *, const struct head_rows *, size_t n);
/* Sets affine heads to the best linear map from these rows' hidden states to those of the last layer (ridge.h), which
 * training then improves. Fails if memory ran out. */
bool head_training_start(struct head_training *, const struct head_rows *, size_t n, struct err *);
/* One step on n <= batch rows with rate `rate`; scores (n_trained), of each trained layer, from before the step. */
void head_training_step(struct head_training *, const struct head_rows *, size_t n, float rate,
                        struct head_score *scores);
/* Adds n * score of every trained layer to `sums` (n_trained), of the heads as they are, or of the lens. */
void head_training_score(struct head_training *, bool lens, const struct head_rows *, size_t n,
                         struct head_score *sums);

/* Bytes that training of n layers takes besides the model: heads, two moments, a gradient and logits for every thread.
 * vocab: of the lens; whole: of the model. */
uint64_t head_training_bytes(enum head_kind, size_t n_layers, uint32_t width, uint32_t vocab, uint32_t whole,
                             const struct head_training_options *);
