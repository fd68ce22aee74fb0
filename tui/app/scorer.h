/* Scores finished texts (engine/scoring/scoring.h) on a thread of its own, while the live session rests. */
#pragma once

#include <pthread.h>

#include "engine/scoring/scoring.h"
#include "tui/app/app_options.h"

struct scorer { /* zeroed: nothing was scored */
    bool runs;
    struct score_report shown; /* for the screen; without rows: none */
    /* for the thread: */
    struct live *live;     /* borrowed */
    struct engine *engine; /* borrowed */
    struct scoring_options options;
    char path[256];
    atomic_bool cancel; /* ends after the present conversation; those before are in the report */
    pthread_t thread;
    /* from the thread: */
    pthread_mutex_t lock; /* of the next one */
    struct score_report latest;
    atomic_bool over;
    struct err err; /* once it is over */
};

/* Starts to read the file of texts, for the engine and the chat of the options. The session is paused for the scoring,
 * and generates again afterwards if it did before. */
bool scorer_begin(struct scorer *, struct live *, const struct app_options *, const char *path, struct err *);
/* Updates `shown` and `runs`. Returns true if they changed; at the end *err is the reason why there is no report. */
bool scorer_look(struct scorer *, struct err *);
void scorer_close(struct scorer *);
