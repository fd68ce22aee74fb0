#include "traces/bounds.h"

#include <string.h>

bool
bounds_leave_out(const struct bounds *b, const struct event *e)
{
    if ((e->type != EVENT_LAYER && e->type != EVENT_EXPERTS) || b->of.layers == TRACE_LAYERS_ALL)
        return false;
    if (b->of.layers == TRACE_LAYERS_OFF)
        return true;
    return (e->type == EVENT_EXPERTS || e->layer.probed_by == PROBED_SCOPE) &&
           (b->of.every == 0 || e->round % b->of.every != 0);
}

static void
mark(struct bounds_mark *m, uint64_t event, const struct table_out *tables, uint64_t rounds)
{
    m->event = event;
    m->rounds = rounds;
    for (unsigned i = 0; i < TABLES; i++) {
        m->used[i] = tables[i].used;
        m->lines[i] = tables[i].n_lines;
    }
}

void
bounds_before(struct bounds *b, const struct event *e, const struct table_out tables[TABLES], uint64_t rounds)
{
    if (e->type == EVENT_ROUND && (e->run != b->run || e->round != b->round))
        b->whole = b->last;
    else if (e->type == EVENT_CONTROL && strcmp(e->control.name, "run") == 0)
        mark(&b->whole, e->number - 1, tables, rounds);
}

bool
bounds_behind(struct bounds *b, const struct event *e, size_t bytes, const struct table_out tables[TABLES],
              uint64_t rounds)
{
    b->bytes += bytes;
    if (b->of.bytes > 0 && b->bytes > b->of.bytes)
        return false;
    if (e->type == EVENT_ROUND) {
        b->run = e->run;
        b->round = e->round;
        mark(&b->last, e->number, tables, rounds);
    }
    return true;
}

void
bounds_written(struct bounds *b)
{
    memset(b->last.used, 0, sizeof b->last.used);
    memset(b->whole.used, 0, sizeof b->whole.used);
}
