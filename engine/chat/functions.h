/* What names mean that nobody set, and what values have behind a dot. */
#ifndef ENGINE_CHAT_FUNCTIONS_H
#define ENGINE_CHAT_FUNCTIONS_H

#include "engine/chat/call.h"

/* Tables, the last row without a name. */
extern const struct builtin global_functions[]; /* range, dict, namespace, raise_exception, strftime_now */
extern const struct builtin text_methods[], text_search_methods[], text_kind_methods[];
extern const struct builtin dict_methods[], list_methods[], loop_methods[];
extern const struct builtin text_filters[], number_filters[], list_filters[], select_filters[];
extern const struct builtin kind_tests[], value_tests[];

/* The methods of a value; NULL: it has none of that name. *refused: Python has one that is not supported here. */
const struct builtin *method_find(struct value, struct slice name, bool *refused);

/* item.a.b.0: an attribute as filters take it, a text with dots or a number. VALUE_NONE: the item itself. */
bool attribute_path(struct render *, struct value item, struct value path, const struct value *otherwise,
                    struct value *out);

#endif
