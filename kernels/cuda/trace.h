/* Profiling: with SPECSCOPE_CUDA_TRACE=FILE the kernels record the times of their phases with the global timer.
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
#ifndef KERNELS_CUDA_TRACE_H
#define KERNELS_CUDA_TRACE_H

#include "kernels/cuda/kv_cache.h"

enum traced { /* requests; the values below STEPS are the steps of a forward pass */
              TRACED_EMBED = STEPS,
              TRACED_HEAD,
              TRACED_DISTS,
              TRACED_DRAW,
              TRACED_OVERLAP,
              TRACED_VERIFY,
              TRACED_PREDICTIONS, /* for the layers that a forward pass probed */
              TRACED
};

extern const char *const traced_names[TRACED]; /* of the steps of a layer, then of requests */

/* Returns false if the file cannot be written. If the variable is not set, *out is NULL and all other functions do
 * nothing. */
bool trace_open(struct trace **out, struct err *);
void trace_close(struct trace *);

/* Reserves room for the time stamps of a forward pass through so many layers, delivered by wait(). Returns the value of
 * forward_args.stamps; NULL: no trace. */
uint64_t *trace_forward(struct kv_cache *, uint32_t rows, uint32_t layers);
/* Queues the kernels of a request with `launch`, between two time stamps; returns false if the KV cache failed. */
#define trace_run(s, what, rows, launch, doing)                                                                        \
    (trace_begin(s, what, rows), trace_end(s, cuda_kv_cache_did(s, launch, doing)))
void trace_begin(struct kv_cache *, enum traced, uint32_t rows);
bool trace_end(struct kv_cache *, bool queued);
/* Called by wait() to deliver time stamps; `what` is START for those of a forward pass. */
void trace_deliver(struct kv_cache *, const struct delivery *);

/* backend_ops.describe_time */
bool cuda_describe_time(struct kv_cache *, char *text, size_t room);

#endif
