/* Functions that give tests access to the inside of a context. */
#ifndef TESTS_RIGS_CONTEXT_INSIDE_H
#define TESTS_RIGS_CONTEXT_INSIDE_H

#include "engine/context/context.h"

uint32_t context_free_slots(const struct context *);
uint32_t context_features_kept(const struct context *); /* returns the number of rows with features */
void context_release_dists(struct context *);           /* releases the distributions of its pool */

#endif
