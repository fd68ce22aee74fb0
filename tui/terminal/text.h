/* Text for the terminal, measured in columns (utf8proc). What comes from a model, a trace or a file name goes through
 * printable_text() first.
 *
 * A cluster is what one terminal cell (or two, for wide characters) holds: a character and the marks that sit on it. */
#ifndef TUI_TERMINAL_TEXT_H
#define TUI_TERMINAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_CLUSTER 20 /* bytes a cell keeps of a cluster, the terminating zero counted */

/* Bytes at the end of bytes[0, n) that begin a UTF-8 character and don't finish it: 0 to 3. */
size_t text_incomplete(const char *bytes, size_t n);

/* Bytes of the first cluster of a string, 0 at its end; *columns is its width: 1 or 2. A broken byte counts as a
 * cluster of one column, so that a loop over clusters always ends. */
size_t text_cluster(const char *utf8, int *columns);
/* Columns of a whole string. */
int text_width(const char *utf8);
/* How many bytes of a string fit into so many columns, whole clusters only; *used (may be NULL): the columns taken. */
size_t text_fit(const char *utf8, int columns, int *used);
/* Bytes of the first row of a string that is wrapped at blanks; a word longer than a row is broken. Above 0, but for "". */
size_t text_wrap(const char *utf8, int columns);
#define TEXT_ASCII 2 /* characters for a cluster */
/* The first cluster of a string as a terminal without UTF-8 shows it: as many ASCII characters as it has columns. " ±" counts as one
 * cluster and becomes "+-". Returns the cluster's bytes, 0 at the string's end. */
size_t text_ascii_cluster(const char *utf8, char out[TEXT_ASCII], int *columns);
/* Changes a whole string so, in place; newlines stay. */
void text_ascii(char *text);
/* Where the cluster that ends at byte `at` begins; 0 at the beginning. */
size_t text_before(const char *utf8, size_t at);

#endif
