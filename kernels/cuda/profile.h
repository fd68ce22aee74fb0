/* Profiling: with SPECSCOPE_CUDA_PROFILE=FILE the kernels record the times of their phases with the global timer.
 *
 * In a forward pass block 0 records the time when it leaves a barrier, which is when all blocks may leave it, so the
 * phases add up to the whole pass. Each block records the time when it arrives at the barrier. A phase consists of work
 * until the mean arrival, waiting for slower blocks until the last arrival, and the barrier itself. Other requests are
 * stamped before their first and after their last kernel, by kernels of one thread. Time stamps are copied back with
 * the results. Without the variable nothing is recorded, and a forward pass checks for it twice per phase.
 *
 * The file is CSV, one line per phase or request, times in microseconds:
 *     call,what,rows,layer,phase,start_us,us,first_us,mean_us,last_us
 * `start_us` counts from the first time stamp. first, mean and last are the blocks' arrivals at the barrier, relative
 * to the start of the phase. tests/cuda/phases.sh prints tables from it. */
#pragma once

#include "kernels/cuda/kv_cache.h"

enum profiled { /* requests; the values below STEPS are the steps of a forward pass */
                PROFILED_EMBED = STEPS,
                PROFILED_HEAD,
                PROFILED_DISTS,
                PROFILED_DRAW,
                PROFILED_OVERLAP,
                PROFILED_VERIFY,
                PROFILED_PREDICTIONS, /* for the layers that a forward pass probed */
                PROFILED
};

extern const char *const profiled_names[PROFILED]; /* of the steps of a layer, then of requests */

/* Returns false if the file cannot be written. If the variable is not set, *out is NULL and all other functions do
 * nothing. */
bool profile_open(struct profile **out, struct err *);
void profile_close(struct profile *);

/* Reserves room for the time stamps of a forward pass through so many layers, delivered by wait(). Returns the value of
 * forward_args.stamps; NULL: no profile. */
uint64_t *profile_forward(struct kv_cache *, uint32_t rows, uint32_t layers);
/* Queues the kernels of a request with `launch`, between two time stamps; returns false if the KV cache failed. */
#define profile_run(s, what, rows, launch, doing)                                                                      \
    (profile_begin(s, what, rows), profile_end(s, cuda_kv_cache_did(s, launch, doing)))
void profile_begin(struct kv_cache *, enum profiled, uint32_t rows);
bool profile_end(struct kv_cache *, bool queued);
/* Called by wait() to deliver time stamps; `what` is START for those of a forward pass. */
void profile_deliver(struct kv_cache *, const struct delivery *);

/* backend_ops.describe_time */
bool cuda_describe_time(struct kv_cache *, char *text, size_t room);
