/* A panel: one file ending in one table, and one line in tui/panels/panels.c. The core knows no panel by name. */
#ifndef TUI_PANELS_PANEL_H
#define TUI_PANELS_PANEL_H

#include "tui/scope/scope.h"
#include "tui/terminal/canvas.h"
#include "tui/terminal/input.h"

struct positions { /* from, up to and without `to` */
    uint32_t from, to;
};

struct selection { /* the position that all panels point at; its owner is the host, panels may move it */
    uint32_t pos;
    int32_t layer;                 /* 0: none chosen */
    enum layer_model model;        /* whose layer */
    bool follow;                   /* true: panels keep to the newest position */
    struct positions text, layers; /* that these panels show, as drawn last; empty: none */
};

struct effects;
struct landscape;
struct settings;

struct panel_host { /* who shows the panels: what they may ask of it */
    void *user;
    /* The same interpreter as ':' lines have, so that what keys and mouse do a command can do. False: it said why not. */
    bool (*command)(void *user, const char *line);
    void (*say)(void *user, const char *text); /* on the status line */
};

struct view { /* what a panel may read when it draws */
    const struct scope *scope;
    const struct panel_host *host;
    bool focused, live;          /* live: knobs can be moved */
    struct selection *selection; /* shared by all panels */
    const char *search;          /* the text that was searched for last, "" for none */
    const uint32_t *bookmarks;   /* positions */
    uint32_t n_bookmarks;
    const struct knob_sweep *sweep;    /* the last one (engine/events/knob_sweep.h); NULL: a replay has none */
    const struct settings *requested;  /* of the sequence in focus; NULL: a replay */
    const struct landscape *landscape; /* what other knobs would have come to (landscape.h); NULL: not known */
    const struct effects *effects;     /* of changed settings (engine/events/effects.h); NULL: not known */
};

/* The round of the selected position; 0: panels follow, or it is in the prompt. */
uint32_t selection_round(const struct view *);
/* Is the selected position one of this round's? False while panels follow. */
bool selection_in_round(const struct view *, const struct scope_round *);

/* Points at the first position of that round, or of the one after it that is there; the panels don't follow then. */
void selection_to_round(const struct view *, uint32_t round);

/* The segment that contains the selected position, the newest while panels follow, and its last round (UINT32_MAX: it has not ended).
 * NULL: no segment has begun. */
const struct segment *selection_segment(const struct view *, uint32_t *last);

/* Points so many rounds further along the text, or back if negative; past the newest round the panels follow again. */
void selection_move(const struct view *, long rounds);

struct key_help {
    const char *keys, *what;
};

/* The screen from top to bottom. What stands in the middle is there when the screen is high enough, or has the focus. */
enum panel_place { PANEL_TOP, PANEL_MIDDLE, PANEL_BOTTOM };

struct panel_ops {
    const char *name, *title;
    const char *(*title_now)(const struct view *); /* where it is not always the same; NULL: `title` */
    const char *brief;                             /* its keys in a few words, for the key bar; NULL: none */
    const char *(*brief_now)(const struct view *); /* … where they are not always the same; NULL: `brief` */
    bool first_focus;       /* has the focus at the start, where there is room for several panels */
    bool first_tab;         /* where there are tabs it is the one that is shown at first, while it is active */
    enum panel_place place; /* see tui/widgets/layout.h */
    bool alone, tall;       /* in the middle: nothing stands beside it; at the top: nothing below it */
    int weight, min_cols;   /* share of the width beside the others there; below min_cols it is not worth drawing */
    int good_cols;          /* with fewer it leaves something out: on a large terminal it has so many; 0: min_cols */
    bool (*active)(const struct view *); /* false: nothing to show, its space is shared out; NULL: always active */
    const struct key_help *keys;         /* ends with a {NULL, NULL}; for the help overlay */
    void *(*open)(void);                 /* the panel's own view state, handed to the others; NULL: it has none */
    void (*close)(void *state);
    void (*draw)(void *state, const struct view *, const struct canvas *); /* the inside of its box */
    void (*note)(void *state, const struct view *, char *out, int n);      /* text on the box's top edge; may be NULL */
    bool (*key)(void *state, const struct view *, int key); /* true: used it; keys as tui/terminal/input.h names them */
    bool (*mouse)(void *state, const struct view *, const struct canvas *, int y, int x,
                  enum mouse_action); /* y, x inside it */
    /* Its own ':' verbs, and a look at some of the app's: `search TEXT` (again: the next one). May be NULL. */
    bool (*command)(void *state, const struct view *, const char *verb, const char *rest);
};

extern const struct panel_ops *const panel_registry[]; /* NULL-terminated, in Tab order */

#endif
