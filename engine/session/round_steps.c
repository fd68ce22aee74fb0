/* A round: draft, verify, commit (docs/design.md). */
#include <math.h>
#include <string.h>

#include "engine/session/session_internal.h"

bool
session_is_end(const struct session *s, token_t token)
{
    return !s->ignore_eos && tokenizer_is_end(s->engine->model->tokenizer, token);
}

/* Drafts that are still wanted and have room. */
static uint32_t
budget(const struct session *s)
{
    const struct context_options *limits = context_limits(s->ctx);
    const uint32_t most = (limits->max_rows < VERIFY_NODES ? limits->max_rows : VERIFY_NODES) - 1;
    const uint32_t room = s->info.ctx - s->run.n_tokens; /* rows left beside the pending token's */
    const uint32_t wanted = s->run.wanted == UINT32_MAX ? UINT32_MAX : s->run.wanted - run_emitted(&s->run) - 1;
    const uint32_t fewer = wanted < room ? wanted : room;
    return fewer < most ? fewer : most;
}

/* The events of a round are reserved beforehand: where memory is short, that is said before they would get lost. */
static bool
begin_round(struct session *s)
{
    struct round *r = &s->round;
    struct round_state *st = &s->state;
    struct err err;
    r->number++;
    mailbox_round(&s->mailbox, r->number);
    r->n_tokens = s->run.n_tokens;
    r->budget = budget(s);
    r->verdict = NULL;
    r->drafted = r->accepted = r->emitted = 0;
    r->cut = false;
    st->n = 1;
    st->steps = st->cut = 0;
    st->lacks_last = false;
    st->pos[0] = s->run.n_tokens - 1;
    st->node[0] =
        (struct verify_row){.parent = -1, .token = s->run.tokens[st->pos[0]], .slot = SLOT_NONE, .q = DIST_NONE};
    session_helpers_begin(s);
    st->annealed = false;
    st->line = (struct round_event){0};
    snprintf(st->line.policy, sizeof st->line.policy, "%s", s->info.policies[s->settings.policy].name);
    round_summary(r, "", -1, NAN, -1, -1);
    return event_log_reserve(s->log, ((size_t)s->model.layers + 2) * ((size_t)r->budget + 2) * 2, 16384, &err) ||
           session_fail(s, "event log", err.text);
}

static void
spend_on(struct session *s, enum account account)
{
    spent_turn(&s->state.spent, account, session_loads(s));
}

/* The pending token's row, and what the policy proposes after it. */
static bool
draft(struct session *s)
{
    struct policy *policy = &s->policies[s->settings.policy];
    struct verify_row *pending = &s->state.node[0];
    spent_begin(&s->state.spent, session_loads(s));
    pending->slot = context_append(s->ctx, s->seq, SLOT_NONE, pending->token);
    return (pending->slot != SLOT_NONE && policy->ops->draft(policy, &s->round)) || session_stop(s, "draft");
}

/* Every node's row to depth L in one sweep, then the target's verdict. */
static bool
verify(struct session *s)
{
    struct round_state *st = &s->state;
    slot_t rows[VERIFY_NODES];
    size_t n = 0;
    spend_on(s, SPENT_VERIFY);
    for (uint32_t i = 0; i < st->n; i++)
        if (st->node[i].slot != SLOT_NONE)
            rows[n++] = st->node[i].slot;
    return (context_advance(s->ctx, rows, n, s->model.layers, NULL) &&
            context_verify(s->ctx, s->seq, st->node, st->n, &s->info.sampling, s->round.seed, &st->verdict)) ||
           session_stop(s, "verification");
}

/* What the verdict emits: accepted drafts, then the target's own token; cut after an end of sequence. The rows of all
 * emitted tokens but the last are committed, behind the pending token's: KV length = tokens - 1. */
struct emission {
    token_t token[VERIFY_NODES + 1];
    uint32_t n;
    slot_t row[VERIFY_NODES]; /* (n) */
    bool own;                 /* the last one is the target's own */
    bool ended;               /* … or ends the sequence */
};

static struct emission
settle(const struct session *s)
{
    const struct round_state *st = &s->state;
    const struct verdict *v = &st->verdict;
    struct emission m = {.row = {st->node[0].slot}};
    for (uint32_t i = 0; i < v->n_path && !m.ended; i++) {
        m.token[m.n++] = st->node[v->path[i]].token;
        if (m.n < VERIFY_NODES)
            m.row[m.n] = st->node[v->path[i]].slot;
        m.ended = session_is_end(s, m.token[m.n - 1]);
    }
    if (!m.ended && v->kind != NEXT_CANDIDATE) {
        m.token[m.n++] = v->next;
        m.own = true;
        m.ended = session_is_end(s, v->next);
    }
    return m;
}

static void
tell_verdict(struct session *s, const struct emission *m)
{
    const struct round_state *st = &s->state;
    const struct verdict *v = &st->verdict;
    uint32_t committed = m->own ? m->n - 1 : m->n; /* drafts among the emitted */
    for (uint32_t node = 1; node < st->n; node++) {
        uint32_t at = 0;
        while (at < v->n_path && v->path[at] != node)
            at++;
        struct event e = {
            .type = EVENT_VERDICT,
            .verdict = {.candidate = (int32_t)node, .accepted = at < v->n_path, .committed = at < committed}};
        session_emit(s, &e);
    }
    uint32_t judge = v->n_path > 0 ? v->path[v->n_path - 1] : 0;
    if (m->own)
        session_tell_token(s, s->run.n_tokens + m->n - 1, v->next,
                           v->kind == NEXT_BONUS ? SOURCE_BONUS : SOURCE_CORRECTION, &v->judged[judge]);
    if (s->settings.probe == PROBE_POLICY) /* the last layer's word is already there */
        for (uint32_t i = 0; i < m->n; i++) {
            uint32_t node = i == 0 ? 0 : v->path[i - 1];
            if (v->judged[node].token != TOKEN_NONE)
                session_tell_guess(s, st->pos[node] + 1, s->model.layers, 0, &v->judged[node], PROBED_VERIFY,
                                   v->judged[node].token);
        }
}

static bool
commit(struct session *s, struct emission *m)
{
    struct round *r = &s->round;
    const struct round_state *st = &s->state;
    spend_on(s, SPENT_PROBE);
    *m = settle(s);
    r->verdict = &st->verdict;
    r->drafted = st->steps;
    r->accepted = st->verdict.n_path;
    r->emitted = m->n;
    r->cut = m->ended || (st->steps == r->budget && r->budget < context_limits(s->ctx)->max_rows - 1);
    if (!context_keep(s->ctx, s->seq, m->row, m->n) || !session_helpers_keep(s, r->verdict, m->n))
        return session_stop(s, "commit");
    tell_verdict(s, m);
    memcpy(s->run.tokens + s->run.n_tokens, m->token, m->n * sizeof *m->token);
    r->n_tokens = s->run.n_tokens += m->n;
    return true;
}

/* The policy looks at the verdict. */
static bool
learn(struct session *s)
{
    struct policy *policy = &s->policies[s->settings.policy];
    if (policy->ops->observe == NULL)
        return true;
    spend_on(s, SPENT_LEARN);
    return policy->ops->observe(policy, &s->round) || session_stop(s, "policy");
}

static bool
probe(struct session *s, const struct emission *m)
{
    spend_on(s, SPENT_PROBE);
    return session_probe_round(s, m->row, m->n) || session_stop(s, "probe");
}

/* The round's line, its commit record. What the policy learned is the draft's cost. */
static void
end_round(struct session *s, const struct emission *m)
{
    const struct round *r = &s->round;
    struct round_event *line = &s->state.line;
    const struct spent *spent = &s->state.spent;
    spend_on(s, SPENT_PROBE);
    const struct loads work = spent_work(spent);
    line->draft_us = (uint32_t)((spent->ns[SPENT_DRAFT] + spent->ns[SPENT_LEARN]) / 1000);
    line->verify_us = (uint32_t)(spent->ns[SPENT_VERIFY] / 1000);
    line->probe_us = (uint32_t)(spent->ns[SPENT_PROBE] / 1000);
    line->heads_us = spent->heads_unknown ? NAN : (float)((double)spent->heads_ns * 1e-3);
    line->wait_us = (float)((double)spent->ns[SPENT_WAIT] * 1e-3);
    line->aside_us = (float)((double)spent->ns[SPENT_ASIDE] * 1e-3);
    line->drafted = r->drafted;
    line->verified = r->drafted - s->state.cut;
    line->accepted = r->accepted;
    line->emitted = r->emitted;
    line->layers_loaded = (float)work.layers;
    line->heads_loaded = (float)work.heads;
    if (m->ended)
        snprintf(line->stop_reason, sizeof line->stop_reason, "eos");
    session_emit(s, &(struct event){.type = EVENT_ROUND, .round_end = *line});
}

bool
session_round(struct session *s)
{
    struct emission m;
    if (!begin_round(s) || !draft(s) || !verify(s) || !commit(s, &m) || !learn(s) || !probe(s, &m))
        return false;
    dist_pool_release(s->dists);
    end_round(s, &m);
    session_round_done(s);
    return true;
}
