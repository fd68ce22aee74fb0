/* The verification profile of an engine's models: which file, and whether it is theirs. */
#ifndef ENGINE_SESSION_ENGINE_PROFILE_H
#define ENGINE_SESSION_ENGINE_PROFILE_H

#include "engine/session/engine.h"
#include "engine/trained/sv_profile.h"

/* Reads the one that was asked for, or the one beside the model if that is wanted; the helpers are open. One that was only
 * found and isn't of these models is passed over, and e->note says so. False: one that was asked for can't be used. */
bool engine_profile_find(struct engine *, const struct engine_options *, struct err *);

#endif
