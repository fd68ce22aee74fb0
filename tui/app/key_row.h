/* Keys on the screen: the commands of clicks, rows of keys with their meanings, and the table of the keys that work in
 * every panel. */
#ifndef TUI_APP_KEY_ROW_H
#define TUI_APP_KEY_ROW_H

#include "tui/terminal/canvas.h"

/* Clicks: the parts of a frame that run a ':' line when they are clicked, such as the keys in a row of hints. */

#define CLICKS 96

struct clicks { /* zeros: empty */
    struct click {
        int y, x, cols; /* on the screen */
        char line[48];
    } at[CLICKS];
    int n;
};

/* Adds columns x to x + cols of the canvas' row y. clicks may be NULL. If the list is full, nothing is added. */
void clicks_add(struct clicks *, const struct canvas *, int y, int x, int cols, const char *line);
/* Returns the line of a position on the screen, of several the last added; NULL: there is none. */
const char *clicks_find(const struct clicks *, int y, int x);

#define KEY_ITEMS 48

struct key_item {
    char key[16], what[256];
    enum role role; /* of the text `what` */
    int rank;       /* if there is no room, the items with the highest are dropped first */
    bool parts;     /* it begins a group */
};

struct key_row { /* zeros: empty */
    struct key_item item[KEY_ITEMS];
    int n;
    bool parts; /* the next item begins a group */
};

/* Adds an item; a full row ignores it. Of two items with the same key the meaning with the lower rank is kept. */
void key_row_add(struct key_row *, int rank, enum role, const char *key, const char *what);
/* Adds pairs of keys and their meanings: "← → change  = default"; NULL: none. */
void key_row_pairs(struct key_row *, int rank, const char *pairs);
/* Draws the canvas' first row. A click on a key, or on the meaning of a single key, presses that key. */
void key_row_draw(const struct key_row *, const struct canvas *, struct clicks *);
void key_row_draw_pairs(const char *pairs, const struct canvas *, struct clicks *); /* draws a row of these pairs */

/* The keys that have the same meaning in every panel. The digits 2 … 9 and 0 are panels 2 … 10, as 1 is the first. */
extern const struct app_key {
    int key;
    const char *keys; /* as the help shows them */
    const char *line; /* the ':' command that the key runs */
    const char *what; /* the help's text; NULL: another key's row describes this key, too */
} app_keys[];         /* ends with a key of INPUT_NONE */

#endif
