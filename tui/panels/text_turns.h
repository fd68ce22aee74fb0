/* The turns of a conversation in the tokens of its prompt. A trace has the messages and the tokens, and between them is the template's
 * markup, of which nothing is known. So each message's text is searched in the prompt's bytes, from the end on. */
#ifndef TUI_PANELS_TEXT_TURNS_H
#define TUI_PANELS_TEXT_TURNS_H

#include "engine/scope/scope.h"

struct turn {
    size_t from, to;   /* bytes of the prompt that its text takes */
    const char *label; /* "you ›", "model ›", "system ›" */
};

struct turns {
    struct turn *turn; /* (n) in order; the last one is the prompt's; owned */
    size_t n;          /* 0: the prompt is no turn, or a turn's text is not found as it is */
    bool preface;      /* before the first turn there may be more than markup: a system message of the template's */
};

/* Finds the turns in the first `prompt` positions, which are all of the prompt. Frees the earlier ones. False: out of memory. */
bool turns_find(struct turns *, const struct scope *, uint32_t prompt);
void turns_free(struct turns *);

#endif
