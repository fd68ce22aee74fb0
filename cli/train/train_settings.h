/* What a training was begun with, as text: whoever goes on with its files has to ask for the same. */
#ifndef CLI_TRAIN_TRAIN_SETTINGS_H
#define CLI_TRAIN_TRAIN_SETTINGS_H

#include <stddef.h>

#include "engine/base/err.h"

struct train_settings { /* one a line: "drafts 5" */
    char text[2048];
    size_t n;
};

__attribute__((format(printf, 2, 3))) void train_settings_add(struct train_settings *, const char *format, ...);

/* Names the first line in which the text that the file at `path` begins with is another one. */
bool train_settings_same(const struct train_settings *now, const char *path, const char *was, struct err *);

/* "OUT.partial", the caller's; NULL: no memory. */
char *train_beside(const char *out, const char *ending);
/* What would fail after hours fails now: only a regular file can be replaced by `out`. */
bool train_can_replace(const char *out, struct err *);

#endif
