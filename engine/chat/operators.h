/* Python's operations on values: iteration, comparison, arithmetic, a.b, a[b] and a[b:c]. */
#ifndef ENGINE_CHAT_OPERATORS_H
#define ENGINE_CHAT_OPERATORS_H

#include "engine/chat/render.h"

/* An operator as one number: its one or two characters. */
#define SIGN(a)     (unsigned)(a)
#define SIGN2(a, b) ((unsigned)(a) << 8 | (unsigned)(b))
#define SIGN_IN     SIGN('i')
#define SIGN_NOT_IN SIGN('n')

/* ---- iteration: lists by values, texts by characters, dicts by keys ---- */
struct walk {
    struct value whole;
    size_t at; /* values, or bytes of a text */
};
/* Python's len(); false where the value has none. */
bool value_length(struct value, size_t *n);
bool walk_begin(struct render *, struct value, struct walk *);
/* False: there is no further value, or the rendering has failed. */
bool walk_next(struct render *, struct walk *, struct value *);
/* Python's list(): the values that are left, in a list of their own. NULL: failed. */
struct list *walk_list(struct render *, struct value, enum list_kind);
/* A generator is filled at once, but fails, as in Python, only where its reader reaches the place: takes the failure off
 * the rendering, unless it is a bound's. */
bool generator_put_off(struct render *, struct list *generator);

/* ---- comparison ---- */
bool values_equal(struct render *, struct value, struct value);
/* -1, 0, 1 in *order, and 2 where a NaN has no order. Fails for kinds without an order; `sign` is for the message. */
bool values_order(struct render *, struct value, struct value, const char *sign, int *order);
/* Whether `a sign b` is true, with a sign of comparison. */
bool values_compare(struct render *, unsigned sign, struct value a, struct value b, bool *out);
bool value_contains(struct render *, struct value whole, struct value part, bool *contains);
/* Whether a dict may have the value as a key; false, too, where the rendering fails. */
bool value_hashable(struct render *, struct value);
/* The same; fails where it may not. */
bool value_check_key(struct render *, struct value);

/* ---- arithmetic ---- */
bool operate(struct render *, unsigned sign, struct value, struct value, struct value *);
bool negate(struct render *, struct value, struct value *);

/* ---- parts of values ---- */
/* a.name and a[b] as jinja2 has them: the former looks for methods first, the latter for items. */
bool attribute_of(struct render *, struct value, struct slice name, struct value *);
bool item_of(struct render *, struct value, struct value index, struct value *);
/* a[b:c:d]; VALUE_NONE for a part that is left out. */
bool slice_of_value(struct render *, struct value, const struct value parts[3], struct value *);
/* item.a.b.0, as filters take an attribute: a text with dots, or a number. VALUE_NONE: the item itself. `otherwise`, if
 * it is given, stands for an undefined part. */
bool attribute_path(struct render *, struct value item, struct value path, struct value otherwise, struct value *out);
bool value_undefined(struct render *, struct value *, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
