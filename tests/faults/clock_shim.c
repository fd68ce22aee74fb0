/* A preloaded library that distorts the monotonic clock of specscope and of its test programs, so that a test whose
 * verdict depends on measured time fails. Each call site of clock_gettime() has its own factor, 0.05 to 20, for the
 * speed of time since its last call. About every 32nd call jumps by up to 30 ms, and a clock that is a second late
 * jumps to the real time, so that waits end. Time never goes backwards. CLOCK_SEED is the seed; without it, and in
 * other programs, the clock is the real one. Other clocks, poll() and nanosleep() keep real time. A timed wait for a
 * condition lasts for the time that the distorted clock has left, and then times out. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LAG_NS 1000000000

static int (*real_clock)(clockid_t, struct timespec *);
static struct {
    pthread_mutex_t lock;
    uint64_t seed, draws;
    int64_t real_ns, shown_ns;
    bool on;
} distorted = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns a number in 0..1 from the seed and n. */
static double
random_of(uint64_t n)
{
    uint64_t z = distorted.seed * 0x9e3779b97f4a7c15 + n * 0xd1342543de82ef95;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int64_t
nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static void
move_to(int64_t ns)
{
    if (ns > distorted.shown_ns)
        distorted.shown_ns = ns;
}

__attribute__((constructor)) static void
begin(void)
{
    const char *seed = getenv("CLOCK_SEED");
    *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
    const char *name = program_invocation_short_name;
    if (seed == NULL || (strncmp(name, "specscope", 9) != 0 && strncmp(name, "test_", 5) != 0))
        return;
    struct timespec now;
    real_clock(CLOCK_MONOTONIC, &now);
    distorted.seed = strtoull(seed, NULL, 10) * 4 + (uint64_t)getpid() % 4; /* processes of one test differ */
    distorted.real_ns = distorted.shown_ns = nanoseconds(&now);
    distorted.on = true;
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    if (real_clock == NULL)
        *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
    const int rc = real_clock(clock, t);
    if (!distorted.on || clock != CLOCK_MONOTONIC)
        return rc;
    const uint64_t site = (uint64_t)(uintptr_t)__builtin_return_address(0) & 0xfff; /* the same at any base address */
    const double factor = 0.05 * pow(400, random_of(site));
    pthread_mutex_lock(&distorted.lock);
    const int64_t now = nanoseconds(t), passed = now > distorted.real_ns ? now - distorted.real_ns : 0;
    const double draw = random_of(0x1000 + distorted.draws++);
    move_to(distorted.shown_ns + (int64_t)((double)passed * factor + (draw < 1 / 32.0 ? draw * 32 * 30e6 : 0)));
    distorted.real_ns += passed;
    if (distorted.shown_ns < distorted.real_ns - LAG_NS)
        move_to(distorted.real_ns);
    *t = (struct timespec){distorted.shown_ns / 1000000000, distorted.shown_ns % 1000000000};
    pthread_mutex_unlock(&distorted.lock);
    return rc;
}

int
pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until)
{
    struct timespec now;
    real_clock(CLOCK_MONOTONIC, &now);
    const int64_t wanted = nanoseconds(until), left = wanted - distorted.shown_ns;
    if (!distorted.on || left > 1000000000000000) /* a time of another clock, or without an end */
        return pthread_cond_clockwait(condition, lock, distorted.on ? CLOCK_REALTIME : CLOCK_MONOTONIC, until);
    const int64_t end = nanoseconds(&now) + (left > 0 ? left : 0);
    const struct timespec after = {end / 1000000000, end % 1000000000};
    const int rc = pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &after);
    if (rc == ETIMEDOUT) {
        pthread_mutex_lock(&distorted.lock);
        move_to(wanted);
        pthread_mutex_unlock(&distorted.lock);
    }
    return rc;
}
