/* The loss of one layer's trained head and its gradient: what training a head comes down to.
 *
 * A head at layer l predicts the model's own final distribution p from the hidden state h after layer l:
 *     affine:  z = W · norm(h + A·h + b)       (Belrose et al. 2023, the tuned lens; W and norm are the model's)
 *     full:    z = W_l · norm(h)               (SpecBound, AdaDecode; W_l starts as W)
 *     loss  =  mean over rows of KL(p || softmax(z)), nats
 * The model's weights stay as they are; what its own head does besides (LayerNorm, a bias, a scale or a cap of logits)
 * is done by all of these. */
#ifndef ENGINE_TRAINING_HEAD_TRAINING_H
#define ENGINE_TRAINING_HEAD_TRAINING_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/model.h"
#include "engine/model/trained/exit_heads.h"

struct blas;

struct lens { /* a model's own head in F32 */
    uint32_t width, vocab;
    struct final_norm norm;
    const float *head; /* (vocab, width) */
    const float *bias; /* (vocab) of logits, or NULL */
    float scale, cap;  /* logits become cap tanh(scale (z + bias) / cap); 0: they are not scaled, not capped */
    struct blas *blas; /* computes all products of training; borrowed; NULL: the BLAS here */
};

/* Copies the model's tensors, whatever their types; to be freed with lens_free(). */
bool lens_open(struct lens *, const struct model_desc *, struct err *);
void lens_free(struct lens *);

struct head_batch {
    size_t n;
    const float *hidden; /* (n) rows of width, `stride` floats apart */
    size_t stride;
    const float *final;    /* (n, vocab) p: the probabilities of the last layer */
    const double *entropy; /* (n) of p, nats */
    const token_t *choice; /* (n) its first choice */
};

struct head_score {
    double loss;      /* mean KL, nats */
    double agreement; /* share of rows whose first choice is the last layer's, in [0, 1] */
};

/* Buffers for batches of up to n rows. NULL: no memory. */
struct head_work;
struct head_work *head_work_open(const struct lens *, size_t n);
void head_work_close(struct head_work *);

/* The final distribution of hidden states after the last layer: final (n, vocab), and its entropies and choices (n). */
void head_final(const struct lens *, struct head_work *, const float *hidden, size_t stride, size_t n, float *final,
                double *entropy, token_t *choice);

/* kind HEAD_LENS needs no weights. gradient: as the weights, overwritten; NULL: the score alone. */
struct head_score head_loss(const struct lens *, enum head_kind, const struct head_weights *, const struct head_batch *,
                            struct head_work *, struct head_weights *gradient);

/* Trains a set of heads by AdamW, all layers side by side: they share hidden states and nothing else. */

struct head_training_options {
    uint32_t threads; /* 0: one */
    size_t batch;     /* rows in a step, at most; 256 */
    float rate;       /* of the first step after warm-up; 1e-3 */
    float decay;      /* of A, or of the distance to the LM head, a step and rate; 0.01 */
};

struct head_training;

/* The heads and what the lens points to stay the caller's and must outlive the training. Full heads are set to the LM
 * head. hidden, below: (n, L + 1, width), the residual stream of n rows after every depth 0..L. */
bool head_training_open(struct head_training **, struct exit_heads *, const struct lens *,
                        const struct head_training_options *, struct err *);
void head_training_close(struct head_training *);

/* One step on n <= batch rows with rate `rate`; scores (L + 1), of layers 1..L-1, from before the step. */
void head_training_step(struct head_training *, const float *hidden, size_t n, float rate, struct head_score *scores);
/* Adds n * score of every layer to `sums` (L + 1), of the heads as they are, or of the lens. */
void head_training_score(struct head_training *, bool lens, const float *hidden, size_t n, struct head_score *sums);

/* Bytes that training takes besides the model: heads, two moments, a gradient and logits for every thread. */
uint64_t head_training_bytes(enum head_kind, uint32_t n_layers, uint32_t width, uint32_t vocab,
                             const struct head_training_options *);

#endif
