/* The models on this machine, to open one: a list that is filtered by typing, and what is known of the one stood at. Those
 * that don't run are dim and say why. */
#ifndef TUI_WIDGETS_MODEL_CHOOSER_H
#define TUI_WIDGETS_MODEL_CHOOSER_H

#include "tui/terminal/input.h"
#include "tui/widgets/chooser.h"
#include "tui/widgets/model_list.h"

struct model_chooser {
    struct model_list *list; /* borrowed */
    char filter[64];         /* words that a name must have, in either case */
    size_t at;               /* the one that Enter opens */
    size_t seen;             /* models that the picture knew to be looked at */
    int y, rows;             /* where the list was drawn, and how many of it are not in view above */
    size_t top;
    char message[400]; /* why the last one was not opened; "": nothing to say */
};

void model_chooser_begin(struct model_chooser *, struct model_list *);
/* Keys and the mouse. Typing filters; q leaves as long as nothing was typed and no model's name begins with it. */
enum chooser_result model_chooser_input(struct model_chooser *, const struct input *);
/* On the whole screen, from 40×10 on. */
void model_chooser_draw(struct model_chooser *, const struct canvas *);
/* Whether the filter leaves it. */
bool model_chooser_listed(const struct model_chooser *, size_t i);
/* Another model was looked at since it was drawn. */
bool model_chooser_outdated(const struct model_chooser *);

#endif
