/* The status line's message: what was said last, or why something failed. */
#ifndef TUI_APP_MESSAGE_H
#define TUI_APP_MESSAGE_H

#include "engine/base/err.h"
#include "tui/terminal/canvas.h"

struct message {
    char text[400]; /* printable; "": there is none */
    enum role role;
};

__attribute__((format(printf, 2, 3))) void message_say(struct message *, const char *format, ...);
void message_fail(struct message *, const struct err *);

#endif
