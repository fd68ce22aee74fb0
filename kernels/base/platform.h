/* Where systems differ: all that is Linux's own and has another name, or none, elsewhere (macOS, the BSDs). What a system
 * lacks is done without, or in a slower way; nobody else asks which system it is, but for kernels that ask the processor. */
#ifndef KERNELS_BASE_PLATFORM_H
#define KERNELS_BASE_PLATFORM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* The path of the running program, links followed; false: the system doesn't tell. */
bool platform_program(char *out, size_t n);
/* An open file without a name, empty, closed in programs that this one starts; -1: there is none. */
int platform_nameless_file(void);
/* dup2() whose copy is closed in programs that this one starts. */
int platform_dup_onto(int from, int onto);
/* The mapping is large and will be read over and over: a wish for huge pages. */
void platform_wish_huge(void *at, size_t bytes);
/* When a file was last written. */
struct timespec platform_modified(const struct stat *);
/* Condition variables whose waits end by the monotonic clock: setting the system's clock changes no deadline.
 * pthread_cond_destroy() closes one. */
void platform_condition_open(pthread_cond_t *);
/* Waits for a signal, until clock_us() is until_us (UINT64_MAX: without end). Returns false if that time has come. As with every
 * condition variable, the caller checks its condition again. */
bool platform_condition_wait(pthread_cond_t *, pthread_mutex_t *, uint64_t until_us);
/* Sleeps while the word has this value, or shorter; and wakes one thread that sleeps so. */
void platform_sleep_on(atomic_uint *word, unsigned value);
void platform_wake(atomic_uint *word);
/* Processors that this process may run on. */
int platform_usable_processors(void);
/* How long the calling thread has run on a processor, ns. */
uint64_t platform_thread_ns(void);
/* Bytes of memory that may still be taken, where the system says it in a call of its own; UINT64_MAX: it doesn't. */
uint64_t platform_memory_available(void);

/* ---- for people ---- */

struct platform_processors {
    int online;   /* that the system has */
    int usable;   /* … and this process may run on */
    int cores;    /* physical ones; 0: nobody says */
    double quota; /* processors' time that its control groups allow; 0: no bound */
};
struct platform_processors platform_processors(void);
/* The processor's name, and those of its instruction sets that vectors of kernels are made for ("avx2 fma …"); either may
 * be "". */
void platform_processor(char *model, size_t n_model, char *features, size_t n_features);
/* The first word of a small file; of "a [b] c" the one in brackets. False: there is none. */
bool platform_word(const char *path, char *out, size_t n);
bool platform_bracketed(const char *path, char *out, size_t n);

#endif
