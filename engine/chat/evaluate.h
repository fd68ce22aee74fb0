/* Walking the tree: expressions to values, statements to text. */
#ifndef ENGINE_CHAT_EVALUATE_H
#define ENGINE_CHAT_EVALUATE_H

#include "engine/chat/call.h"

/* The value of an expression. */
bool evaluate(struct render *, const struct node *, struct value *);
/* A chain of filters over a block's text. */
bool evaluate_filters(struct render *, const struct node *, struct value text, struct value *);
/* The arguments of a call, in the memory of the rendering. */
bool evaluate_arguments(struct render *, const struct node *first, struct arguments *);

/* How statements end: at their end, at a break, at a continue, in a failure. */
enum ending { ENDS_WELL, ENDS_LOOP, ENDS_TURN, FAILS };
/* Executes statements; they add their text to `out`. */
enum ending execute(struct render *, const struct node *first, struct buffer *out);

/* An attribute of `loop`; *known is false for a name that it does not have. */
bool loop_attribute(struct render *, struct loop *, struct slice name, struct value *, bool *known);

#endif
