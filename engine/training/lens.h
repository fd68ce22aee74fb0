/* A model's own head in F32: what training needs of it. */
#ifndef ENGINE_TRAINING_LENS_H
#define ENGINE_TRAINING_LENS_H

#include "engine/model/final_norm.h"

struct blas;

struct lens {
    uint32_t width, vocab;
    struct final_norm norm;
    const float *head; /* (vocab, width) */
    const float *bias; /* (vocab) of logits, or NULL */
    float scale, cap;  /* logits become cap tanh(scale (z + bias) / cap); 0: they are not scaled, not capped */
    struct blas *blas; /* who multiplies by it, and all that training multiplies; borrowed; NULL: the BLAS here */
};

/* Copies out of the model's tensors, whatever their types; to be freed with lens_free(). */
bool lens_open(struct lens *, const struct model_desc *, struct err *);
void lens_free(struct lens *);

#endif
