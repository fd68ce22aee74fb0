/* An allocator for the memory of one owner (weights, a KV cache, a training). Pieces are zeroed, aligned to 64 bytes,
 * and freed all at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BLOCK_ALIGN  64
#define HUGE_PAGE    ((size_t)2 << 20)
#define REGION_BYTES (HUGE_PAGE * 32)

#if defined(__SANITIZE_ADDRESS__) /* AddressSanitizer detects overruns only if each piece has its own allocation */
#define BLOCKS_SHARE false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCKS_SHARE false
#endif
#endif
#ifndef BLOCKS_SHARE
#define BLOCKS_SHARE true
#endif

struct blocks {
    struct block *last;
    size_t bytes;  /* total of all pieces */
    bool huge;     /* set before the first piece, for large memory that is read many times: pieces then share regions */
                   /* in huge pages, which avoids page table misses */
    bool counting; /* set before the first piece: pieces are NULL, and only their bytes are counted */
    bool starved;  /* a piece could not be taken */
    size_t left;   /* unused bytes at the end of the last region */
};

/* Returns n zeroed elements of `size` bytes, or NULL if there is no memory, which sets `starved`. Large pieces come
 * from calloc, which uses the system's zero pages: a KV cache costs no memory until it is written. */
void *blocks_take(struct blocks *, size_t n, size_t size);
void blocks_free(struct blocks *);
