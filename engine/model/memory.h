/* How much memory there is, and whether a model fits into it. */
#ifndef ENGINE_MODEL_MEMORY_H
#define ENGINE_MODEL_MEMORY_H

#include "engine/model/model.h"

/* Bytes that a program may still take before something has to go: the kernel's MemAvailable, or what the tightest of its
 * control groups (version 1 or 2) leaves, page cache that can be dropped counted as free. UINT64_MAX: nothing says. */
uint64_t memory_available(void);
/* The same with /proc and /sys looked for under `root` ("" is the machine's own). */
uint64_t memory_available_under(const char *root);

/* "13.4 MiB" */
const char *memory_text(char out[24], uint64_t bytes);

/* What weights (to be quantised or not) and a context of `ctx` positions take. */
uint64_t memory_need(const struct model *, uint32_t ctx, bool exact, bool quantize);
/* All that a run of one sequence holds once its context is full: that, hidden states, what the vocabulary takes, and the
 * program itself. */
uint64_t memory_of_run(const struct model *, uint32_t ctx, bool exact);
/* Whether they fit into what is left of `available` bytes when other models take `taken`; if not, *err says the numbers. */
bool memory_fits(const struct model *, uint32_t ctx, bool exact, bool quantize, uint64_t available, uint64_t taken,
                 struct err *);

#endif
