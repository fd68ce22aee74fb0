/* Opening the terminal while memory runs out: the message names memory, not the terminal's type. For each n, all
 * allocations from the nth on fail. */
#include <errno.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tui/terminal/terminal.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_ALLOCATOR 0 /* the sanitizer replaces malloc() itself */
#elif defined(__has_feature)
#define OWN_ALLOCATOR !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define OWN_ALLOCATOR 1
#endif

enum {
    OPENED,
    NO_MEMORY,
    WRONG_TYPE,
    OTHER
}; /* exit statuses of the child; ncurses exits with 1 when it is out of memory */

static long fails_at = -1;        /* the first allocation that fails; -1: none fails */
static long none, *calls = &none; /* allocations so far; shared with the child */

#if OWN_ALLOCATOR
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static bool
refused(void)
{
    const long at = (*calls)++;
    const bool no = fails_at >= 0 && at >= fails_at;
    if (no)
        errno = ENOMEM;
    return no;
}

void *
malloc(size_t n)
{
    return refused() ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t each)
{
    return refused() ? NULL : __libc_calloc(n, each);
}

void *
realloc(void *p, size_t n)
{
    return refused() ? NULL : __libc_realloc(p, n);
}
#endif

/* Never returns. */
static void
open_in_child(const char *type, long at)
{
    struct terminal t;
    struct err err = {0};
    setenv("TERM", type, 1);
    setenv("COLORTERM", "truecolor", 1); /* so the terminal is not asked about its colours */
    *calls = 0;
    fails_at = at;
    const bool opened = terminal_open(&t, true, &err);
    const long made = *calls;
    fails_at = -1;
    if (opened)
        terminal_close(&t);
    *calls = made;
    _exit(opened                                                          ? OPENED
          : err.kind == ERR_WORK && strstr(err.text, "memory") != NULL    ? NO_MEMORY
          : err.kind == ERR_USAGE && strstr(err.text, "set TERM") != NULL ? WRONG_TYPE
                                                                          : OTHER);
}

static int
end_of(const char *type, long at)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};
    int master, status;
    const pid_t pid = forkpty(&master, NULL, NULL, &size);
    assert_at_least(pid, 0);
    if (pid == 0)
        open_in_child(type, at);
    for (char text[4096]; read(master, text, sizeof text) > 0;) /* until the child ends */
        continue;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(master);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(a_lack_of_memory_is_not_called_a_wrong_type)
{
    if (!OWN_ALLOCATOR)
        skip();
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(calls, MAP_FAILED);
    int without = 0;
    for (long at = 0, end = NO_MEMORY; end != OPENED || at < *calls; at++) {
        end = end_of("xterm-256color", at);
        if (end != OPENED && end != NO_MEMORY)
            fail_msg("no memory from call %ld on: end %ld", at, end);
        without += end == NO_MEMORY;
    }
    assert_greater(without, 0);
}

TEST(an_unsuitable_terminal_type_is_named)
{
    assert_int_equal(end_of("dumb", -1), WRONG_TYPE);
}
