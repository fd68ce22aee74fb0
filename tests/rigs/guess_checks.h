/* A guess against another, usually that of the definitions (guess_definition.h). */
#ifndef TESTS_RIGS_GUESS_CHECKS_H
#define TESTS_RIGS_GUESS_CHECKS_H

#include "tests/rigs/guess_definition.h"

/* Fails the running cmocka test unless tokens are the same and numbers near. */
void assert_guess(const struct guess *got, const struct guess *want);

#endif
