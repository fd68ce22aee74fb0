/* A model's weights as the CPU's kernels want them: matrices in their file's own type (F32 when exact), norms in F32. */
#ifndef KERNELS_CPU_WEIGHTS_H
#define KERNELS_CPU_WEIGHTS_H

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/isa.h"
#include "kernels/experts.h"
#include "kernels/team.h"

struct backend {
    const struct cpu_isa *isa;
    uint32_t threads; /* at most */
    struct team *team;
    bool exact;
    char text[64];
};

#define MATRIX_FIELD(NAME, field, ...) struct matrix field;
#define VECTOR_FIELD(NAME, field, ...) const float *field;
struct expert { /* kernels/experts.h; a vector that the model lacks is NULL */
    FOR_EXPERT_TENSORS(MATRIX_FIELD, VECTOR_FIELD)
};

struct layer { /* kernels/layer_tensors.h, the same */
    FOR_LAYER_TENSORS(MATRIX_FIELD, VECTOR_FIELD, VECTOR_FIELD)
    struct expert *experts; /* (experts_listed()), or NULL: an MLP */
    bool experts_in_int8;   /* some of them read activations so */
};
#undef MATRIX_FIELD
#undef VECTOR_FIELD

/* A layer's trained head; parts that are absent have cols = 0 and b = NULL. */
struct trained_head {
    struct matrix a;    /* (width, width): the lens looks at h + A h + b */
    const float *b;     /* (width) */
    struct matrix full; /* (vocab, width): in place of the LM head */
};

struct norm {
    const float *weight, *bias; /* weight NULL: there is no such norm; bias may be */
};

struct weights {
    const struct backend *backend;
    struct model_desc desc;         /* `layers` and `rope_factors` are not kept */
    struct layer *layers;           /* (L + 1), layer 1 at [1] */
    struct layer_form *layer_forms; /* (L + 1) */
    struct norm final_norm;         /* (width) */
    struct matrix head;
    const float *head_bias;          /* (vocab), or NULL */
    const double *rope, *rope_local; /* (rope_dims/2): radians per position; of layers that turn locally */
    const float *slopes;             /* (heads), or NULL: form.alibi */
    struct norm embedding_norm;      /* (width), or none */
    struct blocks blocks;            /* matrices */
    struct blocks vectors; /* what is small: written at load, it would take huge pages of what settles later */
    struct unit *units;    /* (L + 1): what is settled of the layers, and at [0] of the head */
    atomic_uint unsettled, embedded;
    const struct trained_head *trained; /* (L + 1), indexed by layer, or NULL: none */
    struct blocks trained_blocks;
};

/* Tensors stay the caller's; those in blocks are copied once they settle and, when exact, all others at once. Fails on what model_desc_fits() refuses, on
 * lack of memory, and with ERR_CANCELLED when progress says so. */
bool cpu_weights_load(struct backend *, const struct model_desc *, progress_fn, void *user, struct weights **,
                      struct err *);
void cpu_weights_unload(struct weights *);
/* backend_ops.heads */
bool cpu_weights_heads(struct weights *, const struct exit_head *by_layer, struct err *);

/* Weights in blocks lie in the file until they have been used. Interleaving all of them takes longer than the first token
 * does, most of it for fresh memory: so the first sweep that comes to a layer interleaves sixteen outputs at a time into a
 * buffer that stays in the cache, multiplies, and forgets them. The second one puts the layer into memory for good, and
 * gives the file's pages back. Either way the kernels see the same interleaved weights, and come to the same bits.
 *
 * A unit is what settles together: a layer, or the head (unit 0). */

enum settling {
    UNIT_IN_FILE, /* nobody has used it */
    UNIT_USED,    /* once: who comes next settles it */
    UNIT_MOVING,  /* one team is about it; others go on as before it */
    UNIT_SETTLED
};

struct unit {
    _Atomic enum settling state;
};

/* What a team does with a unit that it is about to use. */
enum use {
    USE_MEMORY, /* multiply() */
    USE_FILE,   /* multiply_from_file() */
    USE_SETTLE  /* settle_unit(); then as USE_MEMORY */
};

/* After load: which units there is nothing to do for. */
void settle_open(struct weights *);
enum use settle_use(struct weights *, uint32_t unit);
void settle_unit(struct weights *, uint32_t unit);

/* A row of the embedding was read: now and then its pages are given back. */
void settle_embedded(struct weights *);

static inline bool
settled(struct weights *w)
{
    return atomic_load_explicit(&w->unsettled, memory_order_acquire) == 0;
}

/* A group of sixteen outputs, interleaved: room for one of the widest matrix of the model. */
struct group_buffer {
    unsigned char *q, *scale;
};
void settle_group_bytes(const struct weights *, size_t *q, size_t *scale); /* 0: no matrix is interleaved */

/* Outputs `part` of a matrix, which begin at a group. */
struct matrix matrix_part(const struct matrix *, struct range part);

/* multiply() (isa.h) for a matrix that has not settled. */
void multiply_from_file(const struct cpu_isa *, const struct matrix *, const struct acts *x, size_t n, size_t first,
                        size_t last, float *y, size_t ld, struct group_buffer);

/* backend_ops.settle */
void cpu_weights_settle(struct weights *, const atomic_bool *cancel);

/* What a model's form asks for beside products and attention: norms of either kind, activations, caps. Each number depends
 * on its own row alone, summed in an order that its length fixes. */

/* y = the norm of x (n), which may be y. */
void form_norm(const struct weights *, const struct norm *, const float *x, size_t n, float *y);
/* gate (n) = act(gate) * up; up NULL: act(gate). As layer 1..L has it. */
void form_activate(const struct weights *, uint32_t layer, float *gate, const float *up, size_t n);
/* x = cap * tanh(x / cap); a cap of 0 leaves x. */
void form_cap(float cap, float *x, size_t n);
/* Numbers `part` of n rows, ld apart, become -most to most; 0 leaves them. */
void form_clip(float most, float *x, size_t n, size_t ld, struct range part);

#endif
