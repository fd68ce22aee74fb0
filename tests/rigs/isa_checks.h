/* Compares an instruction set's kernels with the portable ones, on random shapes. Needs neither cmocka nor the rest of
 * the program, so that it can be cross-compiled and run under qemu. */
#pragma once

#include "kernels/cpu/isa.h"

/* Returns the number of failures; each is printed. */
int isa_checks(const struct cpu_isa *, uint64_t seed);
