/* Values as text: Python's str() and repr(), json.dumps() and json.loads(). */
#ifndef ENGINE_CHAT_WRITE_H
#define ENGINE_CHAT_WRITE_H

#include "engine/chat/render.h"

/* Python's str() of a value. Fails for a kind whose text would contain an address. */
bool value_write(struct render *, struct buffer *, struct value);
bool value_write_repr(struct render *, struct buffer *, struct value);
/* str() as a text; Markup stays Markup, as jinja2's soft_str() has it. */
bool value_to_text(struct render *, struct value, struct value *out);
/* repr() of a float: the shortest digits that mean it. */
void float_repr(double, char text[32]);
/* <, >, &, " and ' as HTML's; Markup stays as it is. */
bool value_escape(struct render *, struct value, struct value *out);

struct json_style {
    bool ascii, sorted;
    struct slice indent, item, key; /* indent.data NULL: all in one line */
};
bool value_write_json(struct render *, struct buffer *, struct value, const struct json_style *);

/* JSON to values. Unlike cJSON it keeps 1 and 1.0 apart, as Python does, and all digits of whole numbers. Where the text
 * is not JSON the rendering fails; the message has the byte. */
bool value_read_json(struct render *, struct slice text, struct value *);

#endif
