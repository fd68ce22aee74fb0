/* Two settings beside each other: one prompt in two lanes, whose policies and knobs are their own, a round of one at a time,
 * so that what a round spends is its setting's alone. */
#include <string.h>

#include "engine/events/versus_text.h"
#include "engine/session/session_internal.h"

/* What opens with fewer lanes did so before, and does so again. */
static bool
make_room(struct session *s, uint32_t lanes)
{
    struct err err, again;
    if (lanes <= atomic_load(&s->ctx_lanes))
        return true;
    session_close_contexts(s);
    if (session_open_contexts(s, &err))
        return true;
    session_close_contexts(s);
    s->versus.on = false;
    s->n_lanes = s->run.sequences = 1;
    if (!session_open_contexts(s, &again))
        s->asked.quit = true; /* there is nothing left to generate with */
    return session_fail(s, "versus", err.text);
}

/* The second lane's knobs as the first's, but for what was given, and what was turned since. */
static void
begin_second(struct session *s)
{
    struct lane *first = &s->lanes[0], *second = &s->lanes[1];
    const struct versus *v = &s->versus;
    if (s->versus_new)
        second->policy = v->policy;
    for (uint32_t p = 0; p < s->info.n_policies; p++)
        if (s->versus_new || p != second->policy)
            memcpy(second->policies[p].value, first->policies[p].value, sizeof second->policies[p].value);
    if (s->versus_new)
        second->head_mode = v->head_given ? v->head : first->head_mode;
    for (uint32_t k = 0; k < POLICY_KNOBS && s->versus_new; k++)
        if (v->given[k])
            second->policies[v->policy].value[k] = v->value[k];
    s->versus_new = false;
}

/* "layerskip exit_layer=4": all in which it differs from the first's knobs of that policy. */
static void
tell_second(struct session *s)
{
    const uint32_t p = s->lanes[1].policy;
    char text[VERSUS_TEXT_MOST];
    versus_print(&s->info.policies[p], s->lanes[0].policies[p].value, s->lanes[1].policies[p].value, text);
    const size_t used = strlen(text);
    if (s->lanes[1].head_mode != s->lanes[0].head_mode && s->engine->heads != HEAD_LENS)
        snprintf(text + used, sizeof text - used, " head=%s", head_mode_names[s->lanes[1].head_mode]);
    session_tell_state(s, "versus", "", text);
}

bool
session_begin_versus(struct session *s)
{
    if (s->batch)
        return true;
    s->n_lanes = s->run.sequences = s->versus.on ? 2 : 1;
    if (!make_room(s, s->n_lanes))
        return false;
    if (!s->versus.on)
        return true;
    begin_second(s);
    tell_second(s);
    s->lanes[1].number = 1;
    lane_begin_head(&s->lanes[1]);
    return true;
}

/* In a versus it is the turn of the one that has emitted fewer tokens. */
bool
session_takes_part(const struct session *s, const struct lane *l)
{
    if (l->over || !s->versus.on)
        return !l->over;
    const struct lane *other = &s->lanes[l == &s->lanes[0]];
    const uint32_t mine = lane_emitted(l), others = lane_emitted(other);
    return other->over || mine < others || (mine == others && l == &s->lanes[0]);
}
