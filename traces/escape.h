/* Arbitrary bytes as printable UTF-8, reversibly: a backslash is doubled, and whatever is not printable UTF-8 becomes
 * \xNN, byte by byte: C0 and C1 controls, DEL, bidi controls, line and paragraph separators, byte order marks,
 * noncharacters, and bytes that are no UTF-8 at all. The result holds no control character, so a CSV line is a line. */
#ifndef TRACES_ESCAPE_H
#define TRACES_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#define ESCAPE_LONGEST 4 /* bytes out for a byte in */

/* out has room for ESCAPE_LONGEST * n + 1 bytes; terminated. Returns the length. */
size_t escape(char *out, const char *bytes, size_t n);
/* out has room for n + 1 bytes, and may be text itself; terminated. False when a backslash is followed by neither a
 * backslash nor x and two hexadecimal digits. */
bool unescape(char *out, size_t *n_out, const char *text, size_t n);

/* For names that are shown and not kept: each byte that escape() would escape becomes '?', in place. */
void make_printable(char *text, size_t n);

#endif
