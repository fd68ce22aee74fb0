/* What the app's files share: app.c (open, loop, close), follow.c (events in, scripts), app_draw.c (a frame),
 * app_keys.c (keys and mouse), verbs.c (':' commands), title.c, measures.c, timeline.c, help.c, chooser.c, prompt_offers.c. Nobody else
 * includes it. */
#ifndef TUI_APP_APP_STATE_H
#define TUI_APP_APP_STATE_H

#include "tui/app/app.h"
#include "tui/app/command.h"
#include "tui/app/layout.h"
#include "tui/app/prompt_editor.h"
#include "tui/app/script.h"
#include "tui/terminal/paint.h"
#include "tui/terminal/terminal.h"

#define BOOKMARKS     64
#define CHOICES       64
#define FRAME_US      33333  /* at most 30 frames a second */
#define FRAME_SLOW_US 125000 /* and at least 8, however dear they are */
#define FRAME_SHARE   80     /* of a processor's time while the engine wants it all: one part in so many */
#define EXTEND_TOKENS 128    /* what `x` adds */

enum app_mode { MODE_PANELS, MODE_LINE, MODE_HELP, MODE_CHOOSER, MODE_QUIT };
enum line_use { LINE_COMMAND, LINE_PROMPT, LINE_SEARCH, LINE_EXPORT, LINE_USES };
enum script_wait { WAIT_NOTHING, WAIT_ROUND, WAIT_END, WAIT_IDLE };

struct chooser {
    const char *title, *verb; /* Enter runs "verb NAME" */
    char name[CHOICES][32], about[CHOICES][128];
    int n, at;
    bool preview; /* a theme is shown while it is only looked at */
};

struct app {
    const struct source *source;
    struct app_options options;
    const struct run_info *info;

    struct terminal terminal;
    struct paint paint;
    struct grid grid;
    struct theme theme;
    bool dirty, repaint; /* repaint: the terminal's contents are not to be trusted */
    uint64_t drawn_version, frame_us;
    uint64_t frame_cost_us; /* processor time of a frame, smoothed */

    struct scope *scope;
    struct event_reader *reader; /* of a live session's log */
    uint64_t lost;               /* events that the scope was told of as lost */
    uint64_t event_us, post_us;  /* when the last event came, the last control went */
    uint32_t break_round;        /* of the last breakpoint reached since it was asked for; 0: none */
    uint64_t run_us;             /* since the run's start, of the last event */
    uint64_t saved_us;           /* when the run was exported last */
    bool baseline_asked, ended, trouble_said;

    struct panel_host host;
    struct view view;
    struct selection selection;
    char search[256];
    uint32_t bookmark[BOOKMARKS];
    void *panel_state[LAYOUT_PANELS];
    int panels, focus, captured; /* captured: the panel that gets the mouse while a button is down, -1 */
    bool zoom, timeline_held;
    struct layout layout;

    enum app_mode mode;
    enum line_use line_use;
    struct editor editor;
    struct history history[LINE_USES];
    int offer;     /* the prompt offered that is in the editor, from 1; 0: what was written */
    char *written; /* that, while offers are looked at; owned */
    struct chooser chooser;
    int help_top;

    char status[400];
    enum role status_role;
    uint64_t status_us; /* when it was said */

    struct script script;
    bool scripted; /* a script is being run */
    enum script_wait wait;
    uint64_t wait_round;
    int key_depth; /* of :key within :key */

    bool quit;
    int exit_status;
    struct err failure; /* for the user to read after the terminal is back */
};

extern const struct verb app_verbs[]; /* ends with a name of NULL */

uint64_t app_now_us(void); /* monotonic */
__attribute__((format(printf, 2, 3))) void app_say(struct app *, const char *format, ...); /* status line */
void app_fail(struct app *, const struct err *);
bool app_command(struct app *, const char *line); /* false: it said why not */
/* As app_command(), but tells why not. */
bool app_execute(struct app *, const char *line, struct err *);
bool app_post(struct app *, enum control_kind, const char *name, const char *text, uint32_t n, struct err *);
bool app_live(const struct app *);
bool app_moving(const struct app *); /* generating, or playing */

/* follow.c */
void app_follow(struct app *);     /* takes events in, for a bounded time */
bool app_idle(const struct app *); /* nothing is going on and nothing asked for is outstanding */
void app_run_script(struct app *); /* up to its next wait */

/* app_draw.c */
void app_arrange(struct app *); /* layout, focus */
bool app_frame(struct app *);   /* draws and sends; false without memory */
bool app_panel_active(const struct app *, int panel);
struct canvas app_canvas(const struct app *, struct rect);

/* app_keys.c */
void app_key(struct app *, const struct input *);
void app_open_line(struct app *, enum line_use, const char *text);
extern const struct app_key {
    int key;
    const char *keys, *line, *what; /* line: the ':' command; what: for help */
} app_keys[];                       /* ends with a key of INPUT_NONE */

/* Items of a bar, whole or not at all: the ones with the highest `rank` go first when there is no room. */
struct bar_item {
    char text[96];
    enum role role;
    int rank;
    bool right; /* from the right end */
};
void bar_draw(const struct canvas *, const struct bar_item *, int n, int gap);

void title_draw(const struct app *, const struct canvas *);
void measures_draw(const struct app *, const struct canvas *);
void timeline_draw(const struct app *, const struct canvas *);
double timeline_fraction(const struct app *, int x); /* NAN: not on the track */

/* prompt_offers.c */
#define OFFERS_SHOWN 16                 /* a longer list is not drawn; Tab goes through it all the same */
void offers_begin(struct app *);        /* a prompt is about to be written */
bool offers_key(struct app *, int key); /* false: not a key of theirs */
int offers_rows(const struct app *);    /* that offers_draw() would like */
void offers_draw(const struct app *, const struct canvas *);

void help_draw(struct app *, const struct canvas *);
bool chooser_open_policies(struct app *);
bool chooser_open_themes(struct app *);
void chooser_key(struct app *, int key);
void chooser_draw(const struct app *, const struct canvas *);

#endif
