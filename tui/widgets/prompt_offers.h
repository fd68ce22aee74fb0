/* Prompts to start from, listed under the prompt that is being written: Tab goes through them, and comes back to what
 * was written. */
#ifndef TUI_WIDGETS_PROMPT_OFFERS_H
#define TUI_WIDGETS_PROMPT_OFFERS_H

#include "tui/widgets/prompt_editor.h"

#define OFFERS_SHOWN 16 /* a longer list is not drawn; Tab goes through it all the same */

struct offers {
    char *const *prompts; /* (n); borrowed */
    size_t n;
    int at;        /* the one that is in the editor, from 1; 0: what was written */
    char *written; /* that, while offers are looked at; owned */
};

void offers_begin(struct offers *);                         /* a prompt is about to be written; also frees */
bool offers_key(struct offers *, struct editor *, int key); /* false: not a key of theirs */
int offers_rows(const struct offers *);                     /* that offers_draw() would like */
void offers_draw(const struct offers *, const struct canvas *);

#endif
