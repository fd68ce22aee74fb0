/* Random events of a terminal: keys, mouse, pasted text, commands, broken escapes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EVENT_BYTES 600

/* Returns the next event's bytes, at most EVENT_BYTES; cols x rows is the terminal's size. No event ends or stops the
 * program through the terminal's settings (Ctrl-\). */
size_t random_event(uint64_t *rng, unsigned cols, unsigned rows, char out[EVENT_BYTES]);
