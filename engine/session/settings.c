/* Changes of settings are applied between rounds, in the order in which they were posted. The sequences of a batch have the same
 * settings and share their rounds. Sequences of different settings (versus) take turns, one in each round, so that the costs of a
 * round belong to one of them. */
#include <stdlib.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"
#include "engine/session/session_internal.h"

void
seq_take_settings(struct sequence *q)
{
    for (uint32_t p = 0; p < q->session->info.n_policies; p++)
        memcpy(q->policies[p].value, q->current.value[p], sizeof q->policies[p].value);
    q->round.sampling = q->current.sampling;
    q->round.seed = seq_seed(q->session, q->number);
}

/* Finds the sequences that a change concerns: *n of them from *first on. */
static void
sequences_of(struct session *s, uint32_t seq, bool common, struct sequence **first, uint32_t *n)
{
    const bool one = session_alternates(s) && !common;
    *first = &s->sequences[one ? seq : 0];
    *n = one ? 1 : s->n_sequences;
}

const char *
session_head(const struct session *s, const struct settings *settings)
{
    const bool trained =
        settings->head == HEADS_TRAINED ||
        (settings->head == HEADS_POLICY && s->sequences[0].policies[settings->policy].ops->trained_heads);
    return s->engine->heads == HEAD_LENS ? "" : head_mode_names[trained ? HEADS_TRAINED : HEADS_LENS];
}

/* Sets the head of n sequences by their settings; emits it if it has changed, or always. */
static void
choose_head(struct sequence *q, uint32_t n, bool always, uint32_t asked, uint32_t applied)
{
    const char *before = head_mode_names[q->head == USE_TRAINED ? HEADS_TRAINED : HEADS_LENS],
               *after = session_head(q->session, &q->current);
    if (after[0] == '\0')
        return; /* the lens is the only head */
    for (uint32_t i = 0; i < n; i++) {
        q[i].head = strcmp(after, head_mode_names[HEADS_TRAINED]) == 0 ? USE_TRAINED : USE_LENS;
        q[i].inspect_again = q[i].inspect_again || strcmp(before, after) != 0;
    }
    if (always || strcmp(before, after) != 0)
        session_emit_change(q->session, session_alternates(q->session) ? q->number : 0,
                            &(struct change){.kind = RECORDED_HEAD,
                                             .before = always ? "" : before,
                                             .after = after,
                                             .asked = asked,
                                             .applied = applied});
}

/* Writes the setting that a change is about as text. */
static void
print_setting(const struct session *s, const struct settings *now, const struct mail *m, char *out, size_t n)
{
    if (m->kind == CONTROL_POLICY)
        snprintf(out, n, "%s", s->info.policies[now->policy].name);
    else if (m->kind == CONTROL_PROBE)
        snprintf(out, n, "%s", probe_mode_names[now->probe]);
    else if (m->kind == CONTROL_KNOB && m->sampling)
        knob_format(&sampling_knobs[m->knob], sampling_knob_get(&now->sampling, now->seed, (int)m->knob), out, n);
    else if (m->kind == CONTROL_KNOB)
        knob_format(&s->info.policies[m->policy].knobs[m->knob], now->value[m->policy][m->knob], out, n);
}

static const char *
knob_name(const struct session *s, const struct mail *m)
{
    return m->sampling ? sampling_knobs[m->knob].name : s->info.policies[m->policy].knobs[m->knob].name;
}

static void
apply_change(struct session *s, const struct mail *m)
{
    const uint32_t next = s->round + 1;
    const bool common = mail_is_common(m);
    char before[32], after[32];
    struct sequence *q;
    uint32_t n;
    sequences_of(s, m->seq, common, &q, &n);
    if (m->kind == CONTROL_POLICY && m->policy == q->current.policy)
        return;
    print_setting(s, &q->current, m, before, sizeof before);
    for (uint32_t i = 0; i < n; i++)
        mail_apply(m, &q[i].current);
    print_setting(s, &q->current, m, after, sizeof after);
    /* Text that was sampled cannot be compared with greedy autoregressive tokens any more. */
    s->run.sampled = s->run.sampled || q->current.sampling.temperature > 0;
    const struct change c = {.kind = m->kind == CONTROL_POLICY  ? RECORDED_POLICY
                                     : m->kind == CONTROL_PROBE ? RECORDED_PROBE
                                                                : RECORDED_KNOB,
                             .knob = m->kind == CONTROL_KNOB ? knob_name(s, m) : NULL,
                             .before = before,
                             .after = after,
                             .asked = m->asked_round,
                             .applied = next};
    if (m->kind != CONTROL_HEAD)
        session_emit_change(s, session_alternates(s) && !common ? q->number : 0, &c);
    if (m->kind == CONTROL_HEAD || m->kind == CONTROL_POLICY)
        choose_head(q, n, false, m->asked_round, next);
}

/* Sets the second sequence's settings; emits their differences from the first one's. */
static void
begin_versus(struct session *s, const struct mail *m)
{
    const struct settings *first = &s->sequences[0].current;
    struct sequence *q = &s->sequences[1];
    char text[VERSUS_TEXT_MOST];
    q->current = m->settings[1];
    q->number = 1;
    settings_print_versus(first, &q->current, &s->info, text);
    const size_t used = strlen(text);
    if (q->current.head != first->head && s->engine->heads != HEAD_LENS)
        snprintf(text + used, sizeof text - used, " head=%s", head_mode_names[q->current.head]);
    session_emit_control(s, 0, RECORDED_VERSUS, text);
    choose_head(q, 1, true, 0, 0);
}

static void
apply_changes(struct session *s)
{
    for (struct mail *m; (m = s->changes) != NULL; mail_free(m)) {
        s->changes = m->next;
        m->next = NULL;
        if (m->asked_round > s->round) /* it was requested in the previous run */
            m->asked_round = s->round;
        if (m->kind == CONTROL_VERSUS)
            begin_versus(s, m);
        else
            apply_change(s, m);
    }
    for (uint32_t i = 0; i < s->n_sequences; i++)
        seq_take_settings(&s->sequences[i]);
}

void
session_begin_settings(struct session *s)
{
    struct sequence *first;
    uint32_t n;
    sequences_of(s, 0, false, &first, &n);
    session_emit_control(s, 0, RECORDED_PROBE, probe_mode_names[first->current.probe]);
    choose_head(first, n, true, 0, 0);
}

void
session_take_settings(struct session *s)
{
    apply_changes(s);
    for (uint32_t i = 0; i < s->n_sequences; i++)
        s->sequences[i].inspect_again = false; /* the new run has no rows yet */
}

static bool
seq_meet_policy(struct sequence *q)
{
    struct policy *p = seq_policy(q);
    q->round.number = q->session->round;
    if (q->met == q->current.policy)
        return true;
    q->met = q->current.policy;
    return p->ops->prefilled == NULL || p->ops->prefilled(p, &q->round);
}

bool
session_look_back(struct session *s)
{
    struct sequence *all[BATCH_MOST] = {NULL}, *changed[BATCH_MOST] = {NULL};
    uint32_t n_all = 0, n_changed = 0;
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *q = &s->sequences[i];
        const bool again = q->inspect_again;
        q->inspect_again = false;
        if (session_has_several(s) && q->over)
            continue;
        all[n_all++] = q;
        if (again)
            changed[n_changed++] = q;
    }
    s->round++;
    bool ok = session_probe_recent(s, changed, n_changed);
    for (uint32_t i = 0; i < n_all && ok; i++)
        ok = seq_meet_policy(all[i]);
    s->round--;
    return ok || session_stop(s, "policy");
}

bool
session_apply_settings(struct session *s)
{
    apply_changes(s);
    return session_look_back(s);
}

/* ---- several sequences ---- */

/* Opens larger contexts; if they do not fit, reopens the former ones. */
static bool
make_room(struct session *s, uint32_t sequences)
{
    struct err err, again;
    if (sequences <= atomic_load(&s->ctx_sequences))
        return true;
    session_close_contexts(s);
    if (session_open_contexts(s, &err))
        return true;
    session_close_contexts(s);
    session_share_settings(s);
    mailbox_share(&s->mailbox);
    s->n_sequences = s->run.total = 1;
    if (!session_open_contexts(s, &again))
        s->asked.quit = true; /* without contexts nothing can be generated */
    return session_fail(s, "versus", err.text);
}

bool
session_make_room(struct session *s)
{
    if (s->batch)
        return true;
    s->n_sequences = s->run.total = s->n_settings;
    s->last_run = 0;
    return make_room(s, s->n_sequences);
}

/* Selects the sequence that has emitted the fewest tokens. If several have, the one that ran last runs again: so each
 * is first equally often, and the state of the caches favours none. */
bool
session_takes_part(const struct session *s, const struct sequence *q)
{
    if (q->over || !session_alternates(s))
        return !q->over;
    const struct sequence *last_run = NULL;
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        const struct sequence *other = &s->sequences[i];
        const bool first = last_run == NULL || seq_emitted(other) < seq_emitted(last_run) ||
                           (seq_emitted(other) == seq_emitted(last_run) && i == s->last_run);
        if (!other->over && first)
            last_run = other;
    }
    return q == last_run;
}
