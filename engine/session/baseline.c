/* The measured baseline: the run's tokens generated again one by one, by the same engine, compared and timed. */
#include <string.h>
#include <time.h>

#include "engine/session/session_internal.h"

/* A run that is slowed down begins every round cold: its threads sleep, its weights have left the caches. So then the
 * baseline's first steps rest before they begin, too, and only they are timed. */
#define COLD_STEPS 24
#define COLD_NS    40000000L

struct timing {
    uint64_t us;
    uint32_t tokens;
};

/* Autoregressive tokens after the first, compared with the run's. Rows are committed as they come, so that after an
 * equal run the sequence stands exactly where it stood. */
static bool
regenerate(struct session *s, uint32_t *differs_at, struct timing *timing)
{
    const struct timespec rest = {.tv_nsec = COLD_NS};
    *differs_at = UINT32_MAX;
    *timing = (struct timing){0};
    token_t pending = s->tokens[s->prompt_tokens];
    for (uint32_t i = s->prompt_tokens + 1; i < s->n_tokens; i++) {
        struct verify_row row = {.parent = -1, .token = pending, .q = DIST_NONE};
        struct verdict v;
        const bool cold = s->pace > 0, timed = !cold || timing->tokens < COLD_STEPS;
        if (cold && timed)
            nanosleep(&rest, NULL);
        const uint64_t start = clock_us();
        row.slot = context_append(s->ctx, s->seq, SLOT_NONE, pending);
        if (row.slot == SLOT_NONE || !context_advance(s->ctx, &row.slot, 1, s->model.layers, NULL) ||
            !context_verify(s->ctx, s->seq, &row, 1, &s->sampling, s->round.seed, &v) ||
            !context_keep(s->ctx, s->seq, &row.slot, 1))
            return false;
        timing->us += timed ? clock_us() - start : 0;
        timing->tokens += timed;
        pending = v.next;
        if (pending != s->tokens[i] && *differs_at == UINT32_MAX)
            *differs_at = i;
        if ((i - s->prompt_tokens) % 64 == 0) {
            struct event e = {
                .type = EVENT_PROGRESS,
                .progress = {"baseline", (float)(i - s->prompt_tokens) / (float)(s->n_tokens - s->prompt_tokens)}};
            session_emit(s, &e);
        }
    }
    return true;
}

/* The rows of the run's own tokens, all but the pending one's, as they were before. */
static bool
restore(struct session *s)
{
    context_truncate(s->ctx, s->seq, s->prompt_tokens);
    return s->n_tokens - 1 == s->prompt_tokens || context_prefill(s->ctx, s->seq, s->tokens + s->prompt_tokens,
                                                                  s->n_tokens - 1 - s->prompt_tokens, NULL, NULL);
}

bool
session_baseline(struct session *s)
{
    if (s->n_tokens < s->prompt_tokens + 2) {
        session_control_event(s, "lossless", "", "nothing to compare yet", s->round.number, s->round.number);
        return true;
    }
    uint32_t differs_at;
    struct event begin = {.type = EVENT_PROGRESS, .progress = {"baseline", 0}};
    session_emit(s, &begin);
    context_truncate(s->ctx, s->seq, s->prompt_tokens);
    struct timing timing;
    if (!regenerate(s, &differs_at, &timing)) {
        session_stop(s, "baseline");
        return false;
    }
    if (differs_at != UINT32_MAX && !restore(s)) {
        session_stop(s, "baseline");
        return false;
    }
    struct event done = {.type = EVENT_PROGRESS, .progress = {"baseline", 1}};
    session_emit(s, &done);
    char text[48];
    snprintf(text, sizeof text, "%.9g", (double)(float)(timing.tokens * 1e6 / (double)(timing.us > 0 ? timing.us : 1)));
    session_control_event(s, "baseline", "", text, s->round.number, s->round.number);
    if (s->sampling.temperature > 0)
        snprintf(text, sizeof text, "sampled");
    else if (differs_at == UINT32_MAX)
        snprintf(text, sizeof text, "yes");
    else
        snprintf(text, sizeof text, "no: token %u", (unsigned)(differs_at - s->prompt_tokens + 1));
    session_control_event(s, "lossless", "", text, s->round.number, s->round.number);
    return true;
}
