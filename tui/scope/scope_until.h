/* Where in the rounds that are held something came that a run can be let go on until. */
#ifndef TUI_SCOPE_SCOPE_UNTIL_H
#define TUI_SCOPE_SCOPE_UNTIL_H

#include "engine/events/until.h"
#include "tui/scope/scope.h"

/* Did it come in that round, of the sequence in focus? Only in whole ones. As a session sees it, but that there is no word of
 * layers that nobody asked. */
bool scope_round_has(const struct scope *, const struct scope_round *, const struct until *);
/* Did it come in the newest round of that sequence? */
bool scope_has_come(const struct scope *, uint32_t seq, const struct until *);
/* The first round after that number in which it came, or the last one before it; 0: none of those that are held. */
uint32_t scope_find_round(const struct scope *, const struct until *, uint32_t number, bool before);

#endif
