/* A borrowed range of bytes, of a mapped file or a text: not terminated, and not necessarily UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

static inline struct slice
slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool
slice_is(struct slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

/* Compares for qsort(), byte by byte; a prefix is smaller. */
static inline int
slice_compare(struct slice a, struct slice b)
{
    const int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}
