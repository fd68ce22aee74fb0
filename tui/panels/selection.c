#include "tui/panels/panel.h"

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
