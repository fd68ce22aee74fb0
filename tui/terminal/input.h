/* Keys and mouse, with names of our own: panels and scripts know no curses. A key is a Unicode code point (so 'q', ' ',
 * L'é' are themselves), or one of the names below. */
#ifndef TUI_TERMINAL_INPUT_H
#define TUI_TERMINAL_INPUT_H

#define INPUT_CTRL(letter) ((letter)&0x1f) /* INPUT_CTRL('L'); Ctrl-I is Tab, Ctrl-M is Enter, Ctrl-[ is Escape */

enum input_key {
    INPUT_NONE = 0, /* nothing was pressed */
    INPUT_TAB = 9,
    INPUT_ENTER = 13,
    INPUT_ESCAPE = 27,
    INPUT_BACKSPACE = 127,
    INPUT_UP = 0x110000, /* beyond Unicode */
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
    INPUT_PASTE_BEGIN, /* the terminal's bracketed paste: what comes between is text, not commands */
    INPUT_PASTE_END,
    INPUT_RESIZE,
    INPUT_MOUSE,
    INPUT_LOST /* the terminal is gone */
};

enum mouse_action { MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE, MOUSE_DOUBLE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };

struct input {
    int key;
    enum mouse_action mouse; /* of INPUT_MOUSE, at y, x on the screen */
    int y, x;
};

/* The key of a name as :key takes it: one character, or Enter, Tab, S-Tab, Esc, Space, Up, S-Left, PageUp, F1, C-l, …
 * Case does not matter for names. INPUT_NONE when there is none such. */
int input_named(const char *name);

#endif
