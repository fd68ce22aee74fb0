/* The rows of a batch in an EAGLE-3 head's training: what eagle_training.c and eagle_attention.c share. */
#ifndef ENGINE_TRAINING_EAGLE_PASS_H
#define ENGINE_TRAINING_EAGLE_PASS_H

#include "engine/training/eagle_training.h"

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

struct eagle_batch {
    size_t n; /* windows */
    const struct eagle_window *windows;
    uint32_t tokens, *start; /* in all, and (n + 1) of each window */
    struct eagle_pass pass[EAGLE_STEPS];
};

/* Buffers of one thread for attention, for windows of up to so many tokens. */
struct eagle_attention;
bool eagle_attention_open(struct eagle_attention **, const struct eagle_head *, uint32_t window, uint32_t threads);
void eagle_attention_close(struct eagle_attention *, uint32_t threads);

/* Computes pass[step].attention from its q and the keys and values of all steps up to it. */
void eagle_attend(struct eagle_attention *, uint32_t threads, const struct eagle_head *, const struct eagle_batch *,
                  uint32_t step);
/* From `slope`, the gradient by pass[step].attention, computes the one by q, into slope_q, and adds those by keys and
 * values to slope_kv of the steps up to it. */
void eagle_attend_back(struct eagle_attention *, uint32_t threads, const struct eagle_head *,
                       const struct eagle_batch *, uint32_t step, const float *slope, float *slope_q);

#endif
