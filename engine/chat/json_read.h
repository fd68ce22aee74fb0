/* JSON into a rendering's values. Unlike cJSON it keeps 1 and 1.0 apart, as Python does, and all digits of whole numbers. */
#ifndef ENGINE_CHAT_JSON_READ_H
#define ENGINE_CHAT_JSON_READ_H

#include "engine/chat/render.h"

/* All of `text`. Where it isn't JSON the rendering fails with a line that says the byte. */
bool value_read_json(struct render *, struct slice text, struct value *);

#endif
