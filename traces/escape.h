/* Arbitrary bytes as printable UTF-8, reversibly: a backslash is doubled, and whatever is not printable
 * (engine/base/printable.h) becomes \xNN, byte by byte. The result holds no control character, so a CSV line is a line.
 * What is printable may differ from one version of utf8proc to the next; what is read back does not. */
#ifndef TRACES_ESCAPE_H
#define TRACES_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#define ESCAPE_LONGEST 4 /* bytes out for a byte in */

/* out has room for ESCAPE_LONGEST * n + 1 bytes; terminated. Returns the length. */
size_t trace_escape(char *out, const char *bytes, size_t n);
/* out has room for n + 1 bytes, and may be text itself; terminated. Bytes that trace_escape() would have escaped stand
 * for themselves. False when a backslash is followed by neither a backslash nor x and two hexadecimal digits. */
bool trace_unescape(char *out, size_t *n_out, const char *text, size_t n);

/* For names that are shown: each byte that trace_escape() would escape becomes '?', in place; a backslash stays. */
void make_printable(char *text, size_t n);

#endif
