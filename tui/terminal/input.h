/* Keys, the mouse and reports of the terminal, without curses. A key is a Unicode code point (such as 'q', ' ', L'é') or one of the
 * names below. */
#ifndef TUI_TERMINAL_INPUT_H
#define TUI_TERMINAL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_CTRL(letter) ((letter)&0x1f) /* INPUT_CTRL('L'); Ctrl-I is Tab, Ctrl-M is Enter, Ctrl-[ is Escape */

enum input_key {
    INPUT_NONE = 0, /* nothing was pressed */
    INPUT_TAB = 9,
    INPUT_ENTER = 13,
    INPUT_ESCAPE = 27,
    INPUT_BACKSPACE = 127,
    INPUT_UP = 0x110000, /* larger than any Unicode character */
    INPUT_DOWN,
    INPUT_LEFT,
    INPUT_RIGHT,
    INPUT_SHIFT_UP,
    INPUT_SHIFT_DOWN,
    INPUT_SHIFT_LEFT,
    INPUT_SHIFT_RIGHT,
    INPUT_HOME,
    INPUT_END,
    INPUT_PAGE_UP,
    INPUT_PAGE_DOWN,
    INPUT_INSERT,
    INPUT_DELETE,
    INPUT_SHIFT_TAB,
    INPUT_F1,
    INPUT_F12 = INPUT_F1 + 11,
    INPUT_PASTE_BEGIN, /* of a bracketed paste: the input up to its end is text, not commands */
    INPUT_PASTE_END,
    INPUT_RESIZE,
    INPUT_MOUSE,
    INPUT_LOST /* the terminal is gone */
};

/* The direction of arrow keys and h j k l, and of PgUp and PgDn, which move down by `page`; zeros: another key. */
struct step {
    long right, down;
};
struct step input_step(int key, long page);

enum mouse_action { MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE, MOUSE_DOUBLE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };
int mouse_wheel(enum mouse_action); /* -1: up, 1: down, 0: not the wheel */

struct input {
    int key;
    enum mouse_action mouse; /* of INPUT_MOUSE, at y, x on the screen */
    int y, x;
};

/* Returns the key of a name of `:key`: one character, or Enter, Tab, S-Tab, Esc, Space, Up, S-Left, PageUp, F1, C-l, … The case of
 * names is ignored. INPUT_NONE: there is no such key. */
int input_named(const char *name);

/* A report: input from the terminal other than keys, that is mouse events and answers to questions. It arrives
 * character by character after its introducer, possibly in pieces. */

#define REPORT_MAX 96

enum report_kind {
    REPORT_NONE,
    REPORT_MOUSE,      /* CSI < button ; x ; y M, or m for a release: any column */
    REPORT_OLD_MOUSE,  /* CSI M and three characters: columns up to 223 */
    REPORT_STATE,      /* DCS 1 $ r … ST: the answer to DECRQSS */
    REPORT_ATTRIBUTES, /* CSI ? … c: the attributes, which every terminal sends */
};

struct report {
    enum report_kind kind;
    char text[REPORT_MAX]; /* after the introducer, including the end; terminated */
    size_t n;
};

enum report_result { REPORT_OPEN, REPORT_WHOLE, REPORT_BROKEN };

void report_begin(struct report *, enum report_kind);
/* Adds the next character. After REPORT_WHOLE the caller reads the text, and closes it with report_begin(r, REPORT_NONE). */
enum report_result report_take(struct report *, uint32_t code);
/* Converts a whole mouse report to INPUT_MOUSE with MOUSE_PRESS, _DRAG, _RELEASE or a wheel; the caller detects MOUSE_DOUBLE. Returns
 * false for an unwanted event, such as a movement without a button. */
bool report_mouse(const struct report *, struct input *);

/* Sets a 24-bit colour and asks for it (DECRQSS), then asks for the attributes, whose answer every terminal sends and which therefore
 * ends the answers. */
extern const char *const report_question;
bool report_says_direct(const struct report *); /* whether a whole REPORT_STATE contains that colour */

#endif
