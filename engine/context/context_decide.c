/* Requests of a context to the backend, part two: probes, distributions and verdicts. Translates slots to ring places
 * and positions, and checks every precondition before anything is queued. */
#include <inttypes.h>
#include <math.h>

#include "engine/context/context.h"
#include "engine/context/context_internal.h"

/* ---- probes ---- */

/* Returns the ring place of a row's hidden state at a layer, or RING_NONE after setting the error. */
static uint32_t
hidden_at(struct context *c, slot_t s, uint32_t layer)
{
    const struct slot *row = context_row(c, s);
    if (row == NULL)
        return RING_NONE;
    if (layer > row->depth)
        err_set(&c->err, ERR_WORK, "slot %" PRIu32 " has no hidden state at layer %" PRIu32 ": it is at %" PRIu32, s,
                layer, row->depth);
    else if (row->embedding == EMBED_NONE)
        err_set(&c->err, ERR_WORK, "slot %" PRIu32 " has no hidden states: it was fed to a block drafter", s);
    else if (row->ring == RING_NONE)
        err_set(&c->err, ERR_WORK,
                "the hidden states of position %" PRIu32 " are no longer kept: the ring holds %" PRIu32 " rows",
                row->pos, c->limits.ring);
    else
        return row->ring;
    return RING_NONE;
}

bool
context_draft_set(struct context *c, uint32_t set, uint32_t base, const token_t *recent, size_t n)
{
    context_clear_error(c);
    if (set == 0 || set > c->limits.sets)
        return err_set(&c->err, ERR_WORK, "there is no set of tokens %" PRIu32, set);
    if (!c->ops->draft_set(c->kv_cache, set, base, recent, n))
        return context_refused(c, "restrict the draft vocabulary");
    c->sets[set - 1].base = base;
    c->sets[set - 1].recent = (uint32_t)n;
    return true;
}

/* A head call: whether it reads all rows of the head, and otherwise the rows of sets that it reads. */
struct head_call {
    bool whole;
    uint32_t base, recent;
};

/* Adds the rows of a set: bases are read once for all sets, the recent tokens of each set by themselves. */
static void
read_set(struct context *c, struct head_call *call, uint32_t set)
{
    struct context_set *of = &c->sets[set > 0 ? set - 1 : 0];
    call->whole = call->whole || set == 0;
    if (set == 0 || of->counted == c->calls)
        return;
    of->counted = c->calls;
    call->base = of->base > call->base ? of->base : call->base;
    call->recent += of->recent;
}

static double
head_load(const struct context *c, const struct head_call *call)
{
    const double rows = (double)call->base + call->recent;
    return call->whole ? 1 : rows < c->vocab ? rows / c->vocab : 1;
}

/* Adds the loads of a head call on these probes: the LM head once, and each trained head that is used. */
static void
count_heads(struct context *c, const struct probe *probes, size_t n)
{
    struct head_call lens = {0};
    bool biased = false;
    c->calls++;
    for (size_t i = 0; i < n && probes[i].kept; i++)
        biased = biased || probes[i].before != TOKEN_NONE;
    if (n > 0 && probes[0].kept) { /* kept logits are not computed again */
        c->loads.heads += biased ? c->markov_load : 0;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t layer = probes[i].layer;
        const bool trained =
            c->limits.heads != HEAD_LENS && probes[i].head == USE_TRAINED && layer > 0 && layer < c->n_layers;
        if (!trained || c->limits.heads != HEAD_FULL || probes[i].versus_final)
            read_set(c, &lens, probes[i].set);
        if (trained && c->counted[layer] != c->calls) {
            struct head_call own = {.whole = c->limits.heads != HEAD_FULL || probes[i].set == 0};
            if (!own.whole)
                own.base = c->sets[probes[i].set - 1].base + c->sets[probes[i].set - 1].recent;
            c->counted[layer] = c->calls;
            c->loads.heads += c->trained_load * head_load(c, &own);
        }
    }
    c->loads.heads += head_load(c, &lens);
}

void
context_count_probe(struct context *c, uint32_t layer, const struct exit_rule *rule)
{
    count_heads(c, &(struct probe){.layer = layer, .head = rule->head, .set = rule->set}, 1);
}

bool
context_predict(struct context *c, const struct context_probe *probes, size_t n, struct prediction *out)
{
    context_clear_error(c);
    for (size_t i = 0; i < n; i++) {
        if (hidden_at(c, probes[i].slot, probes[i].layer) == RING_NONE ||
            (probes[i].versus_final && hidden_at(c, probes[i].slot, c->n_layers) == RING_NONE))
            return false;
        if (!(probes[i].temperature > 0) || !isfinite(probes[i].temperature))
            return err_set(&c->err, ERR_WORK, "a probe's temperature must be above 0, not %g",
                           (double)probes[i].temperature);
    }
    if (n == 0)
        return true;
    if (!context_flush(c))
        return false;
    for (size_t at = 0; at < n;) {
        const size_t left = n - at, part = left < c->limits.max_probes ? left : c->limits.max_probes;
        for (size_t i = 0; i < part; i++) {
            const struct context_probe *p = &probes[at + i];
            c->probes[i] = (struct probe){.ring = c->slots[p->slot].ring,
                                          .layer = p->layer,
                                          .head = p->head,
                                          .temperature = p->temperature,
                                          .versus_final = p->versus_final,
                                          .set = p->set,
                                          .kept = p->kept,
                                          .before = p->before};
        }
        if (!c->ops->predict(c->kv_cache, c->probes, part, out + at))
            return context_refused(c, "probe rows");
        count_heads(c, c->probes, part);
        at += part;
    }
    return context_wait(c);
}

/* ---- distributions and decisions ---- */

static bool
check_sampling(struct context *c, const struct sampling *s)
{
    if (!(s->temperature >= 0) || !isfinite(s->temperature))
        return err_set(&c->err, ERR_USAGE, "the temperature must be 0 or more, not %g", (double)s->temperature);
    if (!(s->top_p > 0) || s->top_p > 1)
        return err_set(&c->err, ERR_USAGE, "top-p must be above 0 and at most 1, not %g", (double)s->top_p);
    return true;
}

/* Waits for another context that may still be computing the distribution. */
static bool
wait_for_maker(struct context *c, dist_t d)
{
    struct context *maker = c->pool->maker[d];
    if (maker == NULL || maker == c || !maker->making)
        return true;
    const struct err before = maker->err;
    context_clear_error(maker);
    const bool made = context_wait(maker);
    if (!made)
        c->err = maker->err;
    maker->err = before;
    return made;
}

/* With `before` the distributions are those of kept logits. */
static bool
queue_dists(struct context *c, const slot_t *rows, size_t n, uint32_t layer, enum head_choice head,
            const uint32_t *sets, const token_t *before, const struct sampling *sampling, dist_t *out)
{
    struct dist_pool *pool = c->pool;
    struct dist_req requests[VERIFY_NODES];
    struct probe counted[VERIFY_NODES];
    context_clear_error(c);
    if (n > VERIFY_NODES || n > pool->n - pool->used)
        return err_set(&c->err, ERR_WORK, "all %" PRIu32 " distributions are in use: release them first", pool->n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t ring = hidden_at(c, rows[i], layer);
        if (ring == RING_NONE)
            return false;
        out[i] = pool->used + (dist_t)i;
        requests[i] = (struct dist_req){.ring = ring,
                                        .layer = layer,
                                        .head = head,
                                        .sampling = *sampling,
                                        .out = out[i],
                                        .set = sets != NULL ? sets[i] : 0,
                                        .kept = before != NULL,
                                        .before = before != NULL ? before[i] : TOKEN_NONE};
        counted[i] = (struct probe){.layer = layer,
                                    .head = head,
                                    .set = requests[i].set,
                                    .kept = requests[i].kept,
                                    .before = requests[i].before};
    }
    if (!check_sampling(c, sampling) || !context_flush(c))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!wait_for_maker(c, out[i]))
            return false;
    if (!c->ops->dist(c->kv_cache, requests, n))
        return context_refused(c, "keep a distribution");
    count_heads(c, counted, n);
    c->making = true;
    for (size_t i = 0; i < n; i++)
        pool->maker[out[i]] = c;
    pool->used += (uint32_t)n;
    return true;
}

bool
context_dists(struct context *c, const slot_t *rows, size_t n, uint32_t layer, enum head_choice head,
              const uint32_t *sets, const struct sampling *sampling, dist_t *out)
{
    return queue_dists(c, rows, n, layer, head, sets, NULL, sampling, out);
}

bool
context_block_dists(struct context *c, const slot_t *rows, size_t n, const token_t *before,
                    const struct sampling *sampling, dist_t *out)
{
    return queue_dists(c, rows, n, c->n_layers, USE_LENS, NULL, before, sampling, out);
}

dist_t
context_dist(struct context *c, slot_t s, uint32_t layer, enum head_choice head, const struct sampling *sampling)
{
    dist_t out;
    return context_dists(c, &s, 1, layer, head, NULL, sampling, &out) ? out : DIST_NONE;
}

static bool
check_dist(struct context *c, dist_t d)
{
    return d < c->pool->used
               ? wait_for_maker(c, d)
               : err_set(&c->err, ERR_WORK, "there is no distribution %" PRIu32 ": it may have been released", d);
}

/* Checks that the token is in the largest vocabulary of the models. */
static bool
check_token(struct context *c, token_t t)
{
    return (t >= 0 && (uint32_t)t < c->pool->vocab) ||
           err_set(&c->err, ERR_WORK, "token %" PRId32 " is not in the vocabulary of %" PRIu32, t, c->pool->vocab);
}

/* Queues all requests, then waits once. */
static bool
draw(struct context *c, const struct draw_req *requests, size_t n)
{
    context_clear_error(c);
    for (size_t i = 0; i < n; i++) {
        *requests[i].out = TOKEN_NONE;
        if (!check_dist(c, requests[i].from))
            return false;
    }
    return c->ops->draw(c->kv_cache, requests, n) ? context_wait(c) : context_refused(c, "draw a token");
}

bool
context_draws(struct context *c, const dist_t *from, const struct rng_key *keys, size_t n, token_t *out)
{
    struct draw_req requests[VERIFY_NODES];
    context_clear_error(c);
    if (n > VERIFY_NODES)
        return err_set(&c->err, ERR_WORK, "%zu tokens can't be drawn at once: %d are possible", n, VERIFY_NODES);
    for (size_t i = 0; i < n; i++)
        requests[i] = (struct draw_req){.from = from[i], .key = keys[i], .out = &out[i]};
    return draw(c, requests, n);
}

token_t
context_draw(struct context *c, dist_t from, const struct rng_key *key, const token_t *without, size_t n_without)
{
    token_t drawn;
    const struct draw_req request = {
        .from = from, .key = *key, .without = without, .n_without = n_without, .out = &drawn};
    return draw(c, &request, 1) ? drawn : TOKEN_NONE;
}

token_t
context_likeliest(struct context *c, dist_t from, const token_t *without, size_t n_without)
{
    token_t likeliest;
    const struct draw_req request = {
        .from = from, .likeliest = true, .without = without, .n_without = n_without, .out = &likeliest};
    return draw(c, &request, 1) ? likeliest : TOKEN_NONE;
}

bool
context_overlaps(struct context *c, const struct overlap_req *requests, size_t n)
{
    context_clear_error(c);
    for (size_t i = 0; i < n; i++)
        if (!check_dist(c, requests[i].d) || !check_dist(c, requests[i].c) || !check_token(c, requests[i].token))
            return false;
    return c->ops->overlap(c->kv_cache, requests, n) ? context_wait(c) : context_refused(c, "compare distributions");
}

/* Is the row a child of the row in slot s? s may be the trunk's end. */
static bool
follows(const struct context *c, const struct slot *row, slot_t s)
{
    if (s == SLOT_NONE)
        return false;
    return row->parent == s ||
           (row->parent == SLOT_NONE && c->slots[s].seq == SEQ_NONE && row->pos == c->slots[s].pos + 1);
}

/* Checks row i of a round and writes it as node i, with its ring place and position. */
static bool
node_of(struct context *c, seq_t seq, const struct verify_row *rows, size_t i, struct verify_node *nodes)
{
    const struct verify_row *r = &rows[i];
    const bool root = i == 0;
    if (root ? r->parent != -1 : r->parent < 0 || (size_t)r->parent >= i)
        return err_set(&c->err, ERR_WORK, "row %zu of the round has parent %" PRId32 ": it must be an earlier row", i,
                       r->parent);
    if (r->q != DIST_NONE && !check_dist(c, r->q))
        return false;
    nodes[i] = (struct verify_node){.parent = r->parent, .token = r->token, .ring = RING_NONE, .q = r->q};
    if (r->slot == SLOT_NONE) {
        if (root)
            return err_set(&c->err, ERR_WORK, "a round can't be verified without its first row");
        if (!check_token(c, r->token))
            return false;
        nodes[i].pos = nodes[r->parent].pos + 1;
        return true;
    }
    nodes[i].ring = hidden_at(c, r->slot, c->n_layers);
    if (nodes[i].ring == RING_NONE)
        return false;
    const struct slot *row = &c->slots[r->slot];
    nodes[i].pos = row->pos;
    if (row->token != r->token)
        return err_set(&c->err, ERR_WORK, "row %zu of the round is token %" PRId32 ", its slot holds %" PRId32, i,
                       r->token, row->token);
    if (root ? row->seq != seq && context_at(c, seq, row->pos) != r->slot
             : row->seq != seq || !follows(c, row, rows[r->parent].slot))
        return err_set(&c->err, ERR_WORK, "row %zu of the round does not follow its parent in sequence %" PRIu32, i,
                       seq);
    return true;
}

/* Checks a round and writes its request. */
static bool
request_of(struct context *c, const struct verify_round *r, struct verify_node *nodes, struct verify_req *request)
{
    if (r->n < 1 || r->n > VERIFY_NODES)
        return err_set(&c->err, ERR_WORK, "a round of %zu rows can't be verified: 1 to %d are possible", r->n,
                       VERIFY_NODES);
    if (context_trunk(c, r->seq) == NULL || !check_sampling(c, &r->sampling))
        return false;
    for (size_t i = 0; i < r->n; i++)
        if (!node_of(c, r->seq, r->rows, i, nodes))
            return false;
    *request = (struct verify_req){.nodes = nodes, .n = r->n, .sampling = r->sampling, .seed = r->seed, .out = r->out};
    return true;
}

bool
context_verify_all(struct context *c, const struct verify_round *rounds, size_t n)
{
    context_clear_error(c);
    if (n > c->limits.seqs)
        return err_set(&c->err, ERR_WORK, "%zu rounds can't be verified at once: the context has %" PRIu32 " sequences",
                       n, c->limits.seqs);
    for (size_t i = 0; i < n; i++)
        if (!request_of(c, &rounds[i], c->nodes + i * VERIFY_NODES, &c->rounds[i]))
            return false;
    if (n == 0)
        return true;
    if (!context_flush(c))
        return false;
    if (!c->ops->verify(c->kv_cache, c->rounds, n))
        return context_refused(c, "verify a round");
    if (!context_wait(c))
        return false;
    c->loads.heads += 1;
    return true;
}

bool
context_verify(struct context *c, seq_t seq, const struct verify_row *rows, size_t n, const struct sampling *sampling,
               uint64_t seed, struct verdict *out)
{
    const struct verify_round round = {
        .seq = seq, .rows = rows, .n = n, .sampling = *sampling, .seed = seed, .out = out};
    return context_verify_all(c, &round, 1);
}

/* ---- accounts and tests ---- */

struct loads
context_loads(const struct context *c)
{
    return (struct loads){c->loads.layers * c->limits.layer_load, c->loads.heads * c->limits.head_load};
}

bool
context_describe_time(struct context *c, char *text, size_t room)
{
    text[0] = '\0';
    return c->ops->describe_time != NULL && c->ops->describe_time(c->kv_cache, text, room);
}

bool
context_read_logits(struct context *c, slot_t s, uint32_t layer, float *out)
{
    context_clear_error(c);
    const uint32_t ring = hidden_at(c, s, layer);
    if (ring == RING_NONE || !context_flush(c))
        return false;
    return c->ops->read_logits(c->kv_cache, ring, layer, out) ? context_wait(c) : context_refused(c, "read logits");
}

bool
context_read_hidden(struct context *c, slot_t s, uint32_t layer, float *out)
{
    context_clear_error(c);
    const uint32_t ring = hidden_at(c, s, layer);
    if (ring == RING_NONE || !context_flush(c))
        return false;
    return c->ops->read_hidden(c->kv_cache, ring, layer, out) ? context_wait(c)
                                                              : context_refused(c, "read a hidden state");
}

bool
context_read_dist(struct context *c, dist_t d, float *out)
{
    context_clear_error(c);
    if (!check_dist(c, d))
        return false;
    return c->ops->read_dist(c->kv_cache, d, out) ? context_wait(c) : context_refused(c, "read a distribution");
}
