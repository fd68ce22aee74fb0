/* A prediction against another, usually that of the definitions (prediction_definition.h). */
#ifndef TESTS_RIGS_PREDICTION_CHECKS_H
#define TESTS_RIGS_PREDICTION_CHECKS_H

#include "tests/rigs/prediction_definition.h"

/* Fails the running cmocka test unless tokens are the same and numbers near. */
void assert_prediction(const struct prediction *got, const struct prediction *want);

#endif
