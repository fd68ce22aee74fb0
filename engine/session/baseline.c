/* The measured baseline: the run's tokens generated again one by one, by the same engine, compared and timed. */
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

/* A run that is slowed down begins every round cold: its threads sleep, its weights have left the caches. So then the
 * baseline's first steps rest before they begin, too, and only they are timed. */
#define COLD_STEPS 24
#define COLD_NS    40000000L

struct speed {
    uint64_t us;
    uint32_t tokens;
};

/* Autoregressive tokens after the first, compared with the run's. Rows are committed as they come, so that after an
 * equal run the sequence stands exactly where it stood. */
static bool
regenerate(struct session *s, uint32_t *differs_at, struct speed *speed)
{
    const struct timespec rest = {.tv_nsec = COLD_NS};
    *differs_at = UINT32_MAX;
    *speed = (struct speed){0};
    token_t pending = s->run.tokens[s->run.prompt_tokens];
    for (uint32_t i = s->run.prompt_tokens + 1; i < s->run.n_tokens; i++) {
        struct verify_row row = {.parent = -1, .token = pending, .q = DIST_NONE};
        struct verdict v;
        const bool cold = s->timing.pace > 0, timed = !cold || speed->tokens < COLD_STEPS;
        if (cold && timed)
            nanosleep(&rest, NULL);
        const uint64_t start = clock_us();
        row.slot = context_append(s->ctx, s->seq, SLOT_NONE, pending);
        if (row.slot == SLOT_NONE || !context_advance(s->ctx, &row.slot, 1, s->model.layers, NULL) ||
            !context_verify(s->ctx, s->seq, &row, 1, &s->info.sampling, s->round.seed, &v) ||
            !context_keep(s->ctx, s->seq, &row.slot, 1))
            return false;
        speed->us += timed ? clock_us() - start : 0;
        speed->tokens += timed;
        pending = v.next;
        if (pending != s->run.tokens[i] && *differs_at == UINT32_MAX)
            *differs_at = i;
        if ((i - s->run.prompt_tokens) % 64 == 0)
            session_tell_progress(s, "baseline", (double)(i - s->run.prompt_tokens) / run_emitted(&s->run));
    }
    return true;
}

/* The rows of the run's own tokens, all but the pending one's, as they were before. */
static bool
restore(struct session *s)
{
    context_truncate(s->ctx, s->seq, s->run.prompt_tokens);
    return s->run.n_tokens - 1 == s->run.prompt_tokens ||
           context_prefill(s->ctx, s->seq, s->run.tokens + s->run.prompt_tokens,
                           s->run.n_tokens - 1 - s->run.prompt_tokens, NULL, NULL);
}

bool
session_baseline(struct session *s)
{
    if (run_emitted(&s->run) < 2) {
        session_tell_state(s, "lossless", "", "nothing to compare yet");
        return true;
    }
    uint32_t differs_at;
    struct speed speed;
    session_tell_progress(s, "baseline", 0);
    context_truncate(s->ctx, s->seq, s->run.prompt_tokens);
    if (!regenerate(s, &differs_at, &speed) || (differs_at != UINT32_MAX && !restore(s)))
        return session_stop(s, "baseline");
    session_tell_progress(s, "baseline", 1);
    char text[48];
    snprintf(text, sizeof text, "%.9g", (double)(float)(speed.tokens * 1e6 / (double)(speed.us > 0 ? speed.us : 1)));
    session_tell_state(s, "baseline", "", text);
    if (s->info.sampling.temperature > 0)
        snprintf(text, sizeof text, "sampled");
    else if (differs_at == UINT32_MAX)
        snprintf(text, sizeof text, "yes");
    else
        snprintf(text, sizeof text, "no: token %u", (unsigned)(differs_at - s->run.prompt_tokens + 1));
    session_tell_state(s, "lossless", "", text);
    return true;
}
