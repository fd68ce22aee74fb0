/* What a training was begun with, as text: whoever goes on with its files has to ask for the same. */
#ifndef CLI_TRAIN_TRAIN_SETTINGS_H
#define CLI_TRAIN_TRAIN_SETTINGS_H

#include <stddef.h>

#include "engine/base/file_replace.h"

struct train_settings { /* one a line: "drafts 5" */
    char text[2048];
    size_t n;
};

__attribute__((format(printf, 2, 3))) void train_settings_add(struct train_settings *, const char *format, ...);

/* Names the first line in which the text that the file at `path` begins with is another one. */
bool train_settings_same(const struct train_settings *now, const char *path, const char *was, struct err *);

/* "OUT.partial", the caller's; NULL: no memory. */
char *train_beside(const char *out, const char *ending);
/* What would fail after hours fails now: `out` is missing, or is there and is no regular file of this kind. command: "heads". */
bool train_can_write(const char *command, const char *out, const struct file_kind *, struct err *);

#endif
