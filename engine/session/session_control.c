/* The engine thread's side of the controls: taking them from the queue, obeying them at the gates. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/session/session_internal.h"

void
session_control_event(struct session *s, const char *name, const char *old_text, const char *new_text, uint32_t asked,
                      uint32_t applied)
{
    struct event e = {.type = EVENT_CONTROL,
                      .control = {.old_text = old_text, .new_text = new_text, .applied_round = applied}};
    snprintf(e.control.name, sizeof e.control.name, "%s", name);
    uint32_t round = s->round.number;
    s->round.number = asked; /* the event's round is when it was asked */
    session_emit(s, &e);
    s->round.number = round;
}

bool
pace_parse(const char *text, double *tokens_per_s)
{
    char *end;
    *tokens_per_s = strtod(text, &end);
    return end != text && *end == '\0' && *tokens_per_s >= 0 && *tokens_per_s <= 1e9;
}

/* Waits for a control until the monotonic time until_us: 0 not at all, UINT64_MAX for ever. NULL: there is none. */
static struct mail *
take(struct session *s, uint64_t until_us)
{
    pthread_mutex_lock(&s->lock);
    while (s->first == NULL && condition_wait(&s->wake, &s->lock, until_us))
        ;
    struct mail *m = s->first;
    if (m != NULL) {
        s->first = m->next;
        if (s->first == NULL)
            s->last = NULL;
        m->next = NULL;
        if (m->control.kind == CONTROL_PROMPT || m->control.kind == CONTROL_RESTART || m->control.kind == CONTROL_QUIT)
            if (--s->interrupts == 0)
                atomic_store(&s->cancel, false);
        if (m->control.kind == CONTROL_PROMPT || m->control.kind == CONTROL_RESTART)
            atomic_store(&s->round_number, 0); /* what is asked from here on is asked of the new run */
    }
    pthread_mutex_unlock(&s->lock);
    return m;
}

static void
set_paused(struct session *s, bool paused)
{
    if (s->paused == paused)
        return;
    s->paused = paused;
    session_control_event(s, "state", paused ? "running" : "paused", paused ? "paused" : "running", s->round.number,
                          s->round.number);
}

static void
apply_knob(struct session *s, const struct mail *m, uint32_t next)
{
    struct policy *p = &s->policies[s->policy];
    int i = policy_knob_index(&p->info, m->control.name);
    double value;
    if (i < 0 || !knob_parse(&p->info.knobs[i], m->control.text, &value, NULL))
        return; /* another policy's: the policy was changed back in between */
    char before[32], after[32];
    knob_format(&p->info.knobs[i], p->value[i], before, sizeof before);
    knob_format(&p->info.knobs[i], value, after, sizeof after);
    p->value[i] = value;
    session_control_event(s, p->info.knobs[i].name, before, after, m->asked_round, next);
}

static bool
apply_policy(struct session *s, const struct mail *m, uint32_t next)
{
    for (uint32_t i = 0; i < s->info.n_policies; i++) {
        if (strcmp(s->info.policies[i].name, m->control.text) != 0 || i == s->policy)
            continue;
        session_control_event(s, "policy", s->info.policies[s->policy].name, s->info.policies[i].name, m->asked_round,
                              next);
        s->policy = i;
        const bool other_head = session_choose_head(s, false, m->asked_round, next);
        struct policy *p = &s->policies[i];
        if (s->n_tokens > s->prompt_tokens) {
            uint32_t done = s->round.number;
            s->round.number = next; /* what is looked at is told as the next round's: this one is closed */
            bool ok = (!other_head || session_probe_recent(s)) &&
                      (p->ops->prefilled == NULL || p->ops->prefilled(p, &s->round));
            s->round.number = done;
            if (!ok)
                return false;
        }
    }
    return true;
}

uint32_t
session_head_at(const struct session *s, uint32_t layer)
{
    return s->head == USE_TRAINED && layer > 0 && layer < s->model.layers ? 1 : 0;
}

bool
session_choose_head(struct session *s, bool always, uint32_t asked, uint32_t applied)
{
    if (s->engine->heads == HEAD_LENS)
        return false; /* and nothing to say about it */
    const enum head_choice before = s->head;
    const bool trained =
        s->head_mode == HEADS_TRAINED || (s->head_mode == HEADS_POLICY && s->policies[s->policy].ops->trained_heads);
    s->head = trained ? USE_TRAINED : USE_LENS;
    if (always || s->head != before)
        session_control_event(s, "head", always ? "" : head_mode_names[before == USE_LENS ? HEADS_LENS : HEADS_TRAINED],
                              head_mode_names[trained ? HEADS_TRAINED : HEADS_LENS], asked, applied);
    return s->head != before;
}

static bool
apply_head(struct session *s, const struct mail *m, uint32_t next)
{
    for (int i = 0; i < HEAD_MODES; i++)
        if (strcmp(m->control.text, head_mode_names[i]) == 0)
            s->head_mode = (enum head_mode)i;
    if (!session_choose_head(s, false, m->asked_round, next))
        return true;
    const uint32_t done = s->round.number;
    s->round.number = next; /* this one is closed */
    const bool ok = session_probe_recent(s);
    s->round.number = done;
    return ok;
}

static void
apply_probe(struct session *s, const struct mail *m, uint32_t next)
{
    for (int i = 0; i < PROBE_MODES; i++)
        if (strcmp(m->control.text, probe_mode_names[i]) == 0) {
            session_control_event(s, "probe", probe_mode_names[s->probe], probe_mode_names[i], m->asked_round, next);
            s->probe = (enum probe_mode)i;
        }
}

/* Knobs, policies, heads and probes take effect between rounds, in the order in which they were asked for. */
static enum mood
apply_pending(struct session *s)
{
    bool ok = true;
    uint32_t next = s->round.number + 1;
    while (s->pending != NULL && ok) {
        struct mail *m = s->pending;
        s->pending = m->next;
        m->next = NULL;
        if (m->asked_round > s->round.number) /* asked for in the run before */
            m->asked_round = s->round.number;
        if (m->control.kind == CONTROL_KNOB) {
            apply_knob(s, m, next);
        } else if (m->control.kind == CONTROL_POLICY) {
            ok = apply_policy(s, m, next);
        } else if (m->control.kind == CONTROL_HEAD) {
            ok = apply_head(s, m, next);
        } else {
            apply_probe(s, m, next);
        }
        free(m->text);
        free(m);
    }
    return ok ? MOOD_GO : session_stop(s, "policy");
}

static void
begin_new_run(struct session *s, struct mail *m)
{
    s->new_run = true;
    s->run_cause = "restart";
    if (m->control.kind == CONTROL_PROMPT) {
        s->run_cause = "prompt";
        free(s->prompt);
        s->prompt = m->text;
        s->prompt_len = strlen(m->text);
        m->text = NULL;
    }
}

/* Obeys one control; the mail is consumed. */
static void
obey(struct session *s, struct mail *m)
{
    const struct control *c = &m->control;
    switch (c->kind) {
    case CONTROL_PAUSE:
        s->step_rounds = 0;
        s->step_token = false;
        set_paused(s, true);
        break;
    case CONTROL_RESUME:
        s->step_rounds = 0;
        s->step_token = false;
        set_paused(s, false);
        break;
    case CONTROL_STEP_ROUNDS: /* finishing a round that a token step left half done counts as one */
        s->step_rounds = c->n > 0 ? c->n : 1;
        s->step_token = false;
        set_paused(s, false);
        break;
    case CONTROL_STEP_TOKEN:
        s->step_token = true;
        s->step_rounds = 0;
        set_paused(s, false);
        break;
    case CONTROL_BREAK:
        s->break_at = c->n;
        if (c->n > 0 && c->n == s->round.number && !s->in_round && !s->new_run) { /* that round has just ended */
            s->break_at = 0;
            set_paused(s, true);
            char text[16];
            snprintf(text, sizeof text, "%u", (unsigned)c->n);
            session_control_event(s, "break", "", text, c->n, c->n);
        }
        break;
    case CONTROL_KNOB:
    case CONTROL_POLICY:
    case CONTROL_HEAD:
    case CONTROL_PROBE: {
        struct mail **end = &s->pending;
        while (*end != NULL)
            end = &(*end)->next;
        *end = m;
        return;
    }
    case CONTROL_PROMPT:
    case CONTROL_RESTART: begin_new_run(s, m); break;
    case CONTROL_BASELINE: s->want_baseline = true; break;
    case CONTROL_EXTEND:
        if (s->wanted != UINT32_MAX)
            s->wanted = c->n < UINT32_MAX - s->wanted ? s->wanted + c->n : UINT32_MAX;
        break;
    case CONTROL_PACE:
        pace_parse(c->text, &s->pace);
        s->next_us = 0;
        break;
    case CONTROL_QUIT: s->quit = true; break;
    }
    free(m->text);
    free(m);
}

enum mood
session_gate(struct session *s, bool at_round)
{
    s->in_round = !at_round;
    for (;;) {
        struct mail *m;
        while ((m = take(s, 0)) != NULL)
            obey(s, m);
        if (s->quit || s->new_run)
            return MOOD_STOP;
        if (at_round && apply_pending(s) == MOOD_STOP)
            return MOOD_STOP;
        if (at_round && s->want_baseline) {
            s->want_baseline = false;
            if (!session_baseline(s))
                return MOOD_STOP;
        }
        bool stepping = s->step_rounds > 0 || s->step_token;
        if (!s->paused && (!at_round || stepping || clock_us() >= s->next_us))
            return MOOD_GO;
        if ((m = take(s, s->paused ? UINT64_MAX : s->next_us)) != NULL)
            obey(s, m);
    }
}

enum mood
session_idle(struct session *s)
{
    s->in_round = false;
    struct mail *m = take(s, UINT64_MAX);
    uint32_t wanted = s->wanted;
    obey(s, m);
    if (s->quit || s->new_run)
        return MOOD_STOP;
    if (atomic_load(&s->failed)) /* nothing but a new run helps now */
        return MOOD_GO;
    if (apply_pending(s) == MOOD_STOP)
        return s->quit || s->new_run ? MOOD_STOP : MOOD_GO;
    if (s->want_baseline) {
        s->want_baseline = false;
        session_baseline(s);
    }
    if (s->wanted != wanted)
        session_continue(s);
    return s->quit || s->new_run ? MOOD_STOP : MOOD_GO;
}

void
session_token_done(struct session *s)
{
    if (s->step_token) {
        s->step_token = false;
        set_paused(s, true);
    }
}

/* After a whole round: breakpoints and stepping; its last token was emitted, not drafted. */
void
session_round_done(struct session *s)
{
    session_token_done(s);
    if (s->pace > 0) { /* behind time it doesn't hurry */
        uint64_t now = clock_us();
        s->next_us = (s->next_us + 100000 > now ? s->next_us : now) + (uint64_t)(s->round.emitted * 1e6 / s->pace);
    }
    if (s->break_at > 0 && s->round.number >= s->break_at) {
        s->break_at = 0;
        char text[16];
        snprintf(text, sizeof text, "%u", (unsigned)s->round.number);
        set_paused(s, true);
        session_control_event(s, "break", "", text, s->round.number, s->round.number);
    }
    if (s->step_rounds > 0 && --s->step_rounds == 0)
        set_paused(s, true);
}

bool
session_fail(struct session *s, const char *where, const char *why)
{
    if (!atomic_load(&s->failed)) {
        err_set(&s->failure, ERR_WORK, "%s: %s", where, why);
        atomic_store(&s->failed, true);
        char text[sizeof s->failure.text + 8];
        snprintf(text, sizeof text, "error: %s", s->failure.text);
        session_control_event(s, "end", "", text, s->round.number, s->round.number);
    }
    return false;
}

enum mood
session_stop(struct session *s, const char *where)
{
    const struct err *e = context_error(s->ctx);
    if (s->quit || s->new_run || atomic_load(&s->failed))
        return MOOD_STOP;
    if (atomic_load(&s->cancel) || e->kind == ERR_CANCELLED) { /* what cancelled is in the queue */
        struct mail *m;
        while ((m = take(s, 0)) != NULL)
            obey(s, m);
        if (s->quit || s->new_run)
            return MOOD_STOP;
    }
    session_fail(s, where, e->kind != ERR_NONE ? e->text : "failed without a word");
    return MOOD_STOP;
}
