/* Texts as Python's str has them: counted, cut and searched by characters (code points); a broken byte counts as one. */
#ifndef ENGINE_CHAT_TEXT_H
#define ENGINE_CHAT_TEXT_H

#include "engine/chat/render.h"

/* Bytes of the character that a text (of at least one byte) begins with; U+FFFD in *code where that is none. */
size_t text_character(struct slice, uint32_t *code);
size_t text_length(struct slice); /* characters */
/* Where character i begins, in bytes; the text's length where it has no so many. */
size_t text_offset(struct slice, size_t i);
/* Characters in [from, to). */
struct slice text_part(struct slice, size_t from, size_t to);

bool text_is_space(uint32_t code); /* str.isspace() */
enum text_side { TEXT_LEFT = 1, TEXT_RIGHT = 2, TEXT_BOTH = 3 };
/* Without the characters at its ends that are in `what`, or without white space where what.data is NULL. */
struct slice text_strip(struct slice, struct slice what, enum text_side);

/* The first place from byte `from` on; SIZE_MAX: nowhere. */
size_t text_find(struct slice, struct slice what, size_t from);
bool text_begins(struct slice, struct slice with);
bool text_ends(struct slice, struct slice with);
/* The number of n hexadecimal digits that the text begins with; false: it does not. */
bool text_hex(struct slice, size_t n, uint32_t *number);

/* The next line of str.splitlines() from byte *at on, without its end, which is *end bytes long. False: there is none. */
bool text_line(struct slice, size_t *at, struct slice *line, size_t *end);

/* Upper and lower case beyond ASCII, too. A character that becomes several, or that depends on its neighbours, is refused. */
enum text_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_WORDS /* jinja2's title */ };
bool text_to_case(struct render *, struct slice, enum text_case, struct slice *out);

#endif
