/* Two settings beside each other: one prompt in two lanes, whose policies and knobs are their own, a round of one at a time,
 * so that what a round spends is its setting's alone. */
#include <string.h>

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
    session_forget_second(s);
    mailbox_alone(&s->mailbox);
    s->n_lanes = s->run.sequences = 1;
    if (!session_open_contexts(s, &again))
        s->asked.quit = true; /* there is nothing left to generate with */
    return session_fail(s, "versus", err.text);
}

bool
session_make_room(struct session *s)
{
    if (s->batch)
        return true;
    s->n_lanes = s->run.sequences = s->versus ? 2 : 1;
    s->turn = 0;
    return make_room(s, s->n_lanes);
}

/* "layerskip exit_layer=4": all in which it differs from the first's knobs of that policy. */
void
session_begin_second(struct session *s, const struct settings *settings)
{
    const struct settings *first = &s->lanes[0].current;
    struct lane *l = &s->lanes[1];
    char text[VERSUS_TEXT_MOST];
    l->current = *settings;
    l->number = 1;
    settings_print_versus(first, settings, &s->info, text);
    const size_t used = strlen(text);
    if (settings->head != first->head && s->engine->heads != HEAD_LENS)
        snprintf(text + used, sizeof text - used, " head=%s", head_mode_names[settings->head]);
    session_tell_of(s, 0, RECORDED_VERSUS, text);
}

/* In a versus it is the turn of the lane that has emitted fewer tokens. Where both have as many, the last one runs again: so each is
 * first as often as the other, and what a round finds in the caches favours none. */
bool
session_takes_part(const struct session *s, const struct lane *l)
{
    if (l->over || !s->versus)
        return !l->over;
    const struct lane *other = &s->lanes[l == &s->lanes[0]];
    const uint32_t mine = lane_emitted(l), others = lane_emitted(other);
    return other->over || mine < others || (mine == others && l == &s->lanes[s->turn]);
}
