/* The order in which rows are learned from. */
#ifndef ENGINE_TRAINING_SHUFFLE_H
#define ENGINE_TRAINING_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/rng.h"

/* Fisher and Yates, from the SplitMix64 state. */
static inline void
shuffle(size_t *order, size_t n, uint64_t *random)
{
    for (size_t i = n; i-- > 1;) {
        const size_t k = (size_t)(splitmix64(random) % (i + 1)), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

#endif
