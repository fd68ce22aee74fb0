/* One run: prefill, then rounds until the end; and what is asked for after it. */
#include <string.h>

#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

/* Those that the policy will ask in the first round: reading the prompt is nobody's round. */
static bool
prefill_helpers(struct session *s)
{
    const unsigned needs = s->policies[s->settings.policy].ops->needs;
    session_helpers_forget(s);
    for (enum helper_role role = 0; role < HELPERS; role++)
        if ((needs & NEEDS(role)) != 0 && !session_helper_follow(s, &s->helpers[role]))
            return false;
    return true;
}

/* The prompt through all layers, and the first token. */
static bool
prefill(struct session *s)
{
    struct run *run = &s->run;
    const uint32_t n = run->prompt_tokens;
    for (uint32_t i = 0; i < n; i++)
        session_tell_token(s, i, run->tokens[i], SOURCE_PROMPT, NULL);
    context_truncate(s->ctx, s->seq, 0);
    struct prefill_watch watch = {.session = s, .since_us = run->start_us};
    if (!context_prefill(s->ctx, s->seq, run->tokens, n, session_tell_prefill, &watch) || !prefill_helpers(s))
        return false;
    struct verify_row last = {.parent = -1, .token = run->tokens[n - 1], .q = DIST_NONE};
    last.slot = context_at(s->ctx, s->seq, n - 1);
    struct verdict first;
    if (!context_verify(s->ctx, s->seq, &last, 1, &s->info.sampling, s->round.seed, &first))
        return false;
    run->tokens[run->n_tokens++] = first.next;
    session_tell_token(s, n, first.next, SOURCE_PREFILL, &first.judged[0]);
    if (s->settings.probe == PROBE_POLICY)
        session_tell_guess(s, n, s->model.layers, 0, &first.judged[0], PROBED_VERIFY, first.judged[0].token);
    if (!session_probe_recent(s)) /* the end of the prompt, so that the picture begins full */
        return false;
    struct policy *policy = &s->policies[s->settings.policy];
    s->round.n_tokens = run->n_tokens;
    return policy->ops->prefilled == NULL || policy->ops->prefilled(policy, &s->round);
}

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
    run->n_tokens = run->prompt_tokens = run->prompt.n;
    memcpy(run->tokens, run->prompt.ids, run->prompt.n * sizeof *run->prompt.ids); /* n < ctx */
    s->round = (struct round){.ctx = s->ctx,
                              .seq = s->seq,
                              .tokens = run->tokens,
                              .prompt_len = run->prompt_tokens,
                              .sampling = s->info.sampling,
                              .seed = s->info.seed,
                              .layers = s->model.layers,
                              .state = &s->state};
    s->state.annealed = false;
    mailbox_round(&s->mailbox, 0);
    session_tell_state(s, "run", "", run->cause);
    if (strcmp(run->cause, "prompt") == 0)
        session_tell_state(s, "prompt", "", run->prompt.text);
    session_begin_settings(s);
    if (s->timing.paused) /* a run begins as it was asked to: say so to who sees only this run */
        session_tell_state(s, "state", "", "paused");
    return prefill(s) || session_stop(s, "prefill");
}

/* NULL: it goes on. */
static const char *
why_over(const struct session *s)
{
    const struct run *run = &s->run;
    if (run_emitted(run) > 0 && session_is_end(s, run->tokens[run->n_tokens - 1]))
        return "eos";
    if (run_emitted(run) >= run->wanted)
        return "tokens";
    return run->n_tokens > s->info.ctx ? "context" : NULL; /* the pending token needs a row */
}

/* False: the run is over, by its end or before. */
static bool
go_on(struct session *s)
{
    const char *why = why_over(s);
    if (why == NULL)
        return session_round(s);
    s->asked.extension = false;
    session_tell_state(s, "end", "", why);
    return false;
}

void
session_generate(struct session *s)
{
    bool over = !begin_run(s);
    while (!over || s->stay)
        switch (session_gate(s, over ? GATE_END : GATE_ROUND)) {
        case NEXT_STOP: return;
        case NEXT_SETTINGS: over = !session_apply_settings(s) || over; break;
        case NEXT_BASELINE: over = !session_baseline(s) || over; break;
        case NEXT_ROUND: over = !over && !go_on(s); break; /* extended, it is not over any more */
        }
}
