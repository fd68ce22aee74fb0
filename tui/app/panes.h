/* The panels on the screen: their states and places, the focus, the shared selection and view. */
#ifndef TUI_APP_PANES_H
#define TUI_APP_PANES_H

#include "tui/app/layout.h"

struct panes {
    void *state[LAYOUT_PANELS]; /* (n) of panel_registry[i] */
    int n, focus;
    int captured;        /* the panel that gets the mouse while a button is down; -1: none */
    bool zoom, arranged; /* arranged: the size of the screen is known */
    struct layout layout;
    struct view view;
    struct selection selection;
    char search[256];
};

/* Borrows scope and host. Call panes_close() also after a failure. */
bool panes_open(struct panes *, const struct scope *, bool live, const struct panel_host *, struct err *);
void panes_close(struct panes *);
bool panes_active(const struct panes *, int i);
int panes_number(const struct panes *, int i); /* its number among the active panels, from 1; 0: not active */
/* The digit that focuses it: 1 to 9, and 0 for the tenth; false: it has none. */
bool panes_digit(const struct panes *, int i, char digit[2]);
/* Computes the layout for a screen and moves the focus to an active panel. reason, device: there are lines about the
 * gain and about the device. */
void panes_arrange(struct panes *, int rows, int cols, bool reason, bool device);
void panes_draw(struct panes *, struct grid *); /* with the row of tabs */
/* Pass an event to the focused panel, to the panel under the mouse, to the first active panel that has the verb. True:
 * it was used. */
bool panes_key(struct panes *, int key);
void panes_mouse(struct panes *, struct grid *, const struct input *);
bool panes_command(struct panes *, const char *verb, const char *rest);

#endif
