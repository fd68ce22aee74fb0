#include "tui/terminal/terminal_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

bool
terminal_output_open(struct terminal_output *o)
{
    *o = (struct terminal_output){.memory = -1};
    const int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return false;
    o->file = fdopen(own, "w");
    if (o->file == NULL) {
        close(own);
        return false;
    }
#ifdef MFD_CLOEXEC
    o->memory = memfd_create("frame", MFD_CLOEXEC);
#endif
    return true;
}

void
terminal_output_close(struct terminal_output *o)
{
    if (o->file == NULL)
        return; /* never opened */
    fclose(o->file);
    if (o->memory >= 0)
        close(o->memory);
    free(o->bytes);
    *o = (struct terminal_output){.memory = -1};
}

void
terminal_output_begin(struct terminal_output *o)
{
    if (o->memory >= 0 && lseek(o->memory, 0, SEEK_SET) == 0)
        dup3(o->memory, fileno(o->file), O_CLOEXEC);
}

static void
send_all(const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t written = write(STDOUT_FILENO, bytes, n);
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 200);
        } else if (written == 0 || errno != EINTR) {
            return; /* gone: reading finds out, too */
        }
    }
}

void
terminal_output_end(struct terminal_output *o)
{
    if (o->memory < 0)
        return;
    dup3(STDOUT_FILENO, fileno(o->file), O_CLOEXEC);
    const off_t length = lseek(o->memory, 0, SEEK_CUR);
    if (length <= 0)
        return;
    const size_t n = (size_t)length;
    if (n > o->room) {
        char *bytes = realloc(o->bytes, 2 * n);
        if (bytes != NULL) {
            o->bytes = bytes;
            o->room = 2 * n;
        }
    }
    if (o->room == 0)
        return;
    for (size_t done = 0; done < n;) { /* in one piece, unless memory is short */
        const ssize_t part = pread(o->memory, o->bytes, n - done < o->room ? n - done : o->room, (off_t)done);
        if (part <= 0)
            return;
        send_all(o->bytes, (size_t)part);
        done += (size_t)part;
    }
}
