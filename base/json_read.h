/* Parses JSON input with cJSON and distinguishes invalid JSON from a lack of memory. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Parses the n bytes of `text`. The caller frees *out with cJSON_Delete(); *out is NULL if the text is not JSON.
 * Returns false, with *out NULL, if memory ran out, which cJSON itself reports like invalid JSON. */
bool json_read(cJSON **out, const char *text, size_t n);
/* Like json_read(), but accepts what Python's json module writes and reads: the numbers NaN, Infinity and -Infinity,
 * and of several members of an object with one key the last. */
bool json_read_python(cJSON **out, const char *text, size_t n);
/* Like json_read(), but for text typed by a user: only whitespace may follow the value. Sets *wrong to 0 if the text is
 * valid; otherwise *wrong is the line, from 1, of the first error or of the text after the value, and *out is NULL. */
bool json_read_typed(cJSON **out, const char *text, size_t n, size_t *wrong);
