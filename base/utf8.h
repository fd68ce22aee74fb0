/* UTF-8 from untrusted sources, and printable forms of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the length (1..4) of the well-formed character that `bytes` starts with, and its code point in *code (may be
 * NULL); 0 if it is broken, overlong, a surrogate, above U+10FFFF, or cut off. */
size_t utf8_character(const char *bytes, size_t len, uint32_t *code);

/* For bytes that start with no character: returns how many of them one U+FFFD replaces, the longest beginning of a
 * possible character, at least 1 (0 if len is 0). */
size_t utf8_broken(const char *bytes, size_t len);

/* Returns true if `bytes` is the incomplete beginning of a well-formed character. */
bool utf8_is_cut(const char *bytes, size_t len);

/* Writes a code point (no surrogate, at most U+10FFFF) and returns its length, 1 to 4 bytes. */
size_t utf8_put(char out[4], uint32_t code);

/* Returns true if all bytes are well-formed. */
bool utf8_valid(const char *bytes, size_t len);

/* Returns true for Unicode's White_Space. */
bool utf8_is_space(uint32_t code);

/* Bytes of a model, a trace or a file name are not trusted. The following functions convert them to UTF-8 that is safe
 * to print on any terminal. */

/* Returns true if a code point is printable: assigned (in utf8proc's version of Unicode), and no control character,
 * bidi or other invisible format character, line or paragraph separator. */
bool printable_code(int32_t code);

#define PRINTABLE_ROOM 16 /* bytes: four escapes */

/* Writes the printable form of the first character of len > 0 bytes: itself, or \xNN for each byte if it is not
 * printable or no character. Returns the number of bytes consumed. */
size_t printable_character(const char *bytes, size_t len, char shown[PRINTABLE_ROOM], size_t *n_shown);

/* Copies n bytes as printable UTF-8, with ⏎ for newlines and → for tabs, and never cuts inside a character or an
 * escape. Returns the length without the terminating zero. size must be at least 1; 4 n + 1 is always enough. */
size_t printable_text(const char *bytes, size_t n, char *out, size_t size);

/* Does the same for one line of a message, with \x0a for newlines; a text that does not fit ends in "...". Returns
 * out. */
char *printable_line(char *out, size_t size, const char *bytes, size_t len);

/* Returns whether a word of a command line needs no quotes in a POSIX shell: it has only letters, digits and
 * "-_./=:+,@%". */
bool shell_word_plain(const char *word);
/* Writes a word of a command line, quoted if it is not plain. */
void put_shell_word(FILE *out, const char *word);

/* ---- escapes ----
 *
 * Arbitrary bytes as printable UTF-8, reversibly: a backslash is doubled, and each byte that is not printable
 * (printable_character()) becomes \xNN. The result contains no control characters. Versions of utf8proc differ in which
 * characters are printable, but all versions read back the same bytes. */

#define ESCAPE_LONGEST 4 /* bytes out for a byte in */

/* out has room for ESCAPE_LONGEST * n + 1 bytes; terminated. Returns the length. */
size_t text_escape(char *out, const char *bytes, size_t n);
/* out has room for n + 1 bytes, and may be text itself; terminated. Unescaped bytes are accepted as they are. Fails if
 * a backslash is followed by neither a backslash nor x and two hexadecimal digits. */
bool text_unescape(char *out, size_t *n_out, const char *text, size_t n);

/* Replaces each byte that text_escape() would escape by '?', except backslashes, in place. */
void make_printable(char *text, size_t n);

/* Returns the value of a hexadecimal digit; -1 if the character is not one. */
int hex_digit(char);
