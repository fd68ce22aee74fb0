/* Layers of experts, on both sides: how their weights lie, and who goes where. Part of layout.h.
 *
 * Experts of a layer are stacked: expert e's strips are number e * strips and up of one matrix, of which `rows` and `strips` say
 * what one expert has, and `source` which output a packed row of any is.
 *
 * A visit is a row at one of its experts. Visits lie in order of the experts, so that an expert is read once for all of
 * its rows; those at the one that all rows go to come last. */
#ifndef KERNELS_CUDA_DEVICE_VISITS_H
#define KERNELS_CUDA_DEVICE_VISITS_H

#include "kernels/cuda/device/layout.h"
#include "kernels/experts.h"

#define MOST_EXPERTS 512 /* of a layer: one a thread of a block */

struct expert_stack {
    struct dev_matrix gate_up, down;  /* without gates gate_up is up alone */
    const float *bgate, *bup, *bdown; /* (experts, ffn) twice, (experts, width); NULL: none has one */
};

struct dev_mixture {
    const float *router;                /* (experts, width) */
    struct expert_stack routed, shared; /* shared: of the one that all go to, no matrix if there is none */
};

struct visit {
    uint32_t row, expert; /* of the sweep; of the routed ones, number `experts` for the one that all go to */
    float weight;         /* what the expert's output is multiplied by */
    uint32_t edge;        /* VISIT_FIRST, VISIT_LAST: of the row */
};
#define VISIT_FIRST 1u
#define VISIT_LAST  2u

struct visited_expert { /* visits [first, first + n) */
    uint32_t expert, first, n;
};

struct dev_visits {
    uint32_t arrived;            /* blocks that have computed their logits; zero at rest */
    uint32_t n;                  /* experts that are visited */
    uint32_t most;               /* visits of one of them */
    uint32_t rows;               /* that take part */
    struct visited_expert alone; /* the one that all go to */
    struct visited_expert experts[MOST_EXPERTS];
};

#endif
