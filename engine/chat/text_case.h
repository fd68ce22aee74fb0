/* Upper and lower case, as Python's str has them, beyond ASCII too. */
#ifndef ENGINE_CHAT_TEXT_CASE_H
#define ENGINE_CHAT_TEXT_CASE_H

#include "engine/chat/render.h"

enum text_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_SWAPPED };
bool text_to_case(struct render *, struct slice, enum text_case, struct slice *out);

/* str.isupper(): has cased characters, and none of the other case. */
bool text_is_upper(struct slice);
bool text_is_lower(struct slice);

#endif
