/* The message above the key line: a result, or why something failed. */
#ifndef TUI_WIDGETS_MESSAGE_H
#define TUI_WIDGETS_MESSAGE_H

#include "engine/base/err.h"
#include "tui/terminal/canvas.h"

#define MESSAGES_KEPT 100

struct message {
    char text[400]; /* printable; "": there is none */
    enum role role;
    bool of_run; /* it is a result of the run, and goes when the next one begins */
    struct {
        char text[400];
        enum role role;
    } said[MESSAGES_KEPT]; /* the latest, number i in place i % MESSAGES_KEPT */
    uint32_t n;            /* said so far */
};

__attribute__((format(printf, 2, 3))) void message_say(struct message *, const char *format, ...);
/* A result of the run: what was said last is one. */
void message_is_of_run(struct message *);
void message_run_begins(struct message *); /* a result of the run before is gone from the status line, but kept */
void message_fail(struct message *, const struct err *);
void message_show(struct message *, const char *text); /* for as long as a key's press; it is not kept */
/* All that is kept, the oldest first; *top: the first line shown, brought to where there is one; beyond: the last. */
void messages_draw(const struct message *, int *top, const struct canvas *);

#endif
