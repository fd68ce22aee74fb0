/* Where rows went, of a mixture of experts. */
#include "tui/scope/scope_internal.h"

void
scope_experts_event(const struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct experts_event *x = &e->experts;
    const struct run_info *run = run_info_of(s->info, q->seq);
    bool ok = x->n > 0 && x->n <= EXPERTS_TOLD && x->layer >= 1 && (uint32_t)x->layer <= run->layers;
    for (uint32_t i = 0; ok && i < x->n; i++)
        ok = x->expert[i] < run->experts;
    if (!ok || sequence_touch(q, x->pos) == NULL || (q->length > q->max_columns && x->pos < q->length - q->max_columns))
        return;
    q->starved = !expert_cells_take(&q->experts, run, q->max_columns, x) || q->starved;
}

uint32_t
scope_expert_count(const struct scope *s, uint32_t *used)
{
    const struct run_info *run = scope_info(s);
    if (used != NULL)
        *used = run->experts_used;
    return run->experts;
}

struct scope_experts
scope_experts(const struct scope *s, uint32_t pos, uint32_t layer)
{
    return pos < s->focus->length ? expert_cells(&s->focus->experts, pos, layer) : (struct scope_experts){0};
}

uint64_t
scope_expert_rows(const struct scope *s, uint32_t layer)
{
    const struct expert_cells *x = &s->focus->experts;
    return x->used > 0 && layer <= x->layers ? x->rows[layer] : 0;
}

uint64_t
scope_expert_chosen(const struct scope *s, uint32_t layer, uint32_t expert)
{
    const struct expert_cells *x = &s->focus->experts;
    return x->used > 0 && layer <= x->layers && expert < x->experts ? x->chosen[layer * (size_t)x->experts + expert]
                                                                    : 0;
}
