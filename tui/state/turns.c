#include "tui/state/turns.h"

#include <stdio.h>
#include <string.h>

static bool
is_turn(const struct turns *t, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (c->old_text == NULL || c->new_text == NULL || strcmp(c->old_text, c->new_text) == 0)
        return false;
    if (strcmp(c->name, "policy") == 0)
        return true;
    if (strcmp(c->name, "head") == 0) /* with a run it only says which; behind a policy it goes with that */
        return c->old_text[0] != '\0' && e->number != t->policy_event + 1;
    for (int i = 0; control_names[i] != NULL; i++)
        if (strcmp(control_names[i], c->name) == 0)
            return false;
    return true;
}

static bool
is_from_to(const struct turn *turn, const struct event *e, const char *from, const char *to)
{
    const struct control_event *c = &e->control;
    return turn->seq == e->seq && strcmp(turn->name, c->name) == 0 && strcmp(c->old_text, from) == 0 &&
           strcmp(c->new_text, to) == 0;
}

/* A knob that goes on turning before a round ran. */
static bool
joins(struct turns *t, const struct event *e)
{
    const struct control_event *c = &e->control;
    struct turn *last = t->at > 0 && t->at == t->n && t->together == 0 ? &t->turn[t->at - 1] : NULL;
    if (last == NULL || last->applied_round != c->applied_round || last->group > 0 || last->seq != e->seq ||
        strcmp(last->name, c->name) != 0 || strcmp(last->after, c->old_text) != 0)
        return false;
    snprintf(last->after, sizeof last->after, "%s", c->new_text);
    if (strcmp(last->before, last->after) == 0)
        t->n = --t->at;
    return true;
}

static void
append(struct turns *t, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (t->at == TURNS) {
        memmove(&t->turn[0], &t->turn[1], (TURNS - 1) * sizeof t->turn[0]);
        t->at--;
    }
    struct turn *turn = &t->turn[t->at++];
    t->n = t->at;
    *turn = (struct turn){.applied_round = c->applied_round, .seq = e->seq};
    snprintf(turn->name, sizeof turn->name, "%s", c->name);
    snprintf(turn->before, sizeof turn->before, "%s", c->old_text);
    snprintf(turn->after, sizeof turn->after, "%s", c->new_text);
    if (t->together > 0) {
        t->together--;
        turn->group = t->groups;
    }
}

static void
take_turn(struct turns *t, const struct event *e)
{
    if (t->undoing > 0 && t->at > 0 &&
        is_from_to(&t->turn[t->at - 1], e, t->turn[t->at - 1].after, t->turn[t->at - 1].before)) {
        t->undoing--;
        t->at--;
        return;
    }
    if (t->redoing > 0 && t->at < t->n && is_from_to(&t->turn[t->at], e, t->turn[t->at].before, t->turn[t->at].after)) {
        t->redoing--;
        t->at++;
        return;
    }
    t->undoing = t->redoing = 0;
    if (!joins(t, e))
        append(t, e);
}

/* What was turned of a setting that is there no more can't be taken back. */
static void
forget_second(struct turns *t)
{
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->turn[i].seq != 1) {
            t->turn[kept++] = t->turn[i];
            at += i < t->at;
        }
    t->n = kept;
    t->at = at;
    t->undoing = t->redoing = 0;
    t->other_second = false;
}

void
turns_event(struct turns *t, const struct event *e)
{
    if (e->type == EVENT_ROUND && t->together > 0 && ++t->rounds > 2)
        t->together = 0; /* fewer came than were asked for: some stood there already */
    if (e->type != EVENT_CONTROL)
        return;
    if (t->other_second && strcmp(e->control.name, "run") == 0)
        forget_second(t);
    if (is_turn(t, e))
        take_turn(t, e);
    if (strcmp(e->control.name, "policy") == 0)
        t->policy_event = e->number;
}

void
turns_other_second(struct turns *t)
{
    t->other_second = true;
}

void
turns_together(struct turns *t, uint32_t n)
{
    t->groups++;
    t->together = n;
    t->rounds = 0;
}

const struct turn *
turns_back(const struct turns *t)
{
    return t->redoing == 0 && t->at > t->undoing ? &t->turn[t->at - t->undoing - 1] : NULL;
}

const struct turn *
turns_forth(const struct turns *t)
{
    return t->undoing == 0 && t->at + t->redoing < t->n ? &t->turn[t->at + t->redoing] : NULL;
}

void
turns_undo(struct turns *t)
{
    t->undoing++;
}

void
turns_redo(struct turns *t)
{
    t->redoing++;
}
