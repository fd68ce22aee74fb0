/* Before there is a run: the models on this machine on a screen of their own. */
#ifndef TUI_APP_MODEL_SCREEN_H
#define TUI_APP_MODEL_SCREEN_H

#include "tui/widgets/model_list.h"

struct model_screen_options {
    const char *theme, *data_dir; /* as of struct app_options */
    const char *message;          /* why the last one was not opened; NULL: nothing to say */
    size_t at;                    /* the model to stand at */
};

/* The model that was chosen in *chosen, or *left: none was. Returns the exit status: 0, or 128 + the signal that ended the
 * program, or 1 with *err. */
int model_screen_run(struct model_list *, const struct model_screen_options *, size_t *chosen, bool *left,
                     struct err *);

#endif
