#include "tui/state/changes.h"

#include <stdio.h>
#include <string.h>

/* Joins a change with the last one if both change one knob in one round. */
static bool
joins(struct changes *t, const struct change *new)
{
    struct change *last = t->at > 0 && t->at == t->n && t->group == 0 ? &t->change[t->at - 1] : NULL;
    if (last == NULL || last->round != new->round || last->group > 0 || last->seq != new->seq ||
        strcmp(last->name, new->name) != 0)
        return false;
    memcpy(last->after, new->after, sizeof last->after);
    if (strcmp(last->before, last->after) == 0)
        t->n = --t->at;
    return true;
}

void
changes_add(struct changes *t, const struct change *new)
{
    if (strcmp(new->before, new->after) == 0 || joins(t, new))
        return;
    if (t->at == CHANGES_MOST) {
        memmove(&t->change[0], &t->change[1], (CHANGES_MOST - 1) * sizeof t->change[0]);
        t->at--;
    }
    t->change[t->at] = *new;
    t->change[t->at++].group = t->group;
    t->n = t->at;
}

void
changes_group(struct changes *t, bool begin)
{
    t->group = begin ? ++t->groups : 0;
}

void
changes_forget_second(struct changes *t)
{
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->change[i].seq != 1) {
            t->change[kept++] = t->change[i];
            at += i < t->at;
        }
    t->n = kept;
    t->at = at;
}

const struct change *
changes_back(const struct changes *t)
{
    return t->at > 0 ? &t->change[t->at - 1] : NULL;
}

const struct change *
changes_forth(const struct changes *t)
{
    return t->at < t->n ? &t->change[t->at] : NULL;
}

void
changes_undo(struct changes *t)
{
    t->at--;
}

void
changes_redo(struct changes *t)
{
    t->at++;
}
