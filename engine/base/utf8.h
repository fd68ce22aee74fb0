/* UTF-8 without trust: what counts as a character. */
#ifndef ENGINE_BASE_UTF8_H
#define ENGINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length (1..4) of the well-formed character that `bytes` starts with, its code point in *code (may be NULL); 0 if
 * there is none: broken, overlong, a surrogate, above U+10FFFF, or cut off. */
size_t utf8_character(const char *bytes, size_t len, uint32_t *code);

/* Of bytes that begin with no character, how many one U+FFFD stands for: the longest beginning that could have become
 * one, at least 1 (0 only if len is 0). */
size_t utf8_broken(const char *bytes, size_t len);

/* Whether `bytes` is the beginning of a well-formed character whose rest may still come. */
bool utf8_is_cut(const char *bytes, size_t len);

/* Writes a code point (no surrogate, at most U+10FFFF) in 1 to 4 bytes; returns how many. */
size_t utf8_put(char out[4], uint32_t code);

/* Whether all of it is well-formed. */
bool utf8_valid(const char *bytes, size_t len);

/* Unicode's White_Space. */
bool utf8_is_space(uint32_t code);

#endif
