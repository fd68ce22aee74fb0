
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/file_replace.h"
#include "base/platform.h"
#include "tui/terminal/terminal.h"

#define LEAVING_MS    200 /* after a signal, the program waits so long for the terminal */
#define LEAVING_PIECE 256 /* bytes at a time: poll() speaks of some room only */

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
    o->memory = platform_nameless_file();
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
        platform_dup_onto(o->memory, fileno(o->file));
}

bool
terminal_output_room(int ms)
{
    return poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, ms) > 0;
}

void
terminal_output_send(const char *bytes, size_t n)
{
    while (n > 0) {
        const bool leaving = terminal_ended_by() != 0;
        if (leaving && !terminal_output_room(LEAVING_MS))
            return;
        const ssize_t written = write(STDOUT_FILENO, bytes, leaving && n > LEAVING_PIECE ? LEAVING_PIECE : n);
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            terminal_output_room(LEAVING_MS);
        } else if (written == 0 || errno != EINTR) {
            return; /* the terminal is gone: the next read fails, too */
        }
    }
}

/* Returns the colour number, of two or three digits, of CSI 38;5;N m or CSI 48;5;N m, and sets *used to its bytes; -1:
 * another sequence. Numbers of one digit are never slots. */
static int
colour_set(const char *at, size_t n, size_t *used)
{
    if (n < 10 || at[0] != '\033' || at[1] != '[' || (at[2] != '3' && at[2] != '4') || memcmp(at + 3, "8;5;", 4) != 0)
        return -1;
    int number = 0;
    size_t i = 7;
    for (; i < n && i < 10 && at[i] >= '0' && at[i] <= '9'; i++)
        number = number * 10 + (at[i] - '0');
    if (i < 9 || i == n || at[i] != 'm' || number >= OUTPUT_SLOTS)
        return -1;
    *used = i + 1;
    return number;
}

size_t
terminal_output_direct(const int32_t slots[OUTPUT_SLOTS], const char *bytes, size_t n, char *out)
{
    size_t length = 0;
    for (size_t i = 0; i < n;) {
        const char *escape = memchr(bytes + i, '\033', n - i);
        const size_t plain = escape == NULL ? n - i : (size_t)(escape - bytes) - i;
        memcpy(out + length, bytes + i, plain);
        length += plain;
        i += plain;
        if (i == n)
            break;
        size_t used = 0;
        const int number = colour_set(bytes + i, n - i, &used);
        if (number < 0 || slots[number] < 0) {
            out[length++] = bytes[i++];
            continue;
        }
        const unsigned rgb = (unsigned)slots[number];
        char set[24]; /* at most 19 bytes: less than twice the ten or eleven bytes that it replaces */
        const int made = snprintf(set, sizeof set, "\033[%c8;2;%u;%u;%um", bytes[i + 2], rgb >> 16 & 0xff,
                                  rgb >> 8 & 0xff, rgb & 0xff);
        memcpy(out + length, set, (size_t)made);
        length += (size_t)made;
        i += used;
    }
    return length;
}

#define BEGIN "\033[?2026h"
#define END   "\033[?2026l"
#define MARKS (sizeof BEGIN - 1 + sizeof END - 1)

/* Sends the frame in one write; false: out of memory. */
static bool
send_whole(struct terminal_output *o, size_t n)
{
    const size_t needed = 3 * n + MARKS; /* as sent, followed by the bytes of curses */
    if (!array_grow(&o->bytes, &o->room, needed, 1))
        return false;
    char *from = o->bytes + 2 * n + MARKS;
    if (pread(o->memory, from, n, 0) != (ssize_t)n)
        return false;
    size_t length = sizeof BEGIN - 1;
    memcpy(o->bytes, BEGIN, length);
    if (o->slots != NULL) {
        length += terminal_output_direct(o->slots, from, n, o->bytes + length);
    } else {
        memcpy(o->bytes + length, from, n);
        length += n;
    }
    memcpy(o->bytes + length, END, sizeof END - 1);
    terminal_output_send(o->bytes, length + sizeof END - 1);
    return true;
}

void
terminal_output_end(struct terminal_output *o)
{
    if (o->memory < 0)
        return;
    platform_dup_onto(STDOUT_FILENO, fileno(o->file));
    const off_t length = lseek(o->memory, 0, SEEK_CUR);
    if (length <= 0 || send_whole(o, (size_t)length))
        return;
    char part[4096]; /* memory is short: write in pieces, this time with the palette's colours */
    ssize_t n;
    for (off_t done = 0; done < length && (n = pread(o->memory, part, sizeof part, done)) > 0; done += n)
        terminal_output_send(part, (size_t)(done + n > length ? length - done : n));
}

/* ---- the clipboard ---- */

/* RFC 4648. */
static char *
base64(char *out, const unsigned char *bytes, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        *out++ = letters[three >> 18];
        *out++ = letters[three >> 12 & 63];
        *out++ = left > 1 ? letters[three >> 6 & 63] : '=';
        *out++ = left > 2 ? letters[three & 63] : '=';
    }
    return out;
}

char *
clipboard_sequence(const char *text, size_t n)
{
    static const char begin[] = "\033]52;c;", end[] = "\a";
    char *out = n <= CLIPBOARD_MOST ? malloc(sizeof begin + (n + 2) / 3 * 4 + sizeof end) : NULL;
    if (out == NULL)
        return NULL;
    memcpy(out, begin, sizeof begin - 1);
    char *at = base64(out + sizeof begin - 1, (const unsigned char *)text, n);
    memcpy(at, end, sizeof end);
    return out;
}

bool
clipboard_put(const char *text, size_t n)
{
    char *sequence = isatty(STDOUT_FILENO) ? clipboard_sequence(text, n) : NULL;
    const bool done = sequence != NULL && file_put(STDOUT_FILENO, sequence, strlen(sequence));
    free(sequence);
    return done;
}
