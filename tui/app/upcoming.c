#include "tui/app/upcoming.h"

#include <string.h>

/* Returns the index of a prompt in the list; n: the list does not contain it. */
static size_t
place_of(const struct upcoming *u, const char *prompt)
{
    size_t i = 0;
    while (i < u->n && (prompt == NULL || strcmp(u->prompts[i], prompt) != 0))
        i++;
    return i;
}

void
upcoming_begin(struct upcoming *u, char *const *prompts, size_t n, bool by_itself, const char *current)
{
    *u = (struct upcoming){.prompts = prompts, .n = n, .by_itself = by_itself};
    const size_t at = place_of(u, current);
    u->at = at < n ? at : n > 0 ? n - 1 : 0; /* the first prompt follows a text that is not in the list */
}

const char *
upcoming_next(const struct upcoming *u, const char *current)
{
    if (u->n == 0)
        return NULL;
    const size_t here = place_of(u, current);
    const char *next = u->prompts[((here < u->n ? here : u->at) + 1) % u->n];
    return current != NULL && strcmp(next, current) == 0 ? NULL : next;
}

void
upcoming_take(struct upcoming *u, const char *prompt)
{
    const size_t at = place_of(u, prompt);
    u->at = at < u->n ? at : u->at;
    u->ended = u->held = u->stays = u->own = false;
}

void
upcoming_look(struct upcoming *u, uint32_t run, bool ended, bool stay, uint64_t now_us)
{
    const bool just_ended = ended && (!u->ended || run != u->run); /* its begin may also be after the last call */
    if (just_ended) {
        u->since_us = now_us;
        u->held = stay || u->stays;
    } else if (ended && stay) {
        u->held = true;
    }
    u->stays = stay || (u->stays && !ended);
    u->run = run;
    u->ended = ended;
}

int
upcoming_seconds(const struct upcoming *u, uint64_t now_us)
{
    if (!u->ended || u->held || u->own || !u->by_itself || u->n == 0)
        return -1;
    const uint64_t spent = now_us - u->since_us;
    return spent >= UPCOMING_US ? 0 : (int)((UPCOMING_US - spent + 999999) / 1000000);
}
