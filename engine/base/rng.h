/* Random numbers, for those who stand on the engine and know no backend. */
#ifndef ENGINE_BASE_RNG_H
#define ENGINE_BASE_RNG_H

#include "kernels/rng.h"

#endif
