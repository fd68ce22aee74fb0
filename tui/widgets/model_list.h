/* The models on this machine, and what each of them is: their names at once, what they are as a thread of its own has
 * looked at them, one after the other. */
#ifndef TUI_WIDGETS_MODEL_LIST_H
#define TUI_WIDGETS_MODEL_LIST_H

#include <stddef.h>

#include "engine/planted/model_look.h"

struct model_list;

/* bundled: the path of the model that comes with the program, the first of the list. */
bool model_list_open(struct model_list **, const char *bundled, struct err *);
void model_list_close(struct model_list *); /* waits until the model that is being looked at is closed; NULL is fine */

size_t model_list_count(const struct model_list *);
/* By what the user calls it (printable), and the path. */
const char *model_list_name(const struct model_list *, size_t i);
const char *model_list_path(const struct model_list *, size_t i);
/* False: it was not looked at yet. */
bool model_list_look(struct model_list *, size_t i, struct model_look *);
/* How many were looked at so far. */
size_t model_list_seen(struct model_list *);

#endif
