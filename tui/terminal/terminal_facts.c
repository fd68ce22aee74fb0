#include "tui/terminal/terminal.h"

#include <curses.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_read.h"
#include "base/file_replace.h"
#include "tui/terminal/input.h"

/* ---- terminfo and locale of the program's own ---- */

bool
builtin_terminfo(const char *type)
{
    char name[160];
    const unsigned char *entry;
    size_t n;
    snprintf(name, sizeof name, "builtin:/terminfo/%.64s", type);
    return embedded_file(name, &entry, &n) && setenv("TERMINFO", (const char *)entry, 1) == 0; /* ends with a zero */
}

/* Sets C.UTF-8 from this folder. */
static bool
locale_in(const char *folder)
{
    const char *before = getenv("LOCPATH");
    char *kept = before != NULL ? strdup(before) : NULL;
    if (before != NULL && kept == NULL)
        return false;
    const bool ok = setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_CTYPE, "C.UTF-8") != NULL;
    if (kept != NULL)
        setenv("LOCPATH", kept, 1);
    else
        unsetenv("LOCPATH");
    free(kept);
    return ok;
}

bool
locale_again(void)
{
    return locale_in("/usr/lib/locale/") || locale_in("/usr/share/locale/");
}

/* C.utf8/LC_CTYPE in a new folder. */
static bool
try_in(const char *parent, const unsigned char *bytes, size_t n)
{
    char folder[PATH_MAX - 64], name[PATH_MAX - 32], file[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s/specscope.XXXXXX", parent) >= sizeof folder ||
        mkdtemp(folder) == NULL)
        return false;
    snprintf(name, sizeof name, "%s/C.utf8", folder);
    snprintf(file, sizeof file, "%s/LC_CTYPE", name);
    const int fd = mkdir(name, 0700) == 0 ? open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool ok = fd >= 0 && file_put(fd, bytes, n);
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    ok = ok && locale_in(folder);
    unlink(file);
    rmdir(name);
    rmdir(folder);
    return ok;
}

bool
builtin_locale(void)
{
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/dev/shm", "/tmp"};
    const unsigned char *bytes;
    size_t n;
    if (!embedded_file("builtin:/locale/LC_CTYPE", &bytes, &n))
        return false;
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
        if (parents[i] != NULL && parents[i][0] != '\0' && try_in(parents[i], bytes, n))
            return true;
    return false;
}

/* ---- facts ---- */

#define ANSWER_US 300000u
#define LATEST_US 5000000u /* for a terminal that would otherwise be unusable */
#define STAND_IN  "xterm-256color"

bool
terminal_wants_ascii(void)
{
    const char *all = getenv("LC_ALL");
    return all != NULL && (strcmp(all, "C") == 0 || strcmp(all, "POSIX") == 0);
}

bool
terminal_choose_locale(void)
{
    bool utf8 = setlocale(LC_ALL, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (!utf8 && !terminal_wants_ascii() &&
        (setlocale(LC_CTYPE, "C.UTF-8") != NULL || setlocale(LC_CTYPE, "C.utf8") != NULL || locale_again() ||
         builtin_locale()))
        utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    setlocale(LC_NUMERIC, "C");
    return utf8;
}

bool
terminal_direct_said(void)
{
    const char *colours = getenv("COLORTERM"), *type = getenv("TERM");
    if (colours == NULL || (strcmp(colours, "truecolor") != 0 && strcmp(colours, "24bit") != 0))
        return false;
    /* GNU screen passes COLORTERM on, but does not support these colours */
    return type == NULL || strncmp(type, "screen", 6) != 0 || getenv("TMUX") != NULL;
}

bool
terminal_setup(const char *type, int fd)
{
    int why = 0;
    if (setupterm(type, fd, &why) == OK)
        return true;
    if (type == NULL)
        type = getenv("TERM");
    return type != NULL && builtin_terminfo(type) && setupterm(type, fd, &why) == OK;
}

bool
terminal_understands(void)
{
    return terminal_string("kmous") != NULL;
}

/* Sends a question and waits for the terminal's attributes, its last answer, with the line discipline's echo and
 * buffering off. *direct: it has 24-bit colours. Fails after so many microseconds without an answer. */
static bool
ask(const char *question, uint64_t us, bool *direct)
{
    struct termios before, now;
    *direct = false;
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &now) != 0)
        return false;
    struct input_decoder decoder = {0};
    struct input in;
    bool answered = false, more = write(STDOUT_FILENO, question, strlen(question)) > 0;
    const uint64_t until = clock_us() + us;
    while (more && clock_us() < until) {
        const int wait_ms = (int)((until - clock_us()) / 1000) + 1;
        if (poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, wait_ms) <= 0)
            continue;
        more = read(STDIN_FILENO, decoder.bytes + decoder.n, 1) == 1; /* keys after the answers stay unread */
        decoder.n += more;
        while (more && !answered && input_decode(&decoder, false, &in)) { /* keys before them are lost */
            *direct = *direct || in.key == INPUT_DIRECT;
            answered = in.key == INPUT_ANSWERED;
        }
        more = more && !answered;
    }
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return answered;
}

bool
terminal_stand_in(void)
{
    const char *type = getenv("TERM");
    bool direct;
    return type != NULL && type[0] != '\0' && strcmp(type, "dumb") != 0 && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO) && ask("\033[c", LATEST_US, &direct) && setenv("TERM", STAND_IN, 1) == 0;
}

void
terminal_inspect(struct terminal_facts *f)
{
    *f = (struct terminal_facts){.type = getenv("TERM"), .direct_said = terminal_direct_said()};
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        f->rows = size.ws_row;
        f->cols = size.ws_col;
    }
    signals_library_alone(true);
    f->known = terminal_setup(NULL, STDOUT_FILENO);
    if (!f->known && terminal_stand_in()) {
        f->stands_in = STAND_IN;
        f->known = terminal_setup(NULL, STDOUT_FILENO);
    }
    if (f->known) {
        f->places = terminal_string("cup") != NULL;
        f->colours = tigetnum("colors") > 0 ? tigetnum("colors") : 0;
        f->direct_type = tigetflag("RGB") > 0 || tigetflag("Tc") > 0;
        f->mouse = terminal_understands();
        del_curterm(cur_term);
    }
    signals_library_alone(false);
    if (f->mouse && f->colours >= 256 && !f->direct_said && !f->direct_type && isatty(STDIN_FILENO) &&
        isatty(STDOUT_FILENO))
        ask(input_question, ANSWER_US, &f->direct_answered);
}
