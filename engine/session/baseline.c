/* The measured baseline: the run's tokens generated again one by one, by the same engine, compared and timed; of all lanes
 * in step, one sweep a token. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/session/rounds.h"
#include "engine/session/session_internal.h"

/* A run that is slowed down begins every round cold: its threads sleep, its weights have left the caches. So then the
 * baseline's first steps rest before they begin, too, and only they are timed. */
#define COLD_STEPS 24
#define COLD_NS    40000000L
#define SLICE      8 /* steps between two rounds */

struct again { /* a lane's tokens, generated again */
    struct lane *lane;
    token_t pending;
    uint32_t differs_at; /* the first position of another token; UINT32_MAX: none */
    struct verify_row row;
    struct verdict verdict;
};

/* The next token of each. Rows are committed as they come, so that after an equal run the sequences stand exactly where
 * they stood. */
static bool
step(struct session *s, struct again *const *again, uint32_t n)
{
    struct verify_round rounds[ROUNDS_MOST];
    slot_t rows[ROUNDS_MOST] = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct again *a = again[i];
        a->row = (struct verify_row){.parent = -1, .token = a->pending, .q = DIST_NONE};
        a->row.slot = rows[i] = context_append(s->ctx, a->lane->seq, SLOT_NONE, a->pending);
        if (rows[i] == SLOT_NONE)
            return false;
        rounds[i] = (struct verify_round){.seq = a->lane->seq,
                                          .rows = &a->row,
                                          .n = 1,
                                          .sampling = s->settings.sampling,
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

/* A step that counts: as cold as a round of a run that is slowed down. */
static bool
timed_step(struct session *s, struct again *const *again, uint32_t n)
{
    const struct timespec rest = {.tv_nsec = COLD_NS};
    if (s->measured.paced)
        nanosleep(&rest, NULL);
    const uint64_t start = clock_us();
    const bool ok = step(s, again, n);
    if (ok)
        ratio_add(&s->measured.steps, n, (double)(clock_us() - start) * 1e-6);
    return ok;
}

/* What was measured while the machine was in another state is no part of it. */
static void
measure_as_it_is(struct session *s)
{
    const bool paced = s->timing.pace > 0;
    if (s->measured.paced != paced)
        s->measured = (struct measured){.paced = paced};
}

/* Autoregressive tokens after the first, compared with the run's. */
static bool
regenerate(struct session *s, struct again *all, uint32_t n, uint32_t longest)
{
    struct again *some[ROUNDS_MOST];
    uint32_t count;
    measure_as_it_is(s);
    for (uint32_t i = 1; (count = still(all, n, i, some)) > 0; i++) {
        const bool timed = !s->measured.paced || i <= COLD_STEPS;
        if (!(timed ? timed_step : step)(s, some, count))
            return false;
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
            if (session_has_several(s))
                snprintf(text + length, sizeof text - (size_t)length, " of sequence %u", (unsigned)all[i].lane->number);
        }
    session_tell_state(s, "lossless", "", s->run.sampled ? "sampled" : text);
}

static void
tell_speed(struct session *s)
{
    const struct estimate speed = ratio_estimate(&s->measured.steps);
    char text[48];
    if (isnan(speed.value))
        return;
    snprintf(text, sizeof text, "%.9g", (double)(float)speed.se);
    if (!isnan(speed.se))
        session_tell_state(s, "baseline_se", "", text);
    snprintf(text, sizeof text, "%.9g", (double)(float)speed.value);
    session_tell_state(s, "baseline", "", text);
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
    session_tell_progress(s, "baseline", 0);
    for (uint32_t i = 0; i < n; i++)
        context_truncate(s->ctx, all[i].lane->seq, all[i].lane->prompt_tokens);
    const uint32_t together = s->versus.on ? 1 : n; /* as their rounds are */
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i += together)
        ok = regenerate(s, all + i, together, longest);
    for (uint32_t i = 0; i < n && ok; i++)
        ok = all[i].differs_at == UINT32_MAX || restore(s, all[i].lane);
    if (!ok)
        return session_stop(s, "baseline");
    session_tell_progress(s, "baseline", 1);
    tell_speed(s);
    tell_lossless(s, all, n);
    return true;
}

/* Some steps from where the lanes stand, whose rows then go: what they say was or will be said anyway. */
bool
session_baseline_slice(struct session *s)
{
    struct again all[ROUNDS_MOST], *some[ROUNDS_MOST];
    uint32_t n = 0;
    bool ok = true;
    if (--s->asked.slices == 0)
        s->asked.baseline = true;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct lane *l = &s->lanes[i];
        if (l->over || l->n_tokens + SLICE > s->info.ctx || (s->versus.on && n > 0))
            continue;
        all[n] = (struct again){.lane = l, .pending = l->tokens[l->n_tokens - 1], .differs_at = UINT32_MAX};
        some[n] = &all[n];
        n++;
    }
    measure_as_it_is(s);
    for (int i = 0; i < SLICE && n > 0 && ok; i++)
        ok = timed_step(s, some, n);
    for (uint32_t i = 0; i < n; i++)
        context_truncate(s->ctx, all[i].lane->seq, all[i].lane->n_tokens - 1);
    return ok;
}
