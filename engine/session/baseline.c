/* The measured baseline: generates the run's tokens again one by one with the same engine, compares and times them. All
 * sequences go in step, with one forward pass for a token of each. Sequences that were replaced come first, each in the
 * next free place. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "engine/session/round.h"
#include "engine/session/session_internal.h"

/* With a limit of the speed every round begins cold: threads sleep, and weights have left the caches. So the baseline's
 * first steps wait before they begin, too, and only they are timed. */
#define COLD_STEPS 24
#define COLD_NS    40000000L
#define SLICE      4 /* steps between two rounds */
#define SLICE_REST 8 /* time until the next slice, in times of a slice */

/* a place in the batch where tokens are generated again: those of replaced sequences, then those of its own sequence */
struct again {
    struct sequence *sequence;
    struct left *of;     /* the replaced sequence; NULL: its own */
    const token_t *text; /* (n) */
    uint32_t n, at;      /* at: generated again */
    bool moved, home;    /* its rows were replaced meanwhile; its own text is or was generated */
    uint32_t differs_at; /* the first token of its own that differs, from 0; UINT32_MAX: none */
    token_t pending;
    uint64_t seed;
    struct verify_row row;
    struct verdict verdict;
};

/* Generates the next token of each sequence. Rows are committed at once, so the sequences are unchanged if all tokens
 * are equal. */
static bool
step(struct session *s, struct again *const *again, uint32_t n)
{
    struct verify_round rounds[ROUNDS_MOST];
    slot_t rows[ROUNDS_MOST] = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct again *a = again[i];
        a->row = (struct verify_row){.parent = -1, .token = a->pending, .q = DIST_NONE};
        a->row.slot = rows[i] = context_append(s->ctx, a->sequence->seq, SLOT_NONE, a->pending);
        if (rows[i] == SLOT_NONE)
            return false;
        rounds[i] = (struct verify_round){.seq = a->sequence->seq,
                                          .rows = &a->row,
                                          .n = 1,
                                          .sampling = a->sequence->current.sampling,
                                          .seed = a->seed,
                                          .out = &a->verdict};
    }
    bool ok = context_advance(s->ctx, rows, n, s->model.layers, NULL) && context_verify_all(s->ctx, rounds, n);
    for (uint32_t i = 0; i < n && ok; i++) {
        again[i]->pending = again[i]->verdict.next;
        ok = context_keep(s->ctx, again[i]->sequence->seq, &rows[i], 1);
    }
    return ok;
}

/* A timed step; with a limit of the speed it is as cold as a round. */
static bool
timed_step(struct session *s, struct again *const *again, uint32_t n)
{
    const struct timespec rest = {.tv_nsec = COLD_NS};
    if (s->timing.pace > 0)
        nanosleep(&rest, NULL);
    const uint64_t start = clock_us();
    const bool ok = step(s, again, n);
    if (ok)
        ratio_add(&s->measured.steps, n, (double)(clock_us() - start) * 1e-6);
    return ok;
}

/* ---- which texts are generated again ---- */

static void
begin_text(struct again *a, struct left *of, const token_t *text, uint32_t n, uint64_t seed)
{
    a->of = of;
    a->text = text;
    a->n = n;
    a->at = 1; /* the first token comes with the prompt */
    a->pending = text[0];
    a->seed = seed;
}

/* Starts a replaced sequence at the end of its prompt. */
static bool
take_left(struct session *s, struct again *a, struct left *of)
{
    const struct prompt *p = run_prompt(&s->run, of->number);
    a->moved = true;
    begin_text(a, of, of->tokens, of->n, seq_seed(s, of->number));
    return context_prompt(s->ctx, a->sequence->seq, p->ids, p->n, NULL, NULL);
}

static bool
take_own(struct session *s, struct again *a)
{
    const struct sequence *q = a->sequence;
    a->home = true;
    begin_text(a, NULL, q->tokens + q->prompt_tokens, seq_emitted(q), q->round.seed);
    if (a->moved)
        return context_prompt(s->ctx, q->seq, q->tokens, q->prompt_tokens, NULL, NULL);
    context_truncate(s->ctx, q->seq, q->prompt_tokens);
    return true;
}

/* Lists the places that have a token to generate; a place without one takes the next replaced sequence. */
static bool
unfinished(struct session *s, struct again *all, uint32_t n, uint32_t *next, struct again **out, uint32_t *count)
{
    struct run *run = &s->run;
    *count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct again *a = &all[i];
        while (a->at >= a->n && !a->home) {
            if (a->of != NULL)
                a->of->compared = true;
            while (*next < run->n_left && run->left[*next].compared)
                ++*next;
            if (!(*next < run->n_left ? take_left(s, a, &run->left[(*next)++]) : take_own(s, a)))
                return false;
        }
        if (a->at < a->n)
            out[(*count)++] = a;
    }
    return true;
}

static void
compare(struct again *a)
{
    uint32_t *differs = a->of != NULL ? &a->of->differs_at : &a->differs_at;
    if (a->pending != a->text[a->at] && *differs == UINT32_MAX)
        *differs = a->at;
    a->at++;
}

/* Generates `all` tokens after the first ones and compares them with the run's. */
static bool
regenerate(struct session *s, struct again *sequences, uint32_t n, uint64_t all)
{
    struct again *some[ROUNDS_MOST];
    uint32_t next = 0, count;
    uint64_t done = 0;
    for (uint32_t i = 1;; i++) {
        if (!unfinished(s, sequences, n, &next, some, &count))
            return false;
        if (count == 0)
            return true;
        const bool timed = !(s->timing.pace > 0) || i <= COLD_STEPS;
        if (!(timed ? timed_step : step)(s, some, count))
            return false;
        for (uint32_t k = 0; k < count; k++)
            compare(some[k]);
        done += count;
        if (i % 64 == 0)
            session_emit_progress(s, "baseline", (double)done / (double)all);
    }
}

/* Reads the sequence's own tokens except the pending one again, as before. */
static bool
restore(struct session *s, const struct sequence *q)
{
    context_truncate(s->ctx, q->seq, q->prompt_tokens);
    return q->n_tokens - 1 == q->prompt_tokens || context_prefill(s->ctx, q->seq, q->tokens + q->prompt_tokens,
                                                                  q->n_tokens - 1 - q->prompt_tokens, NULL, NULL);
}

/* Emits the first difference, or how many sequences were compared. */
static void
emit_lossless(struct session *s, const struct again *sequences, uint32_t n)
{
    char text[64];
    uint32_t at = UINT32_MAX, of = 0;
    for (uint32_t i = 0; i < s->run.n_left && at == UINT32_MAX; i++) {
        at = s->run.left[i].differs_at;
        of = s->run.left[i].number;
    }
    for (uint32_t i = 0; i < n && at == UINT32_MAX; i++) {
        at = sequences[i].differs_at;
        of = sequences[i].sequence->number;
    }
    if (at == UINT32_MAX && s->batch)
        snprintf(text, sizeof text, "yes: %u sequences", (unsigned)(s->run.n_left + n));
    else if (at == UINT32_MAX)
        snprintf(text, sizeof text, "yes");
    else if (session_has_several(s))
        snprintf(text, sizeof text, "no: token %u of sequence %u", (unsigned)at + 1, (unsigned)of + 1);
    else
        snprintf(text, sizeof text, "no: token %u", (unsigned)at + 1);
    session_emit_control(s, 0, RECORDED_LOSSLESS, s->run.sampled ? "sampled" : text);
}

static void
emit_speed(struct session *s)
{
    const struct estimate speed = ratio_estimate(&s->measured.steps);
    char text[48];
    if (isnan(speed.value))
        return;
    snprintf(text, sizeof text, "%.9g", (double)(float)speed.se);
    if (!isnan(speed.se))
        session_emit_control(s, 0, RECORDED_BASELINE_SE, text);
    snprintf(text, sizeof text, "%.9g", (double)(float)speed.value);
    session_emit_control(s, 0, RECORDED_BASELINE, text);
}

static void
emit_slice(struct session *s)
{
    char text[48];
    snprintf(text, sizeof text, "%.9g", (double)(float)ratio_estimate(&s->measured.steps).value);
    session_emit_control(s, 0, RECORDED_BASELINE_SLICE, text);
}

/* Returns the number of tokens to generate, and the length of the longest text. */
static uint64_t
work(const struct session *s, uint32_t *longest)
{
    uint64_t all = 0;
    *longest = 0;
    for (uint32_t i = 0; i < s->n_sequences + s->run.n_left; i++) {
        const struct left *left = i < s->n_sequences ? NULL : &s->run.left[i - s->n_sequences];
        const uint32_t n = left == NULL ? seq_emitted(&s->sequences[i]) : left->compared ? 0 : left->n;
        *longest = n > *longest ? n : *longest;
        all += n > 0 ? n - 1 : 0;
    }
    return all;
}

bool
session_baseline(struct session *s)
{
    struct again sequences[ROUNDS_MOST];
    const uint32_t n = s->n_sequences, together = session_alternates(s) ? 1 : n; /* as their rounds are */
    uint32_t longest;
    const uint64_t all = work(s, &longest);
    bool ok = true;
    if (longest < 2) {
        session_emit_control(s, 0, RECORDED_LOSSLESS, "nothing to compare yet");
        return true;
    }
    session_emit_progress(s, "baseline", 0);
    s->measured = (struct measured){.slices = true};
    for (uint32_t i = 0; i < n; i++)
        sequences[i] = (struct again){.sequence = &s->sequences[i], .differs_at = UINT32_MAX};
    for (uint32_t i = 0; i < n && ok; i += together)
        ok = regenerate(s, sequences + i, together, all);
    for (uint32_t i = 0; i < n && ok; i++)
        ok = sequences[i].differs_at == UINT32_MAX || restore(s, sequences[i].sequence);
    if (!ok)
        return session_stop(s, "baseline");
    session_emit_progress(s, "baseline", 1);
    emit_speed(s);
    emit_lossless(s, sequences, n);
    return true;
}

/* Runs some steps from the present end of the sequences, and discards their rows. */
bool
session_baseline_slice(struct session *s)
{
    struct again all[ROUNDS_MOST], *some[ROUNDS_MOST];
    const uint64_t start = clock_us();
    uint32_t n = 0;
    bool ok = true;
    if (!s->measured.slices || start < s->measured.next_us)
        return true;
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *q = &s->sequences[i];
        if (q->over || q->n_tokens + SLICE > s->info.ctx || (session_alternates(s) && n > 0))
            continue;
        context_checkpoint(s->ctx, q->seq, false);
        all[n] = (struct again){.sequence = q, .pending = q->tokens[q->n_tokens - 1], .seed = q->round.seed};
        some[n] = &all[n];
        n++;
    }
    s->measured.steps = (struct ratio_sums){0};
    for (int i = 0; i < SLICE && n > 0 && ok; i++)
        ok = timed_step(s, some, n);
    for (uint32_t i = 0; i < n; i++)
        context_truncate(s->ctx, all[i].sequence->seq, all[i].sequence->n_tokens - 1);
    if (ok && n > 0)
        emit_slice(s);
    const uint64_t end = clock_us();
    s->measured.next_us = end + SLICE_REST * (end - start);
    return ok;
}
