#include "kernels/cuda/requests.h"

#include "kernels/cuda/profile.h"

/* ---- head calls ---- */

/* Computes the logits of s->head_rows[0..n), and their predictions unless `predictions` (a device pointer) is NULL.
 * Sends the arguments. */
static bool
run_head(struct kv_cache *s, uint32_t n, struct prediction *predictions)
{
    struct head_args a = {.model = s->weights->model,
                          .kv_cache = s->dev,
                          .rows = cuda_kv_cache_copy(s, s->head_rows, n, sizeof *s->head_rows),
                          .n = n,
                          .kept = n > 0 && s->head_rows[0].kept >= 0,
                          .predictions = predictions,
                          .blocks = s->blocks};
    cuda_draft_parts(s, &a);
    for (uint32_t i = 0; i < n; i++)
        a.trained = a.trained || s->head_rows[i].trained;
    return cuda_kv_cache_send(s) &&
           profile_run(s, PROFILED_HEAD, n, launch_head(a, &s->weights->sizes, s->stream), "running the head");
}

static struct head_row
plain_row(uint32_t ring, uint32_t layer)
{
    return (struct head_row){.ring = ring, .layer = layer, .temperature = 1, .final = -1, .kept = -1};
}

/* ---- predictions ---- */

/* Keeps the logits that n rows of a block drafter got at layer L, as far as there is room. */
static void
keep_logits(struct kv_cache *s, uint32_t n)
{
    const size_t vocab = s->weights->sizes.vocab;
    for (uint32_t i = 0; i < n && s->n_kept < s->dev.kept_rows; i++) {
        const struct head_row *row = &s->head_rows[i];
        if (row->layer != s->weights->desc.n_layers || row->set.number > 0 || s->kept_row[row->ring] >= 0)
            continue;
        if (!cuda_kv_cache_did(s,
                               cudaMemcpyAsync(s->dev.kept + s->n_kept * vocab, s->dev.head_logits + i * vocab,
                                               vocab * sizeof(float), cudaMemcpyDeviceToDevice, s->stream),
                               "keeping logits"))
            return;
        s->kept_row[row->ring] = (int32_t)s->n_kept++;
    }
}

/* Runs the n prepared rows and queues the delivery of their predictions. */
static void
run_probes(struct kv_cache *s, uint32_t n, struct prediction *out)
{
    void *host;
    struct prediction *there = cuda_kv_cache_take(s, &s->results, n, sizeof *there, &host);
    const bool ok = run_head(s, n, there);
    if (ok && s->head_rows[0].kept < 0)
        keep_logits(s, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct head_row *row = &s->head_rows[i];
        s->final_row[row->ring] = -1;
        if (ok && s->requests[i] >= 0)
            (void)cuda_kv_cache_deliver(s, (struct delivery){.out = &out[s->requests[i]],
                                                             .from = (const struct prediction *)host + i,
                                                             .bytes = sizeof *there,
                                                             .layer = row->layer,
                                                             .n_checked = 1});
    }
}

/* Adds a probe to the call, with one row or two. The final layer of a ring entry is computed once for all of its probes
 * in a call; a probe of that layer itself uses the same row if no other probe has it. */
static uint32_t
add_probe(struct kv_cache *s, uint32_t n, const struct probe *p, int32_t request)
{
    const uint32_t depth = s->weights->desc.n_layers;
    const bool is_final = p->layer == depth && p->set == 0 && !p->kept;
    int32_t *final = &s->final_row[p->ring];
    if (*final < 0 && (is_final || p->versus_final)) {
        *final = (int32_t)n;
        s->requests[n] = -1;
        s->head_rows[n++] = plain_row(p->ring, depth);
    }
    const uint32_t at = is_final && s->requests[*final] < 0 ? (uint32_t)*final : n++;
    s->requests[at] = request;
    s->head_rows[at] = (struct head_row){.ring = p->ring,
                                         .layer = p->layer,
                                         .trained = weights_asked(s->weights, p->head),
                                         .temperature = p->temperature,
                                         .final = p->versus_final ? *final : -1,
                                         .kept = p->kept ? s->kept_row[p->ring] : -1,
                                         .before = p->before,
                                         .set = cuda_draft_outputs(s, p->set)};
    return n;
}

bool
decide_predict(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    uint32_t rows = 0;
    if (!request_predict(s->limits, probes, n))
        return false;
    if (n == 0 || !cuda_kv_cache_begins(s))
        return true;
    for (size_t i = 0; i < n; i++)
        if (probes[i].kept && s->kept_row[probes[i].ring] < 0)
            return false;
    if (!probes[0].kept && s->n_kept > 0) { /* the logits of an earlier call are no longer needed */
        memset(s->kept_row, 0xff, s->desc.ring * sizeof *s->kept_row);
        s->n_kept = 0;
    }
    for (size_t i = 0; i < n; i++) {
        const bool two = probes[i].versus_final && s->final_row[probes[i].ring] < 0;
        if (rows + (two ? 2 : 1) > s->dev.head_rows) {
            run_probes(s, rows, out);
            rows = 0;
        }
        rows = add_probe(s, rows, &probes[i], (int32_t)i);
    }
    run_probes(s, rows, out);
    return true;
}

/* ---- distributions ---- */

bool
decide_dist(struct kv_cache *s, const struct dist_req *requests, size_t n)
{
    if (!request_dist(s->limits, requests, n))
        return false;
    if (!cuda_kv_cache_begins(s))
        return true;
    for (size_t i = 0; i < n; i++)
        if (requests[i].kept && s->kept_row[requests[i].ring] < 0)
            return false;
    for (size_t first = 0; first < n && cuda_kv_cache_begins(s); first += s->dev.head_rows) {
        const uint32_t part = n - first < s->dev.head_rows ? (uint32_t)(n - first) : s->dev.head_rows;
        for (uint32_t i = 0; i < part; i++) {
            s->head_rows[i] = plain_row(requests[first + i].ring, requests[first + i].layer);
            s->head_rows[i].trained = weights_asked(s->weights, requests[first + i].head);
            s->head_rows[i].set = cuda_draft_outputs(s, requests[first + i].set);
            s->head_rows[i].kept = requests[first + i].kept ? s->kept_row[requests[first + i].ring] : -1;
            s->head_rows[i].before = requests[first + i].before;
        }
        const struct dist_args a = {.model = s->weights->model,
                                    .kv_cache = s->dev,
                                    .requests = cuda_kv_cache_copy(s, requests + first, part, sizeof *requests),
                                    .rows = cuda_kv_cache_copy(s, s->head_rows, part, sizeof *s->head_rows),
                                    .n = part};
        if (run_head(s, part, NULL))
            (void)profile_run(s, PROFILED_DISTS, part, launch_dist(a, s->stream), "making distributions");
    }
    return true;
}

bool
decide_draw(struct kv_cache *s, const struct draw_req *requests, size_t n)
{
    void *host;
    if (!request_draw(s->limits, requests, n) || n > UINT32_MAX)
        return false;
    if (n == 0 || !cuda_kv_cache_begins(s))
        return true;
    const struct draw_args a = {
        .kv_cache = s->dev, .requests = cuda_kv_cache_take(s, &s->args, n, sizeof *requests, &host), .n = (uint32_t)n};
    for (size_t i = 0; i < n && !s->failed; i++) {
        struct draw_req *r = (struct draw_req *)host + i;
        *r = requests[i];
        r->without = cuda_kv_cache_copy(s, r->without, r->n_without, sizeof *r->without);
        r->out = cuda_kv_cache_result(s, (struct delivery){.out = r->out, .bytes = sizeof *r->out});
    }
    if (cuda_kv_cache_send(s))
        (void)profile_run(s, PROFILED_DRAW, a.n, launch_draw(a, s->stream), "drawing tokens");
    return true;
}

bool
decide_overlap(struct kv_cache *s, const struct overlap_req *requests, size_t n)
{
    void *host;
    if (!request_overlap(s->limits, requests, n) || n > UINT32_MAX)
        return false;
    if (n == 0 || !cuda_kv_cache_begins(s))
        return true;
    const struct overlap_args a = {
        .kv_cache = s->dev, .requests = cuda_kv_cache_take(s, &s->args, n, sizeof *requests, &host), .n = (uint32_t)n};
    for (size_t i = 0; i < n && !s->failed; i++) {
        struct overlap_req *r = (struct overlap_req *)host + i;
        *r = requests[i];
        r->out = cuda_kv_cache_result(s, (struct delivery){.out = r->out, .bytes = sizeof *r->out});
    }
    if (cuda_kv_cache_send(s))
        (void)profile_run(s, PROFILED_OVERLAP, a.n, launch_overlap(a, s->stream), "comparing distributions");
    return true;
}

/* ---- verification ---- */

/* Puts n rounds with `nodes` nodes in total into the arguments, and the head's rows into s->head_rows; returns their
 * number. */
static uint32_t
put_rounds(struct kv_cache *s, const struct verify_req *requests, uint32_t n, uint32_t nodes, struct verify_args *a)
{
    void *rounds, *rows_of_nodes;
    const int32_t *there = cuda_kv_cache_take(s, &s->args, nodes, sizeof *there, &rows_of_nodes);
    uint32_t at = 0, rows = 0;
    a->n = n;
    a->rounds = cuda_kv_cache_take(s, &s->args, n, sizeof *a->rounds, &rounds);
    for (uint32_t i = 0; i < n && !s->failed; i++) {
        const struct verify_req *r = &requests[i];
        const struct delivery verdict = {.out = r->out,
                                         .bytes = sizeof *r->out,
                                         .layer = s->weights->desc.n_layers,
                                         .checked = offsetof(struct verdict, judged),
                                         .n_checked = VERIFY_NODES};
        ((struct dev_round *)rounds)[i] =
            (struct dev_round){.nodes = cuda_kv_cache_copy(s, r->nodes, r->n, sizeof *r->nodes),
                               .logits_row = there + at,
                               .dists = s->dev.row_dists + at,
                               .n = (uint32_t)r->n,
                               .sampling = r->sampling,
                               .seed = r->seed,
                               .verdict = cuda_kv_cache_result(s, verdict)};
        a->sampled = a->sampled || r->sampling.temperature > 0;
        a->longest = r->n > a->longest ? (uint32_t)r->n : a->longest;
        for (size_t j = 0; j < r->n; j++, at++) {
            const uint32_t ring = r->nodes[j].ring;
            ((int32_t *)rows_of_nodes)[at] = ring != RING_NONE ? (int32_t)rows : -1;
            if (ring != RING_NONE)
                s->head_rows[rows++] = plain_row(ring, s->weights->desc.n_layers);
        }
    }
    return rows;
}

/* Verifies rounds whose nodes fit one pass of the head. */
static void
verify_part(struct kv_cache *s, const struct verify_req *requests, uint32_t n, uint32_t nodes)
{
    struct prediction *predictions = cuda_kv_cache_take(s, &s->results, nodes, sizeof *predictions, &(void *){NULL});
    struct verify_args a = {.model = s->weights->model, .kv_cache = s->dev, .predictions = predictions};
    const uint32_t rows = put_rounds(s, requests, n, nodes, &a);
    if (run_head(s, rows, predictions))
        (void)profile_run(s, PROFILED_VERIFY, rows, launch_verify(a, s->stream), "verifying");
}

bool
decide_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    if (!request_verify(s->limits, requests, n))
        return false;
    for (size_t first = 0, last; first < n && cuda_kv_cache_begins(s); first = last) {
        uint32_t nodes = 0;
        for (last = first; last < n && nodes + requests[last].n <= s->dev.head_rows; last++)
            nodes += (uint32_t)requests[last].n;
        verify_part(s, requests + first, (uint32_t)(last - first), nodes);
    }
    return true;
}

/* ---- for tests ---- */

/* Queues the delivery of n floats from device memory. */
static void
read_floats(struct kv_cache *s, const float *from, size_t n, float *out)
{
    const struct delivery d = {.out = out, .bytes = n * sizeof *out};
    float *to = cuda_kv_cache_result(s, d);
    if (to != NULL)
        (void)cuda_kv_cache_did(s, cudaMemcpyAsync(to, from, d.bytes, cudaMemcpyDeviceToDevice, s->stream),
                                "reading values");
}

bool
decide_read_logits(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    if (!request_read(s->limits, ring, layer))
        return false;
    s->head_rows[0] = plain_row(ring, layer);
    if (cuda_kv_cache_begins(s) && run_head(s, 1, NULL))
        read_floats(s, s->dev.head_logits, s->weights->sizes.vocab, out);
    return true;
}

bool
decide_read_hidden(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    if (!request_read(s->limits, ring, layer))
        return false;
    if (!s->cancelled && cuda_kv_cache_alive(s))
        read_floats(s, hidden_at(&s->weights->sizes, &s->dev, ring, layer), s->weights->sizes.width, out);
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
