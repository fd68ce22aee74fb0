/* Knobs, policies, heads and probes take effect between rounds, in the order in which they were asked for. */
#include <stdlib.h>

#include "engine/events/sampling_knobs.h"
#include "engine/session/session_internal.h"

const char *const probe_mode_names[PROBE_MODES] = {"off", "policy", "all"};
const char *const head_mode_names[HEAD_MODES] = {"policy", "lens", "trained"};

/* Whose settings are asked for: the lanes from *first on, *n of them. In a versus they are one's own, else everybody's. */
static void
asked_lanes(struct session *s, uint32_t seq, struct lane **first, uint32_t *n)
{
    *first = &s->lanes[s->versus.on && seq == 1];
    *n = s->versus.on ? 1 : s->n_lanes;
}

static void
tell_setting(struct lane *l, const char *name, const char *before, const char *after, uint32_t asked, uint32_t applied)
{
    if (l->session->versus.on)
        lane_tell_control(l, name, before, after, asked, applied);
    else
        session_tell_control(l->session, name, before, after, asked, applied);
}

/* Sets the head of n lanes by mode, policy and engine; tells when it changed, or always. True: it changed. */
static bool
choose_head(struct lane *l, uint32_t n, bool always, uint32_t asked, uint32_t applied)
{
    if (l->session->engine->heads == HEAD_LENS)
        return false; /* and nothing to say about it */
    const bool before = l->head == USE_TRAINED;
    const bool trained =
        l->head_mode == HEADS_TRAINED || (l->head_mode == HEADS_POLICY && l->policies[l->policy].ops->trained_heads);
    for (uint32_t i = 0; i < n; i++)
        l[i].head = trained ? USE_TRAINED : USE_LENS;
    if (always || trained != before)
        tell_setting(l, "head", always ? "" : head_mode_names[before ? HEADS_TRAINED : HEADS_LENS],
                     head_mode_names[trained ? HEADS_TRAINED : HEADS_LENS], asked, applied);
    return trained != before;
}

void
session_begin_settings(struct session *s)
{
    struct lane *first;
    uint32_t n;
    asked_lanes(s, 0, &first, &n);
    session_tell_state(s, "probe", "", probe_mode_names[s->settings.probe]);
    choose_head(first, n, true, 0, 0);
}

void
lane_begin_head(struct lane *l)
{
    choose_head(l, 1, true, 0, 0);
}

/* From the next round on. What was drawn otherwise cannot be compared with autoregressive tokens any more. */
static void
turn_sampling(struct session *s, const struct mail *m, uint32_t next)
{
    struct settings *now = &s->settings;
    const struct knob *k = &sampling_knobs[m->knob];
    char before[32], after[32];
    knob_format(k, sampling_knob_get(&now->sampling, now->seed, (int)m->knob), before, sizeof before);
    knob_format(k, m->value, after, sizeof after);
    sampling_knob_set(&now->sampling, &now->seed, (int)m->knob, m->value);
    s->run.sampled = s->run.sampled || now->sampling.temperature > 0;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        s->lanes[i].round.sampling = now->sampling;
        s->lanes[i].round.seed = lane_seed(s, s->lanes[i].number);
    }
    session_tell_control(s, k->name, before, after, m->asked_round, next);
}

static void
turn_knob(struct session *s, const struct mail *m, uint32_t next)
{
    const struct knob *k = &s->info.policies[m->policy].knobs[m->knob];
    char before[32], after[32];
    struct lane *l;
    uint32_t n;
    asked_lanes(s, m->seq, &l, &n);
    knob_format(k, l->policies[m->policy].value[m->knob], before, sizeof before);
    knob_format(k, m->value, after, sizeof after);
    for (uint32_t i = 0; i < n; i++)
        l[i].policies[m->policy].value[m->knob] = m->value;
    tell_setting(l, k->name, before, after, m->asked_round, next);
}

static bool
lane_meet_policy(struct lane *l)
{
    struct policy *p = &l->policies[l->policy];
    l->round.number = l->session->round;
    if (l->met == l->policy)
        return true;
    l->met = l->policy;
    return p->ops->prefilled == NULL || p->ops->prefilled(p, &l->round);
}

bool
session_look_back(struct session *s, const struct lane *other, uint32_t n)
{
    struct lane *all[BATCH_MOST] = {NULL}, *changed[BATCH_MOST] = {NULL};
    uint32_t n_all = 0, n_changed = 0;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct lane *l = &s->lanes[i];
        if (session_has_several(s) && l->over)
            continue;
        all[n_all++] = l;
        if (l >= other && l < other + n)
            changed[n_changed++] = l;
    }
    s->round++;
    bool ok = session_probe_recent(s, changed, n_changed);
    for (uint32_t i = 0; i < n_all && ok; i++)
        ok = lane_meet_policy(all[i]);
    s->round--;
    return ok || session_stop(s, "policy");
}

static bool
switch_policy(struct session *s, const struct mail *m, uint32_t next)
{
    struct lane *l;
    uint32_t n;
    asked_lanes(s, m->seq, &l, &n);
    if (m->policy == l->policy)
        return true;
    const char *before = s->info.policies[l->policy].name, *after = s->info.policies[m->policy].name;
    tell_setting(l, "policy", before, after, m->asked_round, next);
    for (uint32_t i = 0; i < n; i++)
        l[i].policy = m->policy;
    return session_look_back(s, l, choose_head(l, n, false, m->asked_round, next) ? n : 0);
}

static bool
switch_head(struct session *s, const struct mail *m, uint32_t next)
{
    struct lane *l;
    uint32_t n;
    asked_lanes(s, m->seq, &l, &n);
    for (uint32_t i = 0; i < n; i++)
        l[i].head_mode = m->head;
    return !choose_head(l, n, false, m->asked_round, next) || session_look_back(s, l, n);
}

static void
switch_probe(struct session *s, const struct mail *m, uint32_t next)
{
    session_tell_control(s, "probe", probe_mode_names[s->settings.probe], probe_mode_names[m->probe], m->asked_round,
                         next);
    s->settings.probe = m->probe;
}

bool
session_apply_settings(struct session *s)
{
    bool ok = true;
    const uint32_t next = s->round + 1;
    while (s->settings.coming != NULL && ok) {
        struct mail *m = s->settings.coming;
        s->settings.coming = m->next;
        m->next = NULL;
        if (m->asked_round > s->round) /* in the run before */
            m->asked_round = s->round;
        if (m->kind == CONTROL_KNOB)
            (m->sampling ? turn_sampling : turn_knob)(s, m, next);
        else if (m->kind == CONTROL_POLICY)
            ok = switch_policy(s, m, next);
        else if (m->kind == CONTROL_HEAD)
            ok = switch_head(s, m, next);
        else
            switch_probe(s, m, next);
        mail_free(m);
    }
    return ok;
}
