/* A page of memory that the driver and the preloaded library share, so that the counts survive every end of the
 * program. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum fault_kind {
    FAULT_ALLOC,  /* malloc, calloc, realloc, reallocarray, posix_memalign, aligned_alloc, memalign: ENOMEM */
    FAULT_MMAP,   /* ENOMEM */
    FAULT_OPEN,   /* open, openat, fopen, opendir: EMFILE */
    FAULT_READ,   /* read, pread, and reads of streams: EIO */
    FAULT_WRITE,  /* write, pwrite, and writes of streams, including standard output: ENOSPC */
    FAULT_FSYNC,  /* EIO */
    FAULT_RENAME, /* rename, renameat: EACCES */
    FAULT_THREAD, /* pthread_create: EAGAIN */
    FAULT_KINDS
};

/* Once: the nth call alone; on: the nth call and all later ones. Short and interrupted calls are no failures: at the
 * nth call half of the request is read or written, or EINTR is returned. A program must not notice them. */
enum fault_how { HOW_ONCE, HOW_ON, HOW_SHORT, HOW_EINTR, HOWS };

#define FAULT_KIND_NAMES                                                                                               \
    {                                                                                                                  \
        "alloc", "mmap", "open", "read", "write", "fsync", "rename", "thread"                                          \
    }
#define FAULT_HOW_NAMES                                                                                                \
    {                                                                                                                  \
        "once", "on", "short", "eintr"                                                                                 \
    }

struct fault_page {
    _Atomic uint64_t calls[FAULT_KINDS]; /* number of calls so far */
    _Atomic uint64_t hits;               /* number of calls that failed */
};

/* KIND:N:HOW, with N from 1. If it is not set, no call fails, and all calls are counted. */
#define FAULT_VARIABLE "FAULT"
/* The file of the page. If it is not set, the library uses a page of its own. */
#define PAGE_VARIABLE "FAULT_PAGE"
/* If set, the place of the fault is printed to standard error. */
#define WHERE_VARIABLE "FAULT_WHERE"
