/* UTF-8 without trust: what counts as a character, and how bytes of a file are shown to a person. */
#ifndef ENGINE_UTF8_H
#define ENGINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length (1..4) of the well-formed character that `bytes` starts with, its code point in *code (may be NULL); 0 if
 * there is none: broken, overlong, a surrogate, above U+10FFFF, or cut off. */
size_t utf8_character(const char *bytes, size_t len, uint32_t *code);

/* Whether `bytes` is the beginning of a well-formed character whose rest may still come. */
bool utf8_is_cut(const char *bytes, size_t len);

/* Bytes from a file as one line of text that is safe on any terminal: whatever is not printable UTF-8 (C0, C1, bidi
 * controls, line separators, broken bytes) becomes \xNN. Fills at most `size` bytes with the NUL, cutting between
 * characters and ending in "..." where it had to cut. Returns out. */
char *utf8_printable(char *out, size_t size, const char *bytes, size_t len);

#endif
