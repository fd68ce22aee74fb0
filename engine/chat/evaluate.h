/* Walking the tree: expressions to values, statements to text. */
#ifndef ENGINE_CHAT_EVALUATE_H
#define ENGINE_CHAT_EVALUATE_H

#include "engine/chat/buffer.h"
#include "engine/chat/call.h"

/* The value of an expression. */
bool evaluate(struct render *, const struct node *, struct value *);
/* A filter chain of a block over the block's text. */
bool evaluate_filters(struct render *, const struct node *, struct value text, struct value *);
/* The arguments of a call; *arguments lies in the memory of the rendering. */
bool evaluate_arguments(struct render *, const struct node *first, struct arguments *);

/* How statements end. */
enum ending { ENDS_WELL, ENDS_LOOP, ENDS_TURN, FAILS };
/* Writes what they write. */
enum ending execute(struct render *, const struct node *first, struct buffer *out);
/* Binds names of a target to a value, or to its parts. */
bool assign_target(struct render *, const struct node *target, struct value);

/* ---- parts of expressions, in files of their own ---- */
bool operate(struct render *, unsigned sign, struct value, struct value, struct value *);
bool negate(struct render *, struct value, struct value *);
/* a.name and a[b], as jinja2 has them: the one looks for methods first, the other for items. */
bool attribute_of(struct render *, struct value, struct slice name, struct value *);
bool item_of(struct render *, struct value, struct value index, struct value *);
bool slice_of_value(struct render *, struct value, const struct value parts[3], struct value *);
bool value_undefined(struct render *, struct value *, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- statements in files of their own ---- */
enum ending ending_of(bool well);
enum ending execute_loop(struct render *, const struct node *, struct buffer *out);
/* What a loop's body may ask its `loop`; *known is false for other names. */
bool loop_attribute(struct render *, struct loop *, struct slice name, struct value *, bool *known);
/* A recursive loop on other values, a level further down: the text that it writes. */
bool loop_call(struct render *, struct loop *, const struct arguments *, struct value *);
bool loop_changed(struct render *, struct loop *, const struct arguments *, struct value *);
int64_t loop_index(const struct loop *);

#endif
