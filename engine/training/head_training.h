/* Trains a set of heads by AdamW, all layers side by side: they share hidden states and nothing else. */
#ifndef ENGINE_TRAINING_HEAD_TRAINING_H
#define ENGINE_TRAINING_HEAD_TRAINING_H

#include "engine/trained/exit_heads.h"
#include "engine/training/head_loss.h"

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
