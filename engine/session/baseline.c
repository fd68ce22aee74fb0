/* The measured baseline: the run's tokens generated again one by one, by the same engine, compared and timed; of all lanes
 * in step, one sweep a token. */
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/session/rounds.h"
#include "engine/session/session_internal.h"

/* A run that is slowed down begins every round cold: its threads sleep, its weights have left the caches. So then the
 * baseline's first steps rest before they begin, too, and only they are timed. */
#define COLD_STEPS 24
#define COLD_NS    40000000L

struct again { /* a lane's tokens, generated again */
    struct lane *lane;
    token_t pending;
    uint32_t differs_at; /* the first position of another token; UINT32_MAX: none */
    struct verify_row row;
    struct verdict verdict;
};

struct speed {
    uint64_t us;
    uint32_t steps, tokens;
};

/* The next token of each. Rows are committed as they come, so that after an equal run the sequences stand exactly where
 * they stood. */
static bool
step(struct session *s, struct again *const *again, uint32_t n)
{
    struct verify_round rounds[ROUNDS_MOST];
    slot_t rows[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++) {
        struct again *a = again[i];
        a->row = (struct verify_row){.parent = -1, .token = a->pending, .q = DIST_NONE};
        a->row.slot = rows[i] = context_append(s->ctx, a->lane->seq, SLOT_NONE, a->pending);
        if (rows[i] == SLOT_NONE)
            return false;
        rounds[i] = (struct verify_round){.seq = a->lane->seq,
                                          .rows = &a->row,
                                          .n = 1,
                                          .sampling = s->info.sampling,
                                          .seed = a->lane->round.seed,
                                          .out = &a->verdict};
    }
    bool ok = context_advance(s->ctx, rows, n, s->model.layers, NULL) && context_verify_all(s->ctx, rounds, n);
    for (uint32_t i = 0; i < n && ok; i++) {
        again[i]->pending = again[i]->verdict.next;
        ok = context_keep(s->ctx, again[i]->lane->seq, &rows[i], 1);
    }
    return ok;
}

/* Those who have an i-th token after the first that they emitted. */
static uint32_t
still(struct again *all, uint32_t n, uint32_t i, struct again **out)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++)
        if (i < lane_emitted(all[k].lane))
            out[count++] = &all[k];
    return count;
}

/* Autoregressive tokens after the first, compared with the run's. */
static bool
regenerate(struct session *s, struct again *all, uint32_t n, uint32_t longest, struct speed *speed)
{
    const struct timespec rest = {.tv_nsec = COLD_NS};
    const bool cold = s->timing.pace > 0;
    *speed = (struct speed){0};
    struct again *some[ROUNDS_MOST];
    uint32_t count;
    for (uint32_t i = 1; (count = still(all, n, i, some)) > 0; i++) {
        const bool timed = !cold || speed->steps < COLD_STEPS;
        if (cold && timed)
            nanosleep(&rest, NULL);
        const uint64_t start = clock_us();
        if (!step(s, some, count))
            return false;
        speed->us += timed ? clock_us() - start : 0;
        speed->tokens += timed ? count : 0;
        speed->steps += timed;
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t at = some[k]->lane->prompt_tokens + i;
            if (some[k]->pending != some[k]->lane->tokens[at] && some[k]->differs_at == UINT32_MAX)
                some[k]->differs_at = at;
        }
        if (i % 64 == 0)
            session_tell_progress(s, "baseline", (double)i / longest);
    }
    return true;
}

/* The rows of the lane's own tokens, all but the pending one's, as they were before. */
static bool
restore(struct session *s, const struct lane *l)
{
    context_truncate(s->ctx, l->seq, l->prompt_tokens);
    return l->n_tokens - 1 == l->prompt_tokens || context_prefill(s->ctx, l->seq, l->tokens + l->prompt_tokens,
                                                                  l->n_tokens - 1 - l->prompt_tokens, NULL, NULL);
}

static void
tell_lossless(struct session *s, const struct again *all, uint32_t n)
{
    char text[64] = "yes";
    for (uint32_t i = 0; i < n && text[0] == 'y'; i++)
        if (all[i].differs_at != UINT32_MAX) {
            const uint32_t token = all[i].differs_at - all[i].lane->prompt_tokens + 1;
            const int length = snprintf(text, sizeof text, "no: token %u", (unsigned)token);
            if (s->batch)
                snprintf(text + length, sizeof text - (size_t)length, " of sequence %u", (unsigned)all[i].lane->number);
        }
    session_tell_state(s, "lossless", "", s->info.sampling.temperature > 0 ? "sampled" : text);
}

bool
session_baseline(struct session *s)
{
    struct again all[ROUNDS_MOST];
    uint32_t n = 0, longest = 0;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct lane *l = &s->lanes[i];
        longest = lane_emitted(l) > longest ? lane_emitted(l) : longest;
        all[n++] = (struct again){.lane = l, .pending = l->tokens[l->prompt_tokens], .differs_at = UINT32_MAX};
    }
    if (longest < 2) {
        session_tell_state(s, "lossless", "", "nothing to compare yet");
        return true;
    }
    struct speed speed;
    session_tell_progress(s, "baseline", 0);
    for (uint32_t i = 0; i < n; i++)
        context_truncate(s->ctx, all[i].lane->seq, all[i].lane->prompt_tokens);
    bool ok = regenerate(s, all, n, longest, &speed);
    for (uint32_t i = 0; i < n && ok; i++)
        ok = all[i].differs_at == UINT32_MAX || restore(s, all[i].lane);
    if (!ok)
        return session_stop(s, "baseline");
    session_tell_progress(s, "baseline", 1);
    char text[48];
    snprintf(text, sizeof text, "%.9g", (double)(float)(speed.tokens * 1e6 / (double)(speed.us > 0 ? speed.us : 1)));
    session_tell_state(s, "baseline", "", text);
    tell_lossless(s, all, n);
    return true;
}
