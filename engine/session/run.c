/* A run: sequences begin, rounds follow until all have ended, then requests are carried out. */
#include <stdlib.h>
#include <string.h>

#include "engine/session/session_internal.h"
#include "kernels/base/clock.h"

/* ---- a sequence begins ---- */

/* The auxiliary models that the policy needs read the prompt, too, so that its time is in no round. */
static bool
prefill_helpers(struct sequence *l)
{
    const unsigned needs = seq_policy(l)->ops->needs;
    seq_helpers_forget(l);
    for (enum helper_role role = 0; role < HELPERS; role++)
        if ((needs & NEEDS(role)) != 0 && !session_helpers_follow(&l, 1, role))
            return false;
    return true;
}

/* Runs the prompt through all layers; emits the first token. */
static bool
prefill(struct sequence *l)
{
    struct session *s = l->session;
    const uint32_t n = l->prompt_tokens;
    for (uint32_t i = 0; i < n; i++)
        seq_emit_token(l, i, l->tokens[i], SOURCE_PROMPT, NULL);
    struct prefill_watch watch = {.session = s, .since_us = clock_us()};
    if (!context_prompt(s->ctx, l->seq, l->tokens, n, session_emit_prefill, &watch) || !prefill_helpers(l))
        return false;
    if (context_is_prompt(s->ctx, context_at(s->ctx, l->seq, 0)))
        session_emit_control(s, l->number, RECORDED_PREFILL, "blas");
    struct verify_row last = {.parent = -1, .token = l->tokens[n - 1], .q = DIST_NONE};
    last.slot = context_at(s->ctx, l->seq, n - 1);
    struct verdict first;
    if (!context_verify(s->ctx, l->seq, &last, 1, &l->current.sampling, l->round.seed, &first))
        return false;
    l->tokens[l->n_tokens++] = first.next;
    seq_emit_token(l, n, first.next, SOURCE_PREFILL, &first.judged[0]);
    if (l->current.probe == PROBE_POLICY)
        seq_emit_guess(l, n, s->model.layers, 0, &first.judged[0], PROBED_VERIFY, first.judged[0].token);
    if (!session_probe_recent(s, &l, 1)) /* the screen shows layers of the prompt's end from the beginning */
        return false;
    struct policy *policy = seq_policy(l);
    l->met = l->current.policy;
    l->round.n_tokens = l->n_tokens;
    return policy->ops->prefilled == NULL || policy->ops->prefilled(policy, &l->round);
}

/* Keeps the text of a sequence that is replaced, for a later baseline. */
static bool
keep_text(const struct sequence *l)
{
    struct run *run = &l->session->run;
    const uint32_t n = seq_emitted(l);
    struct left *left = realloc(run->left, (run->n_left + 1) * sizeof *left);
    if (left != NULL)
        run->left = left;
    token_t *tokens = left != NULL ? malloc(n * sizeof *tokens) : NULL;
    if (tokens == NULL)
        return session_fail(l->session, "batch", "not enough memory for the text of a sequence that left");
    memcpy(tokens, l->tokens + l->prompt_tokens, n * sizeof *tokens);
    left[run->n_left++] = (struct left){.number = l->number, .tokens = tokens, .n = n, .differs_at = UINT32_MAX};
    return true;
}

/* The run's next sequence begins in this place. */
static bool
join(struct sequence *l)
{
    struct session *s = l->session;
    l->number = s->run.joined++;
    const struct prompt *prompt = run_prompt(&s->run, l->number);
    l->over = false;
    l->past = 0;
    l->n_tokens = l->prompt_tokens = prompt->n;
    memcpy(l->tokens, prompt->ids, prompt->n * sizeof *prompt->ids); /* n < ctx */
    l->round = (struct round){.number = s->round,
                              .ctx = s->ctx,
                              .seq = l->seq,
                              .tokens = l->tokens,
                              .prompt_len = l->prompt_tokens,
                              .layers = s->model.layers,
                              .state = &l->state};
    l->state.annealed = false;
    seq_take_settings(l);
    if (session_has_several(s))
        session_emit_control(s, l->number, RECORDED_JOINED, prompt->text);
    return prefill(l) || session_stop(s, "prefill");
}

/* NULL: it continues. */
static const char *
why_over(const struct sequence *l)
{
    const struct session *s = l->session;
    if (seq_emitted(l) > 0 && l->n_tokens > l->past && seq_is_end(l, l->tokens[l->n_tokens - 1]))
        return "eos";
    if (seq_emitted(l) >= s->run.wanted)
        return "tokens";
    return l->n_tokens > s->info.ctx ? "context" : NULL; /* the pending token needs a row */
}

/* Replaces sequences that have ended by the next ones. False: stopped. */
static bool
look(struct session *s)
{
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *l = &s->sequences[i];
        for (const char *why; (why = why_over(l)) != NULL;) {
            if (!l->over && session_has_several(s))
                session_emit_control(s, l->number, RECORDED_LEFT, why);
            l->over = true;
            if (s->run.joined == s->run.total)
                break;
            if (!keep_text(l) || !join(l))
                return false;
        }
    }
    return true;
}

/* More tokens are wanted: sequences that have ended resume if they have room, even after an end of sequence. */
static bool
extend(struct session *s)
{
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *l = &s->sequences[i];
        const bool was = l->over;
        l->past = l->n_tokens;
        l->over = why_over(l) != NULL;
        if (was && !l->over && session_has_several(s))
            session_emit_control(s, l->number, RECORDED_BACK, "");
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
    if (strcmp(run->cause, "prompt") == 0)
        session_emit_control(s, 0, RECORDED_PROMPT, run->prompts[0].text);
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
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        s->sequences[i].over = true;
        if (!join(&s->sequences[i]))
            return false;
    }
    return look(s);
}

/* One round. False: the run is over. */
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
    engine_settle(s->engine, &s->mailbox.cancel); /* rounds are timed, and the first token is emitted by now */
    if (s->asked.slices > 0 && !session_baseline_slice(s))
        return session_stop(s, "baseline");
    if (!session_round(s, &emitted) || !look(s))
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
            engine_settle(s->engine, &s->mailbox.cancel);
            over = !session_baseline(s) || over;
            break;
        case NEXT_ROUND: over = !over && !go_on(s); break; /* an extended run is not over */
        }
}
