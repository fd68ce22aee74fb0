/* Menus: of policies, of themes. */
#ifndef TUI_WIDGETS_CHOOSER_H
#define TUI_WIDGETS_CHOOSER_H

#include "engine/events/run_info.h"
#include "tui/terminal/canvas.h"

#define CHOICES 64

struct chooser {
    const char *title, *verb; /* the choice is "verb NAME" */
    char name[CHOICES][32], about[CHOICES][128];
    int n, at;
    bool preview; /* a theme is shown while it is only looked at */
};

enum chooser_result { CHOOSER_STAYS, CHOOSER_MOVED, CHOOSER_CHOSEN, CHOOSER_LEFT };

/* now: the name to stand at. False: there is nothing to choose from. */
bool chooser_policies(struct chooser *, const struct run_info *, const char *now);
void chooser_themes(struct chooser *, const char *data_dir, const char *now);
enum chooser_result chooser_key(struct chooser *, int key);
void chooser_draw(const struct chooser *, const struct canvas *); /* on the whole screen */

#endif
