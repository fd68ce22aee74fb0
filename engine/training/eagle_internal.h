/* The training of an EAGLE-3 head, for its three files: eagle_training.c has the loss and the optimizer's step,
 * eagle_layer.c the drafter's layer and its gradients, eagle_attention.c their attention. */
#pragma once

#include "engine/training/adam.h"
#include "engine/training/eagle_training.h"
#include "kernels/cpu/isa.h"

/* The rows of one step (eagle_training.h), by window and then by base. A base's row has a parent, its row of the step
 * before. */
struct eagle_pass {
    uint32_t n;
    uint32_t *first;  /* (windows + 1) the first row of each window */
    uint32_t *base;   /* (n) the base's row of all tokens of the batch */
    uint32_t *parent; /* (n) index of the row in the step before; in the first step the base */
    /* Values of rows, (n, …). In the first step every token of the batch has keys and values, (tokens, …). */
    float *g, *pair;        /* (width), (2 width) [norm(e); norm(g)]: in the first step of all tokens, too */
    float *q, *attention;   /* (heads * head_dim); q after RoPE */
    float *kv;              /* (2 kv_heads * head_dim) keys after RoPE, then values */
    float *x, *gate_up, *h; /* (width) after attention, (2 ffn) before the activation, (width) the output */
    float *inverse_g, *inverse_x, *inverse_h; /* 1 / rms */
    float *slope_h, *slope_kv;                /* the loss's gradients by h, kv */
};

struct eagle_attention;

struct eagle_batch {
    size_t n; /* windows */
    const struct eagle_window *windows;
    uint32_t tokens, *start; /* in all, and (n + 1) of each window */
    struct eagle_pass pass[EAGLE_STEPS];
};

struct eagle_training {
    struct blocks blocks; /* the memory of all the following */
    struct eagle_head *head;
    const struct model_desc *target;
    const struct lens *lens;
    struct eagle_options options;
    const struct cpu_isa *isa;
    struct adam adam;
    float *gradient; /* of a step */
    int32_t *output; /* (target_vocab) a token's output of the head, or -1 */
    float *rotation; /* (window + EAGLE_STEPS, head_dim) cosines, then sines, by position */
    struct eagle_batch batch;
    struct eagle_attention *attention; /* (threads) */
    /* Values of rows, (rows, …), of the step that is computed. */
    float *features;     /* of all tokens */
    float *pairs;        /* those of the first step's rows */
    float *normed;       /* (width) what a matrix reads after a norm */
    float *active;       /* (ffn) after the activation */
    float *z;            /* (vocab) logits, then the loss's gradients by them */
    float *final;        /* (width) the target's last states, then its distributions' rows: */
    float *wanted;       /* (vocab) the target's distributions, of all tokens that predict */
    double *entropy;     /* of them, nats */
    uint32_t *wanted_at; /* (tokens) a token's row of `wanted` */
    bool *right;         /* EAGLE_STEPS arrays: all predictions up to the row's were right */
    float *slope_x, *slope_q, *slope_attention, *slope_pair, *slope_gate_up, *slope_g; /* gradients by these */
};

static inline uint32_t
eagle_window_of(const struct eagle_pass *p, uint32_t row)
{
    uint32_t w = 0;
    while (row >= p->first[w + 1])
        w++;
    return w;
}

/* ---- eagle_attention.c ---- */

/* Buffers of each thread for attention, for windows of up to so many tokens; their memory is in the blocks. */
struct eagle_attention *eagle_attention_open(const struct eagle_head *, uint32_t window, uint32_t threads,
                                             struct blocks *);

/* Computes pass[step].attention from its q and the keys and values of all steps up to it. */
void eagle_attend(struct eagle_attention *, uint32_t threads, const struct eagle_head *, const struct eagle_batch *,
                  uint32_t step);
/* From `slope`, the gradient by pass[step].attention, computes the one by q, into slope_q, and adds those by keys and
 * values to slope_kv of the steps up to it. */
void eagle_attend_back(struct eagle_attention *, uint32_t threads, const struct eagle_head *,
                       const struct eagle_batch *, uint32_t step, const float *slope, float *slope_q);

/* ---- eagle_layer.c ---- */

static inline bool
eagle_cancelled(const struct eagle_training *t)
{
    return t->options.cancel != NULL && atomic_load(t->options.cancel);
}

/* y (n, rows) = x (n, cols) times the transposed matrix (rows, cols), by all threads. Does nothing after cancelling. */
void eagle_apply(const struct eagle_training *, size_t n, uint32_t rows, uint32_t cols, const float *x,
                 const float *matrix, float *y);
/* Projects the features of all tokens, and computes the first step's keys and values. */
void eagle_begin_batch(struct eagle_training *);
/* Computes a step's rows, whose list is in its pass: h, and the logits t->z. */
void eagle_run_step(struct eagle_training *, uint32_t step);
/* From the gradients by the logits, in t->z, directly after eagle_run_step(): slope_h of the step's rows. Adds the
 * gradient by the head. */
void eagle_head_back(struct eagle_training *, uint32_t step, float *gradient);
/* From slope_h of all steps: adds the gradients by all other weights. */
void eagle_back(struct eagle_training *, uint32_t steps, float *gradient);
