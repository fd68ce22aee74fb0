/* The search in the help overlay. */
#ifndef TUI_WIDGETS_HELP_SEARCH_H
#define TUI_WIDGETS_HELP_SEARCH_H

#include <stdbool.h>

struct help_search {
    char text[40]; /* "": no search. Case is ignored */
    bool typing;
    int jump; /* matches to move by when the help is next drawn; negative: back */
    int at;   /* line of the current match; -1: none */
};

bool help_search_key(struct help_search *,
                     int key); /* '/', then letters and Enter; n, N. False: no key of the search */

#endif
