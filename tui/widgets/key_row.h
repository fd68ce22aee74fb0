/* A row of keys and what they do. Items are shown whole or not at all; the least important ones give way. */
#ifndef TUI_WIDGETS_KEY_ROW_H
#define TUI_WIDGETS_KEY_ROW_H

#include "tui/widgets/clicks.h"

#define KEY_ITEMS 48

struct key_item {
    char key[16], what[256];
    enum role role; /* of what it does */
    int rank;       /* the highest go first when there is no room */
    bool parts;     /* another group begins here */
};

struct key_row { /* zeros: empty */
    struct key_item item[KEY_ITEMS];
    int n;
    bool parts; /* the next item begins another group */
};

/* What doesn't fit into the row of items any more is left out. */
void key_row_add(struct key_row *, int rank, enum role, const char *key, const char *what);
/* Pairs of keys and what they do: "← → turn  = default"; NULL: none. */
void key_row_pairs(struct key_row *, int rank, const char *pairs);
/* On the canvas' first row. A click on a key, or on what a single key does, presses that key. */
void key_row_draw(const struct key_row *, const struct canvas *, struct clicks *);
void key_row_say(const char *pairs, const struct canvas *, struct clicks *); /* these pairs alone */

#endif
