/* A round of all live lanes: draft, verify, commit (docs/design.md). */
#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

struct batch { /* the lanes that take part */
    struct lane *lane[ROUNDS_MOST];
    uint32_t n;
};

/* The events of a round are reserved beforehand: where memory is short, that is said before they would get lost. */
static bool
begin(struct session *s, struct batch *b)
{
    struct err err;
    size_t most = 0; /* drafts */
    b->n = 0;
    spent_begin(&s->spent, SPENT_PROBE, session_loads(s));
    s->spent.ns[SPENT_PROBE] += s->recording_ns; /* since the last round */
    mailbox_round(&s->mailbox, ++s->round);
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct lane *l = &s->lanes[i];
        if (!session_takes_part(s, l))
            continue;
        lane_begin_round(l);
        most += l->round.budget + 2;
        b->lane[b->n++] = l;
    }
    s->turn = (uint32_t)(b->lane[0] - s->lanes);
    context_follow_experts(s->ctx, s->lanes[0].current.probe == PROBE_ALL);
    size_t layers = s->model.layers * (s->info.experts > 0 ? 2U : 1U);
    for (enum helper_role role = 0; role < HELPERS; role++)
        layers += s->helpers[role].layers;
    return event_log_reserve(s->log, (layers + 2) * most * 2, 16384, &err) || session_fail(s, "event log", err.text);
}

static void
spend_on(struct session *s, enum account account)
{
    spent_turn(&s->spent, account, session_loads(s));
}

bool
lane_alone(struct lane *l, struct policy *p, uint32_t together, bool (*step)(struct policy *, struct round *))
{
    struct session *s = l->session;
    if (together == 1)
        return step(p, &l->round);
    spend_on(s, s->spent.account);
    const struct spent then = s->spent;
    const bool ok = step(p, &l->round);
    spend_on(s, s->spent.account);
    spent_own(&l->state.own, &then, &s->spent);
    return ok;
}

/* What the policy proposes after the pending tokens. */
static bool
propose(const struct batch *b)
{
    struct policy *policy[ROUNDS_MOST];
    struct round *round[ROUNDS_MOST];
    for (uint32_t i = 0; i < b->n; i++) {
        policy[i] = lane_policy(b->lane[i]);
        round[i] = &b->lane[i]->round;
    }
    return policy[0]->ops->draft(policy, round, b->n);
}

static bool
draft(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_DRAFT);
    bool ok = true;
    for (uint32_t i = 0; i < b->n && ok; i++) {
        struct verify_row *pending = &b->lane[i]->state.node[0];
        pending->slot = context_append(s->ctx, b->lane[i]->seq, SLOT_NONE, pending->token);
        ok = pending->slot != SLOT_NONE;
    }
    return (ok && propose(b)) || session_stop(s, "draft");
}

/* Every node's row of these lanes to depth L in one sweep, then the target's verdicts. */
static bool
verify_part(struct session *s, struct lane *const *lanes, uint32_t n)
{
    struct verify_round rounds[ROUNDS_MOST];
    slot_t rows[VERIFY_NODES];
    size_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct round_state *st = &lanes[i]->state;
        n_rows += lane_rows(lanes[i], rows + n_rows);
        rounds[i] = (struct verify_round){.seq = lanes[i]->seq,
                                          .rows = st->node,
                                          .n = st->n,
                                          .sampling = lanes[i]->current.sampling,
                                          .seed = lanes[i]->round.seed,
                                          .out = &st->verdict};
    }
    if (!context_advance(s->ctx, rows, n_rows, s->model.layers, NULL))
        return false;
    const double experts = context_experts_touched(s->ctx);
    for (uint32_t i = 0; i < n; i++)
        lanes[i]->state.line.verify_experts = (float)experts;
    return context_verify_all(s->ctx, rounds, n);
}

/* In parts of whole sequences where it takes more rows than a sweep has. */
static bool
verify(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_VERIFY);
    for (uint32_t first = 0, last; first < b->n; first = last) {
        slot_t rows[VERIFY_NODES];
        uint32_t n = 0;
        for (last = first; last < b->n; last++) {
            n += lane_rows(b->lane[last], rows);
            if (last > first && n > context_limits(s->ctx)->max_rows)
                break;
        }
        if (!verify_part(s, b->lane + first, last - first))
            return session_stop(s, "verification");
    }
    return true;
}

/* Any engine keeps the rows of what it accepts, so that is part of the verification's time; recording is not. */
static bool
commit(struct session *s, const struct batch *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (!lane_commit(b->lane[i]))
            return false;
    spend_on(s, SPENT_PROBE);
    for (uint32_t i = 0; i < b->n; i++)
        lane_tell_verdict(b->lane[i]);
    return true;
}

/* The policy looks at the verdicts. */
static bool
learn(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_LEARN);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct policy_ops *ops = lane_policy(b->lane[i])->ops;
        if (ops->observe != NULL && !lane_alone(b->lane[i], lane_policy(b->lane[i]), b->n, ops->observe))
            return session_stop(s, "policy");
    }
    return true;
}

static bool
probe(struct session *s, const struct batch *b)
{
    spend_on(s, SPENT_PROBE);
    return session_probe_round(s, b->lane, b->n) || session_stop(s, "probe");
}

/* The round's lines, its commit record. What the policy learned is the draft's cost. */
static uint32_t
end(struct session *s, const struct batch *b)
{
    uint32_t emitted = 0;
    spend_on(s, SPENT_PROBE);
    session_tell_device(s);
    struct spent together = s->spent;
    for (uint32_t i = 0; i < b->n; i++)
        spent_less(&together, &b->lane[i]->state.own);
    for (uint32_t i = 0; i < b->n; i++) {
        lane_end_round(b->lane[i], &together, b->n);
        emitted += b->lane[i]->round.emitted;
    }
    s->recording_ns = clock_ns() - s->spent.since_ns; /* of the rounds' own events, which are sent by now */
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
