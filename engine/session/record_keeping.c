/* The record of what layers say at the latest positions of one sequence (engine/events/layer_record.h), the one that is
 * looked at, or where that has no lane any more the first live one: kept in small slices between rounds, when nothing else
 * is to be done or within a share of the time. It follows the committed rows, and is shown to other threads as a copy. Rows
 * whose hidden states are gone are run again on a fork. */
#include <string.h>

#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

#define SLICE_US    6000 /* that a slice is to take */
#define SLICE_ROWS  16   /* at most: rows of a fork take places of hidden states that others would look at */
#define SHOWN_EVERY 32   /* new rows, unless it has caught up */
#define SHOWN_LEAST 64   /* rows to simulate before it takes the place of one of another text */

bool
session_open_record(struct session *s, double share, struct err *err)
{
    struct record_keeping *k = &s->record;
    k->time.share = share;
    k->rows = 2;
    return layer_record_open(&k->work, s->model.layers, err) && layer_record_open(&k->shown, s->model.layers, err);
}

void
session_close_record(struct session *s)
{
    layer_record_close(&s->record.work);
    layer_record_close(&s->record.shown);
}

static struct lane *
lane_of(struct session *s)
{
    for (uint32_t i = 0; i < s->n_lanes; i++)
        if (s->lanes[i].number == s->record.wanted)
            return &s->lanes[i];
    for (uint32_t i = 0; i < s->n_lanes; i++)
        if (!s->lanes[i].over)
            return &s->lanes[i];
    return &s->lanes[0];
}

/* The rows are of one sequence and one head; what follows upon them is there, or it begins anew with the latest. */
static void
catch_up(struct session *s, const struct lane *l)
{
    struct record_keeping *k = &s->record;
    struct layer_record *r = &k->work;
    const uint32_t length = context_length(s->ctx, l->seq), next = r->first + r->n;
    const bool same = k->run == s->run.number && k->sequence == l->number && k->head == l->head;
    if (same && next <= length && length - next <= RECORD_ROWS)
        return;
    const uint32_t of_prompt = l->prompt_tokens > RECORD_LEAD ? l->prompt_tokens - RECORD_LEAD : 0;
    const uint32_t latest = length > RECORD_ROWS ? length - RECORD_ROWS : 0;
    k->stale = k->stale || !same;
    k->run = s->run.number;
    k->sequence = l->number;
    k->head = l->head;
    k->since_shown = 0;
    r->n = 0;
    r->first = latest > of_prompt ? latest : of_prompt;
}

bool
session_record_due(struct session *s, uint64_t idle_until_us)
{
    struct record_keeping *k = &s->record;
    const struct lane *l = lane_of(s);
    const uint64_t now = clock_us();
    const bool left = time_share_left(&k->time, now);
    if (!(k->time.share > 0) || s->run.sampled || l->current.sampling.temperature > 0 ||
        lane_policy(l)->ops->what_if == NULL)
        return false;
    catch_up(s, l);
    k->idle = idle_until_us > now && idle_until_us - now > 2 * k->slice_us;
    return k->work.first + k->work.n < context_length(s->ctx, l->seq) && (k->idle || left);
}

/* Asks at rows of depth L, and appends what is said. */
static bool
ask(struct session *s, const slot_t *rows, uint32_t n)
{
    const uint32_t layers = s->model.layers;
    const size_t half = (size_t)n * layers;
    struct probing *p = &s->probing;
    for (size_t i = 0; i < 2 * half; i++)
        p->probes[i] = (struct context_probe){.slot = rows[i % half / layers],
                                              .layer = (uint32_t)(i % layers) + 1,
                                              .head = s->record.head,
                                              .temperature = i < half ? RECORD_WARM : RECORD_HOT};
    if (!context_guess(s->ctx, p->probes, 2 * half, p->guesses))
        return false;
    for (uint32_t i = 0; i < n; i++)
        layer_record_add(&s->record.work, p->guesses + (size_t)i * layers, p->guesses + half + (size_t)i * layers);
    return true;
}

/* Rows whose hidden states are gone: the same tokens in a fork. */
static bool
ask_again(struct session *s, const struct lane *l, uint32_t from, uint32_t n)
{
    slot_t rows[SLICE_ROWS];
    const seq_t fork = context_fork(s->ctx, l->seq, from);
    bool ok = fork != SEQ_NONE;
    for (uint32_t i = 0; i < n && ok; i++)
        ok =
            (rows[i] = context_append(s->ctx, fork, i > 0 ? rows[i - 1] : SLOT_NONE, l->tokens[from + i])) != SLOT_NONE;
    ok = ok && context_advance(s->ctx, rows, n, s->model.layers, NULL) && ask(s, rows, n);
    if (fork != SEQ_NONE)
        context_drop(s->ctx, fork);
    return ok;
}

/* The next rows: as many as still have their hidden states, or where the first has none, those that have none. */
static bool
slice(struct session *s, const struct lane *l)
{
    const uint32_t from = s->record.work.first + s->record.work.n, left = context_length(s->ctx, l->seq) - from;
    const uint32_t most = left < s->record.rows ? left : s->record.rows;
    slot_t rows[SLICE_ROWS];
    rows[0] = context_at(s->ctx, l->seq, from);
    const bool kept = context_hidden_kept(s->ctx, rows[0]), prompt = context_is_prompt(s->ctx, rows[0]);
    uint32_t n = 1;
    while (n < most && context_hidden_kept(s->ctx, rows[n] = context_at(s->ctx, l->seq, from + n)) == kept &&
           context_is_prompt(s->ctx, rows[n]) == prompt)
        n++;
    if (!kept && prompt) { /* nobody runs these again alone: it begins behind them */
        s->record.work.first = from + n;
        s->record.work.n = 0;
        return true;
    }
    s->record.since_shown += n;
    return kept ? ask(s, rows, n) : ask_again(s, l, from, n);
}

/* What is not the record's own. */
static void
complete(struct session *s, const struct lane *l)
{
    struct layer_record *r = &s->record.work;
    const uint32_t of_prompt = l->prompt_tokens > r->first ? l->prompt_tokens - r->first : 0;
    const uint32_t over = r->n > RECORD_TOKENS ? r->n - RECORD_TOKENS : 0;
    const uint32_t lead = of_prompt > 0 ? of_prompt : r->n / (RECORD_ROWS / RECORD_LEAD);
    r->begin = lead > over ? lead : over;
    r->sequence = l->number;
    const struct policy *policy = lane_policy(l);
    r->policy[0] = '\0';
    if (r->first + r->begin > l->prompt_tokens && policy->ops->state_size <= sizeof r->state && policy->state != NULL) {
        snprintf(r->policy, sizeof r->policy, "%s", policy->ops->name);
        memcpy(r->state, policy->state, policy->ops->state_size);
    }
    const bool full = s->engine->heads == HEAD_FULL;
    const double trained = l->head != USE_TRAINED ? 0
                           : full                 ? 1
                                                  : (double)s->model.width / s->model.vocab; /* as the context counts */
    r->head_load = trained > 0 && full ? 1 : 1 + trained;
    r->layers_load = 1 + (s->model.layers - 1) * trained;
    r->probes = context_limits(s->ctx)->max_probes;
    layer_record_set_text(r, l->tokens, r->first + r->n + 1);
}

static void
show(struct session *s, const struct lane *l)
{
    struct record_keeping *k = &s->record;
    const bool all = k->work.first + k->work.n == context_length(s->ctx, l->seq);
    if (!all && k->since_shown < SHOWN_EVERY)
        return;
    complete(s, l);
    const uint32_t rows = k->work.n > k->work.begin ? k->work.n - k->work.begin : 0;
    if (rows == 0 || (k->stale ? !all && rows < SHOWN_LEAST : k->work.n < k->shown.n && !all))
        return;
    pthread_mutex_lock(&k->lock);
    layer_record_copy(&k->shown, &k->work);
    k->version++;
    pthread_mutex_unlock(&k->lock);
    k->since_shown = 0;
    k->stale = false;
}

bool
session_keep_record(struct session *s)
{
    struct record_keeping *k = &s->record;
    struct lane *l = lane_of(s);
    const uint64_t start = clock_us();
    const bool ok = slice(s, l);
    if (ok)
        show(s, l);
    k->slice_us = clock_us() - start;
    if (k->slice_us < SLICE_US / 2 && k->rows < SLICE_ROWS)
        k->rows *= 2;
    else if (k->slice_us > SLICE_US && k->rows > 1)
        k->rows /= 2;
    if (!k->idle) {
        time_share_spend(&k->time, k->slice_us);
        k->unpaid_ns += k->slice_us * 1000;
    }
    return ok;
}

uint64_t
session_record_cost(struct session *s)
{
    const uint64_t ns = s->record.unpaid_ns;
    s->record.unpaid_ns = 0;
    return ns;
}
