/* Functions that policies call while they draft, for one sequence and for several in step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/session/session_internal.h"

/* ---- times and loads ---- */

void
spent_begin(struct spent *s, enum account account, struct loads now)
{
    *s = (struct spent){.account = account, .since_ns = clock_ns(), .since = now};
}

enum account
spent_switch(struct spent *s, enum account to, struct loads now)
{
    const enum account before = s->account;
    const uint64_t now_ns = clock_ns();
    s->ns[before] += now_ns - s->since_ns;
    s->loads[before].layers += now.layers - s->since.layers;
    s->loads[before].heads += now.heads - s->since.heads;
    s->account = to;
    s->since_ns = now_ns;
    s->since = now;
    return before;
}

void
spent_heads(struct spent *s, uint64_t ns)
{
    if (s->account != SPENT_LEARNING)
        s->heads_ns += ns;
}

static void
add(struct spent *to, const struct spent *what, bool less)
{
    const double sign = less ? -1 : 1;
    for (int i = 0; i < ACCOUNTS; i++) {
        to->ns[i] = less ? to->ns[i] - what->ns[i] : to->ns[i] + what->ns[i];
        to->loads[i].layers += sign * what->loads[i].layers;
        to->loads[i].heads += sign * what->loads[i].heads;
    }
    to->heads_ns = less ? to->heads_ns - what->heads_ns : to->heads_ns + what->heads_ns;
}

void
spent_own(struct spent *own, const struct spent *then, const struct spent *now)
{
    add(own, now, false);
    add(own, then, true);
}

void
spent_less(struct spent *s, const struct spent *own)
{
    add(s, own, true);
}

struct loads
spent_work(const struct spent *s)
{
    struct loads work = {0};
    for (int i = 0; i < ACCOUNTS; i++) {
        if (i == SPENT_LEARNING || i == SPENT_PROBE)
            continue;
        work.layers += s->loads[i].layers;
        work.heads += s->loads[i].heads;
    }
    return work;
}

/* ---- one sequence ---- */

static struct session *
session_of(const struct round *r)
{
    return r->state->sequence->session;
}

/* Returns the position of the token that a row predicts. */
static uint32_t
predicted_pos(const struct round *r, slot_t slot)
{
    return context_position(r->ctx, slot) + (r->aux != NULL ? r->aux->of->predicts : 1);
}

/* Emits a LAYER event. */
static void
emit_prediction(const struct round *r, slot_t slot, uint32_t layer, const struct prediction *g)
{
    struct sequence *q = r->state->sequence;
    const uint32_t pos = predicted_pos(r, slot);
    if (q->current.probe == PROBE_OFF)
        return;
    if (r->aux == NULL)
        seq_emit_prediction(q, pos, layer, seq_head_at(q, layer), g, PROBED_POLICY, TOKEN_NONE);
    else
        seq_emit_aux_prediction(q, (enum aux_role)(r->aux - q->aux), pos, layer, 0, g, PROBED_POLICY, TOKEN_NONE, NAN);
}

/* Adds the time of head calls. */
static void
heads_called(struct round *r, uint64_t since_ns)
{
    spent_heads(&session_of(r)->spent, clock_ns() - since_ns);
}

/* Returns the set of tokens of the heads that draft for the round's sequence. */
static uint32_t
set_of(const struct round *r)
{
    return r->state->sequence->set;
}

/* Probes at layers below `drafts` are over the set of r's sequence; the others name their sets. */
static bool
inspect(struct round *r, const struct context_probe *probes, size_t n, uint32_t drafts, struct prediction *out)
{
    struct session *s = session_of(r);
    const size_t room = s->probing.n;
    uint64_t start = clock_ns();
    bool ok = true;
    for (size_t at = 0; at < n && ok; at += room) {
        const size_t part = n - at < room ? n - at : room;
        memcpy(s->probing.probes, probes + at, part * sizeof *probes);
        for (size_t i = 0; i < part; i++) {
            struct context_probe *p = &s->probing.probes[i];
            p->head = r->state->sequence->head;
            p->set = p->layer < drafts ? set_of(r) : p->set;
        }
        ok = context_predict(r->ctx, s->probing.probes, part, out + at);
    }
    heads_called(r, start);
    return ok;
}

bool
round_inspect(struct round *r, const struct context_probe *probes, size_t n, struct prediction *out)
{
    return inspect(r, probes, n, UINT32_MAX, out);
}

bool
round_predict(struct round *r, const struct context_probe *probes, size_t n, struct prediction *out)
{
    if (!inspect(r, probes, n, r->aux == NULL ? r->layers : UINT32_MAX, out))
        return false;
    for (size_t i = 0; i < n; i++)
        emit_prediction(r, probes[i].slot, probes[i].layer, &out[i]);
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
round_candidates(struct round *r, slot_t slot, uint32_t layer, uint32_t pos, uint32_t k, const struct prediction *g,
                 token_t *out, dist_t *q)
{
    bool greedy = !(r->sampling.temperature > 0);
    uint32_t n = 0;
    *q = DIST_NONE;
    if (greedy && k <= PREDICTION_RANKS) { /* the prediction lists them */
        while (n < k && g->top[n] != TOKEN_NONE) {
            out[n] = g->top[n];
            n++;
        }
        return n;
    }
    uint64_t start = clock_ns();
    const struct sampling whole = {.temperature = 1, .top_p = 1};
    const uint32_t set = set_of(r);
    dist_t from;
    if (!context_dists(r->ctx, &slot, 1, layer, r->state->sequence->head, &set, greedy ? &whole : &r->sampling, &from))
        from = DIST_NONE;
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
round_learning_begin(struct round *r)
{
    struct session *s = session_of(r);
    s->learning_from = spent_switch(&s->spent, SPENT_LEARNING, session_loads(s));
}

void
round_learning_end(struct round *r)
{
    struct session *s = session_of(r);
    spent_switch(&s->spent, s->learning_from, session_loads(s));
}

double
round_draft_ms(const struct round *r)
{
    struct session *s = session_of(r);
    spent_switch(&s->spent, s->spent.account, session_loads(s));
    return (double)s->spent.ns[SPENT_DRAFT] * 1e-6;
}

double
round_verify_ms(const struct round *r)
{
    return (double)session_of(r)->spent.ns[SPENT_VERIFY] * 1e-6;
}

double
round_learning_ms(const struct round *r)
{
    return (double)session_of(r)->spent.ns[SPENT_LEARNING] * 1e-6;
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
        context_discard(s->ctx, last->slot); /* with all rows after it */
    last->slot = SLOT_NONE;
    st->n = n + 2;
    st->unverified = st->steps - (n + 1);
}

bool
round_full(const struct round *r)
{
    return r->state->steps >= r->budget || r->state->n == VERIFY_NODES || r->state->lacks_last;
}

const char *
round_full_reason(const struct round *r)
{
    return !round_full(r) ? NULL : r->state->lacks_last ? "vocabulary" : "budget";
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
        slot = context_append(s->ctx, st->sequence->seq, st->node[p->parent].slot, p->token);
        if (slot == SLOT_NONE)
            return -1;
    }
    int32_t node = (int32_t)st->n++;
    st->node[node] = (struct verify_row){.parent = p->parent, .token = p->token, .slot = slot, .q = p->q};
    st->pos[node] = pos;
    for (int i = 0; i < PREDICTION_RANKS; i++)
        st->listed[node][i] = p->prediction != NULL ? p->prediction->top[i] : TOKEN_NONE;
    if (pos - st->pos[0] > st->steps)
        st->steps = pos - st->pos[0];
    const bool own = r->aux == NULL && p->exit_layer != NO_LAYER; /* a layer of the target predicted it */
    const token_t shown = st->lacks_last ? s->unknown : p->token;
    session_emit_vocab(s, shown);
    struct event e = {.type = EVENT_TOKEN,
                      .token = {.pos = pos,
                                .parent = p->parent,
                                .candidate = node,
                                .token = shown,
                                .source = SOURCE_DRAFT,
                                .exit_layer = own ? (int32_t)p->exit_layer : -1,
                                .confidence = p->prediction != NULL ? p->prediction->confidence : NAN,
                                .annealed = p->prediction != NULL && st->annealed ? p->prediction->annealed : NAN,
                                .head = own ? (int32_t)seq_head_at(st->sequence, p->exit_layer) : -1,
                                .accepted = -1,
                                .committed = -1}};
    seq_emit(st->sequence, &e);
    session_token_done(s);
    const enum account before = spent_switch(&s->spent, SPENT_WAIT, session_loads(s));
    const enum next next = session_control_point(s, POINT_TOKEN);
    spent_switch(&s->spent, before, session_loads(s));
    return next == NEXT_STOP ? -1 : node;
}

slot_t
round_slot(struct round *r, int32_t node)
{
    const slot_t slot = node >= 0 && (uint32_t)node < r->state->n ? r->state->node[node].slot : SLOT_NONE;
    return slot == SLOT_NONE || r->aux == NULL ? slot : seq_aux_row(r->state->sequence, r->aux, node);
}

bool
round_fail(struct round *r, const char *why)
{
    struct session *s = session_of(r);
    return session_fail(s, seq_policy(r->state->sequence)->info.name, why);
}

void
round_report(struct round *r, const char *key, int index, double value)
{
    struct event e = {.type = EVENT_SERIES, .series = {.index = index, .value = (float)value}};
    snprintf(e.series.key, sizeof e.series.key, "%s", key);
    seq_emit(r->state->sequence, &e);
}

void
round_summary(struct round *r, const char *stop_reason, int exit_layer, double threshold, int d_max, int w_max)
{
    struct round_event *line = &r->state->line;
    snprintf(line->stop_reason, sizeof line->stop_reason, "%s", stop_reason);
    line->exit_layer = r->aux == NULL && exit_layer != NO_LAYER ? exit_layer : -1;
    line->threshold = (float)threshold;
    line->d_max = d_max;
    line->w_max = w_max;
}

/* ---- several sequences ---- */

bool
seq_alone(struct sequence *q, struct policy *p, uint32_t together, bool (*step)(struct policy *, struct round *))
{
    struct session *s = q->session;
    if (together == 1)
        return step(p, &q->round);
    spent_switch(&s->spent, s->spent.account, session_loads(s));
    const struct spent then = s->spent;
    const bool ok = step(p, &q->round);
    spent_switch(&s->spent, s->spent.account, session_loads(s));
    spent_own(&q->state.own, &then, &s->spent);
    return ok;
}

bool
rounds_each(struct policy *const *p, struct round *const *r, uint32_t n, bool (*draft)(struct policy *, struct round *))
{
    for (uint32_t i = 0; i < n; i++)
        if (!seq_alone(r[i]->state->sequence, p[i], n, draft))
            return false;
    return true;
}

/* Writes the rounds on the role's rows. */
static void
views(struct round *const *r, uint32_t n, enum aux_role role, struct round **out)
{
    const struct session *s = session_of(r[0]);
    const struct aux_context *h = &s->aux[role];
    for (uint32_t i = 0; i < n; i++) {
        struct aux_sequence *mine = &r[i]->state->sequence->aux[role];
        struct round *view = out[i] = &mine->view;
        *view = r[i]->state->sequence->round;
        view->exit_layer = s->engine->aux[role].exit_layer;
        if (h->ctx == NULL)
            continue;
        view->ctx = h->ctx;
        view->seq = mine->seq;
        view->layers = view->exit_layer = h->layers;
        view->aux = mine;
    }
}

bool
rounds_model(struct round *const *r, uint32_t n, enum aux_role role, struct round **out)
{
    struct sequence *behind[ROUNDS_MOST] = {NULL};
    uint32_t n_behind = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!round_full(r[i]))
            behind[n_behind++] = r[i]->state->sequence;
    if (!session_aux_follow(behind, n_behind, role))
        return false;
    views(r, n, role, out);
    return true;
}

static bool
append_rows(struct round *const *r, uint32_t n, enum aux_role role, struct round **out)
{
    struct sequence *drafted[ROUNDS_MOST] = {NULL};
    uint32_t n_drafted = 0;
    for (uint32_t i = 0; i < n; i++)
        if (round_drafted(r[i]) > 0)
            drafted[n_drafted++] = r[i]->state->sequence;
    if (!session_aux_append(drafted, n_drafted, role))
        return false;
    views(r, n, role, out);
    return true;
}

/* Early exit decided by the backend, within one forward pass. */
static bool
until(struct round *r, const struct exit_rows *rows, uint32_t to, const struct exit_rule *rule, struct exit_result *out)
{
    struct session *s = session_of(r);
    out->probed = s->probing.predictions;
    if (!context_advance_until(r->ctx, rows->rows, rows->n, to, rule, out))
        return false;
    spent_heads(&s->spent, out->probe_ns);
    if (out->probes > 0 && out->probe_ns == 0)
        s->spent.heads_unknown = true;
    for (uint32_t l = 1; l <= out->depth; l++)
        if (out->probed[l].token != TOKEN_NONE)
            emit_prediction(r, rows->rows[rows->n - 1], l, &out->probed[l]);
    return true;
}

/* Runs the rows of these sequences through one more layer, in as few forward passes as possible. */
static bool
advance_all(struct round *const *r, const struct exit_rows *const *rows, uint32_t n, uint32_t layer)
{
    const uint32_t most = context_limits(r[0]->ctx)->max_rows;
    slot_t pass[VERIFY_NODES * 2];
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (used > 0 && used + rows[i]->n > (most < VERIFY_NODES ? most : VERIFY_NODES)) {
            if (!context_advance(r[0]->ctx, pass, used, layer, NULL))
                return false;
            used = 0;
        }
        for (uint32_t k = 0; k < rows[i]->n; k++)
            if (context_depth(r[0]->ctx, rows[i]->rows[k]) < layer)
                pass[used++] = rows[i]->rows[k];
    }
    return used == 0 || context_advance(r[0]->ctx, pass, used, layer, NULL);
}

/* Layer by layer: runs the rows of all sequences that have not found their exit, then looks at their last rows. */
static bool
until_in_step(struct round *const *r, const struct exit_rows *rows, uint32_t n, uint32_t to,
              const struct exit_rule *rule, struct exit_result *out)
{
    struct round *live[ROUNDS_MOST];
    const struct exit_rows *live_rows[ROUNDS_MOST];
    struct exit_result *live_out[ROUNDS_MOST];
    struct context_probe probes[ROUNDS_MOST];
    struct prediction predictions[ROUNDS_MOST];
    uint32_t n_live = n;
    for (uint32_t i = 0; i < n; i++) {
        live[i] = r[i];
        live_rows[i] = &rows[i];
        live_out[i] = &out[i];
    }
    for (uint32_t layer = 1; layer <= to && n_live > 0; layer++) {
        if (!advance_all(live, live_rows, n_live, layer))
            return false;
        const bool probed = rule->threshold[layer] <= 1;
        for (uint32_t i = 0; i < n_live; i++)
            probes[i] = (struct context_probe){.slot = live_rows[i]->rows[live_rows[i]->n - 1],
                                               .layer = layer,
                                               .temperature = rule->temperature[layer],
                                               .set = set_of(live[i])};
        if (probed && !inspect(live[0], probes, n_live, 0, predictions))
            return false;
        uint32_t left = 0;
        for (uint32_t i = 0; i < n_live; i++) {
            live_out[i]->depth = layer;
            if (probed) {
                emit_prediction(live[i], probes[i].slot, layer, &predictions[i]);
                live_out[i]->prediction = predictions[i];
                live_out[i]->exited = predictions[i].annealed >= rule->threshold[layer];
            }
            if (live_out[i]->exited)
                continue;
            live[left] = live[i];
            live_rows[left] = live_rows[i];
            live_out[left++] = live_out[i];
        }
        n_live = left;
    }
    return true;
}

bool
rounds_until(struct round *const *r, const struct exit_rows *rows, uint32_t n, uint32_t to,
             const struct exit_rule *rule, struct exit_result *out)
{
    struct exit_rule asked = *rule;
    asked.head = r[0]->state->sequence->head;
    asked.set = set_of(r[0]);
    for (uint32_t i = 0; i < n; i++) {
        struct round_state *st = r[i]->state;
        out[i] = (struct exit_result){.prediction = {.token = TOKEN_NONE}};
        st->annealed = r[i]->aux == NULL;
        if (st->annealed)
            memcpy(st->temperature, rule->temperature, (r[i]->layers + 1) * sizeof *rule->temperature);
    }
    return n == 1 ? until(r[0], rows, to, &asked, out) : until_in_step(r, rows, n, to, &asked, out);
}

bool
rounds_predict(struct round *const *r, const slot_t *rows, uint32_t n, uint32_t layer, struct prediction *out)
{
    struct context_probe probes[ROUNDS_MOST] = {{0}};
    for (uint32_t i = 0; i < n; i++)
        probes[i] = (struct context_probe){.slot = rows[i], .layer = layer, .temperature = 1, .set = set_of(r[i])};
    if (!inspect(r[0], probes, n, 0, out))
        return false;
    for (uint32_t i = 0; i < n; i++)
        emit_prediction(r[i], rows[i], layer, &out[i]);
    return true;
}

/* before: of rows of blocks, or NULL. */
static bool
choose(struct round *const *r, const slot_t *rows, uint32_t n, uint32_t layer, const token_t *before,
       const struct prediction *g, token_t *token, dist_t *q)
{
    struct context *ctx = r[0]->ctx;
    struct rng_key keys[ROUNDS_MOST];
    uint32_t sets[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++) {
        sets[i] = set_of(r[i]);
        token[i] = g[i].token;
        q[i] = DIST_NONE;
        keys[i] = (struct rng_key){.seed = r[i]->seed, .pos = predicted_pos(r[i], rows[i]), .purpose = RNG_DRAFT};
    }
    if (!(r[0]->sampling.temperature > 0))
        return true;
    const uint64_t start = clock_ns();
    if (!(before != NULL ? context_block_dists(ctx, rows, n, before, &r[0]->sampling, q)
                         : context_dists(ctx, rows, n, layer, r[0]->state->sequence->head, sets, &r[0]->sampling, q)) ||
        !context_draws(ctx, q, keys, n, token))
        return false;
    spent_heads(&session_of(r[0])->spent, clock_ns() - start);
    for (uint32_t i = 0; i < n; i++)
        if (token[i] == TOKEN_NONE)
            return false;
    return true;
}

bool
rounds_choose(struct round *const *r, const slot_t *rows, uint32_t n, uint32_t layer, const struct prediction *g,
              token_t *token, dist_t *q)
{
    return choose(r, rows, n, layer, NULL, g, token, q);
}

bool
rounds_block_choose(struct round *const *r, const slot_t *rows, const token_t *before, uint32_t n,
                    const struct prediction *g, token_t *token, dist_t *q)
{
    return choose(r, rows, n, r[0]->exit_layer, before, g, token, q);
}

/* ---- a companion's agreement with drafts ---- */

static const struct sampling whole = {.temperature = 1, .top_p = 1};

struct reading { /* rows that wait for a forward pass to the model's last layer */
    struct round *of;
    slot_t row[VERIFY_NODES];
    uint32_t n;
};

static bool
read_now(struct reading *r)
{
    const uint32_t n = r->n;
    r->n = 0;
    return n == 0 || context_advance(r->of->ctx, r->row, n, r->of->exit_layer, NULL);
}

static bool
read_row(struct reading *r, slot_t row)
{
    const uint32_t most = context_limits(r->of->ctx)->max_rows;
    if (row == SLOT_NONE)
        return false;
    if (context_depth(r->of->ctx, row) >= r->of->exit_layer)
        return true;
    r->row[r->n++] = row;
    return r->n < (most < VERIFY_NODES ? most : VERIFY_NODES) || read_now(r);
}

/* Runs the rows before the drafts and of all drafts but the last that have not run, in as few forward passes as
 * possible. */
static bool
read_chains(struct round *const *r, uint32_t n)
{
    struct reading reading = {.of = r[0]};
    for (uint32_t i = 0; i < n; i++) {
        const struct aux_sequence *h = r[i]->aux;
        for (uint32_t k = 0; h != NULL && k + 1 < h->n_fresh; k++) /* the last one is node 0's */
            if (!read_row(&reading, h->fresh[k]))
                return false;
        for (uint32_t node = 0; node < round_drafted(r[i]); node++)
            if (!read_row(&reading, round_slot(r[i], (int32_t)node)))
                return false;
    }
    return read_now(&reading);
}

/* Queues the distributions at nodes 0..drafts - 1, which the model has run, chain after chain. */
static bool
distributions(struct round *const *r, uint32_t n, const struct sampling *sampling, dist_t *out)
{
    struct session *s = r[0]->state->sequence->session;
    slot_t row[VERIFY_NODES];
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t node = 0; node < round_drafted(r[i]); node++)
            row[at++] = round_slot(r[i], (int32_t)node);
    const uint64_t start = clock_ns();
    const bool ok =
        context_dists(r[0]->ctx, row, at, r[0]->exit_layer, r[0]->state->sequence->head, NULL, sampling, out);
    spent_heads(&s->spent, clock_ns() - start);
    return ok;
}

/* Computes the overlaps. The chains have at least one and at most VERIFY_NODES drafts in all. */
static bool
compare(struct round *const *draft, struct round *const *companion, uint32_t n, struct overlap *const *out)
{
    const bool greedy = !(draft[0]->sampling.temperature > 0);
    struct overlap_req requests[VERIFY_NODES];
    dist_t d[VERIFY_NODES], c[VERIFY_NODES];
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < round_drafted(draft[i]); k++, at++) {
            const struct verify_row *node = &draft[i]->state->node[k + 1];
            d[at] = node->q;
            requests[at] = (struct overlap_req){.token = node->token, .out = &out[i][k]};
        }
    if ((greedy && !distributions(draft, n, &whole, d)) ||
        !distributions(companion, n, greedy ? &whole : &draft[0]->sampling, c))
        return false;
    for (uint32_t i = 0; i < at; i++) {
        requests[i].d = d[i];
        requests[i].c = c[i];
    }
    return context_overlaps(companion[0]->ctx, requests, at);
}

bool
rounds_overlap(struct round *const *draft, uint32_t n, enum aux_role role, struct overlap *const *out)
{
    struct round *companion[ROUNDS_MOST];
    if (!append_rows(draft, n, role, companion) || !read_chains(draft, n) || !read_chains(companion, n))
        return false;
    for (uint32_t first = 0, last; first < n; first = last) {
        uint32_t drafts = 0;
        for (last = first; last < n && drafts + round_drafted(draft[last]) <= VERIFY_NODES; last++)
            drafts += round_drafted(draft[last]);
        if (drafts > 0 && !compare(draft + first, companion + first, last - first, out + first))
            return false;
    }
    return true;
}
