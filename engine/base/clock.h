/* The monotonic clock: for durations, and for moments to wait for; its zero is arbitrary. */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);
uint64_t clock_us(void);

#endif
