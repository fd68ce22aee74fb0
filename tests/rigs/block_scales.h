/* Gives blocks of random bytes sensible scales, which makes them valid blocks of any type. */
#pragma once

#include "kernels/backend.h"

/* Writes F16 scales into a block of a file; types with minima also get the second one. A type that stores scales in
 * another format gets the nearest value below. */
void block_set_scales(enum weight_type, unsigned char *block, uint16_t scale, uint16_t second);
bool block_has_second(enum weight_type);
