/* The terminal: its type, its size, its colours, its characters, its mouse. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "tui/terminal/terminal.h"

/* Below the first the scope is cramped, below the second it says so and nothing else. */
#define ROOMY_ROWS 24
#define ROOMY_COLS 80
#define LEAST_ROWS 10
#define LEAST_COLS 40

#define RICH_TYPE "set TERM to what your terminal is, e.g. export TERM=xterm-256color"

/* False: there is nothing more to say of it. */
static bool
say_type(struct findings *f, const struct terminal_facts *t)
{
    const char *type = t->type != NULL ? t->type : "";
    if (!isatty(STDOUT_FILENO)) {
        doctor_say(f, FINDING_NOTE, "terminal",
                   "run this in the terminal that you mean; without one there is `specscope run`",
                   "standard output is no terminal, so there is none to look at");
        return false;
    }
    if (!t->known || !t->places) {
        doctor_say(f, FINDING_BAD, "terminal", RICH_TYPE, "terminal type \"%.40s\" %s", type,
                   t->known ? "cannot place the cursor, so the scope cannot be shown" : "is not in terminfo here");
        return false;
    }
    if (t->stands_in != NULL) {
        doctor_say(f, FINDING_NOTE, "terminal", RICH_TYPE,
                   "type \"%.40s\" is not in terminfo here; the terminal answers, and is used as %s", type,
                   t->stands_in);
        return true;
    }
    doctor_say(f, FINDING_OK, "terminal", NULL, "%.40s%s", type, getenv("TMUX") != NULL ? ", in tmux" : "");
    return true;
}

static void
say_size(struct findings *f, const struct terminal_facts *t)
{
    if (t->rows == 0 || t->cols == 0)
        doctor_say(f, FINDING_NOTE, "size", "stty rows 40 cols 120", "the terminal doesn't say how large it is");
    else if (t->rows < LEAST_ROWS || t->cols < LEAST_COLS)
        doctor_say(f, FINDING_BAD, "size", "make it larger, or its letters smaller",
                   "%dx%d is too small: %dx%d is the least", t->cols, t->rows, LEAST_COLS, LEAST_ROWS);
    else if (t->rows < ROOMY_ROWS || t->cols < ROOMY_COLS)
        doctor_say(f, FINDING_NOTE, "size", "from 80x24 up panels have frames, from 120x36 up most are side by side",
                   "%dx%d is small", t->cols, t->rows);
    else
        doctor_say(f, FINDING_OK, "size", NULL, "%dx%d", t->cols, t->rows);
}

static void
say_colours(struct findings *f, const struct terminal_facts *t)
{
    const char *more = "if yours has 24-bit colour: export COLORTERM=truecolor";
    if (getenv("TMUX") != NULL && t->colours < 256)
        more = "set -g default-terminal tmux-256color in ~/.tmux.conf";
    else if (getenv("TMUX") != NULL)
        more = "if the terminal around tmux has 24-bit colour: set -as terminal-features ',*:RGB' in ~/.tmux.conf and "
               "export COLORTERM=truecolor";
    else if (t->type != NULL && strncmp(t->type, "screen", 6) == 0)
        more = "GNU screen before version 5 has no more; tmux has 24-bit colour";
    else if (t->type != NULL && strcmp(t->type, "linux") == 0)
        more = "the console has no more; a terminal in a window has";
    if (t->direct_said || t->direct_type || t->direct_told)
        doctor_say(f, FINDING_OK, "colours", NULL, "24-bit (%s)",
                   t->direct_said   ? "COLORTERM says so"
                   : t->direct_type ? "terminfo says so"
                                    : "the terminal says so");
    else if (t->colours >= 256)
        doctor_say(f, FINDING_NOTE, "colours", more, "256 of them, so scales have steps");
    else if (t->colours >= 8)
        doctor_say(f, FINDING_NOTE, "colours", more, "%d of them, so scales are coarse", t->colours);
    else
        doctor_say(f, FINDING_NOTE, "colours", RICH_TYPE, "none: the scope tells things apart by letters and marks");
}

static void
say_characters(struct findings *f)
{
    const char *all = getenv("LC_ALL");
    if (terminal_choose_locale())
        doctor_say(f, FINDING_OK, "characters", NULL, "UTF-8");
    else if (all != NULL && (strcmp(all, "C") == 0 || strcmp(all, "POSIX") == 0))
        doctor_say(f, FINDING_NOTE, "characters", "unset LC_ALL, or export LC_ALL=C.UTF-8",
                   "ASCII alone, as LC_ALL=%s asks for", all);
    else
        doctor_say(f, FINDING_NOTE, "characters", "install a UTF-8 locale and set LANG to it",
                   "ASCII alone: the system has no C.UTF-8, and LANG names no UTF-8 locale");
}

void
doctor_terminal(struct findings *f)
{
    struct terminal_facts t;
    terminal_look(&t);
    if (say_type(f, &t)) {
        say_size(f, &t);
        say_colours(f, &t);
        if (t.mouse)
            doctor_say(f, FINDING_OK, "mouse", NULL, "clicks, drags and the wheel");
        else
            doctor_say(f, FINDING_NOTE, "mouse", RICH_TYPE,
                       "this terminal type has none; every place has a key as well");
    }
    say_characters(f);
}
