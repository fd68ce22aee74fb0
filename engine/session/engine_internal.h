/* Functions that the engine's files share: engine.c (backend, weights, heads) and engine_files.c (files of the
 * model). */
#pragma once

#include "engine/model/model_open.h"
#include "engine/session/engine.h"

/* Leaves out a file that was found, but not given, and cannot be used: notes why, unless there is a note. Returns
 * false, with the reason in *err, if memory ran out or the user cancelled. */
bool engine_leave_out(struct engine *, const char *what, const struct err *why, struct err *);

/* Opens the auxiliary models that were given or found. The engine's model is open, with `options`. False: one that was
 * given cannot be used; the caller closes the auxiliary models in any case. */
bool engine_aux_open(struct engine *, const struct engine_options *, const struct model_options *options, struct err *);
/* Bytes of memory for models; UINT64_MAX on a GPU, which checks its own memory. */
uint64_t engine_available(const struct engine *);
/* Bytes of weights and contexts of all models. */
uint64_t engine_models_need(const struct engine *, uint32_t ctx, bool quantize);
/* Whether the auxiliary models fit into memory, together with the engine's model and `others` bytes. Asked again if
 * another backend loads them. */
bool engine_aux_fit(const struct engine *, uint32_t ctx, bool quantize, uint64_t available, uint64_t others,
                    struct err *);
/* Loads their weights onto the engine's backend; leaves out a model that was only found and cannot be loaded. */
bool engine_aux_load(struct engine *, uint32_t ctx, progress_fn progress, void *user, struct err *);
void engine_aux_unload(struct engine *);
void engine_aux_close(struct engine *); /* after unloading */

/* Opens the draft model's acceptance head, of at most `room` bytes. False: the one that was given cannot be used. */
bool engine_accept_open(struct engine *, const char *given, uint64_t room, struct err *);
uint64_t engine_accept_bytes(const struct engine *); /* of the acceptance head */

/* Reads the verification profile that was given or, if wanted, found; the auxiliary models are open. A profile that was
 * only found and is of other models is ignored with a note. False: the one that was given cannot be used. */
bool engine_profile_find(struct engine *, const struct engine_options *, struct err *);

/* The state that a policy's instances share (policy.shared) stays with the engine from session to session: it depends
 * on model, backend and threads, and on the number of sequences at a time, by which it is kept. */
/* Copies the state that the last session with so many sequences left, if there was one. */
void engine_recall(const struct engine *, struct policy *first, uint32_t sequences);
void engine_keep(struct engine *, const struct policy *first, uint32_t sequences); /* out of memory: it is not kept */
void engine_forget(struct engine *);                                               /* all of it */
