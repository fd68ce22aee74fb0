#include "kernels/cuda/requests.h"

#include "kernels/cuda/trace.h"

/* ---- head calls ---- */

/* Computes the logits of s->head_rows[0..n), and their predictions unless `predictions` (a device pointer) is NULL. The
 * rows are put into the piece, which is sent. */
static bool
run_head_with(struct kv_cache *s, uint32_t n, struct prediction *predictions, struct arena_piece *args)
{
    bool trained = false;
    for (uint32_t i = 0; i < n; i++)
        trained = trained || s->head_rows[i].trained;
    const struct head_args a = {.model = s->weights->model,
                                .kv_cache = s->dev,
                                .rows = piece_copy(args, s->head_rows, n, sizeof *s->head_rows),
                                .n = n,
                                .trained = trained,
                                .predictions = predictions,
                                .blocks = s->blocks};
    if (!cuda_kv_cache_send(s, args))
        return false;
    uint64_t *const stamps = trace_begin(s, TRACED_HEAD, n);
    const bool ok = cuda_kv_cache_did(s, launch_head(a, &s->weights->sizes, s->stream), "running the head");
    trace_end(s, stamps);
    return ok;
}

static bool
run_head(struct kv_cache *s, uint32_t n, struct prediction *predictions)
{
    struct arena_piece args;
    return cuda_kv_cache_args(s, piece_room(n, sizeof *s->head_rows), &args) && run_head_with(s, n, predictions, &args);
}

static struct head_row
plain_row(uint32_t ring, uint32_t layer)
{
    return (struct head_row){.ring = ring, .layer = layer, .temperature = 1, .final = -1};
}

/* ---- predictions ---- */

/* Runs the n prepared rows and queues the delivery of their predictions. */
static bool
run_probes(struct kv_cache *s, uint32_t n, struct prediction *out)
{
    struct arena_piece results;
    void *host;
    for (uint32_t i = 0; i < n; i++)
        s->final_row[s->head_rows[i].ring] = -1;
    if (n == 0)
        return true;
    if (!cuda_kv_cache_results(s, piece_room(n, sizeof(struct prediction)), &results))
        return false;
    struct prediction *there = piece_put(&results, n, sizeof *there, &host);
    const struct prediction *here = host;
    if (!run_head(s, n, there))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (s->requests[i] >= 0 && !cuda_kv_cache_deliver(s, (struct delivery){.kind = DELIVER_PREDICTION,
                                                                               .out = &out[s->requests[i]],
                                                                               .from = &here[i],
                                                                               .layer = s->head_rows[i].layer}))
            return false;
    return true;
}

/* Returns the number of rows that a probe adds to the call: it may also need its final layer, or its row may already be
 * present. */
static uint32_t
rows_of_probe(const struct kv_cache *s, const struct probe *p)
{
    const uint32_t depth = s->weights->desc.n_layers;
    const int32_t final = s->final_row[p->ring];
    if (p->layer == depth)
        return final >= 0 && s->requests[final] < 0 ? 0 : 1;
    return p->versus_final && final < 0 ? 2 : 1;
}

/* Adds a probe to the call. The final layer of a ring entry is computed once for all of its probes in a call; a probe
 * of that layer itself uses the same row if no other probe has it. */
static uint32_t
add_probe(struct kv_cache *s, uint32_t n, const struct probe *p, int32_t request)
{
    const uint32_t depth = s->weights->desc.n_layers;
    int32_t *final = &s->final_row[p->ring];
    uint32_t at = n;
    if (p->layer == depth && *final >= 0 && s->requests[*final] < 0) {
        at = (uint32_t)*final;
    } else {
        if (p->versus_final && p->layer != depth && *final < 0) {
            *final = (int32_t)n;
            s->requests[n] = -1;
            s->head_rows[n++] = plain_row(p->ring, depth);
        }
        at = n++;
        if (p->layer == depth && *final < 0)
            *final = (int32_t)at;
    }
    s->requests[at] = request;
    s->head_rows[at] = (struct head_row){.ring = p->ring,
                                         .layer = p->layer,
                                         .trained = weights_asked(s->weights, p->head),
                                         .temperature = p->temperature,
                                         .final = p->versus_final ? *final : -1};
    return n;
}

bool
decide_predict(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    uint32_t rows = 0;
    if (!request_predict(s->limits, probes, n))
        return false;
    if (n == 0 || cuda_kv_cache_stopped(s))
        return true;
    s->stoppable = true;
    for (size_t i = 0; i < n; i++) {
        if (rows + rows_of_probe(s, &probes[i]) > s->dev.head_rows) {
            if (!run_probes(s, rows, out))
                return true;
            rows = 0;
        }
        rows = add_probe(s, rows, &probes[i], (int32_t)i);
    }
    (void)run_probes(s, rows, out);
    return true;
}

/* ---- distributions ---- */

bool
decide_dist(struct kv_cache *s, const struct dist_req *requests, size_t n)
{
    if (!request_dist(s->limits, requests, n))
        return false;
    for (size_t first = 0; first < n && !cuda_kv_cache_stopped(s); first += s->dev.head_rows) {
        const uint32_t part = n - first < s->dev.head_rows ? (uint32_t)(n - first) : s->dev.head_rows;
        struct arena_piece args;
        s->stoppable = true;
        for (uint32_t i = 0; i < part; i++) {
            s->head_rows[i] = plain_row(requests[first + i].ring, requests[first + i].layer);
            s->head_rows[i].trained = weights_asked(s->weights, requests[first + i].head);
        }
        if (!run_head(s, part, NULL) || !cuda_kv_cache_args(s, piece_room(part, sizeof *requests), &args))
            return true;
        const struct dist_args a = {.model = s->weights->model,
                                    .kv_cache = s->dev,
                                    .requests = piece_copy(&args, requests + first, part, sizeof *requests),
                                    .n = part};
        if (!cuda_kv_cache_send(s, &args))
            return true;
        uint64_t *const stamps = trace_begin(s, TRACED_DISTS, part);
        if (!cuda_kv_cache_did(s, launch_dist(a, &s->weights->sizes, s->stream), "making distributions"))
            return true;
        trace_end(s, stamps);
    }
    return true;
}

bool
decide_draw(struct kv_cache *s, const struct draw_req *requests, size_t n)
{
    struct arena_piece args, results;
    void *draws_host, *tokens_host;
    size_t room = piece_room(n, sizeof(struct dev_draw));
    if (!request_draw(s->limits, requests, n) || n > UINT32_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        room += piece_room(requests[i].n_without, sizeof(token_t));
    if (n == 0 || cuda_kv_cache_stopped(s) || !cuda_kv_cache_args(s, room, &args) ||
        !cuda_kv_cache_results(s, piece_room(n, sizeof(token_t)), &results))
        return true;
    s->stoppable = true;
    const struct dev_draw *draws = piece_put(&args, n, sizeof *draws, &draws_host);
    token_t *tokens = piece_put(&results, n, sizeof *tokens, &tokens_host);
    for (size_t i = 0; i < n; i++) {
        struct draw_req *there = &((struct dev_draw *)draws_host)[i].request;
        *there = requests[i];
        there->without = piece_copy(&args, requests[i].without, requests[i].n_without, sizeof(token_t));
        there->out = &tokens[i];
        if (!cuda_kv_cache_deliver(s, (struct delivery){.kind = DELIVER_BYTES,
                                                        .out = requests[i].out,
                                                        .from = (token_t *)tokens_host + i,
                                                        .bytes = sizeof(token_t)}))
            return true;
    }
    const struct draw_args a = {.kv_cache = s->dev, .draws = draws, .n = (uint32_t)n};
    if (!cuda_kv_cache_send(s, &args))
        return true;
    uint64_t *const stamps = trace_begin(s, TRACED_DRAW, a.n);
    (void)cuda_kv_cache_did(s, launch_draw(a, s->stream), "drawing tokens");
    trace_end(s, stamps);
    return true;
}

bool
decide_overlap(struct kv_cache *s, const struct overlap_req *requests, size_t n)
{
    struct arena_piece args, results;
    void *there, *host;
    if (!request_overlap(s->limits, requests, n) || n > UINT32_MAX)
        return false;
    if (n == 0 || cuda_kv_cache_stopped(s) || !cuda_kv_cache_args(s, piece_room(n, sizeof *requests), &args) ||
        !cuda_kv_cache_results(s, piece_room(n, sizeof(struct overlap)), &results))
        return true;
    s->stoppable = true;
    const struct overlap_args a = {
        .kv_cache = s->dev, .requests = piece_put(&args, n, sizeof *requests, &there), .n = (uint32_t)n};
    struct overlap *out = piece_put(&results, n, sizeof *out, &host);
    for (size_t i = 0; i < n; i++) {
        struct overlap_req *r = (struct overlap_req *)there + i;
        *r = requests[i];
        r->out = &out[i];
        if (!cuda_kv_cache_deliver(s, (struct delivery){.kind = DELIVER_BYTES,
                                                        .out = requests[i].out,
                                                        .from = (struct overlap *)host + i,
                                                        .bytes = sizeof *out}))
            return true;
    }
    if (!cuda_kv_cache_send(s, &args))
        return true;
    uint64_t *const stamps = trace_begin(s, TRACED_OVERLAP, a.n);
    (void)cuda_kv_cache_did(s, launch_overlap(a, s->stream), "comparing distributions");
    trace_end(s, stamps);
    return true;
}

/* ---- verification ---- */

/* Copies the arguments of n rounds with `nodes` nodes in total, and puts the head's rows into s->head_rows; returns
 * their number. */
static uint32_t
put_rounds(struct kv_cache *s, const struct verify_req *requests, uint32_t n, uint32_t nodes, struct verify_args *a,
           struct arena_piece *args, struct verdict *verdicts)
{
    void *rounds_host, *nodes_host, *rows_host;
    a->rounds = piece_put(args, n, sizeof *a->rounds, &rounds_host);
    a->nodes = piece_put(args, nodes, sizeof *a->nodes, &nodes_host);
    a->logits_row = piece_put(args, nodes, sizeof *a->logits_row, &rows_host);
    a->n = n;
    uint32_t at = 0, rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct verify_req *r = &requests[i];
        ((struct dev_round *)rounds_host)[i] = (struct dev_round){
            .first = at, .n = (uint32_t)r->n, .sampling = r->sampling, .seed = r->seed, .verdict = &verdicts[i]};
        const bool sampled = r->sampling.temperature > 0;
        a->sampled = a->sampled || sampled;
        a->greedy = a->greedy || !sampled;
        a->longest = r->n > a->longest ? (uint32_t)r->n : a->longest;
        for (size_t j = 0; j < r->n; j++, at++) {
            const uint32_t ring = r->nodes[j].ring;
            ((struct verify_node *)nodes_host)[at] = r->nodes[j];
            ((int32_t *)rows_host)[at] = ring != RING_NONE ? (int32_t)rows : -1;
            if (ring != RING_NONE)
                s->head_rows[rows++] = plain_row(ring, s->weights->desc.n_layers);
        }
    }
    return rows;
}

static bool
deliver_verdict(struct kv_cache *s, const struct verify_req *r, const struct verdict *from)
{
    uint64_t judged = 0;
    for (size_t i = 0; i < r->n; i++)
        judged |= (uint64_t)(r->nodes[i].ring != RING_NONE) << i;
    return cuda_kv_cache_deliver(s, (struct delivery){.kind = DELIVER_VERDICT,
                                                      .out = r->out,
                                                      .from = from,
                                                      .layer = s->weights->desc.n_layers,
                                                      .judged = judged});
}

/* Verifies rounds whose nodes fit one pass of the head. Returns false if the KV cache failed. */
static bool
verify_part(struct kv_cache *s, const struct verify_req *requests, uint32_t n, uint32_t nodes)
{
    struct arena_piece args, results;
    void *host;
    if (!cuda_kv_cache_args(s,
                            piece_room(n, sizeof(struct dev_round)) + piece_room(nodes, sizeof(struct verify_node)) +
                                piece_room(nodes, sizeof(int32_t)) + piece_room(nodes, sizeof *s->head_rows),
                            &args) ||
        !cuda_kv_cache_results(s, piece_room(nodes, sizeof(struct prediction)) + piece_room(n, sizeof(struct verdict)),
                               &results))
        return false;
    struct prediction *predictions = piece_put(&results, nodes, sizeof *predictions, NULL);
    struct verdict *verdicts = piece_put(&results, n, sizeof *verdicts, &host);
    struct verify_args a = {.model = s->weights->model, .kv_cache = s->dev, .predictions = predictions};
    const uint32_t rows = put_rounds(s, requests, n, nodes, &a, &args, verdicts);
    if (!run_head_with(s, rows, predictions, &args))
        return false;
    uint64_t *const stamps = trace_begin(s, TRACED_VERIFY, rows);
    bool ok = cuda_kv_cache_did(s, launch_verify(a, &s->weights->sizes, s->stream), "verifying");
    trace_end(s, stamps);
    for (uint32_t i = 0; i < n && ok; i++)
        ok = deliver_verdict(s, &requests[i], (const struct verdict *)host + i);
    return ok;
}

bool
decide_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    if (!request_verify(s->limits, requests, n))
        return false;
    for (size_t first = 0, last; first < n && !cuda_kv_cache_stopped(s); first = last) {
        uint32_t nodes = 0;
        for (last = first; last < n && nodes + requests[last].n <= s->dev.head_rows; last++)
            nodes += (uint32_t)requests[last].n;
        s->stoppable = true;
        if (!verify_part(s, requests + first, (uint32_t)(last - first), nodes))
            return true;
    }
    return true;
}

/* ---- for tests ---- */

/* Queues the delivery of n floats from device memory. */
static void
read_floats(struct kv_cache *s, const float *from, size_t n, float *out)
{
    struct arena_piece results;
    void *host;
    if (!cuda_kv_cache_results(s, piece_room(n, sizeof *out), &results))
        return;
    float *to = piece_put(&results, n, sizeof *out, &host);
    if (cuda_kv_cache_did(s, cudaMemcpyAsync(to, from, n * sizeof *out, cudaMemcpyDeviceToDevice, s->stream),
                          "reading values"))
        (void)cuda_kv_cache_deliver(
            s, (struct delivery){.kind = DELIVER_BYTES, .out = out, .from = host, .bytes = n * sizeof *out});
}

bool
decide_read_logits(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    if (!request_read(s->limits, ring, layer))
        return false;
    if (cuda_kv_cache_stopped(s))
        return true;
    s->stoppable = true;
    s->head_rows[0] = plain_row(ring, layer);
    if (run_head(s, 1, NULL))
        read_floats(s, s->dev.head_logits, s->weights->sizes.vocab, out);
    return true;
}

bool
decide_read_hidden(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    const struct model_desc *d = &s->weights->desc;
    if (!request_read(s->limits, ring, layer))
        return false;
    if (!s->cancelled && cuda_kv_cache_alive(s))
        read_floats(s, s->dev.hidden + ((size_t)ring * (d->n_layers + 1) + layer) * d->width, d->width, out);
    return true;
}

bool
decide_read_dist(struct kv_cache *s, dist_t dist, float *out)
{
    const size_t vocab = s->dev.dists_vocab;
    if (!request_read_dist(s->limits, dist))
        return false;
    if (!s->cancelled && cuda_kv_cache_alive(s))
        read_floats(s, s->dev.dists_p + dist * vocab, vocab, out);
    return true;
}
