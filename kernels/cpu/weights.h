/* A model's weights as the CPU's kernels want them: matrices in their file's own type (F32 when exact), norms in F32. */
#ifndef KERNELS_CPU_WEIGHTS_H
#define KERNELS_CPU_WEIGHTS_H

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/isa.h"
#include "kernels/experts.h"

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
    struct unit *units;    /* (L + 1): what is settled of the layers, and at [0] of the head (settle.h) */
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

#endif
