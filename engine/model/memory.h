/* Measures the available memory and estimates whether a model fits into it. */
#pragma once

#include "engine/model/model.h"

/* Returns the bytes that the process can still allocate: the kernel's MemAvailable, or what the tightest of its control
 * groups (version 1 or 2) leaves, with reclaimable page cache counted as free. UINT64_MAX if no source has a value. */
uint64_t memory_available(void);
/* Reads /proc and /sys under `root` ("" for the machine's own) and returns the available bytes. */
uint64_t memory_available_under(const char *root);

/* Formats `bytes` into `out`, for example "13.4 MiB", and returns `out`. */
const char *memory_text(char out[24], uint64_t bytes);

/* Returns the bytes of the weights (quantised first if `quantize`) and of the KV cache for `ctx` positions. */
uint64_t memory_need(const struct model *, uint32_t ctx, bool exact, bool quantize);
/* Returns the bytes that a run of one sequence uses with a full context: memory_need() without quantising, the hidden
 * states, the vocabulary's tables and the program itself. */
uint64_t memory_of_run(const struct model *, uint32_t ctx, bool exact);
/* Returns whether the weights and the KV cache fit into `available` bytes less the `taken` bytes of other models. If
 * not, sets *err (ERR_WORK) with the sizes. */
bool memory_fits(const struct model *, uint32_t ctx, bool exact, bool quantize, uint64_t available, uint64_t taken,
                 struct err *);
