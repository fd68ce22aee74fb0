/* The loss of one layer's trained head and its gradient: what training a head comes down to.
 *
 * A head at layer l guesses the model's own final distribution p from the hidden state h after layer l:
 *     affine:  z = W · norm(h + A·h + b)       (Belrose et al. 2023, the tuned lens; W and norm are the model's)
 *     full:    z = W_l · norm(h)               (SpecBound, AdaDecode; W_l starts as W)
 *     loss  =  mean over rows of KL(p || softmax(z)), nats
 * The model's weights stay as they are; what its own head does besides (a centred norm, a bias, a scale or a cap of logits) is
 * done by all of these. */
#ifndef ENGINE_TRAINING_HEAD_LOSS_H
#define ENGINE_TRAINING_HEAD_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/final_norm.h"
#include "engine/trained/exit_heads.h"

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

#endif
