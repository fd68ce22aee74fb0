/* What the knobs panel's files share: knobs_items.c (what has a slider), knobs_lines.c (where each stands), knobs_draw.c,
 * panel_knobs.c (keys and mouse). Nobody else includes it. */
#ifndef TUI_PANELS_KNOBS_H
#define TUI_PANELS_KNOBS_H

#include "engine/events/sampling_knobs.h"
#include "tui/panels/knobs_grid.h"

#define TYPED 16

struct knobs_panel {
    uint32_t focus;    /* an item */
    int top, seen;     /* the first line that is seen, and how many, as drawn last */
    char policy[16];   /* whose knobs the fields below are about */
    char typed[TYPED]; /* a value being typed; "": none */
    bool typing;
    struct knobs_grid grid;
};

/* What has a slider: the policy's knobs, and behind them how tokens are drawn. */
struct knobs_item {
    const struct knob *knob; /* its bounds are what can be typed; */
    double least, most;      /* these are the slider's, */
    double step;             /* and this is its step */
    const char *symbol;      /* before the name; "": none */
    double value;            /* in force */
    double requested;        /* what it is, or will be in force from the next round on */
    bool idle;               /* while decoding is greedy it says nothing */
};

uint32_t knobs_items(const struct view *);
struct knobs_item knobs_item(const struct view *, uint32_t i);
bool knobs_is_policys(const struct view *, uint32_t i); /* or one of sampling */

/* What it is for; and of a policy's knob why nothing is foretold, where that is known. */
#define KNOBS_HELP 200
void knobs_help(const struct view *, uint32_t i, char out[KNOBS_HELP]);

void knobs_settle(struct knobs_panel *, const struct view *); /* another policy's knobs are other knobs */

/* Lines from top to bottom: the policy's knobs (or that it has none), what else is set, sampling. As many as there is room
 * for are seen, from knobs_panel.top on. */
struct knobs_places {
    int name, slider, value, best; /* columns */
    int lines, seen;               /* in all, and rows for them */
    int help, help_rows;           /* row, -1: none */
};

struct knobs_places knobs_arrange(const struct view *, int rows, int cols);
int knobs_line_of(const struct view *, uint32_t i);
int knobs_item_at(const struct view *, int line); /* -1: that line has no slider */
void knobs_scroll(struct knobs_panel *, const struct view *, const struct knobs_places *);
/* "1–8 of 11" sliders, as drawn last; nothing where all are seen. */
void knobs_say_seen(const struct knobs_panel *, const struct view *, char *out, size_t n);

void knobs_draw(struct knobs_panel *, const struct view *, const struct canvas *);

#endif
