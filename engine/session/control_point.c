/* Receives controls on the engine's thread, and waits while a run is paused or limited in speed. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/events/sampling_knobs.h"
#include "engine/model/model_open.h"
#include "engine/session/session_internal.h"
#include "kernels/request.h"

#define LATE_US 100000 /* rounds that are later than this do not catch up */

static void
set_paused(struct session *s, bool paused)
{
    static const char *const name[] = {"running", "paused"};
    if (s->timing.paused == paused)
        return;
    s->timing.paused = paused;
    mailbox_paused(&s->mailbox, paused);
    session_emit_state(s, RECORDED_STATE, name[!paused], name[paused]);
}

static void
stop_watching(struct session *s)
{
    watch_for(&s->watch, &(struct until){0});
}

/* Resumes for one token, for a number of rounds, or (neither) without a limit. */
static void
resume(struct session *s, bool token, uint32_t rounds)
{
    stop_watching(s);
    s->timing.step_token = token;
    s->timing.step_rounds = rounds;
    set_paused(s, false);
}

static void
check_break(struct session *s)
{
    char text[16];
    if (s->timing.break_at == 0 || s->round < s->timing.break_at)
        return;
    s->timing.break_at = 0;
    snprintf(text, sizeof text, "%u", (unsigned)s->round);
    set_paused(s, true);
    session_emit_control(s, 0, RECORDED_BREAK, text);
}

/* At the end of a round: pauses if the condition was met in it. */
static void
check_watch(struct session *s)
{
    char text[UNTIL_TEXT_MOST + 16];
    s->watch.n = 0;
    s->watch.unsure = false;
    if (!s->watch.met)
        return;
    until_print(&s->watch.until, text, sizeof text);
    stop_watching(s);
    set_paused(s, true);
    session_emit_control(s, s->watch.seq, RECORDED_UNTIL, text);
}

static void
queue_change(struct session *s, struct mail *m)
{
    struct mail **end = &s->changes;
    while (*end != NULL)
        end = &(*end)->next;
    *end = m;
}

/* Gives all sequences the settings of the first; drops changes of others that were not applied. */
static void
session_share_settings(struct session *s)
{
    s->n_settings = 1;
    for (struct mail **at = &s->changes; *at != NULL;) {
        struct mail *m = *at;
        if (m->seq == 0 && m->kind != CONTROL_VERSUS) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = NULL;
        mail_free(m);
    }
}

/* Requests a new run and consumes the mail. If the sequences of the run have different settings, the mail becomes the
 * change that sets them. */
static void
ask_new_run(struct session *s, struct mail *m)
{
    s->asked = (struct asked){
        .quit = s->asked.quit, .costs = s->asked.costs, .new_run = true}; /* requests of the old run are dropped */
    stop_watching(s);
    s->run.cause = "restart";
    s->run.wanted = s->info.tokens > 0 ? s->info.tokens : UINT32_MAX;
    if (m->kind == CONTROL_PROMPT) { /* all sequences begin with this prompt */
        s->run.cause = "prompt";
        run_take_prompt(&s->run, &m->prompt);
        s->measured = (struct measured){.slices = false};
        s->run.total = s->n_sequences;
    }
    session_share_settings(s);
    s->n_settings = m->n_settings;
    m->kind = CONTROL_VERSUS;
    if (session_alternates(s))
        queue_change(s, m);
    else
        mail_free(m);
}

static void
set_pace(struct session *s, double pace)
{
    char before[32], after[32];
    snprintf(before, sizeof before, "%.9g", s->timing.pace);
    snprintf(after, sizeof after, "%.9g", pace);
    if (pace != s->timing.pace)
        session_emit_state(s, RECORDED_PACE, before, after);
    s->timing.pace = pace;
    s->timing.next_us = 0;
}

static void
extend(struct session *s, uint32_t n)
{
    uint32_t *wanted = &s->run.wanted;
    *wanted = n < UINT32_MAX - *wanted ? *wanted + n : UINT32_MAX;
    s->asked.extension = true;
}

/* Carries out a control, or stores the request; consumes the mail. */
static void
receive(struct session *s, struct mail *m, enum control_point at)
{
    switch (m->kind) {
    case CONTROL_POLICY: s->chooses = false; s->choice_at = 0; /* fall through */
    case CONTROL_KNOB:
    case CONTROL_HEAD:
    case CONTROL_PROBE: queue_change(s, m); return;
    case CONTROL_UNTIL:
        resume(s, false, 0);
        watch_for(&s->watch, &m->until);
        break;
    case CONTROL_PAUSE:
        stop_watching(s);
        s->timing.step_token = false;
        s->timing.step_rounds = 0;
        set_paused(s, true);
        break;
    case CONTROL_RESUME: resume(s, false, 0); break;
    case CONTROL_STEP_ROUNDS: /* the rest of a round that a token step interrupted counts as a round */
        resume(s, false, m->n > 0 ? m->n : 1);
        break;
    case CONTROL_STEP_TOKEN: resume(s, true, 0); break;
    case CONTROL_BREAK:
        s->timing.break_at = m->n;
        if (m->n == s->round && at != POINT_TOKEN && !s->asked.new_run)
            check_break(s); /* that round has just ended */
        break;
    case CONTROL_PACE: set_pace(s, m->value); break;
    case CONTROL_VERSUS:
    case CONTROL_PROMPT:
    case CONTROL_RESTART: ask_new_run(s, m); return;
    case CONTROL_BASELINE: s->asked.baseline = true; break;
    case CONTROL_COSTS: s->asked.costs = !cost_known(&s->info.costs) && !s->costs_emitted; break;
    case CONTROL_EXTEND: extend(s, m->n); break;
    case CONTROL_RACE: session_emit_control(s, 0, RECORDED_RACE, m->n > 0 ? "begins" : "ends"); break;
    case CONTROL_NOTE: session_emit_control(s, m->seq, RECORDED_NOTE, m->note); break;
    case CONTROL_QUIT: s->asked.quit = true; break;
    }
    mail_free(m);
}

/* Returns the time until which the thread waits; 0: it continues, UINT64_MAX: it waits for a control. Within a round
 * only a pause makes it wait. */
static uint64_t
waits_until(const struct timing *t, bool in_round)
{
    if (t->paused)
        return UINT64_MAX;
    const bool stepping = t->step_rounds > 0 || t->step_token;
    return in_round || stepping || clock_us() >= t->next_us ? 0 : t->next_us;
}

enum next
session_control_point(struct session *s, enum control_point at)
{
    uint64_t until_us = 0;
    for (;;) {
        for (struct mail *m; (m = mailbox_take(&s->mailbox, until_us)) != NULL; until_us = 0)
            receive(s, m, at);
        if (at == POINT_TOKEN && s->asked.baseline && s->timing.paused)
            resume(s, false, 1);                  /* a baseline is measured between rounds */
        const bool able = !session_has_failed(s); /* a run that has failed only accepts a new run */
        if (s->asked.quit || s->asked.new_run)
            return NEXT_STOP;
        if (able && at != POINT_TOKEN && s->changes != NULL)
            return NEXT_SETTINGS;
        if (able && at != POINT_TOKEN && s->asked.baseline) {
            s->asked.baseline = false;
            return NEXT_BASELINE;
        }
        if (able && at != POINT_TOKEN && s->asked.costs && clock_us() >= s->costs_us)
            return NEXT_COSTS;
        if (at == POINT_END)
            until_us = able && s->asked.extension ? 0 : UINT64_MAX;
        else
            until_us = waits_until(&s->timing, at == POINT_TOKEN);
        if (able && at != POINT_TOKEN && until_us == UINT64_MAX && session_probes_missing(s))
            return NEXT_PROBES;
        if (until_us == UINT64_MAX)
            mailbox_rest(&s->mailbox);
        if (until_us == 0)
            return NEXT_ROUND;
    }
}

void
session_token_done(struct session *s)
{
    const bool pauses = s->timing.step_token;
    s->timing.step_token = false;
    if (pauses)
        set_paused(s, true);
}

/* Sets the time of the next round by the pace. */
static void
slow_down(struct timing *t, uint32_t emitted)
{
    const uint64_t now = clock_us();
    if (t->pace > 0)
        t->next_us = (t->next_us + LATE_US > now ? t->next_us : now) + (uint64_t)(emitted * 1e6 / t->pace);
}

void
session_round_done(struct session *s, uint32_t emitted)
{
    session_token_done(s); /* the last token of a round is emitted without a draft */
    slow_down(&s->timing, emitted);
    check_break(s);
    check_watch(s);
    if (s->timing.step_rounds > 0 && --s->timing.step_rounds == 0)
        set_paused(s, true);
}

/* Fails because a model computed values that are not numbers: with the tensor that has some itself, if one has. */
static bool
fail_values(struct session *s, const char *where, const struct err *e)
{
    const struct model *models[1 + AUX_MODELS] = {s->engine->model};
    for (int role = 0; role < AUX_MODELS; role++)
        models[1 + role] = s->engine->aux[role].model;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char tensor[80], text[sizeof e->text];
        if (models[i] == NULL || !model_broken_tensor(models[i], tensor, sizeof tensor))
            continue;
        snprintf(text, sizeof text, "%.200s: tensor '%s' contains values that are not numbers; fetch the model again",
                 models[i]->path, tensor);
        return session_fail(s, where, text);
    }
    return session_fail(s, where, e->text);
}

bool
session_stop(struct session *s, const char *where)
{
    const struct err *e = session_error(s);
    if (s->asked.quit || s->asked.new_run || session_has_failed(s))
        return false;
    if (atomic_load(&s->mailbox.cancel) || e->kind == ERR_CANCELLED) /* the control that cancelled is in the mailbox */
        for (struct mail *m; (m = mailbox_take(&s->mailbox, 0)) != NULL;)
            receive(s, m, POINT_TOKEN);
    if (s->asked.quit || s->asked.new_run)
        return false;
    if (request_is_not_numbers(e))
        return fail_values(s, where, e);
    return session_fail(s, where, e->kind != ERR_NONE ? e->text : "failed without a message");
}

/* ---- settings ---- */

/* Changes of settings are applied between rounds, in the order in which they were posted. The sequences of a batch have
 * the same settings and share their rounds. Sequences of different settings (versus) take turns, one in each round, so
 * that the costs of a round belong to one of them. */

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
    char probe[PROBE_TEXT_MOST];
    if (m->kind == CONTROL_POLICY)
        snprintf(out, n, "%s", s->info.policies[now->policy].name);
    else if (m->kind == CONTROL_PROBE)
        snprintf(out, n, "%s", probe_print(now->probe, now->probe_percent, probe));
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
    char probe[PROBE_TEXT_MOST];
    sequences_of(s, 0, false, &first, &n);
    probe_print(first->current.probe, first->current.probe_percent, probe);
    session_emit_control(s, 0, RECORDED_PROBE, probe);
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
    return seq_draft_vocab(q) && (p->ops->prefilled == NULL || p->ops->prefilled(p, &q->round));
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
