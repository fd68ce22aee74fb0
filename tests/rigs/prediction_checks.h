/* Compares a prediction with another, usually with that of the definitions (prediction_definition.h). */
#pragma once

#include "tests/rigs/prediction_definition.h"

/* Fails the running cmocka test unless the tokens are equal and the numbers are near. */
void assert_prediction(const struct prediction *got, const struct prediction *want);
