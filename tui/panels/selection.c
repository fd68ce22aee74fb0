#include "tui/panels/panel.h"

bool
selection_in_round(const struct view *v, const struct scope_round *r)
{
    const struct scope_column *c = scope_column(v->scope, v->selection->pos);
    return !v->selection->follow && c != NULL && c->fate != FATE_PROMPT && c->fate != FATE_PREFILL &&
           c->round == r->number;
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
