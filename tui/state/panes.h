/* The panels on the screen: each with its state and its place, the one in focus, and what they all look at. */
#ifndef TUI_STATE_PANES_H
#define TUI_STATE_PANES_H

#include "tui/widgets/layout.h"

#define BOOKMARKS 64

struct panes {
    void *state[LAYOUT_PANELS]; /* (n) of panel_registry[i] */
    int n, focus;
    int captured;        /* the panel that gets the mouse while a button is down, -1 */
    bool zoom, arranged; /* arranged: the screen's size was seen */
    struct layout layout;
    struct view view;
    struct selection selection;
    char search[256];
    uint64_t bookmarks[BOOKMARKS]; /* (n_bookmarks) sorted: a sequence's number << 32, and a position */
    uint32_t n_bookmarks;
    uint32_t bookmark[BOOKMARKS]; /* (view.n_bookmarks) the positions of the sequence in focus */
};

/* The scope and the host are borrowed. panes_close() also after a failure. */
bool panes_open(struct panes *, const struct scope *, bool live, const struct panel_host *, struct err *);
void panes_close(struct panes *);
bool panes_active(const struct panes *, int i);
int panes_number(const struct panes *, int i); /* among the active ones, from 1; 0: it is not active */
/* The key that goes to it: 1 to 9, and 0 for the tenth; false: it has none. */
bool panes_digit(const struct panes *, int i, char digit[2]);
/* Layout, and the focus where it can be; rows and cols of the screen. */
void panes_arrange(struct panes *, int rows, int cols, bool device); /* is there something to be told of a device? */
void panes_draw(struct panes *, struct grid *);                      /* with the row of tabs */
/* Which bookmarks are shown: those of the sequence that has the focus now. */
void panes_take_bookmarks(struct panes *);
/* Sets one, or takes away the one that is there. False: there are BOOKMARKS already. */
bool panes_bookmark(struct panes *, uint32_t pos, bool *set);
/* The panel in focus, the ones under the mouse, the first of the active ones that knows the verb. True: it was used. */
bool panes_key(struct panes *, int key);
void panes_mouse(struct panes *, struct grid *, const struct input *);
bool panes_command(struct panes *, const char *verb, const char *rest);

#endif
