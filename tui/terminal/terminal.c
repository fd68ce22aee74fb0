#include "tui/terminal/terminal.h"
#include "engine/base/clock.h"
#include "tui/terminal/terminal_signals.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#define DOUBLE_CLICK_US 400000
#define LOST_AFTER      64 /* reads in a row that were promised input and got none */

enum { CODE_PASTE_BEGIN = 600, CODE_PASTE_END }; /* beyond curses' own */

/* True for UTF-8. Numbers are always written with a point. */
static bool
choose_locale(void)
{
    bool utf8 = setlocale(LC_ALL, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const char *all = getenv("LC_ALL");
    const bool plain = all != NULL && (strcmp(all, "C") == 0 || strcmp(all, "POSIX") == 0); /* asked for */
    if (!utf8 && !plain && (setlocale(LC_CTYPE, "C.UTF-8") != NULL || setlocale(LC_CTYPE, "C.utf8") != NULL))
        utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    setlocale(LC_NUMERIC, "C");
    return utf8;
}

static void
modes(bool on)
{
    const char *mouse = terminal_string("kmous");
    if (mouse == NULL)
        return; /* a real vt100, or a console */
    /* Dragging, and pasted text marked as such; terminals that don't know them ignore them. SGR coordinates only where
     * curses expects them, else it would take a click for keys. */
    const bool sgr = strcmp(mouse, "\033[<") == 0;
    fputs(on ? "\033[?1002h\033[?2004h" : "\033[?1002l\033[?2004l", stdout);
    if (sgr)
        fputs(on ? "\033[?1006h" : "\033[?1006l", stdout);
    fflush(stdout);
}

static void
declare_keys(void)
{
    static const struct {
        const char *sequence;
        int code;
    } keys[] = {
        {"\033[1;2A", KEY_SR},
        {"\033[1;2B", KEY_SF},
        {"\033[1;2C", KEY_SRIGHT},
        {"\033[1;2D", KEY_SLEFT},
        {"\033[a", KEY_SR},
        {"\033[b", KEY_SF},
        {"\033[c", KEY_SRIGHT},
        {"\033[d", KEY_SLEFT},
        {"\033[H", KEY_HOME},
        {"\033OH", KEY_HOME},
        {"\033[1~", KEY_HOME},
        {"\033[7~", KEY_HOME},
        {"\033[F", KEY_END},
        {"\033OF", KEY_END},
        {"\033[4~", KEY_END},
        {"\033[8~", KEY_END},
        {"\033[5~", KEY_PPAGE},
        {"\033[6~", KEY_NPAGE},
        {"\033[3~", KEY_DC},
        {"\033[Z", KEY_BTAB},
        {"\033[A", KEY_UP},
        {"\033[B", KEY_DOWN},
        {"\033[C", KEY_RIGHT},
        {"\033[D", KEY_LEFT},
        {"\033[200~", CODE_PASTE_BEGIN},
        {"\033[201~", CODE_PASTE_END},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (key_defined(keys[i].sequence) <= 0)
            define_key(keys[i].sequence, keys[i].code);
}

/* Asked before newterm(), which leaks what it began with when it does not know the type of the terminal. */
static bool
is_known(const struct terminal_output *output)
{
    int why = 0;
    if (setupterm(NULL, fileno(output->file), &why) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}

bool
terminal_open(struct terminal *t, bool keys, struct err *err)
{
    *t = (struct terminal){.fd = -1, .press_y = -1};
    t->utf8 = choose_locale();
    if (!isatty(STDOUT_FILENO))
        return err_set(err, ERR_USAGE,
                       "the scope needs a terminal and standard output is none; `specscope run` writes plain text");
    if (isatty(STDIN_FILENO)) {
        t->fd = STDIN_FILENO;
    } else if (keys) {
        t->tty = fopen("/dev/tty", "r");
        if (t->tty == NULL)
            return err_set(err, ERR_USAGE,
                           "there is no terminal to read keys from; give a --script, or use `specscope run`");
        t->fd = fileno(t->tty);
    }
    if (!terminal_output_open(&t->output)) {
        err_set(err, ERR_WORK, "the terminal cannot be opened: %s", strerror(errno));
        terminal_close(t);
        return false;
    }
    signals_install(t->fd >= 0 ? t->fd : STDOUT_FILENO);
    if (is_known(&t->output))
        t->screen = newterm(NULL, t->output.file, t->tty != NULL ? t->tty : stdin);
    if (t->screen == NULL || terminal_string("cup") == NULL) {
        const char *type = getenv("TERM");
        terminal_close(t);
        return err_set(err, ERR_USAGE,
                       "terminal type \"%.40s\" cannot show the scope; set TERM, e.g. to xterm-256color",
                       type == NULL ? "" : type);
    }
    signals_undo();
    raw(); /* Ctrl-C and Ctrl-Z are keys: they must not be taken by a thread that draws nothing */
    noecho();
    nonl();
    curs_set(0);
    set_escdelay(25);
    leaveok(stdscr, TRUE);
    typeahead(-1); /* a frame is drawn whole: it takes a millisecond or two */
    t->pad = newpad(1, 1);
    if (t->pad == NULL) {
        terminal_close(t);
        return err_set(err, ERR_WORK, "out of memory for the screen");
    }
    keypad(t->pad, TRUE);
    nodelay(t->pad, TRUE);
    declare_keys();
    mousemask(ALL_MOUSE_EVENTS | REPORT_MOUSE_POSITION, NULL);
    mouseinterval(0);
    modes(true);
    return true;
}

void
terminal_close(struct terminal *t)
{
    if (t->screen != NULL && !t->no_more) {
        modes(false);
        curs_set(1);
        endwin();
        fflush(stdout);
    }
    if (t->pad != NULL)
        delwin(t->pad);
    if (t->screen != NULL)
        delscreen(t->screen);
    signals_remove();
    terminal_output_close(&t->output);
    if (t->tty != NULL)
        fclose(t->tty);
    *t = (struct terminal){.fd = -1};
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
    if (everything)
        clearok(curscr, TRUE);
    wnoutrefresh(stdscr);
    terminal_output_begin(&t->output);
    doupdate();
    terminal_output_end(&t->output);
}

void
terminal_suspend(struct terminal *t)
{
    if (t->no_more)
        return;
    modes(false);
    curs_set(1);
    endwin();
    fflush(stdout);
    signals_stop();
    raw();
    noecho();
    nonl();
    curs_set(0);
    modes(true);
    terminal_refresh(t, true);
}

static struct input
read_mouse(struct terminal *t)
{
    MEVENT event;
    struct input in = {.key = INPUT_MOUSE};
    if (getmouse(&event) != OK)
        return (struct input){.key = INPUT_NONE};
    in.y = event.y;
    in.x = event.x;
    if (event.bstate & BUTTON4_PRESSED) {
        in.mouse = MOUSE_WHEEL_UP;
    } else if (event.bstate & BUTTON5_PRESSED) {
        in.mouse = MOUSE_WHEEL_DOWN;
    } else if (event.bstate & BUTTON1_PRESSED) {
        const uint64_t now = clock_us();
        const bool twice = event.y == t->press_y && event.x == t->press_x && now - t->press_us < DOUBLE_CLICK_US;
        in.mouse = twice ? MOUSE_DOUBLE : MOUSE_PRESS;
        t->press_y = twice ? -1 : event.y;
        t->press_x = event.x;
        t->press_us = now;
        t->dragging = true;
    } else if (event.bstate & BUTTON1_RELEASED) {
        in.mouse = MOUSE_RELEASE;
        t->dragging = false;
    } else if (t->dragging && (event.bstate & REPORT_MOUSE_POSITION)) {
        in.mouse = MOUSE_DRAG;
    } else {
        in.key = INPUT_NONE;
    }
    return in;
}

static int
key_of(wint_t code)
{
    static const struct {
        wint_t code;
        int key;
    } keys[] = {
        {KEY_UP, INPUT_UP},
        {KEY_DOWN, INPUT_DOWN},
        {KEY_LEFT, INPUT_LEFT},
        {KEY_RIGHT, INPUT_RIGHT},
        {KEY_SR, INPUT_SHIFT_UP},
        {KEY_SF, INPUT_SHIFT_DOWN},
        {KEY_SLEFT, INPUT_SHIFT_LEFT},
        {KEY_SRIGHT, INPUT_SHIFT_RIGHT},
        {KEY_HOME, INPUT_HOME},
        {KEY_END, INPUT_END},
        {KEY_PPAGE, INPUT_PAGE_UP},
        {KEY_NPAGE, INPUT_PAGE_DOWN},
        {KEY_IC, INPUT_INSERT},
        {KEY_DC, INPUT_DELETE},
        {KEY_BTAB, INPUT_SHIFT_TAB},
        {KEY_BACKSPACE, INPUT_BACKSPACE},
        {KEY_ENTER, INPUT_ENTER},
        {CODE_PASTE_BEGIN, INPUT_PASTE_BEGIN},
        {CODE_PASTE_END, INPUT_PASTE_END},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].code == code)
            return keys[i].key;
    if (code >= KEY_F(1) && code <= KEY_F(12))
        return INPUT_F1 + (int)(code - KEY_F(1));
    return INPUT_NONE;
}

/* What curses has ready; false: nothing. */
static bool
take(struct terminal *t, struct input *in)
{
    wint_t code = 0;
    const int kind = wget_wch(t->pad, &code);
    if (kind == ERR)
        return false;
    t->failures = 0;
    if (kind == KEY_CODE_YES && code == KEY_MOUSE)
        *in = read_mouse(t);
    else if (kind == KEY_CODE_YES && code == KEY_RESIZE)
        in->key = INPUT_RESIZE;
    else if (kind == KEY_CODE_YES)
        in->key = key_of(code);
    else
        in->key = code == 8 ? INPUT_BACKSPACE : (int)code;
    return true;
}

struct input
terminal_read(struct terminal *t, int timeout_ms)
{
    struct input in = {.key = INPUT_NONE};
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
        (size.ws_row != LINES || size.ws_col != COLS)) {
        resize_term(size.ws_row, size.ws_col);
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
    if (take(t, &in)) /* curses may hold keys that it has read already */
        return in;
    struct pollfd wait = {.fd = t->fd, .events = POLLIN};
    if (poll(&wait, 1, timeout_ms) <= 0)
        return in;
    if (!take(t, &in) && (wait.revents & POLLIN) == 0)
        t->failures = LOST_AFTER; /* hung up */
    else if (in.key == INPUT_NONE)
        t->failures++;
    if (t->failures >= LOST_AFTER) {
        t->no_more = true;
        in.key = INPUT_LOST;
    }
    return in;
}
