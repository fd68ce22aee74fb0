/* A model's weights for the CPU's kernels: matrices in the type of their file (F32 if exact), norms in F32. */
#pragma once

#include "base/blocks.h"
#include "kernels/cpu/isa.h"
#include "kernels/experts.h"
#include "kernels/team.h"

struct backend {
    const struct cpu_isa *isa;
    uint32_t threads; /* maximum */
    struct team *team;
    bool exact;
    char text[64];
};

#define MATRIX_FIELD(NAME, field, ...) struct matrix field;
#define VECTOR_FIELD(NAME, field, ...) const float *field;
struct expert { /* tensors of kernels/experts.h; vectors that the model lacks are NULL */
    FOR_EXPERT_TENSORS(MATRIX_FIELD, VECTOR_FIELD)
};

struct layer { /* tensors of kernels/layer_tensors.h; vectors that the model lacks are NULL; recurrent_conv is (taps, */
               /* channels) */
    FOR_LAYER_TENSORS(MATRIX_FIELD, VECTOR_FIELD, VECTOR_FIELD)
    struct expert *experts; /* (experts_listed()), or NULL: the layer has an MLP */
    bool experts_in_int8;   /* some experts read int8 activations */
};
#undef MATRIX_FIELD
#undef VECTOR_FIELD

/* A layer's trained head; absent parts have cols = 0 and b = NULL. */
struct trained_head {
    struct matrix a;    /* (width, width): the lens is applied to h + A h + b */
    const float *b;     /* (width) */
    struct matrix full; /* (vocab, width): replaces the LM head */
};

struct norm {
    const float *weight, *bias; /* weight NULL: no norm; bias may be NULL */
};

struct weights {
    const struct backend *backend;
    struct model_desc desc;         /* `layers` and `rope_factors` are not stored */
    struct layer *layers;           /* (L + 1), layer 1 at [1] */
    struct layer_form *layer_forms; /* (L + 1) */
    struct norm final_norm;         /* (width) */
    struct matrix head;
    const float *head_bias;          /* (vocab), or NULL */
    const double *rope, *rope_local; /* (rope_dims/2), (local_dims/2): radians per position; rope_local: in layers */
                                     /* with local rotation */
    uint32_t local_dims;             /* form.local_dims, or rope_dims */
    const float *ones;               /* (head_dim), if the form has value_norms: weights of these norms */
    bool has_beside;                 /* a layer has experts and an MLP */
    const float *input_norm;         /* (form.per_layer), or NULL */
    const float *slopes;             /* (heads), or NULL: slopes of form.alibi */
    struct norm embedding_norm;      /* (width), or no norm */
    struct {                         /* tensors of desc.drafter */
        struct norm norm, token_norm, feature_norm;
        struct matrix projection, join, markov_w2;
    } drafter;
    struct blocks blocks;  /* matrices */
    struct blocks vectors; /* small tensors: they are written at load, and would occupy the huge pages of matrices */
                           /* that are repacked later */
    struct unit *units;    /* (L + 1): repacking state of the layers, and at [0] of the head */
    atomic_uint not_repacked, embedded;
    const struct trained_head *trained; /* (L + 1), indexed by layer, or NULL: none */
    struct blocks trained_blocks;
};

/* Loads a model. Tensors remain the caller's. Block types are copied when they are repacked; if exact, all other types
 * are converted at load. Fails if model_desc_fits() fails, on lack of memory, and with ERR_CANCELLED if `progress`
 * returns false. */
bool cpu_weights_load(struct backend *, const struct model_desc *, progress_fn, void *user, struct weights **,
                      struct err *);
void cpu_weights_unload(struct weights *);
/* backend_ops.heads */
bool cpu_weights_heads(struct weights *, const struct exit_head *by_layer, struct err *);

/* Weights in blocks stay in the file's mapping until they have been used. Repacking all of them takes longer than the
 * first token, mostly for page faults. The first forward pass that uses a layer therefore interleaves sixteen outputs
 * at a time into a buffer that stays in the cache, multiplies, and discards them. The second pass repacks the layer in
 * memory and releases the file's pages. Both ways use the same interleaved weights and yield the same bits.
 *
 * A unit is repacked as a whole: a layer, or the head (unit 0). */

enum repacking {
    UNIT_IN_FILE, /* not used yet */
    UNIT_USED,    /* used once: the next use repacks it */
    UNIT_MOVING,  /* a team is repacking it; other teams still read the file */
    UNIT_REPACKED
};

struct unit {
    _Atomic enum repacking state;
};

/* How a team is to use a unit. */
enum use {
    USE_MEMORY, /* multiply() */
    USE_FILE,   /* multiply_from_file() */
    USE_REPACK  /* repack_unit(), then as USE_MEMORY */
};

/* Call after loading: marks the units without anything to repack. */
void repack_open(struct weights *);
enum use repack_use(struct weights *, uint32_t unit);
void repack_unit(struct weights *, uint32_t unit);

/* Call after reading a row of the embedding: releases its pages, and those of the embedding of per-layer inputs, from
 * time to time. */
void repack_embedded(struct weights *);

static inline bool
repacked(struct weights *w)
{
    return atomic_load_explicit(&w->not_repacked, memory_order_acquire) == 0;
}

/* Buffer for an interleaved group of sixteen outputs of the model's widest matrix. */
struct group_buffer {
    unsigned char *q, *scale;
};
void repack_group_bytes(const struct weights *, size_t *q, size_t *scale); /* 0: no matrix is interleaved */
/* Bytes of a group's quants and scales of an interleaved matrix. */
size_t group_quant_bytes(const struct matrix *);
size_t group_scale_bytes(const struct matrix *);

/* Returns the outputs `part` of a matrix; the part begins at a group. */
struct matrix matrix_part(const struct matrix *, struct range part);

/* multiply() (isa.h) for a matrix that is not repacked yet. */
void multiply_from_file(const struct cpu_isa *, const struct matrix *, const struct acts *x, size_t n, size_t first,
                        size_t last, float *y, size_t ld, struct group_buffer);

/* backend_ops.repack */
void cpu_weights_repack(struct weights *, const atomic_bool *cancel);

/* Computations of a model's form other than products and attention: both kinds of norms, activations, caps. Each number
 * depends only on its own row, summed in an order that depends only on the length. */

/* y = the norm of x (n); y may be x. */
void form_norm(const struct weights *, const struct norm *, const float *x, size_t n, float *y);
/* gate (n) = act(gate) * up, or act(gate) if up is NULL, with the activation of layer 1..L. */
void form_activate(const struct weights *, uint32_t layer, float *gate, const float *up, size_t n);
/* x = cap * tanh(x / cap); a cap of 0 leaves x unchanged. */
void form_cap(float cap, float *x, size_t n);
/* Clamps the numbers `part` of n rows, ld apart, to [-most, most]; 0 leaves them unchanged. */
void form_clip(float most, float *x, size_t n, size_t ld, struct range part);
