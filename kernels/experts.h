/* The experts of a layer: small MLPs. A router sends each row to a few of them (Shazeer et al. 2017); there may be one
 * more that all rows share. Their tensors are described by one list, like a layer's other tensors:
 *
 *   kind(NAME, field, rows, cols, GGUF's name)
 *
 * In this list `ffn` is the expert's. GGUF stores all experts of a layer consecutively in one tensor. */
#pragma once

#include <math.h>

#include "base/host_device.h"
#include "kernels/backend.h"

#define EXPERTS_MOST      4096u /* maximum per layer */
#define EXPERTS_USED_MOST 64u   /* maximum per row */

/* clang-format off */
#define FOR_EXPERT_TENSORS(MATRIX, BIAS)                    \
    MATRIX(GATE,  gate,  ffn,      d->width, "ffn_gate")    \
    MATRIX(UP,    up,    ffn,      d->width, "ffn_up")      \
    MATRIX(DOWN,  down,  d->width, ffn,      "ffn_down")    \
    BIAS(  BGATE, bgate, 1,        ffn,      "ffn_gate")    \
    BIAS(  BUP,   bup,   1,        ffn,      "ffn_up")      \
    BIAS(  BDOWN, bdown, 1,        d->width, "ffn_down")
/* clang-format on */

enum expert_tensor {
#define NUMBER(NAME, ...) EXPERT_##NAME,
    FOR_EXPERT_TENSORS(NUMBER, NUMBER)
#undef NUMBER
        EXPERT_TENSORS
};
#define EXPERT_MATRICES ((enum expert_tensor)EXPERT_BGATE) /* number of matrices; they precede the biases */

struct expert_desc { /* biases and the gate may be absent; without a gate an expert is down(act(up x)) */
    union {
        struct tensor all[EXPERT_TENSORS];
        __extension__ struct {
#define FIELD(NAME, field, ...) struct tensor field;
            FOR_EXPERT_TENSORS(FIELD, FIELD)
#undef FIELD
        };
    };
};

/* One expert that a row is routed to, and the factor of its output. */
struct route {
    uint32_t expert;
    float weight;
};

#define EXPERT_NONE UINT32_MAX /* in forward.routes: unknown, or no expert */

/* Returns the routes of one row at one layer in forward.routes (kernels/backend.h): form.experts.used of them. */
static inline struct route *
routes_at(struct route *routes, const struct model_desc *d, size_t row, uint32_t layer)
{
    return routes + (row * (d->n_layers + 1) + layer) * d->form.experts.used;
}

/* Returns the score of a group of n experts: the sum of the two largest of x (n). */
static inline HOST_DEVICE float
experts_two_best(const float *x, uint32_t n)
{
    float first = -INFINITY, second = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        if (x[i] > first) {
            second = first;
            first = x[i];
        } else if (x[i] > second) {
            second = x[i];
        }
    }
    return first + second;
}

extern const char *const expert_tensor_names[EXPERT_TENSORS]; /* names in GGUF */

/* Returns the length of layer_desc.experts: form.experts.n, plus one if there is a shared expert, which is the last. */
static inline uint32_t
experts_listed(const struct model_desc *d)
{
    return d->form.experts.n + (d->form.experts.shared_ffn > 0 ? 1 : 0);
}

/* Returns the shape of a tensor of the expert at index e. A vector has one row. */
void expert_tensor_shape(const struct model_desc *, uint32_t e, enum expert_tensor, uint32_t *rows, uint32_t *cols);

/* Checks a layer's experts; a part of model_desc_fits(). */
bool experts_fit(const struct model_desc *, uint32_t layer, struct err *);
