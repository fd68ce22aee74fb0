/* A trace that another process is writing, looked at by its files' facts: did it grow, is it still the same one? */
#ifndef TRACES_GROWTH_H
#define TRACES_GROWTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "engine/base/err.h"

struct growth {
    dev_t device;
    ino_t rounds; /* which file rounds.csv was */
    struct timespec written;
    off_t bytes, run_bytes; /* of rounds.csv and controls.csv; of run.json, and when and which one it was: */
    ino_t run;
    uint64_t still_since; /* when it was last seen to grow */
};

void growth_begin(struct growth *, int folder_fd, uint64_t now_us);
/* changed: run.json is another file than last time, or longer. False when rounds.csv has been put in another's place, or
 * was cut: what was read of it is none of it any more. */
bool growth_look(struct growth *, int folder_fd, const char *folder, uint64_t now_us, bool *changed, struct err *);

#endif
