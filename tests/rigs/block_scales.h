/* Random bytes are blocks of any type, once their scales are sensible. */
#ifndef TESTS_RIGS_BLOCK_SCALES_H
#define TESTS_RIGS_BLOCK_SCALES_H

#include "kernels/backend.h"

/* Writes scales in F16 into a block of the file: of types with minima the second, too. What a type stores in another
 * way becomes what is nearest below. */
void block_set_scales(enum weight_type, unsigned char *block, uint16_t scale, uint16_t second);
bool block_has_second(enum weight_type);

#endif
