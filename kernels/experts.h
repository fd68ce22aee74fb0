/* A layer's experts: small MLPs of which each row goes to a few that its router chooses (Shazeer et al. 2017), and perhaps
 * to one that all rows share. Kept like a layer's other tensors in one list:
 *
 *   kind(NAME, field, rows, cols, GGUF's name)
 *
 * where `ffn` is the expert's. In GGUF all experts of a layer lie one after the other in one tensor. */
#ifndef KERNELS_EXPERTS_H
#define KERNELS_EXPERTS_H

#include <math.h>

#include "kernels/backend.h"
#include "kernels/base/host_device.h"

#define EXPERTS_MOST      4096u /* in a layer */
#define EXPERTS_USED_MOST 64u   /* by a row */

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
#define EXPERT_MATRICES ((enum expert_tensor)EXPERT_BGATE) /* which come first */

struct expert_desc { /* biases may be absent, and the gate: then it is down(act(up x)) */
    union {
        struct tensor all[EXPERT_TENSORS];
        __extension__ struct {
#define FIELD(NAME, field, ...) struct tensor field;
            FOR_EXPERT_TENSORS(FIELD, FIELD)
#undef FIELD
        };
    };
};

/* Where a row goes at a layer: one of its experts, and what that one's output is multiplied by. */
struct route {
    uint32_t expert;
    float weight;
};

#define EXPERT_NONE UINT32_MAX /* in sweep.routes: not known, or no expert */

/* Of one row of sweep.routes (kernels/backend.h) what it says of a layer: the form's `used` routes. */
static inline struct route *
routes_at(struct route *routes, const struct model_desc *d, size_t row, uint32_t layer)
{
    return routes + (row * (d->n_layers + 1) + layer) * d->form.experts.used;
}

/* What a group of n experts is chosen by: the sum of its two largest of x (n). */
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

extern const char *const expert_tensor_names[EXPERT_TENSORS]; /* GGUF's */

/* Entries of layer_desc.experts: those of form.experts.n, and behind them the one that all rows go to, if there is one. */
static inline uint32_t
experts_listed(const struct model_desc *d)
{
    return d->form.experts.n + (d->form.experts.shared_ffn > 0 ? 1 : 0);
}

/* Of the expert at index e of the list. A vector is one row. */
void expert_tensor_shape(const struct model_desc *, uint32_t e, enum expert_tensor, uint32_t *rows, uint32_t *cols);

/* The part of model_desc_fits() that is about a layer's experts. */
bool experts_fit(const struct model_desc *, uint32_t layer, struct err *);

#endif
