/* System-dependent functions: features of Linux that differ or are missing on other systems (macOS, the BSDs). A
 * missing feature is omitted or replaced by a slower way. Only this module tests for the operating system, except
 * kernels that query the processor. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* Returns the path of the running program, with links resolved; false: the system does not provide it. */
bool platform_program(char *out, size_t n);
/* Opens an empty file without a name, closed in child programs; returns -1 on failure. */
int platform_nameless_file(void);
/* dup2() with the copy closed in child programs. */
int platform_dup_onto(int from, int onto);
/* pipe() with both ends closed in child programs. Returns false on failure. */
bool platform_pipe(int ends[2]);
/* Three functions that may be called between fork() and exec(). Closes all file descriptors from this one on. */
void platform_close_from(int first);
/* Makes this process the parent of its children's children that lose theirs, where the system can. */
void platform_adopt_orphans(void);
/* Sends SIGKILL to this process's children, where the system lists them. */
void platform_kill_children(void);
/* Requests huge pages for a large mapping that is read many times. */
void platform_wish_huge(void *at, size_t bytes);
/* Returns the time of a file's last modification. */
struct timespec platform_modified(const struct stat *);
/* Condition variables with deadlines on the monotonic clock, so that setting the system's clock changes no deadline.
 * pthread_cond_destroy() closes one. */
void platform_condition_open(pthread_cond_t *);
/* Waits for a signal until clock_us() is until_us (UINT64_MAX: no limit). Returns false if the deadline has passed. As
 * with every condition variable, the caller must check its condition again. */
bool platform_condition_wait(pthread_cond_t *, pthread_mutex_t *, uint64_t until_us);
/* platform_sleep_on() sleeps while the word has this value, and may return early. platform_wake() wakes one sleeping
 * thread. */
void platform_sleep_on(atomic_uint *word, unsigned value);
void platform_wake(atomic_uint *word);
/* Returns the number of processors that this process may run on. */
int platform_usable_processors(void);
/* Returns the time that the calling thread has run on a processor, ns. */
uint64_t platform_thread_ns(void);
/* Returns the bytes of available memory, if the system has a call for it; UINT64_MAX: unknown. */
uint64_t platform_memory_available(void);

/* ---- for people ---- */

struct platform_processors {
    int online;   /* processors of the system */
    int usable;   /* processors that this process may run on */
    int cores;    /* physical cores; 0: unknown */
    double quota; /* processor time that control groups allow, in processors; 0: unlimited */
};
struct platform_processors platform_processors(void);
/* Returns the processor's name and the instruction sets that the kernels use ("avx2 fma …"); either may be "". */
void platform_processor(char *model, size_t n_model, char *features, size_t n_features);
/* Reads the bracketed word of a small file, b of "a [b] c". Returns false if there is none. */
bool platform_bracketed(const char *path, char *out, size_t n);
