#include "kernels/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>
#include <mach/mach.h>
#endif

/* ---- the program ---- */

bool
platform_program(char *out, size_t n)
{
#if defined(__APPLE__)
    char as_started[PATH_MAX], whole[PATH_MAX];
    uint32_t room = sizeof as_started;
    return _NSGetExecutablePath(as_started, &room) == 0 && realpath(as_started, whole) != NULL &&
           (size_t)snprintf(out, n, "%s", whole) < n;
#else
    static const char *const names[] = {"/proc/self/exe", "/proc/curproc/file", "/proc/curproc/exe"}; /* Linux, BSDs */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const ssize_t len = readlink(names[i], out, n - 1);
        if (len > 0 && (size_t)len < n - 1) {
            out[len] = '\0';
            return true;
        }
    }
    return false;
#endif
}

/* ---- files ---- */

int
platform_nameless_file(void)
{
#if defined(MFD_CLOEXEC)
    return memfd_create("specscope", MFD_CLOEXEC);
#else
    const char *folder = getenv("TMPDIR");
    char name[PATH_MAX];
    if ((size_t)snprintf(name, sizeof name, "%s/specscope.XXXXXX", folder != NULL ? folder : "/tmp") >= sizeof name)
        return -1;
    const int fd = mkstemp(name);
    if (fd >= 0) {
        unlink(name);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return fd;
#endif
}

int
platform_dup_onto(int from, int onto)
{
#if defined(__linux__)
    return dup3(from, onto, O_CLOEXEC);
#else
    const int fd = dup2(from, onto);
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
#endif
}

struct timespec
platform_modified(const struct stat *about)
{
#if defined(__APPLE__)
    return about->st_mtimespec;
#else
    return about->st_mtim;
#endif
}

/* ---- memory ---- */

void
platform_wish_huge(void *at, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    madvise(at, bytes, MADV_HUGEPAGE);
#else
    (void)at, (void)bytes;
#endif
}

uint64_t
platform_thread_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
platform_memory_available(void)
{
#if defined(__APPLE__)
    vm_statistics64_data_t pages;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &n) == KERN_SUCCESS)
        return ((uint64_t)pages.free_count + pages.inactive_count + pages.purgeable_count) *
               (uint64_t)sysconf(_SC_PAGESIZE);
#endif
    return UINT64_MAX; /* Linux has it in files */
}

/* ---- waiting ---- */

void
platform_condition_open(pthread_cond_t *condition)
{
#if defined(__APPLE__) /* knows waits of a given length instead */
    pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
#endif
}

int
platform_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_us)
{
#if defined(__APPLE__)
    const uint64_t now = clock_us(), us = until_us > now ? until_us - now : 0;
    const struct timespec length = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    return pthread_cond_timedwait_relative_np(condition, lock, &length);
#else
    const struct timespec until = {(time_t)(until_us / 1000000), (long)(until_us % 1000000 * 1000)};
    return pthread_cond_timedwait(condition, lock, &until);
#endif
}

#if defined(__linux__)
void
platform_sleep_on(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void
platform_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#else /* all words have one condition */
static pthread_mutex_t words = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t word_changed = PTHREAD_COND_INITIALIZER;

void
platform_sleep_on(atomic_uint *word, unsigned value)
{
    pthread_mutex_lock(&words);
    if (atomic_load(word) == value)
        pthread_cond_wait(&word_changed, &words);
    pthread_mutex_unlock(&words);
}

void
platform_wake(atomic_uint *word)
{
    (void)word;
    pthread_mutex_lock(&words);
    pthread_cond_broadcast(&word_changed);
    pthread_mutex_unlock(&words);
}
#endif
