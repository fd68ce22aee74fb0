/* Synthetic models: random weights in the shape of a real model. Its layers after an exit k change predictions only so much that a
 * given share of the drafts that exit at k is accepted. The gain of speculation can then be measured at any size without a
 * download, as a function of the acceptance.
 *
 * The construction. Let V be the vocabulary, and the residual stream be cut in two halves.
 * - The embedding and the layers before k write into the first half (of the second they have 1/74). The head reads the
 *   second half only: the final norm's weights are 0 on the first. Of an embedding that it saw a tied head would repeat
 *   the input; and layers whose output it saw would be as sure of themselves as layer k, and wrong.
 * - Layer k writes into both halves: with it the head begins to see, and confidence to be more than 1/V.
 * - The layers after k add, to both, directions that nothing before has pointed to, whose squares sum up to tangent^2
 *   times that of layer k. What the head sees is turned by the angle of that tangent. Logits before and after are V
 *   pairs of normal numbers, with the angle's cosine as correlation, and the share of positions where both have their
 *   largest at the same token, the per-token acceptance of a greedy draft from k, is an integral that
 *   synthetic_tangent() inverts. Of all sizes it depends on V only, so there is no calibration.
 * - Queries and keys are large: logits of attention have a standard deviation of ATTENTION_LOGIT, so that a head looks
 *   at a few places among hundreds, near or far. A token thus depends on all of the text so far, in a way that little
 *   can repeat, which is why greedy text does not fall into loops, as that of random models does when the last token
 *   decides.
 * - The final norm makes logits at k (SHARPNESS * sqrt(2 log V)) large. At 1 the largest of V normal numbers begins to
 *   hold a finite share of their softmax (the random energy model's transition); at SHARPNESS the likeliest token has
 *   about the confidence that it has in real text.
 * - Experts, of shapes that have them, are MLPs of their own, to which a router of normal numbers sends rows evenly: logits
 *   have a standard deviation of ROUTER_LOGIT. A row's experts add what an MLP adds, in all layers alike.
 * Sizes of sublayers' outputs before their last matrix are those of normal numbers (silu(g) * u: 0.6). Scales have four
 * bits (kernels/synthetic.h); what rounding takes from one tensor's square it gives to the next. */
#ifndef ENGINE_MODEL_SYNTHETIC_SYNTHETIC_H
#define ENGINE_MODEL_SYNTHETIC_SYNTHETIC_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/experts.h"
#include "kernels/synthetic.h"

struct model;

struct synthetic_shape {
    const char *name; /* "SmolLM-135M" */
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn;
    uint32_t experts, used; /* of a layer, of a row; ffn is each one's. 0: a layer has an MLP */
    uint32_t vocab, ctx;
    bool tied;
    float rope_base, rms_eps;
};

extern const struct synthetic_shape synthetic_shapes[]; /* ends with name NULL */

struct synthetic_spec {
    const struct synthetic_shape *shape;
    enum weight_type type; /* of the matrices; synthetic_find_type() knows the possible ones */
    uint32_t exit;         /* k, 1..L-1; 0: nothing is synthetic, the model is as one with k = L */
    double acceptance;     /* of drafts that exit there */
    uint64_t seed;
};

#define SYNTHETIC_SEED 1u /* the default */

/* By name, in upper or lower case; an error lists them. */
bool synthetic_find_shape(const char *name, size_t len, const struct synthetic_shape **, struct err *);
bool synthetic_find_type(const char *name, size_t len, enum weight_type *, struct err *);
/* "SHAPE[:TYPE],k,acceptance", Q8_0 when there is no TYPE. */
bool synthetic_read_spec(const char *text, struct synthetic_spec *, struct err *);
/* "k,acceptance" into spec, whose shape is set. */
bool synthetic_read_exit(const char *text, struct synthetic_spec *, struct err *);

struct synthetic_tensor {
    char name[48]; /* as in GGUF */
    struct tensor tensor;
    uint32_t planes; /* matrices of this shape, one after the other: a layer's experts; else 1 */
};

/* Value number i of each distribution; their formulas are next to each other. */
static inline struct tensor
synthetic_plane(const struct synthetic_tensor *t, uint32_t i)
{
    struct tensor plane = t->tensor;
    if (plane.synthetic != NULL)
        plane.synthetic += i;
    return plane;
}

struct synthetic_weights {
    struct synthetic_spec spec;
    struct model_desc desc;       /* its matrices are synthetic, its norms are `norms` */
    struct layer_desc *layers;    /* (n_layers), = desc.layers */
    struct expert_desc *experts;  /* (n_layers, experts), or NULL */
    struct synthetic *formulas;   /* a matrix each */
    float *norms;                 /* (2, width): ones; the final norm's */
    struct synthetic_tensor *all; /* (n) in the order of a file; the head not if tied */
    size_t n;
};

/* The spec is checked: errors are about memory, or (ERR_USAGE) about k and the acceptance. */
bool synthetic_weights_make(struct synthetic_weights **, const struct synthetic_spec *, struct err *);
void synthetic_weights_free(struct synthetic_weights *);
/* Fills in the description and the hash of a model (engine/model/model.h) from its synthetic weights. Fails with ERR_WORK: out of memory. */
bool synthetic_describe(struct model *, struct err *);

/* How far the layers after an exit have to move the logits for a given share of its predictions to survive them. */

/* The probability that two vectors of `vocab` logits have their largest entry at the same place, when entries are
 * standard normal, independent of each other, and those at one place correlated by 1 / sqrt(1 + tangent^2): what is
 * left of x when x + tangent * (something as large, at a right angle) is looked at instead. */
double synthetic_agreement(uint32_t vocab, double tangent);

/* synthetic_agreement()'s inverse: the tangent for an acceptance between SYNTHETIC_LEAST_ACCEPTANCE and SYNTHETIC_MOST_ACCEPTANCE. Rounded to
 * 10 bits, so that the model does not depend on the last bits of a machine's mathematics library. */
#define SYNTHETIC_LEAST_ACCEPTANCE 0.3
#define SYNTHETIC_MOST_ACCEPTANCE  0.97
double synthetic_tangent(uint32_t vocab, double acceptance);

#endif
