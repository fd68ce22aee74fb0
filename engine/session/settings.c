/* Changes of settings are applied between rounds, in the order in which they were posted. */
#include <stdlib.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"
#include "engine/session/session_internal.h"

void
lane_take_settings(struct lane *l)
{
    for (uint32_t p = 0; p < l->session->info.n_policies; p++)
        memcpy(l->policies[p].value, l->current.value[p], sizeof l->policies[p].value);
    l->round.sampling = l->current.sampling;
    l->round.seed = lane_seed(l->session, l->number);
}

/* The lanes whose setting it is, *n of them from *first on: in a versus one, else all. */
static void
lanes_of(struct session *s, uint32_t seq, struct lane **first, uint32_t *n)
{
    *first = &s->lanes[s->versus && seq == 1];
    *n = s->versus ? 1 : s->n_lanes;
}

/* In a versus a change is about one sequence, and else about all. */
static void
tell_change(struct lane *l, const struct change *c)
{
    session_tell_change(l->session, l->session->versus ? l->number : 0, c);
}

const char *
session_head(const struct session *s, const struct settings *settings)
{
    const bool trained = settings->head == HEADS_TRAINED ||
                         (settings->head == HEADS_POLICY && s->lanes[0].policies[settings->policy].ops->trained_heads);
    return s->engine->heads == HEAD_LENS ? "" : head_mode_names[trained ? HEADS_TRAINED : HEADS_LENS];
}

/* Sets the head of n lanes by their settings; emits it when it changed, or always. */
static void
choose_head(struct lane *l, uint32_t n, bool always, uint32_t asked, uint32_t applied)
{
    const char *before = head_mode_names[l->head == USE_TRAINED ? HEADS_TRAINED : HEADS_LENS],
               *after = session_head(l->session, &l->current);
    if (after[0] == '\0')
        return; /* there is no other head than the lens */
    for (uint32_t i = 0; i < n; i++) {
        l[i].head = strcmp(after, head_mode_names[HEADS_TRAINED]) == 0 ? USE_TRAINED : USE_LENS;
        l[i].look_again = l[i].look_again || strcmp(before, after) != 0;
    }
    if (always || strcmp(before, after) != 0)
        tell_change(l, &(struct change){.kind = RECORDED_HEAD,
                                        .before = always ? "" : before,
                                        .after = after,
                                        .asked = asked,
                                        .applied = applied});
}

/* What was drawn otherwise cannot be compared with autoregressive tokens any more. */
static void
change_sampling(struct session *s, const struct mail *m, uint32_t next)
{
    const struct knob *k = &sampling_knobs[m->knob];
    const struct settings *first = &s->lanes[0].current;
    char before[32], after[32];
    knob_format(k, sampling_knob_get(&first->sampling, first->seed, (int)m->knob), before, sizeof before);
    knob_format(k, m->value, after, sizeof after);
    for (uint32_t i = 0; i < s->n_lanes; i++)
        sampling_knob_set(&s->lanes[i].current.sampling, &s->lanes[i].current.seed, (int)m->knob, m->value);
    s->run.sampled = s->run.sampled || first->sampling.temperature > 0;
    session_tell_change(
        s, 0,
        &(struct change){.knob = k->name, .before = before, .after = after, .asked = m->asked_round, .applied = next});
}

static void
change_knob(struct session *s, const struct mail *m, uint32_t next)
{
    const struct knob *k = &s->info.policies[m->policy].knobs[m->knob];
    char before[32], after[32];
    struct lane *l;
    uint32_t n;
    lanes_of(s, m->seq, &l, &n);
    knob_format(k, l->current.value[m->policy][m->knob], before, sizeof before);
    knob_format(k, m->value, after, sizeof after);
    for (uint32_t i = 0; i < n; i++)
        l[i].current.value[m->policy][m->knob] = m->value;
    tell_change(l, &(struct change){
                       .knob = k->name, .before = before, .after = after, .asked = m->asked_round, .applied = next});
}

static void
switch_policy(struct session *s, const struct mail *m, uint32_t next)
{
    struct lane *l;
    uint32_t n;
    lanes_of(s, m->seq, &l, &n);
    if (m->policy == l->current.policy)
        return;
    tell_change(l, &(struct change){.kind = RECORDED_POLICY,
                                    .before = lane_policy(l)->info.name,
                                    .after = s->info.policies[m->policy].name,
                                    .asked = m->asked_round,
                                    .applied = next});
    for (uint32_t i = 0; i < n; i++)
        l[i].current.policy = m->policy;
    choose_head(l, n, false, m->asked_round, next);
}

static void
switch_head(struct session *s, const struct mail *m, uint32_t next)
{
    struct lane *l;
    uint32_t n;
    lanes_of(s, m->seq, &l, &n);
    for (uint32_t i = 0; i < n; i++)
        l[i].current.head = m->head;
    choose_head(l, n, false, m->asked_round, next);
}

static void
switch_probe(struct session *s, const struct mail *m, uint32_t next)
{
    session_tell_change(s, 0,
                        &(struct change){.kind = RECORDED_PROBE,
                                         .before = probe_mode_names[s->lanes[0].current.probe],
                                         .after = probe_mode_names[m->probe],
                                         .asked = m->asked_round,
                                         .applied = next});
    for (uint32_t i = 0; i < s->n_lanes; i++)
        s->lanes[i].current.probe = m->probe;
}

/* All that were posted, in that order; a run of two settings begins among them with its second one. */
static void
apply_changes(struct session *s)
{
    const uint32_t next = s->round + 1;
    for (struct mail *m; (m = s->changes) != NULL; mail_free(m)) {
        s->changes = m->next;
        m->next = NULL;
        if (m->asked_round > s->round) /* in the run before */
            m->asked_round = s->round;
        switch (m->kind) {
        case CONTROL_KNOB: (m->sampling ? change_sampling : change_knob)(s, m, next); break;
        case CONTROL_POLICY: switch_policy(s, m, next); break;
        case CONTROL_HEAD: switch_head(s, m, next); break;
        case CONTROL_PROBE: switch_probe(s, m, next); break;
        default: session_begin_second(s, m->second); choose_head(&s->lanes[1], 1, true, 0, 0);
        }
    }
    for (uint32_t i = 0; i < s->n_lanes; i++)
        lane_take_settings(&s->lanes[i]);
}

void
session_begin_settings(struct session *s)
{
    struct lane *first;
    uint32_t n;
    lanes_of(s, 0, &first, &n);
    session_tell_of(s, 0, RECORDED_PROBE, probe_mode_names[first->current.probe]);
    choose_head(first, n, true, 0, 0);
}

void
session_take_settings(struct session *s)
{
    apply_changes(s);
    for (uint32_t i = 0; i < s->n_lanes; i++)
        s->lanes[i].look_again = false; /* nothing of the new run was looked at */
}

static bool
lane_meet_policy(struct lane *l)
{
    struct policy *p = lane_policy(l);
    l->round.number = l->session->round;
    if (l->met == l->current.policy)
        return true;
    l->met = l->current.policy;
    return p->ops->prefilled == NULL || p->ops->prefilled(p, &l->round);
}

bool
session_look_back(struct session *s)
{
    struct lane *all[BATCH_MOST] = {NULL}, *changed[BATCH_MOST] = {NULL};
    uint32_t n_all = 0, n_changed = 0;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct lane *l = &s->lanes[i];
        const bool again = l->look_again;
        l->look_again = false;
        if (session_has_several(s) && l->over)
            continue;
        all[n_all++] = l;
        if (again)
            changed[n_changed++] = l;
    }
    s->round++;
    bool ok = session_probe_recent(s, changed, n_changed);
    for (uint32_t i = 0; i < n_all && ok; i++)
        ok = lane_meet_policy(all[i]);
    s->round--;
    return ok || session_stop(s, "policy");
}

bool
session_apply_settings(struct session *s)
{
    apply_changes(s);
    return session_look_back(s);
}
