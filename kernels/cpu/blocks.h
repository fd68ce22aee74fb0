/* The memory of one owner (weights, a store): taken in pieces, zeroed, aligned to 64 bytes, freed all at once. */
#ifndef KERNELS_CPU_BLOCKS_H
#define KERNELS_CPU_BLOCKS_H

#include <stdint.h>
#include <stdlib.h>

#define BLOCK_ALIGN 64

struct blocks {
    struct block *last;
    size_t bytes; /* taken so far */
};

struct block { /* what is handed out starts at the next aligned address */
    struct block *before;
};

/* n elements of `size` bytes; NULL when there is no memory. calloc leaves large pieces to the system's zero pages, so
 * a KV store costs nothing until it is used. */
static inline void *
blocks_take(struct blocks *b, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    struct block *block = calloc(1, sizeof *block + bytes + BLOCK_ALIGN);
    if (block == NULL)
        return NULL;
    block->before = b->last;
    b->last = block;
    b->bytes += bytes;
    uintptr_t past = (uintptr_t)(block + 1);
    return (char *)(block + 1) + (BLOCK_ALIGN - past % BLOCK_ALIGN) % BLOCK_ALIGN;
}

static inline void
blocks_free(struct blocks *b)
{
    while (b->last != NULL) {
        struct block *before = b->last->before;
        free(b->last);
        b->last = before;
    }
    b->bytes = 0;
}

#endif
