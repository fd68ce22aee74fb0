#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/session_internal.h"

static struct session *
session_of(const struct round *r)
{
    return r->state->session;
}

bool
round_advance(struct round *r, const slot_t *slots, size_t n, uint32_t to, const struct plan *plan)
{
    return context_advance(r->ctx, slots, n, to, plan);
}

bool
round_until(struct round *r, const slot_t *rows, size_t n, uint32_t to, const struct exit_rule *rule,
            struct exit_result *out)
{
    struct session *s = session_of(r);
    struct guess *mine = out->probed;
    if (mine == NULL) /* the caller doesn't care, the screen does */
        out->probed = s->guesses;
    bool ok = context_advance_until(r->ctx, rows, n, to, rule, out);
    if (ok) {
        memcpy(r->state->temperature, rule->temperature, (r->layers + 1) * sizeof *rule->temperature);
        r->state->annealed = true;
        for (uint32_t l = 1; l <= out->depth && s->probe != PROBE_OFF; l++)
            if (out->probed[l].token != TOKEN_NONE)
                session_layer_event(s, context_position(r->ctx, rows[n - 1]) + 1, l, 0, &out->probed[l], PROBED_POLICY,
                                    TOKEN_NONE);
    }
    out->probed = mine;
    return ok;
}

bool
round_guess(struct round *r, const struct context_probe *probes, size_t n, struct guess *out)
{
    if (!context_guess(r->ctx, probes, n, out))
        return false;
    struct session *s = session_of(r);
    for (size_t i = 0; i < n && s->probe != PROBE_OFF; i++)
        session_layer_event(s, context_position(r->ctx, probes[i].slot) + 1, probes[i].layer, probes[i].head, &out[i],
                            PROBED_POLICY, TOKEN_NONE);
    return true;
}

bool
round_choose(struct round *r, slot_t slot, uint32_t layer, uint32_t head, const struct guess *g, token_t *token,
             dist_t *q)
{
    *q = DIST_NONE;
    if (!(r->sampling.temperature > 0)) {
        *token = g->token;
        return true;
    }
    *q = context_dist(r->ctx, slot, layer, head, &r->sampling);
    if (*q == DIST_NONE)
        return false;
    struct rng_key key = {
        .seed = r->seed, .seq = r->seq, .pos = context_position(r->ctx, slot) + 1, .purpose = RNG_DRAFT};
    *token = context_draw(r->ctx, *q, &key, NULL, 0);
    return *token != TOKEN_NONE;
}

bool
round_full(const struct round *r)
{
    return r->state->n > r->budget;
}

int32_t
round_propose(struct round *r, const struct proposal *p)
{
    struct session *s = session_of(r);
    struct round_state *st = r->state;
    if (p->parent < 0 || (uint32_t)p->parent >= st->n || st->node[p->parent].slot == SLOT_NONE) {
        session_fail(s, "policy", "proposed a token after one that has no row");
        return -1;
    }
    uint32_t pos = st->pos[p->parent] + 1;
    if (st->n >= VERIFY_NODES || pos - st->pos[0] > r->budget)
        return -1;
    slot_t slot = SLOT_NONE;
    if (!p->no_row) {
        slot = context_append(r->ctx, r->seq, st->node[p->parent].slot, p->token);
        if (slot == SLOT_NONE)
            return -1;
    }
    int32_t node = (int32_t)st->n++;
    st->node[node] = (struct verify_row){.parent = p->parent, .token = p->token, .slot = slot, .q = p->q};
    st->pos[node] = pos;
    if (pos - st->pos[0] > st->steps)
        st->steps = pos - st->pos[0];
    session_vocab(s, p->token);
    struct event e = {.type = EVENT_TOKEN,
                      .token = {.pos = pos,
                                .parent = p->parent,
                                .candidate = node,
                                .token = p->token,
                                .source = SOURCE_DRAFT,
                                .exit_layer = (int32_t)p->exit_layer,
                                .confidence = p->guess != NULL ? p->guess->confidence : NAN,
                                .annealed = p->guess != NULL ? p->guess->annealed : NAN,
                                .head = (int32_t)p->head,
                                .accepted = -1,
                                .committed = -1}};
    session_emit(s, &e);
    session_token_done(s);
    return session_gate(s, false) == MOOD_GO ? node : -1;
}

slot_t
round_slot(const struct round *r, int32_t node)
{
    return node >= 0 && (uint32_t)node < r->state->n ? r->state->node[node].slot : SLOT_NONE;
}

void
round_report(struct round *r, const char *key, int index, double value)
{
    struct event e = {.type = EVENT_SERIES, .series = {.index = index, .value = (float)value}};
    snprintf(e.series.key, sizeof e.series.key, "%s", key);
    session_emit(session_of(r), &e);
}

void
round_summary(struct round *r, const char *stop_reason, int exit_layer, double threshold, int d_max, int w_max)
{
    struct round_state *st = r->state;
    snprintf(st->stop_reason, sizeof st->stop_reason, "%s", stop_reason);
    st->exit_layer = exit_layer;
    st->threshold = threshold;
    st->d_max = d_max;
    st->w_max = w_max;
}
