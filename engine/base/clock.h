/* The clock, for those who stand on the engine and know no backend. */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

#include "kernels/clock.h"

#endif
