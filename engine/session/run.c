/* A run: sequences begin, rounds follow until all have ended, then requests are carried out. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/session/session_internal.h"

/* ---- a sequence begins ---- */

/* Lets the auxiliary models that the policy needs read the prompt, so that this time is not part of a round. */
static bool
prefill_aux(struct sequence *q)
{
    const unsigned needs = seq_policy(q)->ops->needs;
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if ((needs & NEEDS(role)) != 0 && !session_aux_follow(&q, 1, role))
            return false;
    return true;
}

/* A chunk of the prompt has been read. */
struct prefilled {
    struct prefill_watch watch;
    struct sequence *q;
    bool ok;
};

static bool
prefilled(void *user, double done)
{
    struct prefilled *p = user;
    p->ok = p->ok && seq_aux_read_along(p->q);
    return session_emit_prefill(&p->watch, done);
}

/* Runs the prompt through all layers; emits the first token. */
static bool
prefill(struct sequence *q)
{
    struct session *s = q->session;
    const uint32_t n = q->prompt_tokens;
    for (uint32_t i = 0; i < n; i++)
        seq_emit_token(q, i, q->tokens[i], SOURCE_PROMPT, NULL);
    struct prefilled done = {.watch = {.session = s, .since_us = clock_us()}, .q = q, .ok = true};
    seq_aux_forget(q);
    if (!context_prompt(s->ctx, q->seq, q->tokens, n, prefilled, &done) || !done.ok || !prefill_aux(q))
        return false;
    struct verify_row last = {.parent = -1, .token = q->tokens[n - 1], .q = DIST_NONE};
    last.slot = context_at(s->ctx, q->seq, n - 1);
    struct verdict first;
    if (!context_verify(s->ctx, q->seq, &last, 1, &q->current.sampling, q->round.seed, &first))
        return false;
    q->tokens[q->n_tokens++] = first.next;
    seq_emit_token(q, n, first.next, SOURCE_PREFILL, &first.judged[0]);
    if (seq_shows_verified(q))
        seq_emit_prediction(q, n, s->model.layers, 0, &first.judged[0], PROBED_VERIFY, first.judged[0].token);
    /* so that the screen shows layers of the end of the prompt from the beginning */
    if (!session_probe_prompt(s, q))
        return false;
    struct policy *policy = seq_policy(q);
    q->met = q->current.policy;
    q->round.n_tokens = q->n_tokens;
    return seq_draft_vocab(q) && (policy->ops->prefilled == NULL || policy->ops->prefilled(policy, &q->round));
}

/* Keeps the text of a sequence that is replaced, for a later baseline. */
static bool
keep_text(const struct sequence *q)
{
    struct run *run = &q->session->run;
    const uint32_t n = seq_emitted(q);
    struct left *left = realloc(run->left, (run->n_left + 1) * sizeof *left);
    if (left != NULL)
        run->left = left;
    token_t *tokens = left != NULL ? malloc(n * sizeof *tokens) : NULL;
    if (tokens == NULL)
        return session_fail(q->session, "batch", "not enough memory for the text of a sequence that left");
    memcpy(tokens, q->tokens + q->prompt_tokens, n * sizeof *tokens);
    left[run->n_left++] = (struct left){.number = q->number, .tokens = tokens, .n = n, .differs_at = UINT32_MAX};
    return true;
}

/* Starts the run's next sequence in this place. */
static bool
join(struct sequence *q)
{
    struct session *s = q->session;
    q->number = s->run.joined++;
    const struct prompt *prompt = run_prompt(&s->run, q->number);
    q->over = false;
    q->past = q->inspected = 0;
    memset(q->final, 0, sizeof q->final);
    q->n_tokens = q->prompt_tokens = prompt->n;
    memcpy(q->tokens, prompt->ids, prompt->n * sizeof *prompt->ids); /* n < ctx */
    q->round = (struct round){.number = s->round,
                              .ctx = s->ctx,
                              .seq = q->seq,
                              .tokens = q->tokens,
                              .prompt_len = q->prompt_tokens,
                              .layers = s->model.layers,
                              .state = &q->state};
    q->state.annealed = false;
    q->recent = (struct draft_recent){0};
    seq_take_settings(q);
    if (session_has_several(s))
        session_emit_control(s, q->number, RECORDED_JOINED, prompt->text);
    return prefill(q) || session_stop(s, "prefill");
}

/* Returns why the sequence is over; NULL: it is not. */
static const char *
why_over(const struct sequence *q)
{
    const struct session *s = q->session;
    if (seq_emitted(q) > 0 && q->n_tokens > q->past && seq_is_end(q, q->tokens[q->n_tokens - 1]))
        return "eos";
    if (seq_emitted(q) >= s->run.wanted)
        return "tokens";
    return q->n_tokens > s->info.ctx ? "context" : NULL; /* the pending token needs a row */
}

/* Replaces sequences that have ended by the next ones. False: stopped. */
static bool
probe_layers(struct session *s)
{
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *q = &s->sequences[i];
        for (const char *why; (why = why_over(q)) != NULL;) {
            if (!q->over && session_has_several(s))
                session_emit_control(s, q->number, RECORDED_LEFT, why);
            q->over = true;
            if (s->run.joined == s->run.total)
                break;
            if (!keep_text(q) || !join(q))
                return false;
        }
    }
    return true;
}

/* Resumes sequences that have ended, if they have room, to generate more tokens, even after an end of sequence. */
static bool
extend(struct session *s)
{
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *q = &s->sequences[i];
        const bool was = q->over;
        q->past = q->n_tokens;
        q->over = why_over(q) != NULL;
        if (was && !q->over && session_has_several(s))
            session_emit_control(s, q->number, RECORDED_BACK, "");
    }
    s->asked.extension = false;
    return session_look_back(s);
}

/* ---- a run ---- */

static bool
begin_run(struct session *s)
{
    struct run *run = &s->run;
    pthread_mutex_lock(&s->failure_lock);
    s->failure.kind = ERR_NONE;
    pthread_mutex_unlock(&s->failure_lock);
    s->asked.new_run = false;
    run->number++;
    run->start_us = clock_us();
    run->joined = 0;
    run_forget_left(run);
    run->sampled = s->sequences[0].current.sampling.temperature > 0;
    s->round = 0;
    mailbox_round(&s->mailbox, 0);
    session_emit_control(s, 0, RECORDED_RUN, run->cause);
    const struct prompt *prompt = &run->prompts[0];
    if (strcmp(run->cause, "prompt") == 0)
        session_emit_state(s, RECORDED_PROMPT, prompt->before != NULL ? prompt->before : "", prompt->text);
    session_begin_settings(s);
    if (s->timing.paused) /* readers may see this run only */
        session_emit_control(s, 0, RECORDED_STATE, "paused");
    if (s->timing.pace > 0) {
        char pace[32];
        snprintf(pace, sizeof pace, "%.9g", s->timing.pace);
        session_emit_control(s, 0, RECORDED_PACE, pace);
    }
    if (!session_make_room(s))
        return false;
    session_take_settings(s);
    session_choice_begin(s);
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        s->sequences[i].over = true;
        if (!join(&s->sequences[i]))
            return false;
    }
    return probe_layers(s);
}

/* Runs one round. Returns false if the run is over. */
static bool
go_on(struct session *s)
{
    uint32_t live = 0, emitted;
    if (s->asked.extension && !extend(s))
        return false;
    for (uint32_t i = 0; i < s->n_sequences; i++)
        live += !s->sequences[i].over;
    if (live == 0) {
        session_emit_control(s, 0, RECORDED_END, s->batch ? "batch" : why_over(&s->sequences[0]));
        return false;
    }
    engine_repack(s->engine, &s->mailbox.cancel); /* rounds are timed; the first token has been emitted */
    if (!session_baseline_slice(s))
        return session_stop(s, "baseline");
    if (!session_choose(s))
        return session_stop(s, "choice");
    if (!session_round(s, &emitted) || !probe_layers(s))
        return false;
    session_round_done(s, emitted);
    return true;
}

void
session_generate(struct session *s)
{
    bool over = !begin_run(s);
    while (!over || s->stay)
        switch (session_control_point(s, over ? POINT_END : POINT_ROUND)) {
        case NEXT_STOP: return;
        case NEXT_SETTINGS: over = !session_apply_settings(s) || over; break;
        case NEXT_BASELINE:
            engine_repack(s->engine, &s->mailbox.cancel);
            over = !session_baseline(s) || over;
            break;
        case NEXT_COSTS:
            engine_repack(s->engine, &s->mailbox.cancel);
            session_costs(s);
            break;
        case NEXT_PROBES: over = !(session_probe_missing(s) || session_stop(s, "probe")) || over; break;
        case NEXT_ROUND: over = !over && !go_on(s); break; /* an extended run is not over */
        }
}
