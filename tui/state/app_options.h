/* What an app is told before it begins. */
#ifndef TUI_STATE_APP_OPTIONS_H
#define TUI_STATE_APP_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* What the user wants to open instead (`:open`). */
struct app_opening {
    char path[PATH_MAX]; /* "": nothing */
};

struct app_options {
    const char *theme;        /* a name or a file; NULL: the default */
    const char *script;       /* a file of commands, or NULL */
    const char *history_path; /* of prompts; NULL: in memory only */
    char *const *prompts;     /* (n_prompts) offered where one is written; they stay the caller's */
    size_t n_prompts;
    const char *presets;         /* the folder of presets; NULL: there is none */
    const char *command_path;    /* the file for a command line that was copied; NULL: none */
    const char *data_dir;        /* where themes/ lies; NULL: only the compiled-in ones */
    const char *bundled;         /* the model that comes with the program; NULL where opening is */
    struct app_opening *opening; /* where :open says which model is next; NULL: it can't be had here */
    double pace;                 /* tokens/s that a live session was told to keep to; 0: as fast as it goes */
    bool quit_at_end;            /* leave when the run is over */
    bool once;                   /* stay at the end of a text; else the next prompt starts after a moment */
};

#endif
