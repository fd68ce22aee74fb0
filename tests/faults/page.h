/* What the driver and the preloaded library say to each other: a page of memory that both map, so that what was counted
 * is known however the program ends. */
#ifndef TESTS_FAULTS_PAGE_H
#define TESTS_FAULTS_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum fault_kind {
    FAULT_ALLOC,  /* malloc, calloc, realloc, reallocarray, posix_memalign, aligned_alloc, memalign: ENOMEM */
    FAULT_MMAP,   /* ENOMEM */
    FAULT_OPEN,   /* open, openat, fopen, opendir: EMFILE */
    FAULT_READ,   /* read, pread, and what streams read: EIO */
    FAULT_WRITE,  /* write, pwrite, and what streams write, standard output among them: ENOSPC */
    FAULT_FSYNC,  /* EIO */
    FAULT_RENAME, /* rename, renameat: EACCES */
    FAULT_THREAD, /* pthread_create: EAGAIN */
    FAULT_KINDS
};

/* Once is the nth call alone; on, it and all behind it. Short and interrupted calls are no failures: half of what was asked
 * for is read or written, or EINTR comes, at the nth call; a program must not notice. */
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
    _Atomic uint64_t calls[FAULT_KINDS]; /* so far */
    _Atomic uint64_t hits;               /* faults that were made */
};

/* The fault: KIND:N:HOW, N from 1; none: nothing fails, all is counted. */
#define FAULT_VARIABLE "FAULT"
/* The file of the page; none: a page of one's own. */
#define PAGE_VARIABLE "FAULT_PAGE"
/* Set: where the fault came goes to standard error. */
#define WHERE_VARIABLE "FAULT_WHERE"

#endif
