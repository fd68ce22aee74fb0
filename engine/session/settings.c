/* Knobs, policies, heads and probes take effect between rounds, in the order in which they were asked for. */
#include <stdlib.h>

#include "engine/session/session_internal.h"

const char *const probe_mode_names[PROBE_MODES] = {"off", "policy", "all"};
const char *const head_mode_names[HEAD_MODES] = {"policy", "lens", "trained"};

/* Sets the head by mode, policy and engine; tells when it changed, or always. True: it changed. */
static bool
choose_head(struct session *s, bool always, uint32_t asked, uint32_t applied)
{
    struct settings *now = &s->settings;
    if (s->engine->heads == HEAD_LENS)
        return false; /* and nothing to say about it */
    const bool before = now->head == USE_TRAINED;
    const bool trained = now->head_mode == HEADS_TRAINED ||
                         (now->head_mode == HEADS_POLICY && s->policies[now->policy].ops->trained_heads);
    now->head = trained ? USE_TRAINED : USE_LENS;
    if (always || trained != before)
        session_tell_control(s, "head", always ? "" : head_mode_names[before ? HEADS_TRAINED : HEADS_LENS],
                             head_mode_names[trained ? HEADS_TRAINED : HEADS_LENS], asked, applied);
    return trained != before;
}

void
session_begin_settings(struct session *s)
{
    session_tell_state(s, "probe", "", probe_mode_names[s->settings.probe]);
    choose_head(s, true, 0, 0);
}

static void
turn_knob(struct session *s, const struct mail *m, uint32_t next)
{
    struct policy *p = &s->policies[m->policy];
    const struct knob *k = &p->info.knobs[m->knob];
    char before[32], after[32];
    knob_format(k, p->value[m->knob], before, sizeof before);
    knob_format(k, m->value, after, sizeof after);
    p->value[m->knob] = m->value;
    session_tell_control(s, k->name, before, after, m->asked_round, next);
}

/* Another policy has not seen the rows yet, another head has not been seen at them. What is said of them is told as the
 * next round's: this one is closed. */
static bool
look_back(struct session *s, bool other_head, bool other_policy)
{
    struct policy *p = &s->policies[s->settings.policy];
    s->round.number++;
    const bool ok = (!other_head || session_probe_recent(s)) &&
                    (!other_policy || p->ops->prefilled == NULL || p->ops->prefilled(p, &s->round));
    s->round.number--;
    return ok || session_stop(s, "policy");
}

static bool
switch_policy(struct session *s, const struct mail *m, uint32_t next)
{
    if (m->policy == s->settings.policy)
        return true;
    session_tell_control(s, "policy", s->info.policies[s->settings.policy].name, s->info.policies[m->policy].name,
                         m->asked_round, next);
    s->settings.policy = m->policy;
    return look_back(s, choose_head(s, false, m->asked_round, next), true);
}

static bool
switch_head(struct session *s, const struct mail *m, uint32_t next)
{
    s->settings.head_mode = m->head;
    return !choose_head(s, false, m->asked_round, next) || look_back(s, true, false);
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
    const uint32_t next = s->round.number + 1;
    while (s->settings.coming != NULL && ok) {
        struct mail *m = s->settings.coming;
        s->settings.coming = m->next;
        m->next = NULL;
        if (m->asked_round > s->round.number) /* in the run before */
            m->asked_round = s->round.number;
        if (m->kind == CONTROL_KNOB)
            turn_knob(s, m, next);
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
