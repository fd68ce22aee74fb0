#include "kernels/cuda/arena.h"

#include <string.h>

static bool
add_chunk(struct arena *a, size_t room, struct err *err)
{
    if (a->n == ARENA_CHUNKS)
        return err_set(err, ERR_WORK, "too many requests were queued for GPU %d at once", a->backend->device);
    struct chunk *c = &a->chunks[a->n];
    void *host = NULL, *device = NULL;
    if (!cuda_did(a->backend, cudaHostAlloc(&host, room, cudaHostAllocDefault), "pinning memory for requests", err))
        return false;
    if (!cuda_did(a->backend, cudaMalloc(&device, room), "making room for requests", err)) {
        (void)cudaFreeHost(host);
        return false;
    }
    *c = (struct chunk){.host = host, .device = device, .room = room};
    a->n++;
    /* Between results there are gaps, and some are written in part: they come back all the same, and are to be something. */
    return cuda_did(a->backend, cudaMemset(device, 0, room), "making room for requests", err) &&
           cuda_did(a->backend, cudaStreamSynchronize(NULL), "making room for requests", err);
}

bool
arena_open(struct arena *a, struct backend *b, size_t room, struct err *err)
{
    *a = (struct arena){.backend = b};
    return add_chunk(a, room, err);
}

void
arena_close(struct arena *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        (void)cudaFreeHost(a->chunks[i].host);
        (void)cudaFree(a->chunks[i].device);
    }
    *a = (struct arena){0};
}

bool
arena_take(struct arena *a, size_t bytes, struct arena_piece *p, struct err *err)
{
    bytes = piece_room(bytes, 1);
    while (a->chunks[a->at].room - a->chunks[a->at].used < bytes) {
        if (a->at + 1 == a->n) {
            const size_t twice = 2 * a->chunks[a->at].room;
            if (!add_chunk(a, twice > bytes ? twice : bytes, err))
                return false;
        }
        a->at++;
    }
    struct chunk *c = &a->chunks[a->at];
    *p = (struct arena_piece){.host = c->host + c->used, .device = c->device + c->used, .bytes = bytes};
    c->used += bytes;
    return true;
}

void
arena_reset(struct arena *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->chunks[i].used = 0;
    a->at = 0;
}

void *
piece_put(struct arena_piece *p, size_t n, size_t size, void **host)
{
    void *device = p->device + p->used;
    if (host != NULL)
        *host = p->host + p->used;
    p->used += piece_room(n, size);
    return device;
}

void *
piece_copy(struct arena_piece *p, const void *from, size_t n, size_t size)
{
    void *host, *device;
    if (from == NULL)
        return NULL;
    device = piece_put(p, n, size, &host);
    if (n > 0)
        memcpy(host, from, n * size);
    return device;
}
