/* What is searched for in the help overlay, and its keys. */
#ifndef TUI_WIDGETS_HELP_SEARCH_H
#define TUI_WIDGETS_HELP_SEARCH_H

#include <stdbool.h>

struct help_search {
    char text[40]; /* "": nothing is searched for. Letters match in either case */
    bool typing;
    int jump; /* matches to move by at the next drawing; below 0: back */
    int at;   /* the line of the match last moved to; -1: none */
};

bool help_search_key(struct help_search *,
                     int key); /* '/', then letters and Enter; n, N. False: no key of the search */

#endif
