/* Files and folders that a path which is being written may become. */
#ifndef TUI_WIDGETS_PATH_OFFERS_H
#define TUI_WIDGETS_PATH_OFFERS_H

#include <stddef.h>

struct path_offers { /* all 0: none */
    char **path;     /* (n) sorted; folders end with a '/'; owned */
    size_t n;
};

/* What begins with the word, where it points: "tra" offers "traces/", "traces/de" what lies there. Hidden files only where
 * the dot is written. Without memory, or a folder that can be read, there are none. */
void path_offers_find(struct path_offers *, const char *word);
void path_offers_close(struct path_offers *);

#endif
