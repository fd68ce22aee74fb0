/* Keys, the mouse and reports of the terminal, without curses. A key is a Unicode code point (such as 'q', ' ', L'é')
 * or one of the names below. */
#pragma once

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
    INPUT_DIRECT,   /* the terminal's answer: it shows 24-bit colours */
    INPUT_ANSWERED, /* its last answer */
    INPUT_LOST      /* the terminal is gone */
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
    bool pasted;             /* it is a part of a paste */
    enum mouse_action mouse; /* of INPUT_MOUSE, at y, x on the screen */
    int y, x;
};

/* Returns the key of a name of `:key`: one character, or Enter, Tab, S-Tab, Esc, Space, Up, S-Left, PageUp, F1, C-l, …
 * The case of names is ignored. INPUT_NONE: there is no such key. */
int input_named(const char *name);

/* Decodes the bytes of a terminal, in whatever pieces they arrive. All bytes between the marks of a bracketed paste are
 * text. Unknown control sequences and their parameters are dropped. */

#define INPUT_BYTES 1024
#define OWN_KEYS    19

extern const char
    *const own_key_names[OWN_KEYS]; /* terminfo's names of keys whose sequences may be the terminal's own */

struct input_decoder {
    char bytes[INPUT_BYTES];
    size_t n;                  /* bytes that are not decoded yet */
    bool pasting;              /* after INPUT_PASTE_BEGIN, before INPUT_PASTE_END */
    const char *own[OWN_KEYS]; /* the sequences of own_key_names; NULL: none; borrowed */
};

/* Takes the next event from the bytes. Returns false if there is none, or its last byte is missing. late: no more bytes
 * came within input_patience_ms(), so the beginning of a sequence is taken for what it is then: the Escape key. Ctrl-C
 * ends a paste then, and is a key. */
bool input_decode(struct input_decoder *, bool late, struct input *);
/* Returns for how long a missing byte may still come; -1: none is missing, or its time is unlimited. */
int input_patience_ms(const struct input_decoder *);

/* Sets a 24-bit colour and asks for it (DECRQSS), then asks for the attributes, whose answer every terminal sends and
 * which therefore ends the answers. */
extern const char *const input_question;
