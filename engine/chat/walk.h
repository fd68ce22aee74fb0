/* Going through what can be gone through: lists and their kin, texts by characters, dicts by keys, loops. */
#ifndef ENGINE_CHAT_WALK_H
#define ENGINE_CHAT_WALK_H

#include "engine/chat/render.h"

struct walk {
    struct value whole;
    size_t at; /* values, or bytes of a text */
};

/* Whether Python's iter() takes it. */
bool value_iterable(struct value);
/* Python's len(); false where it has none. */
bool value_length(struct value, size_t *n);
bool walk_begin(struct render *, struct value, struct walk *);
/* False: there is no further value, or the rendering has failed (failed). */
bool walk_next(struct render *, struct walk *, struct value *);
/* Python's list(): all that is left, in a list of its own. NULL: failed. */
struct list *walk_list(struct render *, struct value, enum list_kind);

/* A generator is filled at once, but what fails in there fails for whoever comes to that place, as in Python: this takes
 * the failure off the rendering, unless it is a bound's. */
bool generator_put_off(struct render *, struct list *generator);

/* A list that grows. */
struct growing {
    struct list *list;
    size_t room;
};
bool growing_begin(struct render *, struct growing *, enum list_kind);
bool growing_add(struct render *, struct growing *, struct value);

#endif
