/* What a context keeps on the device, and the way of requests there and of results back.
 *
 * A request puts its arguments into the arena `args`, copies them over in one go and queues its kernels on one stream.
 * Results gather in the arena `results`; wait() copies that back once and hands them out. Nothing else waits, and
 * nothing is allocated in between unless a queue is longer than any before it. */
#ifndef KERNELS_CUDA_STORE_H
#define KERNELS_CUDA_STORE_H

#include "kernels/cuda/arena.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/dists.h"
#include "kernels/cuda/weights.h"
#include "kernels/request.h"

#define HEAD_ROWS 256 /* rows of logits that a head call works on at once, at most */

enum delivery_kind {
    DELIVER_BYTES,
    DELIVER_ROUTES,
    DELIVER_GUESS,
    DELIVER_VERDICT,
    DELIVER_EXIT,
    DELIVER_PHASES,
    DELIVER_SPAN
};

struct delivery {
    enum delivery_kind kind;
    void *out;                      /* the caller's */
    const void *from;               /* in the results' host memory, valid after the copy; EXIT: struct until_state */
    size_t bytes;                   /* BYTES, ROUTES */
    uint32_t layer;                 /* GUESS: whose; VERDICT, EXIT: L */
    const struct guess *last, *all; /* EXIT: of the last probe; (L + 1) or NULL */
    struct guess *probed;           /* EXIT: the caller's, where `all` goes */
    uint64_t judged;                /* VERDICT: bit i: node i has a row, so a guess */
    uint32_t what, rows;            /* SPAN: enum traced; that and PHASES: rows of the call */
};

struct prompts;

struct store {
    struct weights *weights;
    struct backend *backend;
    struct store_desc desc;
    struct request_limits limits;
    struct dev_store dev;
    uint32_t blocks;         /* of a sweep */
    struct prompts *prompts; /* what multiplies chunks of them; NULL: desc.prompt_rows is 0 */
    struct memory memory;
    cudaStream_t stream, side; /* side: for the cancel word, past a sweep that runs */
    cudaEvent_t done;
    uint32_t *cancel_words; /* pinned: 0, 1 */
    struct arena args, results;
    struct delivery *deliveries;
    size_t n_deliveries, deliveries_room;

    struct head_row *head_rows; /* (dev.head_rows) a head call being put together */
    int32_t *requests;          /* (dev.head_rows) whose guess a row is, or -1 */
    int32_t *final_row;         /* (ring) the row of the call with layer L of a ring entry, or -1 */

    bool queued;      /* something is on the stream since the last wait() */
    bool stoppable;   /* something that the cancel flag ends */
    bool word_raised; /* the device was told to stop */
    bool cancelled, failed;
    struct err err; /* when failed */
};

/* backend_ops.store, .drop and .wait (wait.c). */
bool cuda_store_open(struct weights *, const struct store_desc *, struct store **, struct err *);
void cuda_store_close(struct store *);
bool cuda_store_wait(struct store *, struct err *);

/* Device memory for a context of ctx positions as the engine would open it: keys and values, and all else. False: more
 * than can be counted. */
bool cuda_store_estimate(const struct backend *, const struct model_desc *, uint32_t ctx, size_t *keys, size_t *work);

/* ---- for requests ---- */

/* Is the work that comes now to be dropped: cancelled, failed, no device? */
bool cuda_store_stopped(struct store *);
/* May data be moved into the store, which a cancel does not stop? */
bool cuda_store_alive(struct store *);
/* Each of these returns false when the store has failed by it; wait() will say why. */
bool cuda_store_did(struct store *, cudaError_t, const char *doing);
bool cuda_store_args(struct store *, size_t bytes, struct arena_piece *);
bool cuda_store_send(struct store *, const struct arena_piece *); /* arguments to the device */
bool cuda_store_results(struct store *, size_t bytes, struct arena_piece *);
bool cuda_store_deliver(struct store *, struct delivery);

#endif
