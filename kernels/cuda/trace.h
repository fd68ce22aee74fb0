/* Where a device's time goes: SPECSCOPE_CUDA_TRACE=FILE has the kernels stamp their phases with the global timer.
 *
 * In a forward pass block 0 stamps when it leaves a barrier, which is when all blocks may leave it, so the phases add up to the
 * whole pass. Each block stamps when it arrives at the barrier. A phase is work until the mean arrival, waiting for slower blocks until
 * the last one, and barrier after it. Other requests are stamped before their first kernel and after their last one, by kernels of
 * one thread. Stamps travel with the results. Without the variable there are none, and a forward pass checks twice a phase whether
 * there are any.
 *
 * The file is CSV, a line a phase or a request, times in microseconds:
 *     call,what,rows,layer,phase,start_us,us,first_us,mean_us,last_us
 * `start_us` counts from the first stamp; first, mean and last are of the blocks' coming to the barrier, from the phase's start.
 * tests/cuda/phases.sh makes tables of it. */
#ifndef KERNELS_CUDA_TRACE_H
#define KERNELS_CUDA_TRACE_H

#include "kernels/cuda/store.h"

enum traced { /* requests, after the steps of a forward pass */
              TRACED_EMBED,
              TRACED_HEAD,
              TRACED_DISTS,
              TRACED_DRAW,
              TRACED_OVERLAP,
              TRACED_VERIFY,
              TRACED_PREDICTIONS, /* of the layers that a forward pass probed */
              TRACED_PLAIN,       /* of a prompt by a library: its rows, and the weights', made plain, */
              TRACED_LIBRARY,     /* its products, */
              TRACED_EPILOGUE,    /* what becomes of them, */
              TRACED_ATTEND,      /* its attention */
              TRACED_NORMS,       /* and its norms */
              TRACED
};

/* False: the file can't be written. *out is NULL, and all the rest does nothing, where the variable is not set. */
bool trace_open(struct trace **out, struct err *);
void trace_close(struct trace *);

/* Takes room for the stamps of a forward pass through so many layers, to be delivered by wait(): what forward_args.stamps is; NULL:
 * none. */
uint64_t *trace_forward(struct store *, uint32_t rows, uint32_t layers);
/* Around the kernels of a request: what begin() returns is for end(). */
uint64_t *trace_begin(struct store *, enum traced, uint32_t rows);
void trace_end(struct store *, uint64_t *);
/* wait() hands stamps over. */
void trace_deliver(struct store *, const struct delivery *);

/* backend_ops.describe_time */
bool cuda_describe_time(struct store *, char *text, size_t room);

#endif
