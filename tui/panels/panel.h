/* The interface of a panel, and functions that panels share: the selection, marks of changes, the drafts of a round in
 * one line, the measures up to the cursor. A panel is one file that ends in a table (struct panel_ops), and one line
 * in panels.c; no other code names it. */
#pragma once

#include "engine/scope/aggregates.h"
#include "engine/scope/scope.h"
#include "engine/tune/engine_flags.h"
#include "tui/terminal/canvas.h"
#include "tui/terminal/input.h"

struct position_range { /* from <= position < to */
    uint32_t from, to;
};

struct selection { /* the position that all panels point at; the host owns it, panels may move it */
    uint32_t pos;
    int32_t layer;                      /* 0: none */
    enum layer_model model;             /* whose layer */
    bool follow;                        /* the panels show the newest position */
    struct position_range text, layers; /* the positions that these panels showed last; empty: none */
};

struct effects;
struct landscape;
struct score_report;
struct settings;

struct panel_host { /* the program around the panels */
    void *user;
    /* Runs a ':' line, so that commands can do whatever keys and the mouse do. If it fails, it shows a message and
     * returns false. */
    bool (*command)(void *user, const char *line);
    void (*say)(void *user, const char *text); /* shows a message */
};

struct view { /* data that a panel may read when it draws */
    const struct scope *scope;
    const struct panel_host *host;
    bool focused, live;                       /* live: knobs can be changed */
    bool no_drafts;                           /* texts are shown without their drafts */
    struct selection *selection;              /* shared by all panels */
    const char *search;                       /* the last search text, "": none */
    const struct knob_sweep *sweep;           /* the last sweep (engine/tune/knob_sweep.h); NULL: a replay has none */
    const struct tuner *tuner;                /* the last race (engine/tune/tuner.h); NULL: a replay has none */
    const struct score_report *score;         /* of drafters on texts (engine/tune/score_report.h); NULL: none */
    const struct policy_ops *const *policies; /* the registry (policies/registry.h) */
    const struct settings *requested;         /* of the sequence in focus; NULL: a replay */
    const struct landscape *landscape;        /* forecasts of other knob values (landscape.h); NULL: none */
    const struct effects *effects; /* forecasts of changed settings (engine/measure/forecast.h); NULL: none */
};

struct key_help {
    const char *keys, *what;
};

/* Where a panel is on the screen. The middle is shown if the screen is high enough, or if a panel in it has the
 * focus. */
enum panel_place { PANEL_TOP, PANEL_MIDDLE, PANEL_BOTTOM };

struct panel_ops {
    const char *name, *title;
    const char *(*title_now)(const struct view *); /* if the title changes; NULL: `title` */
    const char *brief;                             /* its keys in a few words, for the key bar; NULL: none */
    const char *(*brief_now)(const struct view *); /* if they change; NULL: `brief` */
    bool first_focus;                              /* has the focus at the start if there is room for several panels */
    bool first_tab;                                /* is the first tab while it is active, if there are tabs */
    enum panel_place place;                        /* see tui/app/layout.h */
    bool alone, tall;     /* in the middle: no panel beside it; at the top: no panel below it */
    int weight, min_cols; /* share of the width beside other panels; it is not drawn with fewer columns */
    int good_cols;        /* with fewer columns it omits something; 0: min_cols */
    /* The rows that it fills, with its box, and further ones in which it shows something else; NULL: it can use any
     * number. */
    void (*rows)(const struct view *, int *good, int *more);
    /* false: it has nothing to show, and other panels get its room; NULL: always true */
    bool (*active)(const struct view *);
    const struct key_help *keys; /* for the help; ends with a {NULL, NULL} */
    size_t state_size;           /* of its view state, zeroed at first; 0: it has none */
    void (*close)(void *state);  /* frees what the state owns. May be NULL */
    void (*draw)(void *state, const struct view *, const struct canvas *); /* the inside of its box */
    void (*note)(void *state, const struct view *, char *out, int n);      /* text on the box's top edge; may be NULL */
    /* Return true if they used the key (tui/terminal/input.h) or the event; y and x are relative to the canvas. */
    bool (*key)(void *state, const struct view *, int key);
    bool (*mouse)(void *state, const struct view *, const struct canvas *, int y, int x, enum mouse_action);
    /* Its own ':' commands, and some of the app's: `search TEXT` (again: the next match). May be NULL. */
    bool (*command)(void *state, const struct view *, const char *verb, const char *rest);
};

extern const struct panel_ops *const panel_registry[]; /* NULL-terminated, in Tab order */

/* Makes a panel's view state in *state, NULL if it has none. Fails without memory. */
bool panel_open(const struct panel_ops *, void **state);
void panel_close(const struct panel_ops *, void *state); /* NULL does nothing */

/* Sends a ':' line to the host, shows a message. */
__attribute__((format(printf, 2, 3))) bool panel_command(const struct view *, const char *format, ...);
__attribute__((format(printf, 2, 3))) void panel_print(const struct view *, const char *format, ...);
/* Returns the first of n rows to show, of which `room` fit: near `top`, so that row `at` is visible and no room stays
 * empty. */
int panel_scroll(int top, int at, int n, int room);
/* A token's text without its leading space; "␣␣": only two spaces. */
const char *panel_word(const struct scope *, token_t);

/* ---- the selection ---- */

/* The round of the selected position; 0: panels follow, or the position is in the prompt. */
uint32_t selection_round(const struct view *);
/* True if the selected position is in this round; false while panels follow. */
bool selection_in_round(const struct view *, const struct scope_round *);
/* Selects the first position of that round, or of the next round in memory; ends following. */
void selection_to_round(const struct view *, uint32_t round);
void selection_to_place(struct selection *, const struct scope_place *);
/* Moves by this many rounds along the text (negative: back); after the newest round the panels follow again. */
void selection_move(const struct view *, long rounds);
/* The keys of a list of rounds, the newest first: ↑ ↓ j k, PgUp PgDn by `page` rounds (0: no such keys), Home, End.
 * False: another key. */
bool selection_key(const struct view *, int key, long page);
/* The segment of the selected position (the newest while panels follow), and its last round (UINT32_MAX: it has not
 * ended). NULL: no segment has begun. */
const struct segment *selection_segment(const struct view *, uint32_t *last);

/* ---- changes of settings along an axis of time: a tick with the change's text ---- */

#define MARKS_MOST 64 /* at most, the newest */

struct mark {
    int x; /* column */
    const struct segment *segment;
};

struct marks { /* (n) the newest first */
    struct mark mark[MARKS_MOST];
    int n;
};

/* The segment that begins with this round of the current run, if it has changes; NULL: none. */
const struct segment *mark_of_round(const struct scope *, uint32_t round);
/* Finds the changes of the current run; `place` returns a change's column, -1: not shown. With `all`, a replay's
 * segments, it finds the changes after the scope's newest segment; NULL: those up to it. */
void marks_find(struct marks *, const struct scope *, const struct segments *all,
                int (*place)(const void *user, const struct segment *), const void *user);
/* Draws ticks on a row, each with as much of its text as fits before the next tick, before `end`, and before cells that
 * are neither a line nor a bar. */
void marks_draw(const struct marks *, const struct scope *, const struct canvas *, int y, int end, enum role);
void marks_draw_tick(const struct canvas *, int y, int x); /* in an empty cell */

/* ---- a token, a round ---- */

struct fate_style {
    enum role role;
    unsigned marks; /* where fates are not also glyphs */
};
extern const struct fate_style fate_styles[];

/* Draws its number in `width` columns after the cursor, if the selection is in it. Returns the next column. */
int round_number(const struct view *, const struct canvas *, int y, int width, const struct scope_round *);
/* Drafts of the round, with those that a source has counted without knowing their tokens, which are the last ones. */
uint32_t round_drafts(const struct scope_round *);
/* Draws its drafts in `width` columns: ■ accepted, □ rejected, ○ not yet verified, smaller ones off the main line, … if
 * they do not fit; then the target's own token: ◆ a correction, + a bonus. */
void round_marks(const struct canvas *, int y, int x, int width, const struct scope_round *);

#define ROUND_REASON (4 * sizeof(((struct round_event *)0)->stop_reason) + 1)
/* Why drafting stopped, as the screen shows it: "difficult" is "low confidence"; foreign traces may contain any
 * text. */
void round_reason(const struct round_event *, char out[ROUND_REASON]);

/* ---- panels of aggregates (exit layers, reliability): rounds of the window, up to the cursor ---- */

struct aggregated {        /* view state of such a panel */
    struct aggregates own; /* of rounds that the scope does not sum */
    uint32_t layers;       /* 0: `own` is not open */
};

void aggregated_close(void *);
/* Returns the aggregates of the cursor's segment, of the last rounds up to it, or of the run. NULL: `why` gives the
 * reason. */
const struct aggregates *aggregated_now(struct aggregated *, const struct view *, const char **why);
/* The common declarations of panels of aggregates. */
#define PANEL_OF_AGGREGATES                                                                                            \
    .brief = "v which rounds", .place = PANEL_MIDDLE, .weight = 4, .min_cols = 30,                                     \
    .state_size = sizeof(struct aggregated), .close = aggregated_close, .note = aggregated_note
/* From this size, for example zoomed, such a panel has ticks on its axes and numbers below its bars. */
#define AGGREGATED_ROWS 16
#define AGGREGATED_COLS 70
#define AGGREGATED_LEFT 11 /* columns of ticks and of the names of numbers */
/* Draws ticks with values from `low` to `high` at the left of the plot, which begins in column AGGREGATED_LEFT. */
void aggregated_ticks(const struct canvas *c, int y, int rows, double low, double high);
/* Draws a row of numbers below n bars of `wide` columns: its name, and those numbers that are not NAN and fit beside
 * each other. */
void aggregated_numbers(const struct canvas *c, int y, const char *name, int n, int wide, const double *value,
                        const char *format);
/* Draws a bar over the whole height of the canvas, in eighths of a row. */
void aggregated_bar(const struct canvas *c, int x, int width, double share, enum role);
void aggregated_note(void *state, const struct view *, char *out, int n); /* "segment B", "last 32 rounds", "run" */

/* ---- panels of races and of scores: speeds with their intervals on one axis, other engines ---- */

enum role speed_role(struct comparison); /* of its verdict: faster or slower than plain decoding */

#define SPEED_AXIS_LOW   0.75
#define SPEED_AXIS_HIGH  1.25
#define SPEED_AXIS_LEAST 24 /* columns; with less room there is no axis */

struct speed_axis {
    int x, cols;
    double low, high; /* × plain decoding; at first SPEED_AXIS_LOW and _HIGH */
};

/* Makes the axis contain 1 and the speed; with `whole` also the interval, unless that is very wide. */
void speed_axis_include(struct speed_axis *, struct comparison, bool whole);
void speed_axis_draw(const struct speed_axis *, const struct canvas *); /* its numbers, on row 0 */
/* Draws the line at 1 and ├──●──┤, with the dot in this role; without `whole` only the dot. */
void speed_axis_interval(const struct speed_axis *, const struct canvas *, int y, struct comparison, bool whole,
                         enum role);

#define PANEL_COMMAND 2000 /* bytes of a command of another engine */
/* Draws a command of another engine from row y on. Returns the next row. */
int panel_engine(const struct canvas *, int y, enum other_engine, const char *command);
