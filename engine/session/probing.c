/* Selects the head that reads a layer, and runs the scope's own probes. */
#include <math.h>

#include "base/clock.h"
#include "engine/session/round.h"
#include "engine/session/session_internal.h"

#define OTHER_HEAD_EVERY 4 /* rounds */
#define RECENT_ROWS      32
#define SHARE_ROWS       4 /* probed in one call, which takes less time than one call for each */
#define SHARE_PROMPT     8 /* rows of the prompt's end that are probed in a share of the time */

uint32_t
seq_head_at(const struct sequence *q, uint32_t layer)
{
    return q->head == USE_TRAINED && layer > 0 && layer < q->session->model.layers ? 1 : 0;
}

/* ---- draft vocabulary ---- */

/* Returns the number of the first n tokens by rank, or of the n tokens of a list, that a vocabulary contains; writes
 * those of a list to `out`. */
static uint32_t
known_of(const token_t *tokens, uint32_t n, uint32_t vocab, token_t *out)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)tokens[i] < vocab) {
            if (out != NULL)
                out[known] = tokens[i];
            known++;
        }
    return known;
}

/* Sets the sequence's set in a context of a model with so many tokens, which may lack some. */
static bool
draft_set_in(const struct sequence *q, struct context *ctx, uint32_t vocab)
{
    const struct draft_rank *rank = &q->session->engine->rank;
    const struct draft_recent *r = &q->recent;
    const uint32_t n = draft_recent_count(r);
    if (vocab >= rank->vocab)
        return context_draft_set(ctx, q->set, r->base, r->token, n);
    token_t recent[DRAFT_RECENT];
    const uint32_t base = known_of(rank->ids, r->base, vocab, NULL), known = known_of(r->token, n, vocab, recent);
    return context_draft_set(ctx, q->set, base, recent, known);
}

bool
seq_draft_vocab(struct sequence *q)
{
    struct session *s = q->session;
    const struct policy *p = seq_policy(q);
    const uint32_t knob = p->ops->draft_vocab, base = knob > 0 ? draft_vocab_base(p->value[knob], s->model.vocab) : 0;
    q->set = base > 0 ? (uint32_t)(q - s->sequences) + 1 : 0;
    if (base == 0)
        return true;
    draft_recent_read(&q->recent, &s->engine->rank, base, q->tokens, q->n_tokens);
    bool ok = draft_set_in(q, s->ctx, s->model.vocab);
    for (enum aux_role role = 0; role < AUX_MODELS && ok; role++)
        if ((p->ops->needs & NEEDS(role)) != 0 && s->aux[role].ctx != NULL && s->aux[role].rank != NULL)
            ok = draft_set_in(q, s->aux[role].ctx, s->aux[role].vocab);
    return ok;
}

/* ---- the scope's probes ---- */

/* Rows of one model, of several sequences, for one head call. */
struct gathered {
    struct session *session;
    enum aux_role role; /* AUX_MODELS: the target */
    bool other;         /* probed by the head that is not in use */
    struct sequence *sequence[VERIFY_NODES];
    slot_t row[VERIFY_NODES];
    size_t n;
};

static struct context *
context_of(const struct gathered *g)
{
    return g->role == AUX_MODELS ? g->session->ctx : g->session->aux[g->role].ctx;
}

static enum head_choice
head_of(const struct gathered *g, const struct sequence *q)
{
    if (g->role != AUX_MODELS)
        return USE_LENS;
    return (q->head == USE_TRAINED) != g->other ? USE_TRAINED : USE_LENS;
}

/* Emits a layer's prediction after a row of the target, compared with the last layer's. */
static void
emit_target(const struct gathered *g, struct sequence *q, uint32_t pos, uint32_t layer,
            const struct prediction *prediction, token_t final)
{
    const uint32_t layers = g->session->model.layers;
    q->final[pos % FINALS].pos = pos; /* auxiliary models may reach it a round later */
    q->final[pos % FINALS].token = final;
    if (layer == layers && g->other)
        return; /* the last layer has the same prediction with both heads */
    seq_emit_prediction(q, pos, layer, head_of(g, q) == USE_TRAINED && layer < layers ? 1 : 0, prediction, PROBED_SCOPE,
                        final);
}

/* Asks the acceptance head for the row's token, for what-if. The head's loads are not the policy's. */
static bool
acceptance_of(struct session *s, slot_t row, uint32_t layer, double *p)
{
    const double heads = s->acceptance.heads;
    const bool ok = session_acceptance(s, s->aux[AUX_DRAFT].ctx, row, layer, p);
    s->acceptance.heads = heads;
    return ok;
}

/* The same for an auxiliary model, compared with its own last layer and the target's. */
static bool
emit_aux(const struct gathered *g, size_t row, uint32_t pos, uint32_t layer, const struct prediction *prediction)
{
    struct sequence *q = g->sequence[row];
    const uint32_t at = pos % FINALS;
    const token_t final = q->final[at].pos == pos ? q->final[at].token : TOKEN_NONE;
    double acceptance = NAN;
    if (g->role == AUX_DRAFT && (seq_policy(q)->info.needs & NEEDS_ACCEPT_HEAD) != 0 &&
        layer == g->session->aux[g->role].layers && !acceptance_of(g->session, g->row[row], layer, &acceptance))
        return false;
    seq_emit_aux_prediction(q, g->role, pos, layer, 0, prediction, PROBED_SCOPE, final, (float)acceptance);
    return true;
}

/* Probes all layers of all rows in one call. */
static bool
ask(struct gathered *g)
{
    struct session *s = g->session;
    struct probing *p = &s->probing;
    struct context *ctx = context_of(g);
    const uint32_t layers = g->role == AUX_MODELS ? s->model.layers : s->aux[g->role].layers;
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct round_state *st = &g->sequence[i]->state;
        const bool annealed = g->role == AUX_MODELS && st->annealed;
        for (uint32_t at = 1; at <= layers; at++)
            p->probes[n++] = (struct context_probe){.slot = g->row[i],
                                                    .layer = at,
                                                    .head = head_of(g, g->sequence[i]),
                                                    .temperature = annealed ? st->temperature[at] : 1,
                                                    .versus_final = true};
    }
    if (!context_predict(ctx, p->probes, n, p->predictions))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct sequence *q = g->sequence[i / layers];
        const uint32_t layer = p->probes[i].layer, predicts = g->role == AUX_MODELS ? 1 : s->aux[g->role].predicts;
        const uint32_t pos = context_position(ctx, p->probes[i].slot) + predicts;
        if (g->role == AUX_MODELS)
            emit_target(g, q, pos, layer, &p->predictions[i], p->predictions[i / layers * layers + layers - 1].token);
        else if (!emit_aux(g, i / layers, pos, layer, &p->predictions[i]))
            return false;
    }
    g->n = 0;
    return true;
}

/* Skips rows whose hidden states are lost. */
static bool
gather(struct gathered *g, struct sequence *q, const slot_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!context_hidden_kept(context_of(g), rows[i]))
            continue;
        g->sequence[g->n] = q;
        g->row[g->n++] = rows[i];
        if (g->n == VERIFY_NODES && !ask(g))
            return false;
    }
    return true;
}

/* Gathers the rows of an auxiliary model's trunk that are new since the last probes, which may be a round later than in
 * the target. The pending token's row waits for the token that it predicts. Rows that came while probing was off are
 * skipped. `last` is the row after the trunk, or SLOT_NONE. */
static bool
gather_aux(struct gathered *g, struct sequence *q, slot_t last)
{
    struct aux_sequence *h = &q->aux[g->role];
    struct context *ctx = h->of->ctx;
    slot_t rows[RECENT_ROWS + VERIFY_NODES + 1];
    size_t n = 0;
    const bool all = g->session->probing.now;
    const uint32_t read = ctx != NULL ? context_length(ctx, h->seq) : 0;
    const uint32_t known = q->n_tokens - 1 > h->of->ahead ? q->n_tokens - 1 - h->of->ahead : 0;
    const uint32_t length = read < known ? read : known;
    const uint32_t most = h->inspected == 0 ? RECENT_ROWS : RECENT_ROWS + VERIFY_NODES;
    uint32_t i = h->inspected < length ? h->inspected : length;
    for (i = length - i > most ? length - most : i; i < length && all; i++)
        rows[n++] = context_at(ctx, h->seq, i);
    if (last != SLOT_NONE)
        rows[n++] = last;
    h->inspected = length + (last != SLOT_NONE);
    return gather(g, q, rows, n);
}

/* If all drafts were accepted, the model has not read the last one, and would predict the bonus a round later. This
 * forward pass reads it for the probe alone, and its rows are discarded: neither the policy nor the accounts notice.
 * rows[i] is sequence i's, or SLOT_NONE. */
static bool
read_last_drafts(const struct gathered *g, struct sequence *const *sequences, uint32_t n, slot_t *rows)
{
    struct context *ctx = context_of(g);
    slot_t all[ROUNDS_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct sequence *q = sequences[i];
        struct aux_sequence *h = &q->aux[g->role];
        rows[i] = SLOT_NONE;
        if (!g->session->probing.now || ctx == NULL || h->of->drafter != NULL || h->row[0] == SLOT_NONE ||
            context_length(ctx, h->seq) + 2 != q->n_tokens || h->inspected + 2 > q->n_tokens)
            continue;
        all[count++] = rows[i] = seq_aux_next(q, h);
        if (rows[i] == SLOT_NONE)
            return false;
    }
    return count == 0 || context_advance(ctx, all, count, g->session->aux[g->role].layers, NULL);
}

static bool
probe_aux(struct session *s, struct sequence *const *sequences, uint32_t n)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        if (role == AUX_BLOCK) /* rows of its trunk have no hidden states */
            continue;
        struct gathered g = {.session = s, .role = role};
        slot_t last[ROUNDS_MOST];
        bool ok = read_last_drafts(&g, sequences, n, last);
        for (uint32_t i = 0; i < n && ok; i++)
            ok = gather_aux(&g, sequences[i], last[i]);
        if (!ok || (g.n > 0 && !ask(&g)))
            return false;
        for (uint32_t i = 0; i < n; i++)
            if (last[i] != SLOT_NONE)
                context_discard(context_of(&g), last[i]);
    }
    return true;
}

static bool
probe_emitted(struct session *s, struct sequence *const *sequences, uint32_t n, bool other)
{
    struct gathered g = {.session = s, .role = AUX_MODELS, .other = other};
    for (uint32_t i = 0; i < n; i++)
        if (!gather(&g, sequences[i], sequences[i]->state.emission.row, sequences[i]->state.emission.n))
            return false;
    return g.n == 0 || ask(&g);
}

static void
emit_experts(struct sequence *const *sequences, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < sequences[i]->state.emission.n; k++)
            seq_emit_experts(sequences[i], sequences[i]->state.emission.row[k]);
}

/* ---- in a share of the time ---- */

bool
probe_share_earn(struct probe_share *p, double share, uint64_t now_us)
{
    const double burst_us = SHARE_BURST * p->position_us;
    if (p->since_us == 0)
        p->left = SHARE_FIRST;
    else
        p->credit_us = fmin(p->credit_us + share * (double)(now_us - p->since_us), 2 * burst_us);
    p->since_us = now_us;
    if (p->left == 0 && p->credit_us >= burst_us)
        p->left = SHARE_BURST;
    return p->left > 0;
}

void
probe_share_spend(struct probe_share *p, uint32_t positions, double us)
{
    if (positions == 0)
        return;
    p->credit_us -= us;
    p->position_us += (us / positions - p->position_us) * (p->position_us > 0 ? 0.25 : 1);
    p->left -= positions < p->left ? positions : p->left;
}

static bool
earn(struct session *s)
{
    return probe_share_earn(&s->probing.share, s->sequences[0].current.probe_percent / 100.0, clock_us());
}

/* Gathers the rows of the target's trunk from `from` on, the latest `most` of them. */
static bool
gather_trunk(struct gathered *g, struct sequence *q, uint32_t from, uint32_t most)
{
    slot_t rows[RECENT_ROWS + VERIFY_NODES];
    size_t n = 0;
    const uint32_t length = context_length(g->session->ctx, q->seq);
    for (uint32_t i = length - from > most ? length - most : from; i < length; i++)
        rows[n++] = context_at(g->session->ctx, q->seq, i);
    return gather(g, q, rows, n);
}

static bool
probe_waiting(struct session *s, struct sequence *const *sequences, uint32_t n, bool other)
{
    struct gathered g = {.session = s, .role = AUX_MODELS, .other = other};
    for (uint32_t i = 0; i < n; i++)
        if (!gather_trunk(&g, sequences[i], sequences[i]->inspected, RECENT_ROWS + VERIFY_NODES))
            return false;
    return g.n == 0 || ask(&g);
}

/* In a burst, waits for a few rows, unless the pace leaves time. Rows between two bursts are not probed. */
static bool
probe_share_round(struct session *s, struct sequence *const *sequences, uint32_t n)
{
    struct probing *p = &s->probing;
    const bool burst = earn(s);
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t length = context_length(s->ctx, sequences[i]->seq);
        if (!burst)
            sequences[i]->inspected = length;
        waiting += length - sequences[i]->inspected;
    }
    p->now = burst && (waiting >= (s->timing.pace > 0 ? 1 : SHARE_ROWS) || waiting >= p->share.left);
    if (burst && !p->now)
        return true;
    const uint64_t start = clock_us();
    const bool other = p->now && s->engine->heads != HEAD_LENS && p->calls++ % OTHER_HEAD_EVERY == 0;
    if (p->now && (!probe_waiting(s, sequences, n, false) || (other && !probe_waiting(s, sequences, n, true))))
        return false;
    for (uint32_t i = 0; i < n; i++)
        sequences[i]->inspected = context_length(s->ctx, sequences[i]->seq);
    const bool ok = probe_aux(s, sequences, n);
    probe_share_spend(&p->share, waiting, (double)(clock_us() - start));
    return ok;
}

/* True if the row of a position is still in memory, and was not probed. A sequence that left a batch has no further
 * rounds, and so no further events. */
static bool
is_missing(const struct sequence *q, uint32_t at)
{
    const struct context *ctx = q->session->ctx;
    return !(session_has_several(q->session) && q->over) && q->final[(at + 1) % FINALS].pos != at + 1 &&
           context_hidden_kept(ctx, context_at(ctx, q->seq, at));
}

static uint32_t
first_recent(uint32_t length)
{
    return length > RECENT_ROWS ? length - RECENT_ROWS : 0;
}

bool
session_probes_missing(const struct session *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->n_sequences && s->sequences[0].current.probe == PROBE_SHARE; i++) {
        const struct sequence *q = &s->sequences[i];
        const uint32_t length = context_length(s->ctx, q->seq);
        for (uint32_t at = first_recent(length); at < length && !any; at++)
            any = is_missing(q, at);
    }
    return any;
}

bool
session_probe_missing(struct session *s)
{
    struct gathered g = {.session = s, .role = AUX_MODELS};
    bool ok = true;
    s->round++; /* the round before is complete */
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *q = &s->sequences[i];
        const uint32_t length = context_length(s->ctx, q->seq);
        for (uint32_t at = first_recent(length); at < length && ok; at++) {
            const slot_t row = context_at(s->ctx, q->seq, at);
            ok = !is_missing(q, at) || gather(&g, q, &row, 1);
        }
    }
    ok = ok && (g.n == 0 || ask(&g));
    s->round--;
    return ok;
}

/* ---- rounds and texts ---- */

/* Probes every new row with the head in use. Every few rounds it probes with the other head, which is enough to compare
 * how often they agree with the last layer, and costs little. */
bool
session_probe_round(struct session *s, struct sequence *const *sequences, uint32_t n)
{
    const bool all = sequences[0]->current.probe == PROBE_ALL,
               other = s->engine->heads != HEAD_LENS && s->round % OTHER_HEAD_EVERY == 0;
    if (sequences[0]->current.probe >= PROBE_SHARE && s->info.experts > 0)
        emit_experts(sequences, n);
    if (sequences[0]->current.probe == PROBE_SHARE)
        return probe_share_round(s, sequences, n);
    s->probing.now = all;
    return (!all || (probe_emitted(s, sequences, n, false) && (!other || probe_emitted(s, sequences, n, true)))) &&
           probe_aux(s, sequences, n);
}

/* Probes the latest rows, `most` of each sequence. */
static bool
probe_latest(struct session *s, struct sequence *const *sequences, uint32_t n, uint32_t most)
{
    struct gathered g = {.session = s, .role = AUX_MODELS};
    s->probing.now = n > 0 && sequences[0]->current.probe >= PROBE_SHARE;
    for (uint32_t i = 0; i < n && s->probing.now; i++) {
        if (!gather_trunk(&g, sequences[i], 0, most))
            return false;
        sequences[i]->inspected = context_length(s->ctx, sequences[i]->seq);
    }
    return (g.n == 0 || ask(&g)) && probe_aux(s, sequences, n);
}

bool
session_probe_recent(struct session *s, struct sequence *const *sequences, uint32_t n)
{
    return probe_latest(s, sequences, n, RECENT_ROWS);
}

bool
session_probe_prompt(struct session *s, struct sequence *q)
{
    const uint32_t length = context_length(s->ctx, q->seq);
    if (q->current.probe != PROBE_SHARE)
        return session_probe_recent(s, &q, 1);
    q->inspected = length;
    if (!earn(s))
        return true;
    const uint64_t start = clock_us();
    const bool ok = probe_latest(s, &q, 1, SHARE_PROMPT);
    probe_share_spend(&s->probing.share, length < SHARE_PROMPT ? length : SHARE_PROMPT, (double)(clock_us() - start));
    return ok;
}
