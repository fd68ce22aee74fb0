/* DEL's arithmetic (docs/policies/del.md): decayed sums of matches and confidences per layer, and the choice of
 * exit layer and length from them. */
#pragma once

#include "engine/events/policy.h"

#define DEL_LENGTH_MOST 32

struct del_sums {
    uint32_t layers;
    double n;              /* S(n): positions */
    double *c, *tcs, *fcs; /* (L + 1) by layer: matches, confidences summed over matches and over mismatches */
};

bool del_sums_open(struct del_sums *, uint32_t layers); /* false: out of memory */
void del_sums_close(struct del_sums *);
void del_sums_decay(struct del_sums *, double omega);               /* S ← ω S */
void del_sums_add(struct del_sums *, const struct prediction *row); /* (L) predictions of layers 1..L at one position */

double del_alpha(const struct del_sums *, uint32_t layer);   /* [0, 1]; 0 without observations */
double del_matched(const struct del_sums *, uint32_t layer); /* mean confidence of matches; 0 without any */
double del_mismatched(const struct del_sums *, uint32_t layer);
double del_tau(const struct del_sums *, uint32_t layer);                  /* eq. 3 */
double del_tpl(const struct del_sums *, uint32_t layer, uint32_t length); /* eq. 1, α clamped below 1 */

struct del_choice {
    uint32_t exit_layer, length;
};
struct del_bounds {
    uint32_t e_min, e_max; /* exit layers in [1, L - 1] */
    uint32_t d_max;        /* length */
};
/* argmax of TPL over layers e_min..e_max and lengths 0..d_max; ties: the smaller length, then the smaller layer. */
struct del_choice del_choose(const struct del_sums *, struct del_bounds);
