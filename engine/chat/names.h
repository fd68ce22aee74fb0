/* Which names a scope begins without. Jinja decides where a name lives before anything runs: a name that a scope sets, and
 * that neither it nor one around it read before, is the scope's own from its beginning, and undefined until it is set,
 * even where the caller gave a variable of that name. */
#ifndef ENGINE_CHAT_NAMES_H
#define ENGINE_CHAT_NAMES_H

#include "engine/chat/node.h"

/* Fills `unset` of every node that has a scope; *root gets the template's own. False: out of memory. */
bool names_settle(struct render *, struct node *first, struct name **root);

#endif
