/* Python's two ways to put values into a text: "%s of %d" % (a, b), and "{} of {n}".format(a, n=b). */
#ifndef ENGINE_CHAT_FORMAT_H
#define ENGINE_CHAT_FORMAT_H

#include "engine/chat/call.h"

bool format_percent(struct render *, struct value format, struct value values, struct value *out);
bool format_braces(struct render *, struct value format, const struct arguments *, struct value *out);

#endif
