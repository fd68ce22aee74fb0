/* An instruction set's kernels against the portable ones, on random shapes. Needs neither cmocka nor the rest of the
 * program, so that it can be cross-compiled and run under qemu. */
#ifndef TESTS_RIGS_ISA_CHECKS_H
#define TESTS_RIGS_ISA_CHECKS_H

#include "kernels/cpu/isa.h"

/* Failures found; each is printed. */
int isa_checks(const struct cpu_isa *, uint64_t seed);

#endif
