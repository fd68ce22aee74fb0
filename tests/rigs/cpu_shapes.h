/* Small models for tests of the CPU backend: deliberately odd sizes, widths that no vector divides, groups of heads,
 * vocabularies of several pieces, every weight type. */
#pragma once

#include "tests/rigs/backend_rig.h"

extern const struct naive_shape cpu_shapes[]; /* the first: Q8_0; the second: F16; from CPU_FORMS_FROM on other forms */
extern const size_t cpu_shapes_n;
#define CPU_FORMS_FROM 20

/* Returns the relative error that a row in F32 may have. The roundings in a layer's longest sum of products, and those
 * of the layers, are independent, so their errors grow with the root of their number. A wrong weight causes a larger
 * error. */
double cpu_exact_bound(const struct naive_shape *);

/* Opens each shape on an instruction set that the seed chooses (SPECSCOPE_LONG=1: on all), and calls check() with the
 * error that rounding may cause. */
void on_every_isa_and_shape(bool exact, uint64_t seed, void (*check)(struct rig *, double bound));
