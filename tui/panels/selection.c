#include "tui/panels/panel.h"
#include "tui/scope/batch.h"

uint32_t
selection_round(const struct view *v)
{
    const struct scope_column *c = v->selection->follow ? NULL : scope_column(v->scope, v->selection->pos);
    return c != NULL && c->fate != FATE_PROMPT && c->fate != FATE_PREFILL ? c->round : 0;
}

bool
selection_in_round(const struct view *v, const struct scope_round *r)
{
    return selection_round(v) == r->number && r->number > 0;
}

void
selection_to_round(const struct view *v, uint32_t round)
{
    const uint32_t pos = scope_round_position(v->scope, round);
    if (pos >= scope_now(v->scope)->length)
        return;
    v->selection->pos = pos;
    v->selection->follow = false;
}

void
selection_move(const struct view *v, long rounds)
{
    const struct scope *s = v->scope;
    uint32_t round = selection_round(v), next;
    if (v->selection->follow) { /* the first step back is to the newest round */
        if (rounds >= 0 || (round = scope_round_before(s, UINT32_MAX)) == 0)
            return;
        rounds++;
    }
    for (; rounds < 0 && (next = scope_round_before(s, round)) != 0; rounds++)
        round = next;
    for (; rounds > 0 && (next = scope_round_after(s, round)) != 0; rounds--)
        round = next;
    if (rounds > 0)
        v->selection->follow = true;
    else if (round > 0)
        selection_to_round(v, round);
}

/* The next older segment of the sequence in focus, from `back` on; NULL: there is none. */
static const struct segment *
next_older(const struct view *v, uint32_t *back)
{
    const struct segment *s;
    while ((s = segments_at(scope_segments(v->scope), (*back)++)) != NULL &&
           !segment_concerns(s, scope_focus(v->scope)))
        ;
    return s;
}

const struct segment *
selection_segment(const struct view *v, uint32_t *last)
{
    const struct scope_column *c = scope_column(v->scope, v->selection->pos);
    const uint32_t round = v->selection->follow ? UINT32_MAX : c != NULL ? c->round : 0;
    uint32_t back = 0;
    const struct segment *s = next_older(v, &back), *older;
    *last = UINT32_MAX;
    while (s != NULL && s->first_round > round) {
        older = next_older(v, &back);
        if (older == NULL || older->run != s->run)
            break;
        *last = s->first_round - 1;
        s = older;
    }
    return s;
}
