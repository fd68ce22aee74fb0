/* Functions that give tests access to the inside of a context. */
#pragma once

#include "engine/context/context.h"

uint32_t context_free_slots(const struct context *);
uint32_t context_features_kept(const struct context *); /* returns the number of rows with features */
void context_release_dists(struct context *);           /* releases the distributions of its pool */
