/* What the engine's files share: engine.c (backend, weights, heads) and engine_files.c (what belongs to the model). */
#ifndef ENGINE_SESSION_ENGINE_INTERNAL_H
#define ENGINE_SESSION_ENGINE_INTERNAL_H

#include "engine/session/engine.h"
#include "engine/synthetic/model_open.h"

/* Opens those that were asked for, and those that stand beside the engine's model, which is open; `options` are the ones
 * that it was opened with. False: one that was asked for can't be used; e->helpers is to be closed all the same. */
bool engine_helpers_open(struct engine *, const struct engine_options *, const struct model_options *options,
                         struct err *);
/* Bytes of weights and contexts of the engine's model and of all that help it. */
uint64_t engine_models_need(const struct engine *, uint32_t ctx, bool quantize);
/* Do they fit into memory, together with the engine's own model and what `others` take? What is asked again when another
 * backend loads them. */
bool engine_helpers_fit(const struct engine *, uint32_t ctx, bool quantize, uint64_t available, uint64_t others,
                        struct err *);
/* Their weights, onto the engine's backend. One that was only found is left out when it can't be loaded. */
bool engine_helpers_load(struct engine *, uint32_t ctx, progress_fn progress, void *user, struct err *);
void engine_helpers_unload(struct engine *);
void engine_helpers_close(struct engine *); /* when they are unloaded */

/* The draft model's acceptance head, which may take `room` bytes. False: the one that was asked for can't be used. */
bool engine_accept_open(struct engine *, const char *given, uint64_t room, struct err *);
uint64_t engine_accept_bytes(const struct engine *); /* what it takes */

/* Reads the one that was asked for, or the one beside the model if that is wanted; the helpers are open. One that was only
 * found and isn't of these models is passed over, and e->note says so. False: one that was asked for can't be used. */
bool engine_profile_find(struct engine *, const struct engine_options *, struct err *);

/* The state that a policy's instances share (policy.shared) stays with the engine from session to session: it depends on model, backend
 * and threads, and on the number of sequences at a time, by which it is kept. */
/* Copies the state that the last session with so many sequences left, if there was one. */
void engine_recall(const struct engine *, struct policy *first, uint32_t sequences);
void engine_keep(struct engine *, const struct policy *first, uint32_t sequences); /* out of memory: it is not kept */
void engine_forget(struct engine *);                                               /* all of it */

#endif
