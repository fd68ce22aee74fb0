/* The models on this machine: the names at once, and a description of each, which a thread reads one after the other. */
#ifndef TUI_WIDGETS_MODEL_LIST_H
#define TUI_WIDGETS_MODEL_LIST_H

#include <stddef.h>

#include "engine/synthetic/model_look.h"

struct model_list;

/* bundled: the path of the program's own model, the first of the list. */
bool model_list_open(struct model_list **, const char *bundled, struct err *);
void model_list_close(struct model_list *); /* waits until the model being read is closed; may be NULL */

size_t model_list_count(const struct model_list *);
/* The name that the user types (printable), and the path. */
const char *model_list_name(const struct model_list *, size_t i);
const char *model_list_path(const struct model_list *, size_t i);
/* Returns false if the model has not been read yet. */
bool model_list_look(struct model_list *, size_t i, struct model_look *);
/* Number of models that have been read. */
size_t model_list_seen(struct model_list *);

#endif
