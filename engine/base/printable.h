/* Bytes that come from a model, a trace or a file name are not trusted: here they are made into UTF-8 that can do nothing
 * but be read, on any terminal. */
#ifndef ENGINE_BASE_PRINTABLE_H
#define ENGINE_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies n bytes as printable UTF-8: a newline becomes ⏎; control characters, bidi and other invisible format
 * characters, unassigned code points and broken UTF-8 become \xNN, byte by byte. Never cuts inside a character or an
 * escape. Returns the length written, without the terminating zero; size must be at least 1. Four times n (and one)
 * is always enough. */
size_t printable_text(const char *bytes, size_t n, char *out, size_t size);
/* Is the code point one that printable_text() lets through? */
bool printable_code(int32_t code);

#endif
