#include "base/blocks.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/platform.h"

struct block { /* the piece starts at the next aligned address, or is in the region */
    struct block *before;
    void *region; /* reserved memory, without pages until it is written; NULL: none */
    size_t bytes; /* size of the region */
};

/* Reserves a region for a piece of so many bytes: REGION_BYTES if available, else the piece's size. Pages are allocated
 * when first written. */
static bool
reserve(struct blocks *b, size_t bytes)
{
    const size_t least = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    size_t size = least > REGION_BYTES ? least : REGION_BYTES;
    struct block *block = malloc(sizeof *block);
    if (block == NULL)
        return false;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED && size > least)
        at = mmap(NULL, size = least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        free(block);
        return false;
    }
    platform_wish_huge(at, size);
    *block = (struct block){.before = b->last, .region = at, .bytes = size};
    b->last = block;
    b->left = size;
    return true;
}

static void *
piece_of(struct blocks *b, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    if (b->counting) {
        b->bytes += bytes;
        return NULL;
    }
    if (b->huge && BLOCKS_SHARE) {
        const size_t whole = (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
        if ((b->last == NULL || whole > b->left) && !reserve(b, whole))
            return NULL;
        b->bytes += bytes;
        char *piece = (char *)b->last->region + (b->last->bytes - b->left);
        b->left -= whole;
        return piece;
    }
    struct block *block = calloc(1, sizeof *block + bytes + BLOCK_ALIGN);
    if (block == NULL)
        return NULL;
    block->before = b->last;
    b->last = block;
    b->bytes += bytes;
    uintptr_t past = (uintptr_t)(block + 1);
    return (char *)(block + 1) + (BLOCK_ALIGN - past % BLOCK_ALIGN) % BLOCK_ALIGN;
}

void *
blocks_take(struct blocks *b, size_t n, size_t size)
{
    void *piece = piece_of(b, n, size);
    b->starved = b->starved || piece == NULL;
    return piece;
}

void
blocks_free(struct blocks *b)
{
    while (b->last != NULL) {
        struct block *before = b->last->before;
        if (b->last->region != NULL)
            munmap(b->last->region, b->last->bytes);
        free(b->last);
        b->last = before;
    }
    b->bytes = 0;
    b->left = 0;
    b->starved = false;
}
