/* Python's ==, < and in. */
#ifndef ENGINE_CHAT_COMPARE_H
#define ENGINE_CHAT_COMPARE_H

#include "engine/chat/render.h"

bool values_equal(struct render *, struct value, struct value);
/* -1, 0, 1 in *order, and 2 where a NaN is in no order. Fails for kinds that have none between them; `sign` is for that line. */
bool values_order(struct render *, struct value, struct value, const char *sign, int *order);
/* Whether a dict may have it as a key; false, too, where the rendering fails. */
bool value_hashable(struct render *, struct value);
bool value_contains(struct render *, struct value whole, struct value part, bool *contains);

#endif
