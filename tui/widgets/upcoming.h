/* What comes after a text: the next prompt of a list, by itself after a moment. The clock is the caller's. */
#ifndef TUI_WIDGETS_UPCOMING_H
#define TUI_WIDGETS_UPCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPCOMING_US 5000000 /* after the end of a text */

struct upcoming {
    char *const *prompts; /* (n) borrowed; none: nothing comes */
    size_t n, at;         /* the one that ran last, when it is of the list */
    bool by_itself;       /* without it prompts only come when they are asked for */
    bool ended, held;     /* the text has; and somebody said that it stays, */
    bool stays;           /* or that it will, once it ends */
    uint32_t run;         /* number of the text that runs or has ended */
    uint64_t since_us;
    int shown_s; /* the seconds that the last frame was due for */
};

/* `current`: what runs now (NULL: not known), which the next one follows if it is of the list. */
void upcoming_begin(struct upcoming *, char *const *prompts, size_t n, bool by_itself, const char *current);
/* The next one, after `current`; NULL: there is no other. upcoming_take() says that it runs. */
const char *upcoming_next(const struct upcoming *, const char *current);
void upcoming_take(struct upcoming *, const char *prompt);
/* Called in every turn with the number of the text and whether it has ended; the countdown begins when it ends. `stay`: a text that
 * ends up to the next call, or that runs then, has no countdown at its end. */
void upcoming_look(struct upcoming *, uint32_t run, bool ended, bool stay, uint64_t now_us);
/* Something else is under way after the end of a text, such as a baseline: the moment begins when that is done. */
void upcoming_wait(struct upcoming *, uint64_t now_us);
void upcoming_hold(struct upcoming *); /* a key was pressed: this one waits until it is asked for */
/* Seconds until it starts, from 5 down; 0: now; -1: it doesn't by itself. */
int upcoming_seconds(const struct upcoming *, uint64_t now_us);

#endif
