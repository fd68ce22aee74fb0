/* Menus of policies, themes and models. */
#ifndef TUI_APP_CHOOSER_H
#define TUI_APP_CHOOSER_H

#include <pthread.h>

#include "engine/events/run_info.h"
#include "engine/model/model_open.h"
#include "tui/terminal/canvas.h"
#include "tui/terminal/input.h"

#define CHOICES 64

struct chooser {
    const char *title, *verb; /* the choice is "verb NAME" */
    char name[CHOICES][32], about[CHOICES][128];
    int n, at;
    bool preview; /* the selected theme is shown before it is chosen */
};

enum chooser_result { CHOOSER_STAYS, CHOOSER_MOVED, CHOOSER_CHOSEN, CHOOSER_LEFT };

/* Opens the menu of policies; `now` is selected. Fails if there are none. */
bool chooser_policies(struct chooser *, const struct run_info *, const char *now);
void chooser_themes(struct chooser *, const char *data_dir, const char *now);
enum chooser_result chooser_key(struct chooser *, int key);
void chooser_draw(const struct chooser *, const struct canvas *); /* on the whole screen */

/* The models on this machine: the names at once, and a description of each, which a thread reads one after the
 * other. */

struct listed {
    char *name, *path;            /* the name that the user types (printable), and the path; owned */
    struct model_summary summary; /* of model_list_look() */
};

struct model_list {
    struct listed *at; /* (n) does not change after model_list_open(), except for the summaries */
    size_t n, room;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of the summaries and of the following fields */
    size_t seen;          /* number of models that have been read: model_list_seen() */
    bool closing;
};

/* bundled: the path of the program's own model, the first of the list. */
bool model_list_open(struct model_list **, const char *bundled, struct err *);
void model_list_close(struct model_list *); /* waits until the model being read is closed; may be NULL */

/* Returns false if the model has not been read yet. */
bool model_list_look(struct model_list *, size_t i, struct model_summary *);
/* Number of models that have been read. */
size_t model_list_seen(struct model_list *);

/* The models of this machine: a list that typing filters, and the description of the selected one. Models that cannot
 * run are dim, with the reason. */

struct model_chooser {       /* zeros at first, except for the list */
    struct model_list *list; /* borrowed */
    char filter[64];         /* words that a listed name contains; case is ignored */
    size_t at;               /* index of the model that Enter opens */
    size_t seen;             /* number of models that had been read when the list was drawn */
    int y, rows;             /* of the list on the screen; `top`: models above the first visible one */
    size_t top;
    char message[400]; /* why the last model could not be opened; "": none */
};

/* Handles a key or the mouse. Letters filter; q leaves the menu if nothing was typed and no name begins with q. */
enum chooser_result model_chooser_input(struct model_chooser *, const struct input *);
/* Draws on the whole screen, which is at least 40×10. */
void model_chooser_draw(struct model_chooser *, const struct canvas *);
/* Returns whether the filter lists the model. */
bool model_chooser_listed(const struct model_chooser *, size_t i);
/* Returns whether another model has been read since the list was drawn. */
bool model_chooser_outdated(const struct model_chooser *);

#endif
