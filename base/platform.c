#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/prctl.h>
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

bool
platform_pipe(int ends[2])
{
#if defined(__linux__)
    return pipe2(ends, O_CLOEXEC) == 0;
#else
    const bool ok = pipe(ends) == 0;
    for (int i = 0; ok && i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return ok;
#endif
}

void
platform_close_from(int first)
{
#if defined(SYS_close_range)
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0)
        return;
#endif
    for (int fd = first; fd < 65536; fd++) /* a limit of the process may be a thousand times higher */
        close(fd);
}

/* ---- processes ---- */

void
platform_adopt_orphans(void)
{
#if defined(PR_SET_CHILD_SUBREAPER)
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
}

void
platform_kill_children(void)
{
#if defined(__linux__)
    char list[4096];
    const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, list, sizeof list) : 0;
    pid_t child = 0;
    for (ssize_t i = 0; i < n; i++) {
        if (list[i] != ' ')
            child = child * 10 + (list[i] - '0');
        else if (child > 0) {
            kill(child, SIGKILL);
            child = 0;
        }
    }
    if (fd >= 0)
        close(fd);
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
    return UINT64_MAX; /* Linux provides this in files */
}

/* ---- waiting ---- */

void
platform_condition_open(pthread_cond_t *condition)
{
#if defined(__APPLE__) /* this API takes durations instead of deadlines */
    pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
#endif
}

bool
platform_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_us)
{
    if (until_us == UINT64_MAX)
        return pthread_cond_wait(condition, lock) == 0;
#if defined(__APPLE__)
    const uint64_t now = clock_us(), us = until_us > now ? until_us - now : 0;
    const struct timespec length = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    return pthread_cond_timedwait_relative_np(condition, lock, &length) != ETIMEDOUT;
#else
    const struct timespec until = {(time_t)(until_us / 1000000), (long)(until_us % 1000000 * 1000)};
    return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
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
#else /* all words share one condition variable */
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

/* Processor information from Linux's /proc and /sys; little of it is available on other systems. */

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

static bool
first_line(const char *path, char *out, size_t n)
{
    FILE *f = fopen(path, "re");
    const bool ok = f != NULL && fgets(out, (int)n, f) != NULL;
    if (f != NULL)
        fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = '\0';
    return ok;
}

bool
platform_bracketed(const char *path, char *out, size_t n)
{
    char line[256];
    if (!first_line(path, line, sizeof line))
        return false;
    const char *open = strchr(line, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    if (close == NULL)
        return false;
    snprintf(out, n, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

/* ---- processors ---- */

/* A core is identified by the first of its threads. */
static int
count_cores(int online)
{
    int cores = 0;
    for (int i = 0; i < online; i++) {
        char path[96], list[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        if (!first_line(path, list, sizeof list))
            return 0;
        cores += strtol(list, NULL, 10) == i;
    }
    return cores;
}

/* Reads cpu.max of cgroup version 2 ("max 100000", "150000 100000") for every group from this process's own to the
 * root; returns the smallest quota. */
static double
group_quota(void)
{
    char line[512] = "", path[800], limit[128];
    double least = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && strncmp(line, "0::", 3) != 0)
        line[0] = '\0';
    if (f != NULL)
        fclose(f);
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "0::", 3) != 0)
        return 0;
    for (char *group = line + 3, *slash = group; slash != NULL; *slash = '\0') {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        double quota = 0, period = 0;
        if (first_line(path, limit, sizeof limit) && sscanf(limit, "%lf %lf", &quota, &period) == 2 && period > 0 &&
            (least <= 0 || quota / period < least))
            least = quota / period;
        slash = strrchr(group, '/');
        if (slash == NULL || group[0] == '\0')
            break;
    }
    return least;
}

static int
online(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int
platform_usable_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    return online();
}

struct platform_processors
platform_processors(void)
{
    struct platform_processors p = {.online = online(), .usable = platform_usable_processors()};
#if defined(__linux__)
    p.cores = count_cores(p.online);
    p.quota = group_quota();
#else
    (void)count_cores, (void)group_quota;
#endif
    return p;
}

/* Copies those words of `line` that the kernels use. */
static void
keep_features(char *line, char *out, size_t n)
{
    static const char wanted[] = " avx2 fma f16c avx512f avx512bw avx512vl avx512_vnni avx512_bf16 avx_vnni amx_tile "
                                 "amx_int8 amx_bf16 asimd asimddp asimdhp i8mm bf16 sve sve2 ";
    size_t length = 0;
    out[0] = '\0';
    for (char *rest = NULL, *word = strtok_r(line, " \t\n", &rest); word != NULL;
         word = strtok_r(NULL, " \t\n", &rest)) {
        char in[40];
        snprintf(in, sizeof in, " %.36s ", word);
        if (strstr(wanted, in) != NULL && length < n)
            length += (size_t)snprintf(out + length, n - length, "%s%s", length > 0 ? " " : "", word);
    }
}

void
platform_processor(char *model, size_t n_model, char *features, size_t n_features)
{
    model[0] = features[0] = '\0';
#if defined(__APPLE__)
    size_t room = n_model;
    if (sysctlbyname("machdep.cpu.brand_string", model, &room, NULL, 0) != 0)
        model[0] = '\0';
#endif
    char line[8192];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && (model[0] == '\0' || features[0] == '\0')) {
        char *value = strchr(line, ':');
        if (value == NULL)
            continue;
        value += 1 + strspn(value + 1, " ");
        if (model[0] == '\0' && strncmp(line, "model name", 10) == 0)
            snprintf(model, n_model, "%.*s", (int)strcspn(value, "\n"), value);
        else if (features[0] == '\0' && (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0))
            keep_features(value, features, n_features);
    }
    if (f != NULL)
        fclose(f);
}
