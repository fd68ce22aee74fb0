/* Compares an instruction set's kernels with the portable ones, on random shapes. Needs neither cmocka nor the rest of
 * the program, so that it can be cross-compiled and run under qemu. */
#ifndef TESTS_RIGS_ISA_CHECKS_H
#define TESTS_RIGS_ISA_CHECKS_H

#include "kernels/cpu/isa.h"

/* Returns the number of failures; each is printed. */
int isa_checks(const struct cpu_isa *, uint64_t seed);

#endif
