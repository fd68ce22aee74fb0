/* The next prompt of a list, which starts a few seconds after a text has ended. The caller supplies the time. */
#ifndef TUI_APP_UPCOMING_H
#define TUI_APP_UPCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPCOMING_US 5000000 /* after the end of a text */

struct upcoming {
    char *const *prompts; /* (n) borrowed */
    size_t n, at;         /* index of the list's prompt that ran last */
    bool by_itself;       /* else a prompt starts only on request */
    bool ended;           /* the text has ended */
    bool
        held; /* the user keeps it on the screen, as after a key: the next prompt waits for a request; the caller may set it */
    bool stays;        /* the user will keep it once it has ended */
    bool own;          /* it is the user's own prompt, which the list does not replace by itself; the caller sets it */
    uint32_t run;      /* number of the current text */
    uint64_t since_us; /* begin of the countdown; the caller moves it while other work, such as a baseline, runs */
    int shown_s;       /* seconds that the last frame showed */
};

/* `current`: the running prompt (NULL: unknown); if the list contains it, the list continues after it. */
void upcoming_begin(struct upcoming *, char *const *prompts, size_t n, bool by_itself, const char *current);
/* Returns the prompt after `current`; NULL: there is no other. The caller reports its start with upcoming_take(). */
const char *upcoming_next(const struct upcoming *, const char *current);
void upcoming_take(struct upcoming *, const char *prompt);
/* The main loop calls this with the number of the text and whether it has ended; the end begins the countdown. `stay`:
 * the text that runs at the next call, or ended before it, gets no countdown. */
void upcoming_look(struct upcoming *, uint32_t run, bool ended, bool stay, uint64_t now_us);
/* Seconds until the next prompt starts, from 5 down; 0: now; -1: it waits for a request. */
int upcoming_seconds(const struct upcoming *, uint64_t now_us);

#endif
