/* A round of all live sequences: draft, verify, commit (docs/design-engine.md). */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/session/session_internal.h"

/* ---- the part of one sequence ---- */

bool
seq_is_end(const struct sequence *q, token_t token)
{
    const struct session *s = q->session;
    return !s->ignore_eos && tokenizer_is_end(s->engine->model->tokenizer, token);
}

/* The most drafts that the length, the context and a forward pass allow. */
static uint32_t
budget(const struct sequence *q)
{
    const struct session *s = q->session;
    const struct context_options *limits = context_limits(s->ctx);
    const uint32_t most = (limits->max_rows < VERIFY_NODES ? limits->max_rows : VERIFY_NODES) - 1;
    const uint32_t room = s->info.ctx - q->n_tokens; /* rows left after the pending token's */
    const uint32_t wanted = s->run.wanted == UINT32_MAX ? UINT32_MAX : s->run.wanted - seq_emitted(q) - 1;
    const uint32_t fewer = wanted < room ? wanted : room;
    return fewer < most ? fewer : most;
}

static void
begin_one(struct sequence *q)
{
    const struct session *s = q->session;
    struct round *r = &q->round;
    struct round_state *st = &q->state;
    r->number = s->round;
    r->n_tokens = q->n_tokens;
    r->budget = budget(q);
    r->verdict = NULL;
    r->drafted = r->accepted = r->emitted = 0;
    r->cut = false;
    st->n = 1;
    st->steps = st->unverified = 0;
    st->lacks_last = false;
    st->pos[0] = q->n_tokens - 1;
    st->node[0] = (struct verify_row){.parent = -1, .token = q->tokens[st->pos[0]], .slot = SLOT_NONE, .q = DIST_NONE};
    seq_aux_begin(q);
    st->annealed = false;
    st->line = (struct round_event){.verify_experts = NAN, .reject_rank = -1};
    st->own = (struct spent){0};
    snprintf(st->line.policy, sizeof st->line.policy, "%s", seq_policy(q)->info.name);
    round_summary(r, "", -1, NAN, -1, -1);
}

static uint32_t
rows_of(const struct sequence *q, slot_t *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->state.n; i++)
        if (q->state.node[i].slot != SLOT_NONE)
            rows[n++] = q->state.node[i].slot;
    return n;
}

static struct emission
emission_of(const struct sequence *q)
{
    const struct round_state *st = &q->state;
    const struct verdict *v = &st->verdict;
    struct emission m = {.row = {st->node[0].slot}};
    for (uint32_t i = 0; i < v->n_path && !m.ended; i++) {
        m.token[m.n++] = st->node[v->path[i]].token;
        if (m.n < VERIFY_NODES)
            m.row[m.n] = st->node[v->path[i]].slot;
        m.ended = seq_is_end(q, m.token[m.n - 1]);
    }
    if (!m.ended && v->kind != NEXT_CANDIDATE) {
        m.token[m.n++] = v->next;
        m.own = true;
        m.ended = seq_is_end(q, v->next);
    }
    return m;
}

/* Did an accepted draft end the text? */
static bool
ends_in_draft(const struct emission *m)
{
    return m->ended && !m->own;
}

static bool
commit_one(struct sequence *q)
{
    struct session *s = q->session;
    struct round *r = &q->round;
    struct round_state *st = &q->state;
    const struct emission *m = &st->emission;
    st->emission = emission_of(q);
    r->verdict = &st->verdict;
    r->emitted = m->n;
    r->accepted = m->own ? m->n - 1 : m->n;
    r->drafted = ends_in_draft(m) ? r->accepted : st->steps; /* the others are cut */
    r->cut = m->ended || (st->steps == r->budget && r->budget < context_limits(s->ctx)->max_rows - 1);
    if (!context_keep(s->ctx, q->seq, m->row, m->n) || !seq_aux_keep(q, r->verdict, m->n))
        return session_stop(s, "commit");
    memcpy(q->tokens + q->n_tokens, m->token, m->n * sizeof *m->token);
    r->n_tokens = q->n_tokens += m->n;
    return true;
}

static void
emit_verdict(struct sequence *q)
{
    const struct round_state *st = &q->state;
    const struct emission *m = &st->emission;
    const struct verdict *v = &st->verdict;
    const uint32_t end = st->pos[0] + q->round.drafted; /* later drafts are cut */
    for (uint32_t node = 1; node < st->n; node++) {
        uint32_t at = 0;
        if (st->pos[node] > end)
            continue;
        while (at < v->n_path && v->path[at] != node)
            at++;
        struct event e = {
            .type = EVENT_VERDICT,
            .verdict = {.candidate = (int32_t)node, .accepted = at < v->n_path, .committed = at < v->n_path}};
        seq_emit(q, &e);
    }
    uint32_t judge = v->n_path > 0 ? v->path[v->n_path - 1] : 0;
    if (m->own)
        seq_emit_token(q, q->n_tokens - 1, v->next, v->kind == NEXT_BONUS ? SOURCE_BONUS : SOURCE_CORRECTION,
                       &v->judged[judge]);
    if (seq_shows_verified(q)) /* the predictions of the last layer are already known */
        for (uint32_t i = 0; i < m->n; i++) {
            uint32_t node = i == 0 ? 0 : v->path[i - 1];
            if (v->judged[node].token != TOKEN_NONE)
                seq_emit_prediction(q, st->pos[node] + 1, q->session->model.layers, 0, &v->judged[node], PROBED_VERIFY,
                                    v->judged[node].token);
        }
}

static int32_t
reject_rank(const struct round_state *st)
{
    const struct verdict *v = &st->verdict;
    const int32_t end = v->n_path > 0 ? (int32_t)v->path[v->n_path - 1] : 0;
    uint32_t child = 1;
    while (child < st->n && st->node[child].parent != end)
        child++;
    if (v->kind != NEXT_CORRECTION || !st->emission.own || child == st->n || st->listed[child][0] == TOKEN_NONE)
        return -1;
    for (int32_t i = 0; i < PREDICTION_RANKS; i++)
        if (st->listed[child][i] == v->next)
            return i + 1;
    return 0;
}

static double
us_of(const struct sequence *q, const struct spent *together, enum account account, uint32_t sequences)
{
    return ((double)q->state.own.ns[account] + (double)together->ns[account] / sequences) / 1000;
}

static void
end_one(struct sequence *q, const struct spent *together, uint32_t sequences)
{
    const struct round *r = &q->round;
    struct round_event *line = &q->state.line;
    const struct spent *own = &q->state.own;
    const struct loads work = spent_work(together), alone = spent_work(own);
    line->draft_us =
        (uint32_t)(us_of(q, together, SPENT_DRAFT, sequences) + us_of(q, together, SPENT_LEARN, sequences));
    line->verify_us = (uint32_t)us_of(q, together, SPENT_VERIFY, sequences);
    line->probe_us = (uint32_t)us_of(q, together, SPENT_PROBE, sequences);
    line->heads_us = together->heads_unknown
                         ? NAN
                         : (float)(((double)own->heads_ns + (double)together->heads_ns / sequences) / 1000);
    line->wait_us = (float)us_of(q, together, SPENT_WAIT, sequences);
    line->learning_us = (float)us_of(q, together, SPENT_LEARNING, sequences);
    line->drafted = r->drafted;
    line->cut = q->state.steps - r->drafted;
    line->verified = line->cut > 0 ? r->drafted : r->drafted - q->state.unverified;
    line->accepted = r->accepted;
    line->emitted = r->emitted;
    line->reject_rank = reject_rank(&q->state);
    line->layers_loaded = (float)(alone.layers + work.layers / sequences);
    line->heads_loaded = (float)(alone.heads + work.heads / sequences);
    if (q->state.emission.ended)
        snprintf(line->stop_reason, sizeof line->stop_reason, "eos");
    seq_emit(q, &(struct event){.type = EVENT_ROUND, .round_end = *line});
}

/* ---- the round of all ---- */

struct batch { /* the sequences that take part */
    struct sequence *sequence[ROUNDS_MOST];
    uint32_t n;
};

/* Reserves memory for the round's events, so that a lack of it is an error here and loses none. */
static bool
begin(struct session *s, struct batch *b)
{
    struct err err;
    size_t most = 0; /* drafts */
    b->n = 0;
    spent_begin(&s->spent, SPENT_PROBE, session_loads(s));
    s->spent.ns[SPENT_PROBE] += s->recording_ns; /* since the last round */
    mailbox_round(&s->mailbox, ++s->round);
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct sequence *q = &s->sequences[i];
        if (!session_takes_part(s, q))
            continue;
        begin_one(q);
        most += q->round.budget + 2;
        b->sequence[b->n++] = q;
    }
    s->last_run = (uint32_t)(b->sequence[0] - s->sequences);
    context_follow_experts(s->ctx, s->sequences[0].current.probe >= PROBE_SHARE);
    size_t layers = s->model.layers * (s->info.experts > 0 ? 2U : 1U);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        layers += s->aux[role].layers;
    return event_log_reserve(s->log, (layers + 2) * most * 2, 16384, &err) || session_fail(s, "event log", err.text);
}

static void
spend_on(struct session *s, enum account account)
{
    spent_switch(&s->spent, account, session_loads(s));
}

static bool
propose(const struct batch *b)
{
    struct policy *policy[ROUNDS_MOST];
    struct round *round[ROUNDS_MOST];
    for (uint32_t i = 0; i < b->n; i++) {
        policy[i] = seq_policy(b->sequence[i]);
        round[i] = &b->sequence[i]->round;
    }
    return policy[0]->ops->draft(policy, round, b->n);
}

static bool
draft(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_DRAFT);
    bool ok = true;
    for (uint32_t i = 0; i < b->n && ok; i++) {
        struct verify_row *pending = &b->sequence[i]->state.node[0];
        pending->slot = context_append(s->ctx, b->sequence[i]->seq, SLOT_NONE, pending->token);
        ok = pending->slot != SLOT_NONE && seq_draft_vocab(b->sequence[i]);
    }
    return (ok && propose(b)) || session_stop(s, "draft");
}

/* Runs every node's row of these sequences to depth L in one forward pass, then computes the verdicts. */
static bool
verify_part(struct session *s, struct sequence *const *sequences, uint32_t n)
{
    struct verify_round rounds[ROUNDS_MOST];
    slot_t rows[VERIFY_NODES];
    size_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct round_state *st = &sequences[i]->state;
        n_rows += rows_of(sequences[i], rows + n_rows);
        rounds[i] = (struct verify_round){.seq = sequences[i]->seq,
                                          .rows = st->node,
                                          .n = st->n,
                                          .sampling = sequences[i]->current.sampling,
                                          .seed = sequences[i]->round.seed,
                                          .out = &st->verdict};
    }
    if (!context_advance(s->ctx, rows, n_rows, s->model.layers, NULL))
        return false;
    const double experts = context_experts_touched(s->ctx);
    for (uint32_t i = 0; i < n; i++)
        sequences[i]->state.line.verify_experts = (float)experts;
    return context_verify_all(s->ctx, rounds, n);
}

/* Splits the rows, by sequence, if they do not fit into one forward pass. */
static bool
verify(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_VERIFY);
    for (uint32_t first = 0, last; first < b->n; first = last) {
        slot_t rows[VERIFY_NODES];
        uint32_t n = 0;
        for (last = first; last < b->n; last++) {
            n += rows_of(b->sequence[last], rows);
            if (last > first && n > context_limits(s->ctx)->max_rows)
                break;
        }
        if (!verify_part(s, b->sequence + first, last - first))
            return session_stop(s, "verification");
    }
    return true;
}

/* Every engine keeps the rows of accepted tokens, so this belongs to the verification's time. Emitting events does
 * not. */
static bool
commit(struct session *s, const struct batch *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (!commit_one(b->sequence[i]))
            return false;
    spend_on(s, SPENT_PROBE);
    for (uint32_t i = 0; i < b->n; i++)
        emit_verdict(b->sequence[i]);
    return true;
}

static bool
learn(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_LEARN);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct policy_ops *ops = seq_policy(b->sequence[i])->ops;
        if (ops->observe != NULL && !seq_alone(b->sequence[i], seq_policy(b->sequence[i]), b->n, ops->observe))
            return session_stop(s, "policy");
    }
    return true;
}

static bool
probe(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_PROBE);
    for (uint32_t i = 0; i < b->n; i++)
        if (!seq_aux_read_along(b->sequence[i]))
            return session_stop(s, "features");
    return session_probe_round(s, b->sequence, b->n) || session_stop(s, "probe");
}

/* Emits the ROUND events, which complete the round. */
static uint32_t
end(struct session *s, const struct batch *b)
{
    uint32_t emitted = 0;
    spend_on(s, SPENT_PROBE);
    session_emit_device(s);
    struct spent together = s->spent;
    for (uint32_t i = 0; i < b->n; i++)
        spent_less(&together, &b->sequence[i]->state.own);
    for (uint32_t i = 0; i < b->n; i++) {
        end_one(b->sequence[i], &together, b->n);
        emitted += b->sequence[i]->round.emitted;
    }
    /* the time of the ROUND events counts towards the next round */
    s->recording_ns = clock_ns() - s->spent.since_ns;
    return emitted;
}

bool
session_round(struct session *s, uint32_t *emitted)
{
    struct batch b;
    if (!begin(s, &b) || !draft(s, &b) || !verify(s, &b) || !commit(s, &b) || !learn(s, &b) || !probe(s, &b))
        return false;
    dist_pool_release(s->dists);
    *emitted = end(s, &b);
    return true;
}
