/* The state of a context on the device, and the transfer of requests and results.
 *
 * A request writes its arguments to the arena `args`, copies them to the device at once and queues its kernels on one
 * stream. Results are collected in the arena `results`; wait() copies it back once and delivers the results. No other
 * call waits, and memory is allocated only if a queue is longer than all before it. */
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/weights.h"
#include "kernels/request.h"

/* ---- distributions ----
 *
 * A pool of distributions in device memory, which stores of several models may share. Their streams are not ordered:
 * kernels/backend.h documents between which requests a wait() is needed. */

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

#define ARENA_CHUNKS 16 /* each at least twice as large as the previous one */
#define ARENA_ALIGN  16

struct chunk {
    unsigned char *host; /* pinned */
    unsigned char *device;
    size_t room, used, sent;
};

struct arena {
    struct chunk chunks[ARENA_CHUNKS];
    uint32_t n, at; /* number of chunks; index of the current one */
};

/* ---- stores ---- */

#define HEAD_ROWS 256 /* largest number of rows of logits in one head call */
#define PROMPT_ROWS                                                                                                    \
    256 /* rows of a prompt in one pass: enough for a tile of the widest products on each multiprocessor */

enum delivery_kind { DELIVER_BYTES, DELIVER_ROUTES, DELIVER_EXIT, DELIVER_STAMPS };

struct delivery {
    enum delivery_kind kind;
    void *out; /* result of the caller; STAMPS: none */
    /* In the results' host memory, valid after the copy. EXIT: struct until_state, then predictions (L + 1), of probed
     * layers only. */
    const void *from;
    size_t bytes;   /* of the result, except EXIT */
    uint32_t layer; /* of the predictions that are checked; EXIT: the depth if no layer runs */
    size_t checked; /* first of n_checked predictions in the result, in bytes: their numbers must be finite */
    uint32_t n_checked;
    uint32_t what, rows; /* STAMPS: enum profiled, and rows of the call */
};

struct draft_set {                /* a set of tokens: draft_rows.c */
    uint32_t base, n;             /* tokens by rank; recent tokens */
    token_t recent[DRAFT_RECENT]; /* those, */
    token_t *ids;                 /* (DRAFT_RECENT) and on the device; */
    struct dev_matrix rows;       /* their rows of the head, (DRAFT_RECENT); without strips until the first call */
    struct memory memory;
};

struct kv_cache {
    struct weights *weights;
    struct backend *backend;
    struct kv_cache_desc desc;
    struct request_limits limits;
    struct dev_kv_cache dev;
    uint32_t blocks; /* number of blocks of a forward pass */
    struct memory memory;
    cudaStream_t stream, side; /* side: sets the cancel word while a forward pass runs */
    cudaEvent_t done;
    uint32_t *cancel_words; /* pinned constants 0 and 1 */
    struct arena args, results;
    struct delivery *deliveries;
    size_t n_deliveries, deliveries_room;

    struct pass_step *steps;    /* of the latest forward pass */
    struct head_row *head_rows; /* (dev.head_rows) rows of the head call being prepared */
    int32_t *requests;          /* (dev.head_rows) index of the request whose prediction a row is, or -1 */
    int32_t *final_row;         /* (ring) row of the call with layer L of a ring entry, or -1 */
    int32_t *kept_row;          /* (ring) row of dev.kept with the logits of layer L of a ring entry, or -1 */
    uint32_t n_kept;            /* rows in dev.kept */
    struct draft_set *sets;     /* (desc.sets), from set 1 on; NULL: none */
    token_t *rank;              /* (vocab) desc.rank on the device */
    struct dev_matrix base;     /* the head's first rows by rank, as many strips as the largest base needed */
    struct memory base_memory;
    uint64_t *span; /* time stamps of the kernels being queued, or NULL: profile.h */

    bool queued;      /* work was queued since the last wait() */
    bool stoppable;   /* queued work can be stopped by the cancel flag */
    bool word_raised; /* the cancel word is set on the device */
    bool cancelled, failed;
    struct err err; /* the error if `failed` */
};

/* backend_ops.store, .drop and .wait (kv_cache.c). */
bool cuda_kv_cache_open(struct weights *, const struct kv_cache_desc *, struct kv_cache **, struct err *);
void cuda_kv_cache_close(struct kv_cache *);
bool cuda_kv_cache_wait(struct kv_cache *, struct err *);

/* Estimates the device memory of a context of ctx positions with the engine's default parameters: keys and values, and
 * the rest. Returns false on overflow. */
bool cuda_kv_cache_estimate(const struct backend *, const struct model_desc *, uint32_t ctx, size_t *keys,
                            size_t *work);

/* ---- for requests ---- */

/* Returns whether work that a cancellation stops is to be queued: not if the KV cache is cancelled, failed, or lost. */
bool cuda_kv_cache_begins(struct kv_cache *);
/* Returns whether data may be copied into the KV cache; a cancellation does not prevent it. */
bool cuda_kv_cache_alive(struct kv_cache *);
/* The following functions return false or NULL if the KV cache failed; wait() returns the reason. */
bool cuda_kv_cache_did(struct kv_cache *, cudaError_t, const char *doing);
/* Reserves room for n elements of arguments or results. Returns the device address; *host receives the host address. */
void *cuda_kv_cache_take(struct kv_cache *, struct arena *, size_t n, size_t size, void **host);
/* Reserves room for a result, which wait() delivers; sets d.from. Returns the device address. */
void *cuda_kv_cache_result(struct kv_cache *, struct delivery d);
/* Copies n elements to the arguments; returns NULL if `from` is NULL. */
void *cuda_kv_cache_copy(struct kv_cache *, const void *from, size_t n, size_t size);
/* Copies the arguments since the last call to the device. */
bool cuda_kv_cache_send(struct kv_cache *);
bool cuda_kv_cache_deliver(struct kv_cache *, struct delivery);
