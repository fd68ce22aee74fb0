/* How far the layers after an exit have to move the logits for a given share of its guesses to survive them. */
#ifndef ENGINE_SYNTHETIC_SYNTHETIC_ACCEPTANCE_H
#define ENGINE_SYNTHETIC_SYNTHETIC_ACCEPTANCE_H

#include <stdint.h>

/* The probability that two vectors of `vocab` logits have their largest entry at the same place, when entries are
 * standard normal, independent of each other, and those at one place correlated by 1 / sqrt(1 + tangent^2): what is
 * left of x when x + tangent * (something as large, at a right angle) is looked at instead. */
double synthetic_agreement(uint32_t vocab, double tangent);

/* The number that a standard normal one is above with probability p, 0 < p < 1. */
double synthetic_quantile(double p);

/* synthetic_agreement()'s inverse: the tangent for an acceptance between SYNTHETIC_LEAST_ACCEPTANCE and SYNTHETIC_MOST_ACCEPTANCE. Rounded to
 * 10 bits, so that the last bits of a machine's mathematics library don't make it another model. */
#define SYNTHETIC_LEAST_ACCEPTANCE 0.3
#define SYNTHETIC_MOST_ACCEPTANCE  0.97
double synthetic_tangent(uint32_t vocab, double acceptance);

#endif
