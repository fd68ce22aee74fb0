#include "tui/panels/panel.h"

bool
selection_in_round(const struct view *v, const struct scope_round *r)
{
    const struct scope_column *c = scope_column(v->scope, v->selection->pos);
    return !v->selection->follow && c != NULL && c->fate != FATE_PROMPT && c->fate != FATE_PREFILL &&
           c->round == r->number;
}
