/* Numbers as a trace's fields, the text that printf would make, in a tenth of its time: a trace is mostly numbers, and
 * the processor that prints them is missed by the engine. */
#ifndef TRACES_NUMBER_H
#define TRACES_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_ROOM 24 /* the longest: 20 digits of a uint64_t */

/* Both return the bytes written; no NUL follows them. */
size_t number_write_whole(char out[NUMBER_ROOM], uint64_t);
size_t number_write_real(char out[NUMBER_ROOM], float); /* as %.9g, to the byte; enough to read the same float back */

#endif
