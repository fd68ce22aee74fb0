#include "tui/terminal/terminal.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"

/* ---- modes ---- */

#define DOUBLE_CLICK_US 400000
#define ANSWER_MS       200
#define DESCRIPTION     (64 * 1024) /* bytes; one of terminfo needs less */
#define LOST_AFTER      64          /* consecutive reads without the announced input */

/* Switches reports of the mouse (with drags and decimal coordinates, for columns after 223) and bracketed paste. Other
 * terminals ignore this. It bypasses curses, because terminfo has only the older coordinates for most terminals. */
static void
modes(bool on)
{
    if (!terminal_understands())
        return;
    const char *bytes =
        on ? "\033[?1000h\033[?1002h\033[?1006h\033[?2004h" : "\033[?2004l\033[?1006l\033[?1002l\033[?1000l";
    terminal_output_send(bytes, strlen(bytes));
}

/* ---- the kind of terminal ---- */

/* Asks for 24-bit colours, because the environment may lack COLORTERM, for example over ssh. The answer comes among the
 * keys. A terminal that prints the question prints it on curses' screen, which is cleared afterwards. */
static void
ask_colours(struct terminal *t)
{
    t->asked = terminal_understands() && tigetnum("colors") >= 256;
    if (t->asked)
        terminal_output_send(input_question, strlen(input_question));
}

/* Checks the type before newterm(), which leaks memory for an unknown type. */
static bool
is_known(const char *type, const struct terminal_output *output, bool *rich)
{
    if (!terminal_setup(type, fileno(output->file)))
        return false;
    *rich = tigetnum("colors") >= 256;
    signals_undo(); /* newterm() may not return */
    del_curterm(cur_term);
    return true;
}

static bool
is_memory_short(void)
{
    void *volatile room = malloc(DESCRIPTION);
    const bool is_short = room == NULL;
    free(room);
    return is_short;
}

/* Starts curses. An "xterm" with 24-bit colours gets the terminfo entry with 256 colours. NULL: the terminal's type is
 * unknown, or *memory: out of memory; curses does not distinguish them. */
static SCREEN *
start_curses(const struct terminal_output *output, FILE *keys, bool *memory)
{
    const char *type = getenv("TERM");
    char richer[64];
    /* a type that is unknown only once was looked up without memory */
    bool rich = true, known = is_known(NULL, output, &rich) || is_known(NULL, output, &rich);
    *memory = known || is_memory_short();
    known = known || (!*memory && terminal_stand_in() && is_known(NULL, output, &rich));
    if (!known)
        return NULL;
    *memory = true; /* later failures are failures of memory */
    if (!rich && terminal_direct_said() && type != NULL && strlen(type) + 10 < sizeof richer) {
        snprintf(richer, sizeof richer, "%s-256color", type);
        if (is_known(richer, output, &rich) && rich)
            return newterm(richer, output->file, keys);
    }
    return newterm(NULL, output->file, keys);
}

bool
terminal_open(struct terminal *t, bool keys, struct err *err)
{
    *t = (struct terminal){.fd = -1, .press_y = -1};
    t->utf8 = terminal_choose_locale();
    if (!isatty(STDOUT_FILENO))
        return err_set(err, ERR_USAGE,
                       "the scope needs a terminal and standard output is none; `%s run` writes plain text",
                       program_name());
    if (isatty(STDIN_FILENO)) {
        t->fd = STDIN_FILENO;
    } else if (keys) {
        t->tty = fopen("/dev/tty", "r");
        if (t->tty == NULL)
            return err_set(err, ERR_USAGE, "there is no terminal to read keys from; give a --script, or use `%s run`",
                           program_name());
        t->fd = fileno(t->tty);
    }
    if (!terminal_output_open(&t->output)) {
        err_set(err, ERR_WORK, "the terminal cannot be opened: %s", strerror(errno));
        terminal_close(t);
        return false;
    }
    signals_install(t->fd >= 0 ? t->fd : STDOUT_FILENO);
    signals_library(true);
    bool memory;
    t->screen = start_curses(&t->output, t->tty != NULL ? t->tty : stdin, &memory);
    if (t->screen == NULL || terminal_string("cup") == NULL) {
        const char *type = getenv("TERM");
        const int fd = dup(STDOUT_FILENO);
        const int why = errno;
        if (fd >= 0)
            close(fd);
        memory = memory && t->screen == NULL;
        terminal_close(t);
        if (fd < 0) /* terminfo's files could not be opened either */
            return err_set(err, ERR_WORK, "the terminal cannot be opened: %s; raise the limit: ulimit -n 1024",
                           strerror(why));
        return memory ? err_set(err, ERR_WORK, "not enough memory for the terminal")
                      : err_set(err, ERR_USAGE,
                                "terminal type \"%.40s\" cannot show the scope; set TERM, e.g. to xterm-256color",
                                type == NULL ? "" : type);
    }
    signals_undo();
    raw(); /* Ctrl-C and Ctrl-Z are keys; as signals, other threads might handle them */
    noecho();
    nonl();
    curs_set(0);
    leaveok(stdscr, TRUE);
    typeahead(-1); /* a frame is never interrupted by input: it takes a millisecond or two */
    for (int i = 0; i < OWN_KEYS; i++)
        t->decoder.own[i] = terminal_string(own_key_names[i]);
    modes(true);
    t->direct = tigetflag("RGB") > 0 || tigetflag("Tc") > 0 || terminal_direct_said();
    if (!t->direct && keys && t->fd >= 0)
        ask_colours(t);
    signals_library(false);
    return true;
}

void
terminal_size(int *rows, int *cols)
{
    *rows = LINES;
    *cols = COLS;
}

void
terminal_refresh(struct terminal *t, bool everything)
{
    if (t->no_more)
        return;
    signals_library(true);
    if (everything)
        clearok(curscr, TRUE);
    wnoutrefresh(stdscr);
    terminal_output_begin(&t->output);
    doupdate();
    terminal_output_end(&t->output);
    signals_library(false);
}

void
terminal_suspend(struct terminal *t)
{
    if (t->no_more)
        return;
    signals_library(true);
    modes(false);
    curs_set(1);
    endwin();
    signals_library(false);
    signals_stop();
    signals_library(true);
    raw();
    noecho();
    nonl();
    curs_set(0);
    modes(true);
    signals_library(false);
    terminal_refresh(t, true);
}

/* A second press of the same place soon after the first is a double one. */
static void
detect_double(struct terminal *t, struct input *in)
{
    if (in->mouse != MOUSE_PRESS)
        return;
    const uint64_t now = clock_us();
    const bool twice = in->y == t->press_y && in->x == t->press_x && now - t->press_us < DOUBLE_CLICK_US;
    in->mouse = twice ? MOUSE_DOUBLE : MOUSE_PRESS;
    t->press_y = twice ? -1 : in->y;
    t->press_x = in->x;
    t->press_us = now;
}

/* Returns the next event of the bytes that have been read; the terminal's answers are none. */
static bool
next_event(struct terminal *t, bool late, struct input *in)
{
    while (input_decode(&t->decoder, late, in)) {
        if (in->key == INPUT_MOUSE)
            detect_double(t, in);
        if (in->key == INPUT_DIRECT)
            t->direct = true;
        else if (in->key == INPUT_ANSWERED)
            t->asked = false; /* the last answer */
        else
            return true;
    }
    return false;
}

/* Waits for bytes and reads them. Returns false if none came. */
static bool
read_bytes(struct terminal *t, int timeout_ms)
{
    struct pollfd wait = {.fd = t->fd, .events = POLLIN};
    if (poll(&wait, 1, timeout_ms) <= 0)
        return false;
    const ssize_t n = read(t->fd, t->decoder.bytes + t->decoder.n, sizeof t->decoder.bytes - t->decoder.n);
    if (n > 0) {
        t->decoder.n += (size_t)n;
        t->bytes_us = clock_us();
        t->failures = 0;
    } else {
        t->failures = (wait.revents & POLLIN) == 0 ? LOST_AFTER : t->failures + 1; /* without POLLIN: hung up */
    }
    return n > 0;
}

struct input
terminal_read(struct terminal *t, int timeout_ms)
{
    struct input in = {.key = INPUT_NONE};
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
        (size.ws_row != LINES || size.ws_col != COLS)) {
        signals_library(true);
        resize_term(size.ws_row, size.ws_col);
        signals_library(false);
        in.key = INPUT_RESIZE;
        return in;
    }
    if (terminal_ended_by() == SIGHUP)
        t->no_more = true;
    if (t->no_more) {
        in.key = INPUT_LOST;
        return in;
    }
    if (t->fd < 0) { /* no keys: only the time passes */
        if (timeout_ms > 0)
            poll(NULL, 0, timeout_ms);
        return in;
    }
    if (next_event(t, false, &in))
        return in;
    const int patience = input_patience_ms(&t->decoder);
    const uint64_t due_us = t->bytes_us + (uint64_t)(patience > 0 ? patience : 0) * 1000, now = clock_us();
    const int left_ms = now < due_us ? (int)((due_us - now + 999) / 1000) : 0;
    if (read_bytes(t, patience >= 0 && left_ms < timeout_ms ? left_ms : timeout_ms))
        next_event(t, false, &in);
    else if (patience >= 0 && clock_us() >= due_us)
        next_event(t, true, &in);
    if (t->failures >= LOST_AFTER) {
        t->no_more = true;
        in.key = INPUT_LOST;
    }
    return in;
}

/* Reads outstanding answers of the terminal, which the shell would otherwise read as input. */
static void
read_answers(struct terminal *t)
{
    struct input in;
    for (int i = 0; i < 64 && t->asked && t->fd >= 0; i++)
        if (!next_event(t, false, &in) && !read_bytes(t, ANSWER_MS))
            return;
}

void
terminal_close(struct terminal *t)
{
    if (terminal_ended_by() != 0 && !terminal_output_room(ANSWER_MS))
        t->no_more = true; /* curses would wait for it */
    if (t->screen != NULL && !t->no_more)
        read_answers(t);
    signals_library(true);
    if (t->screen != NULL && !t->no_more) {
        modes(false);
        curs_set(1);
        endwin();
    }
    if (t->screen != NULL && t->no_more) /* the SIGHUP may have another cause: the terminal still exists */
        signals_give_back();
    if (t->screen != NULL)
        delscreen(t->screen);
    signals_library(false);
    signals_remove();
    terminal_output_close(&t->output);
    if (t->tty != NULL)
        fclose(t->tty);
    *t = (struct terminal){.fd = -1};
}
