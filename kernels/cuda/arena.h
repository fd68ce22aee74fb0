/* Memory that lies on both sides: arguments on their way to the device, results on their way back. Pieces are taken one
 * after the other and all given back at once, when everything queued is done. The first chunk is made with the store and
 * holds a round's worth; a queue that is longer than that gets a further chunk, which stays. */
#ifndef KERNELS_CUDA_ARENA_H
#define KERNELS_CUDA_ARENA_H

#include "kernels/cuda/device.h"

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

/* What a piece must hold to take n things of that size with piece_put(). */
static inline size_t
piece_room(size_t n, size_t size)
{
    return (n * size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Room for n things in the piece: its device address; *host, which may be NULL, gets the other one. */
void *piece_put(struct arena_piece *, size_t n, size_t size, void **host);
/* The same, with the things copied in; NULL for NULL. */
void *piece_copy(struct arena_piece *, const void *from, size_t n, size_t size);

#endif
