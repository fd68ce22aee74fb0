/* Data that the command line passes to the app: options, and the source of events: a live one (a session or a server), or the
 * replay of a trace. */
#ifndef TUI_APP_APP_OPTIONS_H
#define TUI_APP_APP_OPTIONS_H

#include "engine/session/session.h"
#include "engine/tune/race.h"
#include "traces/replay.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The model that the user opened with `:open`. */
struct app_opening {
    char path[PATH_MAX]; /* "": nothing */
};

struct app_options {
    const char *theme;        /* a name or a file; NULL: the default */
    const char *script;       /* a file of commands, or NULL */
    const char *history_path; /* of prompts; NULL: only in memory */
    char *const *prompts;     /* (n_prompts) offered when a prompt is written; borrowed */
    size_t n_prompts;
    const struct race_prompt *tune_prompts; /* (n_tune_prompts) of :tune; borrowed */
    uint32_t n_tune_prompts;
    struct engine *engine;           /* of a session, which scores texts; NULL: a server or a replay. Borrowed */
    const struct chat_setting *chat; /* of its prompts; borrowed */
    bool chat_unused;                /* the model has a chat template, and prompts do not go through it */
    const char *presets;             /* the folder of presets; NULL: none */
    const char *command_path;        /* the file that receives copied command lines; NULL: none */
    const char *data_dir;            /* the folder that contains themes/; NULL: only built-in themes */
    const char *bundled;             /* the path of the bundled model; NULL if opening is NULL */
    struct app_opening *opening;     /* receives the choice of :open; NULL: :open is not available */
    double pace;                     /* the requested tokens/s of a live source; 0: full speed */
    bool quit_at_end;                /* quit at the end of the run */
    bool once;                       /* no prompt starts by itself after the end of a text */
    bool own_prompt;                 /* the first prompt is the user's own, and none replaces it by itself */
};

struct source {
    struct live *live; /* one of live and replay is set; both are borrowed; the live source is not started yet */
    struct replay *replay;
    const char *trace; /* the folder that a live run is written to, or that is replayed; NULL: none */
    bool saved;        /* the user chose the folder, so quitting loses nothing */
    const char *note;  /* a message to show at the start, or NULL */
    /* Exports the run so far to a folder; may be NULL. */
    bool (*export_to)(void *user, const char *dir, struct err *);
    const char *(*trouble)(void *user); /* returns why the trace stopped; NULL: it did not. May be NULL */
    void *user;
};

#endif
