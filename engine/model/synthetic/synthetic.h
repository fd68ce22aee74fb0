/* Synthetic models: random weights in the shape of a real model. The layers after an exit k change the predictions
 * only so much that a given share of the drafts that exit at k is accepted. The gain of speculation can therefore be
 * measured at any size without a download, as a function of the acceptance.
 *
 * The construction. Let V be the size of the vocabulary, and let the residual stream be divided into two halves.
 * - The embedding and the layers before k write to the first half (the second half receives 1/74 of it). The head reads
 *   the second half only, because the final norm's weights are 0 on the first. Otherwise a tied head would repeat the
 *   input, and the layers before k would be as confident as layer k, and wrong.
 * - Layer k writes to both halves. From it on the head has an input, and confidence is more than 1/V.
 * - The layers after k add directions to both halves that no earlier layer has used. The sum of their squares is
 *   tangent^2 times the square of layer k. This rotates the head's input by the angle of that tangent. The logits before
 *   and after are V pairs of normal numbers whose correlation is the cosine of the angle. The per-token acceptance of a
 *   greedy draft from k is the share of positions at which both have their largest number at the same token. It is an
 *   integral, which synthetic_tangent() inverts. It depends on no size except V, so no calibration is necessary.
 * - Queries and keys are large: attention logits have a standard deviation of ATTENTION_LOGIT, so that a head attends
 *   to
 *   a few of hundreds of positions at any distance. A token therefore depends on the whole text before it. Greedy text
 *   then does not fall into loops, as text of random models does in which only the last token counts.
 * - The final norm makes the logits at k large (SHARPNESS * sqrt(2 log V)). With SHARPNESS 1 the largest of V normal
 *   numbers begins to have a finite share of their softmax (the transition of the random energy model). With this
 *   SHARPNESS the most likely token has about the confidence that it has in real text.
 * - In shapes with experts, each expert is an MLP of its own. A router of normal numbers distributes the rows evenly;
 *   its
 *   logits have a standard deviation of ROUTER_LOGIT. The experts of a row together add as much as an MLP adds.
 * The sizes of a sublayer's outputs before its last matrix are those of normal numbers (silu(g) * u: 0.6). Scales have
 * four bits (kernels/synthetic.h); the rounding error of a tensor's square is compensated in the next tensor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "kernels/experts.h"
#include "kernels/synthetic.h"

struct model;

struct synthetic_shape {
    const char *name; /* "SmolLM-135M" */
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn;
    uint32_t experts, used; /* of a layer, of a row; ffn is the size of each expert. 0: layers have an MLP */
    uint32_t vocab, ctx;
    bool tied;
    float rope_base, rms_eps;
};

extern const struct synthetic_shape synthetic_shapes[]; /* ends with name NULL */

struct synthetic_spec {
    const struct synthetic_shape *shape;
    enum weight_type type; /* of the matrices; synthetic_find_type() accepts the possible types */
    uint32_t exit;         /* k, 1..L-1; 0: the same model as with k = L */
    double acceptance;     /* of drafts that exit there */
    uint64_t seed;
};

#define SYNTHETIC_SEED 1u /* the default */

/* Find a shape or a type by its name, in upper or lower case; the error message lists the names. */
bool synthetic_find_shape(const char *name, size_t len, const struct synthetic_shape **, struct err *);
bool synthetic_find_type(const char *name, size_t len, enum weight_type *, struct err *);
/* Parses "SHAPE[:TYPE],k,acceptance"; the default TYPE is Q8_0. */
bool synthetic_read_spec(const char *text, struct synthetic_spec *, struct err *);
/* Parses "k,acceptance"; the shape of the spec must be set. */
bool synthetic_read_exit(const char *text, struct synthetic_spec *, struct err *);

struct synthetic_tensor {
    char name[48]; /* as in GGUF */
    struct tensor tensor;
    uint32_t planes; /* number of consecutive matrices of this shape: the experts of a layer; otherwise 1 */
};

/* Returns matrix i of a tensor; the formulas of its matrices are consecutive. */
static inline struct tensor
synthetic_plane(const struct synthetic_tensor *t, uint32_t i)
{
    struct tensor plane = t->tensor;
    if (plane.synthetic != NULL)
        plane.synthetic += i;
    return plane;
}

struct synthetic_weights {
    struct blocks blocks; /* the memory of all the following */
    struct synthetic_spec spec;
    struct model_desc desc;       /* its matrices are synthetic, its norms are `norms` */
    struct layer_desc *layers;    /* (n_layers), = desc.layers */
    struct expert_desc *experts;  /* (n_layers, experts), or NULL */
    struct synthetic *formulas;   /* one for each matrix */
    float *norms;                 /* (2, width): ones, and the final norm's weights */
    struct synthetic_tensor *all; /* (n) in the order of a file, without a tied head */
    size_t n;
};

/* Checks the spec and makes the weights. Fails with ERR_USAGE if k or the acceptance is wrong, or if out of memory. */
bool synthetic_weights_make(struct synthetic_weights **, const struct synthetic_spec *, struct err *);
void synthetic_weights_free(struct synthetic_weights *);
/* Sets the description and the hash of a model (engine/model/model.h) from its synthetic weights. Fails if out of
 * memory. */
bool synthetic_describe(struct model *, struct err *);

/* The change of the logits by the layers after an exit, for a given share of predictions that stay the same. */

/* Returns the probability that two vectors of `vocab` logits have their largest number at the same index. The
 * numbers of a vector are independent and standard normal; the two at one index have the correlation 1 / sqrt(1 +
 * tangent^2), which is that of x and x + tangent * y for an independent y. */
double synthetic_agreement(uint32_t vocab, double tangent);

/* Returns the inverse of synthetic_agreement(): the tangent for an acceptance from SYNTHETIC_LEAST_ACCEPTANCE to
 * SYNTHETIC_MOST_ACCEPTANCE. It is rounded to 10 bits, so that all mathematics libraries lead to the same model. */
#define SYNTHETIC_LEAST_ACCEPTANCE 0.3
#define SYNTHETIC_MOST_ACCEPTANCE  0.97
double synthetic_tangent(uint32_t vocab, double acceptance);
