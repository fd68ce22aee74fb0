/* The app's state, made of independent parts, and functions that frame, commands and the main loop call: running a ':'
 * line, opening the input line, quitting. */
#ifndef TUI_APP_APP_STATE_H
#define TUI_APP_APP_STATE_H

#include "engine/tune/preset.h"
#include "tui/app/app_options.h"
#include "tui/app/chooser.h"
#include "tui/app/command.h"
#include "tui/app/follow.h"
#include "tui/app/forecasting.h"
#include "tui/app/key_row.h"
#include "tui/app/line.h"
#include "tui/app/panes.h"
#include "tui/app/screen.h"
#include "tui/app/upcoming.h"

enum app_mode { MODE_PANELS, MODE_LINE, MODE_HELP, MODE_MESSAGES, MODE_CHOOSER, MODE_MODELS, MODE_QUIT };

struct app {
    struct app_options options;
    const struct verb *verbs; /* the table of ':' commands */
    struct followed run;
    struct forecasting forecasting;
    struct screen screen;
    struct panes panes;
    struct panel_host host;
    enum app_mode mode;
    struct line line;
    struct chooser chooser;
    struct model_list *models; /* NULL until they are requested */
    struct model_chooser model_chooser;
    glob_t paths;                /* completions of paths, */
    struct preset_names presets; /* of presets, */
    char replaces[PRESET_NAME];  /* the existing preset that the next :preset save of its name replaces */
    char row[8];                 /* and of a row of the ledger */
    int page_top;
    struct help_filter help_filter;
    struct message message;
    struct script script;
    struct upcoming upcoming; /* the next prompt */
    char *system;             /* of :system; NULL: that from the start; owned */
    bool anew;                /* the next prompt begins another conversation */
    int key_depth;            /* depth of :key within :key */
    bool timeline_held;       /* the mouse drags it */
    struct clicks clicks;     /* of the last frame */

    bool quit;
    int exit_status;
    struct err failure; /* printed after the terminal is restored */
};

bool app_execute(struct app *, const char *line, struct err *);
bool app_command(struct app *, const char *line); /* the same; shows the error as a message */
void app_open_line(struct app *, enum line_use, const char *text);
const char *app_prompt(const struct app *); /* the current prompt; NULL: unknown */
bool app_continues(const struct app *);     /* the next prompt continues the conversation */
void app_choose_scope(struct app *);        /* panels of a live run show it, or the last run of a race's setting */
bool app_changed(const struct app *);       /* the screen differs from the last frame */
/* Ends the main loop; why may be NULL. */
void app_leave(struct app *, int exit_status, const struct err *why);

/* Handles a key or the mouse: the focused panel first, then the table of keys, each of which is a ':' command. */
void app_key(struct app *, const struct input *);

/* Draws a frame: layout, panels, bars and overlays, sent to the terminal (frame.c). Fails without memory. */
bool frame_draw(struct app *, struct err *);

/* The parts of app_run() (app.c), which tests call, too. */

/* Opens the terminal, draws a frame, starts the run. Call app_end() also after a failure. */
bool app_begin(struct app *, const struct source *, const struct app_options *);
/* Waits at most `patience` milliseconds for a key, then handles keys, events, the script and the frame. */
void app_cycle(struct app *, int patience);
int app_end(struct app *, struct err *); /* restores the terminal; returns the exit status of app_run() */

#endif
