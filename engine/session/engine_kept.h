/* What the instances of a policy have in common (policy.shared) stays with the engine from session to session: it hangs on
 * model, backend and threads, which are an engine's, and on how many sequences there are at a time, by which it is kept. */
#ifndef ENGINE_SESSION_ENGINE_KEPT_H
#define ENGINE_SESSION_ENGINE_KEPT_H

#include "engine/session/engine.h"

/* Where a session of so many sequences at a time was before, the policy's shared state is as that left it. */
void engine_recall(const struct engine *, struct policy *first, uint32_t sequences);
void engine_keep(struct engine *, const struct policy *first, uint32_t sequences); /* out of memory: it is not kept */
void engine_forget(struct engine *);                                               /* all of it */

#endif
