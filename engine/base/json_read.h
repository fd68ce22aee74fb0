/* JSON that comes in. */
#ifndef ENGINE_BASE_JSON_READ_H
#define ENGINE_BASE_JSON_READ_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads a text of n bytes. *out is the caller's to cJSON_Delete(), and NULL where the text is no JSON. False: there was no
 * memory for it, of which the library itself speaks as if the text were none; *out is NULL. */
bool json_read(cJSON **out, const char *text, size_t n);
/* The same of a text that somebody typed. *wrong: the line, from 1, where it stops being JSON, or where something stands behind
 * the value that it should be, and *out is NULL; 0: it is whole. */
bool json_read_typed(cJSON **out, const char *text, size_t n, size_t *wrong);

#endif
