#include "tui/state/turns.h"

#include <stdio.h>
#include <string.h>

/* A knob that is turned further in the same round. */
static bool
joins(struct turns *t, const struct turn *new)
{
    struct turn *last = t->at > 0 && t->at == t->n && t->group == 0 ? &t->turn[t->at - 1] : NULL;
    if (last == NULL || last->round != new->round || last->group > 0 || last->seq != new->seq ||
        strcmp(last->name, new->name) != 0)
        return false;
    memcpy(last->after, new->after, sizeof last->after);
    if (strcmp(last->before, last->after) == 0)
        t->n = --t->at;
    return true;
}

void
turns_add(struct turns *t, const struct turn *new)
{
    if (strcmp(new->before, new->after) == 0 || joins(t, new))
        return;
    if (t->at == TURNS) {
        memmove(&t->turn[0], &t->turn[1], (TURNS - 1) * sizeof t->turn[0]);
        t->at--;
    }
    t->turn[t->at] = *new;
    t->turn[t->at++].group = t->group;
    t->n = t->at;
}

void
turns_group(struct turns *t, bool begin)
{
    t->group = begin ? ++t->groups : 0;
}

void
turns_forget_second(struct turns *t)
{
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->turn[i].seq != 1) {
            t->turn[kept++] = t->turn[i];
            at += i < t->at;
        }
    t->n = kept;
    t->at = at;
}

const struct turn *
turns_back(const struct turns *t)
{
    return t->at > 0 ? &t->turn[t->at - 1] : NULL;
}

const struct turn *
turns_forth(const struct turns *t)
{
    return t->at < t->n ? &t->turn[t->at] : NULL;
}

void
turns_undo(struct turns *t)
{
    t->at--;
}

void
turns_redo(struct turns *t)
{
    t->at++;
}
