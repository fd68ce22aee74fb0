/* The app's state, made of parts that know nothing of one another, and what every file above it calls: running a ':'
 * line, opening a line to write on, ending. From the bottom up: the parts, with the widgets drawn from them alone
 * (bars, help, chooser); this; frame.h; the verbs and keys.c; scripting.h; app.c, which puts them together. */
#ifndef TUI_STATE_APP_STATE_H
#define TUI_STATE_APP_STATE_H

#include "engine/events/preset.h"
#include "tui/state/app_options.h"
#include "tui/state/follow.h"
#include "tui/state/forecasting.h"
#include "tui/state/panes.h"
#include "tui/widgets/chooser.h"
#include "tui/widgets/command.h"
#include "tui/widgets/key_row.h"
#include "tui/widgets/line.h"
#include "tui/widgets/screen.h"
#include "tui/widgets/upcoming.h"

enum app_mode { MODE_PANELS, MODE_LINE, MODE_HELP, MODE_MESSAGES, MODE_CHOOSER, MODE_MODELS, MODE_QUIT };

struct app {
    struct app_options options;
    const struct verb *verbs; /* what ':' lines can do */
    struct followed run;
    struct forecasting forecasting;
    struct screen screen;
    struct panes panes;
    struct panel_host host;
    enum app_mode mode;
    struct line line;
    struct chooser chooser;
    struct model_list *models; /* NULL until they were asked for */
    struct model_chooser model_chooser;
    struct path_offers paths;    /* for Tab on a line that wants a path, */
    struct preset_names presets; /* or a preset, */
    char row[8];                 /* or a row of the ledger */
    int help_top;
    struct help_search help_search;
    struct message message;
    struct script script;
    struct upcoming upcoming; /* the next prompt */
    int key_depth;            /* of :key within :key */
    bool timeline_held;       /* the mouse drags it */
    struct clicks clicks;     /* of the last frame */

    bool quit;
    int exit_status;
    struct err failure; /* for the user to read after the terminal is back */
};

bool app_execute(struct app *, const char *line, struct err *);
bool app_command(struct app *, const char *line); /* the same, but says itself why not */
bool app_text(struct app *, const char *line);    /* likewise; the verb, a blank, and text to the letter */
void app_open_line(struct app *, enum line_use, const char *text);
const char *app_prompt(const struct app *); /* the text that runs; NULL: not known */
bool app_changed(const struct app *);       /* a frame is due */
/* The loop ends; why may be NULL. */
void app_leave(struct app *, int exit_status, const struct err *why);

#endif
