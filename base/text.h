/* Text for the terminal, measured in columns (utf8proc). Text of models, traces and file names must be made printable
 * first (printable_text()).
 *
 * A cluster is the content of one cell, or two for wide characters: a character and its combining marks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_CLUSTER 20 /* bytes of a cluster in a cell, with the terminating zero */

/* Returns the number of bytes at the end, 0 to 3, that are the beginning of a UTF-8 character. */
size_t text_incomplete(const char *bytes, size_t n);

/* Returns the columns of one character: 0 for marks, joiners and what follows in a decomposed Hangul syllable; 2 for
 * wide ones. */
int text_columns(uint32_t code);
/* Returns the bytes of a string's first cluster, 0 at its end; *columns is its width: 1 or 2. An invalid byte is a
 * cluster of one column, so a loop over clusters always ends. */
size_t text_cluster(const char *utf8, int *columns);
/* Returns the columns of a string. */
int text_width(const char *utf8);
/* Returns the bytes of whole clusters that fit into `columns` columns; *used (may be NULL): their columns. */
size_t text_fit(const char *utf8, int columns, int *used);
/* Returns the bytes of a string's first row, wrapped at blanks; a longer word is broken. Above 0 except for "". */
size_t text_wrap(const char *utf8, int columns);
#define TEXT_ASCII 2 /* characters for a cluster */
/* The first cluster of a string as a terminal without UTF-8 shows it: as many ASCII characters as it has columns. " ±"
 * counts as one cluster and becomes "+-". Returns the cluster's bytes, 0 at the string's end. */
size_t text_ascii_cluster(const char *utf8, char out[TEXT_ASCII], int *columns);
/* Converts a whole string in place; newlines stay. */
void text_ascii(char *text);
/* Returns the beginning of the cluster that ends at byte `at`; 0 at the beginning. */
size_t text_before(const char *utf8, size_t at);
