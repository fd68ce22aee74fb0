#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

static struct session *
session_of(const struct round *r)
{
    return r->state->lane->session;
}

void
round_tell_guess(const struct round *r, slot_t slot, uint32_t layer, const struct guess *g)
{
    struct lane *l = r->state->lane;
    const uint32_t pos = context_position(r->ctx, slot) + 1;
    if (l->current.probe == PROBE_OFF)
        return;
    if (r->helper == NULL)
        lane_tell_guess(l, pos, layer, lane_head_at(l, layer), g, PROBED_POLICY, TOKEN_NONE);
    else
        lane_tell_helper_guess(l, (enum helper_role)(r->helper - l->helpers), pos, layer, g, PROBED_POLICY, TOKEN_NONE);
}

/* Head calls were made since then. */
static void
heads_called(struct round *r, uint64_t since_ns)
{
    spent_heads(&session_of(r)->spent, clock_ns() - since_ns);
}

bool
round_until(struct round *r, const slot_t *rows, size_t n, uint32_t to, const struct exit_rule *rule,
            struct exit_result *out)
{
    struct session *s = session_of(r);
    struct exit_rule asked = *rule;
    asked.head = r->state->lane->head;
    struct guess *mine = out->probed;
    if (mine == NULL) /* the caller doesn't care, the screen does */
        out->probed = s->probing.guesses;
    bool ok = context_advance_until(r->ctx, rows, n, to, &asked, out);
    if (ok) {
        spent_heads(&session_of(r)->spent, out->probe_ns);
        if (out->probes > 0 && out->probe_ns == 0)
            s->spent.heads_unknown = true;
        r->state->annealed = r->helper == NULL;
        if (r->helper == NULL)
            memcpy(r->state->temperature, rule->temperature, (r->layers + 1) * sizeof *rule->temperature);
        for (uint32_t l = 1; l <= out->depth; l++)
            if (out->probed[l].token != TOKEN_NONE)
                round_tell_guess(r, rows[n - 1], l, &out->probed[l]);
    }
    out->probed = mine;
    return ok;
}

bool
round_look(struct round *r, const struct context_probe *probes, size_t n, struct guess *out)
{
    struct session *s = session_of(r);
    const size_t room = s->probing.n;
    uint64_t start = clock_ns();
    bool ok = true;
    for (size_t at = 0; at < n && ok; at += room) {
        const size_t part = n - at < room ? n - at : room;
        memcpy(s->probing.probes, probes + at, part * sizeof *probes);
        for (size_t i = 0; i < part; i++)
            s->probing.probes[i].head = r->state->lane->head;
        ok = context_guess(r->ctx, s->probing.probes, part, out + at);
    }
    heads_called(r, start);
    return ok;
}

bool
round_guess(struct round *r, const struct context_probe *probes, size_t n, struct guess *out)
{
    if (!round_look(r, probes, n, out))
        return false;
    for (size_t i = 0; i < n; i++)
        round_tell_guess(r, probes[i].slot, probes[i].layer, &out[i]);
    return true;
}

bool
round_acceptance(struct round *r, slot_t row, double *p)
{
    const uint64_t start = clock_ns();
    const bool ok = session_acceptance(session_of(r), r->ctx, row, r->exit_layer, p);
    heads_called(r, start);
    return ok;
}

uint32_t
round_candidates(struct round *r, slot_t slot, uint32_t layer, uint32_t pos, uint32_t k, const struct guess *g,
                 token_t *out, dist_t *q)
{
    bool greedy = !(r->sampling.temperature > 0);
    uint32_t n = 0;
    *q = DIST_NONE;
    if (greedy && k <= GUESS_TOP) { /* the guess lists them */
        while (n < k && g->top[n] != TOKEN_NONE) {
            out[n] = g->top[n];
            n++;
        }
        return n;
    }
    uint64_t start = clock_ns();
    const struct sampling whole = {.temperature = 1, .top_p = 1};
    dist_t from = context_dist(r->ctx, slot, layer, r->state->lane->head, greedy ? &whole : &r->sampling);
    if (!greedy)
        *q = from;
    while (from != DIST_NONE && n < k) {
        const struct rng_key key = {.seed = r->seed, .pos = pos, .purpose = RNG_DRAFT, .index = n};
        token_t t = greedy ? context_likeliest(r->ctx, from, out, n) : context_draw(r->ctx, from, &key, out, n);
        if (t == TOKEN_NONE)
            break;
        out[n++] = t;
    }
    heads_called(r, start);
    return context_error(r->ctx)->kind == ERR_NONE ? n : 0;
}

void
round_aside_begin(struct round *r)
{
    struct session *s = session_of(r);
    s->aside_from = spent_turn(&s->spent, SPENT_ASIDE, session_loads(s));
}

void
round_aside_end(struct round *r)
{
    struct session *s = session_of(r);
    spent_turn(&s->spent, s->aside_from, session_loads(s));
}

double
round_draft_ms(const struct round *r)
{
    struct session *s = session_of(r);
    spent_turn(&s->spent, s->spent.account, session_loads(s));
    return (double)s->spent.ns[SPENT_DRAFT] * 1e-6;
}

double
round_verify_ms(const struct round *r)
{
    return (double)session_of(r)->spent.ns[SPENT_VERIFY] * 1e-6;
}

double
round_aside_ms(const struct round *r)
{
    return (double)session_of(r)->spent.ns[SPENT_ASIDE] * 1e-6;
}

uint32_t
round_drafted(const struct round *r)
{
    return r->state->n - 1;
}

void
round_verify_first(struct round *r, uint32_t n)
{
    struct session *s = session_of(r);
    struct round_state *st = r->state;
    if (n >= round_drafted(r))
        return;
    struct verify_row *last = &st->node[n + 1];
    if (last->slot != SLOT_NONE)
        context_discard(s->ctx, last->slot); /* and what hangs off it */
    last->slot = SLOT_NONE;
    st->n = n + 2;
    st->cut = st->steps - (n + 1);
}

bool
round_full(const struct round *r)
{
    return r->state->steps >= r->budget || r->state->n == VERIFY_NODES || r->state->lacks_last;
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
    if (p->exit_layer != NO_LAYER && p->exit_layer > r->layers) {
        session_fail(s, "policy", "proposed a token of a layer that the model does not have");
        return -1;
    }
    uint32_t pos = st->pos[p->parent] + 1;
    if (st->n >= VERIFY_NODES || pos - st->pos[0] > r->budget)
        return -1;
    slot_t slot = SLOT_NONE;
    st->lacks_last = (uint32_t)p->token >= s->model.vocab;
    if (!p->no_row && !st->lacks_last) {
        slot = context_append(s->ctx, st->lane->seq, st->node[p->parent].slot, p->token);
        if (slot == SLOT_NONE)
            return -1;
    }
    int32_t node = (int32_t)st->n++;
    st->node[node] = (struct verify_row){.parent = p->parent, .token = p->token, .slot = slot, .q = p->q};
    st->pos[node] = pos;
    if (pos - st->pos[0] > st->steps)
        st->steps = pos - st->pos[0];
    const bool own = r->helper == NULL && p->exit_layer != NO_LAYER; /* a layer of the target predicted it */
    const token_t told = st->lacks_last ? s->unknown : p->token;
    session_tell_vocab(s, told);
    struct event e = {.type = EVENT_TOKEN,
                      .token = {.pos = pos,
                                .parent = p->parent,
                                .candidate = node,
                                .token = told,
                                .source = SOURCE_DRAFT,
                                .exit_layer = own ? (int32_t)p->exit_layer : -1,
                                .confidence = p->guess != NULL ? p->guess->confidence : NAN,
                                .annealed = p->guess != NULL && st->annealed ? p->guess->annealed : NAN,
                                .head = own ? (int32_t)lane_head_at(st->lane, p->exit_layer) : -1,
                                .accepted = -1,
                                .committed = -1}};
    lane_emit(st->lane, &e);
    session_token_done(s);
    const enum account before = spent_turn(&s->spent, SPENT_WAIT, session_loads(s));
    const enum next next = session_gate(s, GATE_TOKEN);
    spent_turn(&s->spent, before, session_loads(s));
    return next == NEXT_STOP ? -1 : node;
}

slot_t
round_slot(struct round *r, int32_t node)
{
    const slot_t slot = node >= 0 && (uint32_t)node < r->state->n ? r->state->node[node].slot : SLOT_NONE;
    return slot == SLOT_NONE || r->helper == NULL ? slot : lane_helper_row(r->state->lane, r->helper, node);
}

bool
round_fail(struct round *r, const char *why)
{
    struct session *s = session_of(r);
    return session_fail(s, lane_policy(r->state->lane)->info.name, why);
}

void
round_report(struct round *r, const char *key, int index, double value)
{
    struct event e = {.type = EVENT_SERIES, .series = {.index = index, .value = (float)value}};
    snprintf(e.series.key, sizeof e.series.key, "%s", key);
    lane_emit(r->state->lane, &e);
}

void
round_summary(struct round *r, const char *stop_reason, int exit_layer, double threshold, int d_max, int w_max)
{
    struct round_event *line = &r->state->line;
    snprintf(line->stop_reason, sizeof line->stop_reason, "%s", stop_reason);
    line->exit_layer = r->helper == NULL && exit_layer != NO_LAYER ? exit_layer : -1;
    line->threshold = (float)threshold;
    line->d_max = d_max;
    line->w_max = w_max;
}
