/* UTF-8 without trust: what counts as a character. */
#ifndef ENGINE_BASE_UTF8_H
#define ENGINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/* Bytes that come from a model, a trace or a file name are not trusted: here they are made into UTF-8 that can do nothing
 * but be read, on any terminal. */

/* Is the code point printable: no control character, no bidi or other invisible format character, no line or paragraph
 * separator, not unassigned? Which are assigned grows with utf8proc, from one Unicode version to the next. */
bool printable_code(int32_t code);

#define PRINTABLE_ROOM 16 /* bytes: four that are escaped */

/* One character out of len > 0 bytes as it is shown: itself, or byte by byte as \xNN where it isn't printable or no
 * character. Returns how many of the bytes that were. */
size_t printable_character(const char *bytes, size_t len, char shown[PRINTABLE_ROOM], size_t *n_shown);

/* Copies n bytes as printable UTF-8, a newline as ⏎. Never cuts inside a character or an escape. Returns the length
 * written, without the terminating zero; size must be at least 1. Four times n (and one) is always enough. */
size_t printable_text(const char *bytes, size_t n, char *out, size_t size);

/* The same as one line of a message, a newline as \x0a: fills at most `size` bytes with the zero, and ends in "..." where
 * it had to cut. Returns out. */
char *printable_line(char *out, size_t size, const char *bytes, size_t len);

/* Writes a word of a command line, quoted for a POSIX shell if it has other characters than letters, digits and
 * "-_./=:+,@%". */
void put_shell_word(FILE *out, const char *word);

/* ---- escapes ----
 *
 * Arbitrary bytes as printable UTF-8, reversibly: a backslash is doubled, and each byte that is not printable
 * (printable_character()) becomes \xNN. The result contains no control characters. Versions of utf8proc differ in which
 * characters are printable, but all versions read back the same bytes. */

#define ESCAPE_LONGEST 4 /* bytes out for a byte in */

/* out has room for ESCAPE_LONGEST * n + 1 bytes; terminated. Returns the length. */
size_t text_escape(char *out, const char *bytes, size_t n);
/* out has room for n + 1 bytes, and may be text itself; terminated. Unescaped bytes are accepted as they are. Fails if a backslash is
 * followed by neither a backslash nor x and two hexadecimal digits. */
bool text_unescape(char *out, size_t *n_out, const char *text, size_t n);

/* Replaces each byte that text_escape() would escape by '?', except backslashes, in place. */
void make_printable(char *text, size_t n);

#endif
