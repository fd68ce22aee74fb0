/* What a lane does of a round: it begins, and is settled, committed and told. */
#include <math.h>
#include <string.h>

#include "engine/session/session_internal.h"

bool
lane_is_end(const struct lane *l, token_t token)
{
    const struct session *s = l->session;
    return !s->ignore_eos && tokenizer_is_end(s->engine->model->tokenizer, token);
}

/* Drafts that are still wanted and have room. */
static uint32_t
budget(const struct lane *l)
{
    const struct session *s = l->session;
    const struct context_options *limits = context_limits(s->ctx);
    const uint32_t most = (limits->max_rows < VERIFY_NODES ? limits->max_rows : VERIFY_NODES) - 1;
    const uint32_t room = s->info.ctx - l->n_tokens; /* rows left beside the pending token's */
    const uint32_t wanted = s->run.wanted == UINT32_MAX ? UINT32_MAX : s->run.wanted - lane_emitted(l) - 1;
    const uint32_t fewer = wanted < room ? wanted : room;
    return fewer < most ? fewer : most;
}

void
lane_begin_round(struct lane *l)
{
    const struct session *s = l->session;
    struct round *r = &l->round;
    struct round_state *st = &l->state;
    r->number = s->round;
    r->n_tokens = l->n_tokens;
    r->budget = budget(l);
    r->verdict = NULL;
    r->drafted = r->accepted = r->emitted = 0;
    r->cut = false;
    st->n = 1;
    st->steps = st->cut = 0;
    st->lacks_last = false;
    st->pos[0] = l->n_tokens - 1;
    st->node[0] = (struct verify_row){.parent = -1, .token = l->tokens[st->pos[0]], .slot = SLOT_NONE, .q = DIST_NONE};
    lane_helpers_begin(l);
    st->annealed = false;
    st->line = (struct round_event){.verify_experts = NAN};
    st->own = (struct spent){0};
    snprintf(st->line.policy, sizeof st->line.policy, "%s", lane_policy(l)->info.name);
    round_summary(r, "", -1, NAN, -1, -1);
}

uint32_t
lane_rows(const struct lane *l, slot_t *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->state.n; i++)
        if (l->state.node[i].slot != SLOT_NONE)
            rows[n++] = l->state.node[i].slot;
    return n;
}

static struct emission
settle(const struct lane *l)
{
    const struct round_state *st = &l->state;
    const struct verdict *v = &st->verdict;
    struct emission m = {.row = {st->node[0].slot}};
    for (uint32_t i = 0; i < v->n_path && !m.ended; i++) {
        m.token[m.n++] = st->node[v->path[i]].token;
        if (m.n < VERIFY_NODES)
            m.row[m.n] = st->node[v->path[i]].slot;
        m.ended = lane_is_end(l, m.token[m.n - 1]);
    }
    if (!m.ended && v->kind != NEXT_CANDIDATE) {
        m.token[m.n++] = v->next;
        m.own = true;
        m.ended = lane_is_end(l, v->next);
    }
    return m;
}

bool
lane_commit(struct lane *l)
{
    struct session *s = l->session;
    struct round *r = &l->round;
    struct round_state *st = &l->state;
    const struct emission *m = &st->emission;
    st->emission = settle(l);
    r->verdict = &st->verdict;
    r->drafted = st->steps;
    r->accepted = st->verdict.n_path;
    r->emitted = m->n;
    r->cut = m->ended || (st->steps == r->budget && r->budget < context_limits(s->ctx)->max_rows - 1);
    if (!context_keep(s->ctx, l->seq, m->row, m->n) || !lane_helpers_keep(l, r->verdict, m->n))
        return session_stop(s, "commit");
    memcpy(l->tokens + l->n_tokens, m->token, m->n * sizeof *m->token);
    r->n_tokens = l->n_tokens += m->n;
    return true;
}

void
lane_tell_verdict(struct lane *l)
{
    const struct round_state *st = &l->state;
    const struct emission *m = &st->emission;
    const struct verdict *v = &st->verdict;
    uint32_t committed = m->own ? m->n - 1 : m->n; /* drafts among the emitted */
    for (uint32_t node = 1; node < st->n; node++) {
        uint32_t at = 0;
        while (at < v->n_path && v->path[at] != node)
            at++;
        struct event e = {
            .type = EVENT_VERDICT,
            .verdict = {.candidate = (int32_t)node, .accepted = at < v->n_path, .committed = at < committed}};
        lane_emit(l, &e);
    }
    uint32_t judge = v->n_path > 0 ? v->path[v->n_path - 1] : 0;
    if (m->own)
        lane_tell_token(l, l->n_tokens - 1, v->next, v->kind == NEXT_BONUS ? SOURCE_BONUS : SOURCE_CORRECTION,
                        &v->judged[judge]);
    if (l->current.probe == PROBE_POLICY) /* the last layer's word is already there */
        for (uint32_t i = 0; i < m->n; i++) {
            uint32_t node = i == 0 ? 0 : v->path[i - 1];
            if (v->judged[node].token != TOKEN_NONE)
                lane_tell_guess(l, st->pos[node] + 1, l->session->model.layers, 0, &v->judged[node], PROBED_VERIFY,
                                v->judged[node].token);
        }
}

static double
us_of(const struct lane *l, const struct spent *together, enum account account, uint32_t lanes)
{
    return ((double)l->state.own.ns[account] + (double)together->ns[account] / lanes) / 1000;
}

void
lane_end_round(struct lane *l, const struct spent *together, uint32_t lanes)
{
    const struct round *r = &l->round;
    struct round_event *line = &l->state.line;
    const struct spent *own = &l->state.own;
    const struct loads work = spent_work(together), alone = spent_work(own);
    line->draft_us = (uint32_t)(us_of(l, together, SPENT_DRAFT, lanes) + us_of(l, together, SPENT_LEARN, lanes));
    line->verify_us = (uint32_t)us_of(l, together, SPENT_VERIFY, lanes);
    line->probe_us = (uint32_t)us_of(l, together, SPENT_PROBE, lanes);
    line->heads_us =
        together->heads_unknown ? NAN : (float)(((double)own->heads_ns + (double)together->heads_ns / lanes) / 1000);
    line->wait_us = (float)us_of(l, together, SPENT_WAIT, lanes);
    line->aside_us = (float)us_of(l, together, SPENT_ASIDE, lanes);
    line->drafted = r->drafted;
    line->verified = r->drafted - l->state.cut;
    line->accepted = r->accepted;
    line->emitted = r->emitted;
    line->layers_loaded = (float)(alone.layers + work.layers / lanes);
    line->heads_loaded = (float)(alone.heads + work.heads / lanes);
    if (l->state.emission.ended)
        snprintf(line->stop_reason, sizeof line->stop_reason, "eos");
    lane_emit(l, &(struct event){.type = EVENT_ROUND, .round_end = *line});
}
