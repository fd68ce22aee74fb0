/* Counts calls and lets them fail; contains the calls for memory and threads. */
#include "tests/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's allocator under names that need no dlsym(), which would allocate. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static struct fault_page own_page, *page = &own_page;
static struct {
    bool ready, where, rendering;
    int kind; /* -1: nothing fails */
    uint64_t at;
    enum fault_how how;
} fault = {.kind = -1};

static void
read_fault(const char *text)
{
    static const char *const kinds[] = FAULT_KIND_NAMES, *const hows[] = FAULT_HOW_NAMES;
    char *end;
    const char *number = strchr(text, ':');
    if (number == NULL)
        return;
    fault.at = strtoull(number + 1, &end, 10);
    for (int i = 0; i < FAULT_KINDS; i++)
        if (strlen(kinds[i]) == (size_t)(number - text) && strncmp(kinds[i], text, strlen(kinds[i])) == 0)
            fault.kind = i;
    for (int i = 0; i < HOWS; i++)
        if (*end == ':' && strcmp(hows[i], end + 1) == 0)
            fault.how = (enum fault_how)i;
}

/* Handles a crash if the program has no handler: prints a line that names the library in which the crash happened, and
 * exits. The driver recognises the line. Without memory the constructor of libgfortran, which OpenBLAS needs, calls
 * itself without end. */
static void
crashed(int number)
{
    void *stack[16];
    const int n = backtrace(stack, 16);
    const char *name = NULL;
    for (int i = 2; i < n && name == NULL; i++) { /* skips this function and the signal's frame */
        Dl_info at;
        if (dladdr(stack[i], &at) != 0 && strstr(at.dli_fname, "/fault_shim") == NULL)
            name = strrchr(at.dli_fname, '/');
    }
    if (name != NULL && strncmp(name, "/lib", 4) == 0) {
        syscall(SYS_write, STDERR_FILENO, name + 1, strlen(name + 1));
        syscall(SYS_write, STDERR_FILENO, ": gave up\n", 10);
        _exit(1);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static char crash_stack[1 << 16];
static const struct sigaction on_crash = {.sa_handler = crashed, .sa_flags = SA_ONSTACK};

static void
watch_crashes(void)
{
    const stack_t other = {.ss_sp = crash_stack, .ss_size = sizeof crash_stack};
    void *stack[1];
    backtrace(stack, 1); /* loads the libraries that it needs */
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &on_crash, NULL);
}

/* crashed() takes the place of the default action: the program sees the default action, its own handler replaces
 * crashed(), and the default action brings crashed() back. */
int
sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    static int (*next)(int, const struct sigaction *, struct sigaction *);
    if (next == NULL)
        *(void **)&next = shim_next("sigaction");
    const bool is_default = number == SIGSEGV && action != NULL && action->sa_handler == SIG_DFL;
    const int status = next(number, is_default ? &on_crash : action, before);
    if (status == 0 && before != NULL && before->sa_handler == crashed)
        before->sa_handler = SIG_DFL;
    return status;
}

/* Begins to count after the constructors of other libraries, whose calls are not the program's. */
__attribute__((constructor)) static void
begin(void)
{
    const char *path = getenv(PAGE_VARIABLE), *text = getenv(FAULT_VARIABLE);
    const int fd = path != NULL ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *at = (void *)syscall(SYS_mmap, NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED)
            page = at;
        syscall(SYS_close, fd);
    }
    fault.where = getenv(WHERE_VARIABLE) != NULL;
    shim_take_stdout();
    watch_crashes();
    if (text != NULL)
        read_fault(text);
    unsetenv(FAULT_VARIABLE); /* programs that the program starts are not tested */
    unsetenv(PAGE_VARIABLE);
    unsetenv("LD_PRELOAD");
    fault.ready = true;
}

static void
tell_where(void)
{
    void *stack[40];
    fault.where = false;
    const int n = backtrace(stack, 40);
    backtrace_symbols_fd(stack, n, STDERR_FILENO);
    fault.where = true;
}

/* Returns true if this call is the nth, or a later one. */
static bool
counted(enum fault_kind kind)
{
    const bool ours = kind == FAULT_WRITE || kind == FAULT_FSYNC || kind == FAULT_RENAME;
    if (!fault.ready || (fault.rendering && !ours))
        return false;
    const uint64_t n = atomic_fetch_add(&page->calls[kind], 1) + 1;
    if (fault.kind != (int)kind || n < fault.at || (n > fault.at && fault.how != HOW_ON))
        return false;
    if (atomic_fetch_add(&page->hits, 1) == 0 && fault.where)
        tell_where();
    return true;
}

static void
say_why(enum fault_kind kind)
{
    static const int why[FAULT_KINDS] = {ENOMEM, ENOMEM, EMFILE, EIO, ENOSPC, EIO, EACCES, EAGAIN};
    errno = fault.how == HOW_EINTR ? EINTR : why[kind];
}

bool
shim_fails(enum fault_kind kind)
{
    if (!counted(kind) || fault.how == HOW_SHORT)
        return false;
    say_why(kind);
    return true;
}

size_t
shim_room(enum fault_kind kind, size_t n)
{
    if (!counted(kind) || n == 0)
        return n;
    if (fault.how == HOW_SHORT)
        return (n + 1) / 2;
    say_why(kind);
    return 0;
}

void
shim_rendering(bool on)
{
    fault.rendering = on;
}

void *
shim_next(const char *name)
{
    const bool was = fault.ready;
    fault.ready = false;
    void *found = dlsym(RTLD_NEXT, name);
    fault.ready = was;
    return found;
}

/* ---- memory ---- */

void *
malloc(size_t n)
{
    return shim_fails(FAULT_ALLOC) ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
    return shim_fails(FAULT_ALLOC) ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t n)
{
    return shim_fails(FAULT_ALLOC) ? NULL : __libc_realloc(old, n);
}

void *
reallocarray(void *old, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, n * size);
}

void *
memalign(size_t alignment, size_t n)
{
    return shim_fails(FAULT_ALLOC) ? NULL : __libc_memalign(alignment, n);
}

void *
aligned_alloc(size_t alignment, size_t n)
{
    return memalign(alignment, n);
}

int
posix_memalign(void **out, size_t alignment, size_t n)
{
    if (shim_fails(FAULT_ALLOC))
        return ENOMEM;
    void *at = __libc_memalign(alignment, n);
    if (at == NULL)
        return ENOMEM;
    *out = at;
    return 0;
}

void *
mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (shim_fails(FAULT_MMAP))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

void *
mmap64(void *at, size_t n, int protection, int flags, int fd, off64_t offset)
{
    return mmap(at, n, protection, flags, fd, offset);
}

/* ---- threads ---- */

int
pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (shim_fails(FAULT_THREAD))
        return EAGAIN;
    if (next == NULL)
        *(void **)&next = shim_next("pthread_create");
    return next(thread, how, run, with);
}
