/* The message above the key bar: a result or an error. */
#ifndef TUI_APP_MESSAGE_H
#define TUI_APP_MESSAGE_H

#include "base/err.h"
#include "tui/terminal/canvas.h"

#define MESSAGES_KEPT 100

struct message {
    char text[400]; /* printable; "": none */
    enum role role;
    bool of_run; /* it is a result of the run, as the caller says after message_print(); the next run removes it */
    struct {
        char text[400];
        enum role role;
    } said[MESSAGES_KEPT]; /* the latest; message i is at index i % MESSAGES_KEPT */
    uint32_t n;            /* number of messages so far */
};

__attribute__((format(printf, 2, 3))) void message_print(struct message *, const char *format, ...);
/* Shows a result of the run that no key requested. While an error is on the screen, only the list gets it. */
void message_report(struct message *, const char *text);
void message_run_begins(struct message *); /* removes the last run's result from the screen, not from the list */
void message_fail(struct message *, const struct err *);
void message_show(struct message *, const char *text); /* shown until the next key; not kept in the list */

#endif
