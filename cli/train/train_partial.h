/* What a training has collected so far, in the file OUT.partial beside its result OUT, so that the same command goes on after an
 * interruption, of whatever kind: first a text that says what it was begun with, then records, each with its length and a
 * checksum. A record that was not written to its end is dropped. */
#ifndef CLI_TRAIN_TRAIN_PARTIAL_H
#define CLI_TRAIN_TRAIN_PARTIAL_H

#include <stddef.h>
#include <stdint.h>

#include "cli/train/train_settings.h"
#include "engine/base/slice.h"

struct train_partial {
    char *path;
    int fd;           /* locked; -1: closed */
    bool ours;        /* it was begun with these settings, and nobody else writes it */
    size_t n_records; /* found and added */
};

/* A record that was found, in the order of writing; it is gone after the call. False: it can't be what it should be. */
typedef bool (*train_partial_fn)(void *user, const unsigned char *bytes, size_t n, struct err *);

/* Goes on with the file where it is there, else begins it. Refused in one line: one that was begun with other settings, that
 * another training writes, or that is something else. */
bool train_partial_open(struct train_partial *, const char *out, const struct train_settings *, train_partial_fn,
                        void *user, struct err *);
/* A record out of pieces; in the file when this returns. */
bool train_partial_add(struct train_partial *, const struct slice *pieces, size_t n, struct err *);
/* done: nothing is left to go on with, the file is removed; so is one without a record. Also when it is all zero or could not
 * be opened. */
void train_partial_close(struct train_partial *, bool done);

#endif
