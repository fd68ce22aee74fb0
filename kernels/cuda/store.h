/* What a context keeps on the device, and how requests get there and results come back.
 *
 * A request puts its arguments into the arena `args`, copies them over in one go and queues its kernels on one stream.
 * Results gather in the arena `results`; wait() copies that back once and hands them out. No other call waits, and
 * memory is allocated only when a queue is longer than any before it. */
#ifndef KERNELS_CUDA_STORE_H
#define KERNELS_CUDA_STORE_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/weights.h"
#include "kernels/request.h"

/* ---- distributions ----
 *
 * A pool of distributions in device memory, which stores of several models may share. Their streams are not ordered:
 * kernels/backend.h says between which requests a wait() is needed. */

struct dists {
    struct backend *backend;
    struct pool_size size;
    float *p; /* (n, vocab), on the device */
    struct memory memory;
};

/* backend_ops.dists and drop_dists */
bool cuda_dists_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void cuda_dists_close(struct dists *);

/* ---- arenas ----
 *
 * An arena has the same memory on the host and on the device, for arguments or results. Pieces are taken one after the
 * other and given back together, when everything queued is done. The first chunk is made with the store and
 * is large enough for a round; a longer queue gets a further chunk, which stays. */

#define ARENA_CHUNKS 16 /* each twice as large as the one before, at least */
#define ARENA_ALIGN  16

struct chunk {
    unsigned char *host; /* pinned */
    unsigned char *device;
    size_t room, used;
};

struct arena {
    struct backend *backend;
    struct chunk chunks[ARENA_CHUNKS];
    uint32_t n, at; /* chunks there are; the one in use */
};

struct arena_piece {
    unsigned char *host, *device;
    size_t used, bytes;
};

bool arena_open(struct arena *, struct backend *, size_t room, struct err *);
void arena_close(struct arena *);
bool arena_take(struct arena *, size_t bytes, struct arena_piece *, struct err *);
void arena_reset(struct arena *);

/* Returns the bytes that a piece needs for piece_put() of n things of that size. */
static inline size_t
piece_room(size_t n, size_t size)
{
    return (n * size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Returns the device address of room for n things in the piece; *host, which may be NULL, gets the host address. */
void *piece_put(struct arena_piece *, size_t n, size_t size, void **host);
/* Does the same and copies the things in; returns NULL for NULL. */
void *piece_copy(struct arena_piece *, const void *from, size_t n, size_t size);

/* ---- stores ---- */

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

struct prefill;

struct store {
    struct weights *weights;
    struct backend *backend;
    struct store_desc desc;
    struct request_limits limits;
    struct dev_store dev;
    uint32_t blocks;         /* of a forward pass */
    struct prefill *prefill; /* what multiplies chunks of them; NULL: desc.prompt_rows is 0 */
    struct memory memory;
    cudaStream_t stream, side; /* side: for the cancel word, past a forward pass that runs */
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
    bool word_raised; /* the cancel word is set on the device */
    bool cancelled, failed;
    struct err err; /* when failed */
};

/* backend_ops.store, .drop and .wait (store.c). */
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
/* Each of these returns false if the store failed; wait() returns the reason. */
bool cuda_store_did(struct store *, cudaError_t, const char *doing);
bool cuda_store_args(struct store *, size_t bytes, struct arena_piece *);
bool cuda_store_send(struct store *, const struct arena_piece *); /* arguments to the device */
bool cuda_store_results(struct store *, size_t bytes, struct arena_piece *);
bool cuda_store_deliver(struct store *, struct delivery);

#endif
