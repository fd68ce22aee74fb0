/* Random programs: what a context is asked, early exits, predictions and verdicts. */
#include <math.h>

#include "kernels/cpu/sampling.h"
#include "tests/rigs/row_program_internal.h"
#include "tests/rigs/test.h"

/* Two predictions about the same row and layer. Probes need not have the same bits, so equals may change places. */
static bool
same_prediction(const struct prediction *a, const struct prediction *b)
{
    return fabsf(a->confidence - b->confidence) < 1e-4f && fabsf(a->annealed - b->annealed) < 1e-4f &&
           fabsf(a->entropy - b->entropy) < 1e-3f && (a->token == b->token || fabsf(a->top_p[0] - a->top_p[1]) < 1e-4f);
}

/* The exit that the rule gives when a row goes through the clean context layer by layer. True if it was a close call. */
static bool
clean_exit(struct program *p, const struct naive_token *path, size_t n, uint32_t from, uint32_t to,
           const struct exit_rule *rule, struct exit_result *out)
{
    const slot_t s = row_clean(p, path, n, from);
    bool close_call = false;
    *out = (struct exit_result){.depth = to, .prediction.token = TOKEN_NONE};
    for (uint32_t l = from + 1; l <= to && !out->exited; l++) {
        const struct context_probe probe = {.slot = s, .layer = l, .temperature = rule->temperature[l]};
        EXPECT(p, context_advance(p->clean, &s, 1, l, NULL));
        if (rule->threshold[l] > 1)
            continue;
        EXPECT(p, context_predict(p->clean, &probe, 1, &out->prediction));
        out->probes++;
        out->exited = out->prediction.annealed >= rule->threshold[l];
        close_call = close_call || fabsf(out->prediction.annealed - rule->threshold[l]) < 1e-4f;
        out->depth = out->exited ? l : to;
    }
    return close_call;
}

void
row_until(struct program *p)
{
    const uint32_t to = 1 + row_below(p, p->layers);
    slot_t rows[MAX_RING], s = SLOT_NONE;
    uint32_t n = 0;
    for (uint32_t i = 0, start = row_below(p, p->n_open + 1); i < p->n_open && s == SLOT_NONE; i++) {
        const slot_t at = p->open[(start + i) % p->n_open];
        if (p->rows[at].depth < to && p->rows[at].plan == 0)
            s = at;
    }
    if (s == SLOT_NONE)
        return;
    for (slot_t up = s; up != SLOT_NONE; up = p->rows[up].parent)
        n += p->rows[up].depth < to;
    if (n > context_limits(p->c)->max_rows)
        return;
    uint32_t at = n;
    for (slot_t up = s; up != SLOT_NONE; up = p->rows[up].parent)
        if (p->rows[up].depth < to)
            rows[--at] = up;

    float temperature[MAX_LAYERS + 1], threshold[MAX_LAYERS + 1];
    for (uint32_t l = 0; l <= p->layers; l++) {
        temperature[l] = 1 + (float)row_below(p, 3) * 0.25f;
        threshold[l] = row_one_in(p, 3) ? 2 : (float)row_below(p, 1000) / 1000;
    }
    struct naive_token path[CTX];
    struct prediction probed[MAX_LAYERS + 1];
    struct exit_result got = {.probed = probed}, expected;
    const struct exit_rule rule = {.temperature = temperature, .threshold = threshold};
    const uint32_t from = p->rows[s].depth;
    const size_t len = row_path_of(p, p->rows[s].seq, s, false, path);
    const bool close_call = clean_exit(p, path, len, from, to, &rule, &expected);
    EXPECT(p, context_advance_until(p->c, rows, n, to, &rule, &got));
    if (!close_call) {
        EXPECT(p, got.exited == expected.exited && got.depth == expected.depth && got.probes == expected.probes);
        EXPECT(p, got.probes == 0 ? got.prediction.token == TOKEN_NONE
                                  : same_prediction(&got.prediction, &expected.prediction));
    }
    for (uint32_t l = 0; l <= p->layers; l++)
        EXPECT(p, (probed[l].token != TOKEN_NONE) == (l > from && l <= got.depth && threshold[l] <= 1));
    for (uint32_t i = 0; i < n; i++)
        if (p->rows[rows[i]].depth < got.depth)
            p->rows[rows[i]].depth = got.depth;
    row_compare(p, p->rows[s].seq, s, false);
    row_compare(p, p->rows[rows[0]].seq, rows[0], false);
    p->n.until++;
}

void
row_prediction(struct program *p)
{
    struct context_probe probes[12];
    struct prediction got[12], twin;
    const uint32_t n = 1 + row_below(p, 12);
    for (uint32_t i = 0; i < n; i++) {
        seq_t seq;
        bool committed;
        const slot_t s = row_random(p, &seq, &committed);
        if (s == SLOT_NONE)
            return;
        probes[i] = (struct context_probe){.slot = s,
                                           .layer = row_below(p, p->rows[s].depth + 1),
                                           .temperature = row_one_in(p, 2) ? 1 : 1.5f,
                                           .versus_final = p->rows[s].depth == p->layers && row_one_in(p, 2)};
        if (i == 0 && n > 1) { /* the last probe is checked below; the first one repeats it in another place */
            probes[0].versus_final = false;
            struct naive_token path[CTX];
            const size_t len = row_path_of(p, seq, s, committed, path);
            const slot_t clean = row_clean(p, path, len, p->rows[s].depth);
            struct context_probe same = probes[0];
            same.slot = clean;
            EXPECT(p, context_predict(p->clean, &same, 1, &twin));
        }
    }
    EXPECT(p, context_predict(p->c, probes, n, got));
    if (n > 1)
        EXPECT(p, same_prediction(&got[0], &twin));
    if (n > 1 && probes[0].layer == p->layers) /* final logits: the same bits whatever shares the call */
        EXPECT(p, memcmp(&got[0].confidence, &twin.confidence, sizeof(float)) == 0 && got[0].token == twin.token);
    for (uint32_t i = 0; i < n; i++) {
        EXPECT(p, isnan(got[i].kl_final) == !probes[i].versus_final);
        EXPECT(p, (got[i].rank_final >= 0) == probes[i].versus_final);
    }
    p->n.prediction++;
}

/* A round of all rows at depth L, with one more candidate that has none; greedy or sampled, with the q of a random
 * layer. The verdict must be that of the same walk on the logits and distributions that the context reads out. */
/* Of the row, or of the other context's last one: its distributions are as good, and need not be made yet. */
static dist_t
random_dist(struct program *p, slot_t s, const struct sampling *sampling)
{
    const slot_t last = context_at(p->clean, 0, context_length(p->clean, 0) - 1); /* SLOT_NONE in an empty trunk */
    const bool other = context_hidden_kept(p->clean, last) && row_one_in(p, 3);
    return context_dist(other ? p->clean : p->c, other ? last : s, row_below(p, p->layers + 1), 0, sampling);
}

void
row_verify(struct program *p)
{
    const seq_t seq = row_random_seq(p, false);
    const struct shadow_seq *q = &p->seqs[seq];
    if (q->len == 0 || !context_hidden_kept(p->c, q->trunk[q->len - 1]))
        return;
    static const float ts[3] = {0, 0.8f, 1.3f};
    const struct sampling sampling = {
        .temperature = ts[row_below(p, 3)], .top_k = row_one_in(p, 2) ? 6 : 0, .top_p = row_one_in(p, 2) ? 0.9f : 1};
    struct verify_row round[16];
    struct verify_node nodes[16];
    float logits[16][MAX_VOCAB], dists[16][MAX_VOCAB + SPARE_VOCAB], scratch[MAX_VOCAB];
    const float *logits_at[16], *q_at[16];
    uint32_t order[MAX_VOCAB], n = 0, rowless = 1 + row_below(p, 8);
    dist_pool_release(p->pool);
    for (uint32_t i = 0; i <= p->n_open && n < 14; i++) {
        const slot_t s = i == 0 ? q->trunk[q->len - 1] : p->open[i - 1];
        int32_t parent = i == 0 ? -1 : 0;
        if (i > 0 && (p->rows[s].seq != seq || p->rows[s].depth < p->layers))
            continue;
        for (uint32_t j = 1; j < n; j++)
            if (p->rows[s].parent == round[j].slot)
                parent = (int32_t)j;
        if (parent == 0 && p->rows[s].parent != SLOT_NONE)
            continue; /* its parent did not fit */
        round[n] = (struct verify_row){.parent = parent, .token = p->rows[s].token, .slot = s, .q = DIST_NONE};
        nodes[n] = (struct verify_node){.parent = parent, .token = round[n].token, .pos = p->rows[s].pos};
        n++;
    }
    if (n >= rowless) {
        const int32_t parent = (int32_t)row_below(p, n);
        round[n] = (struct verify_row){
            .parent = parent, .token = (token_t)row_below(p, p->pool->vocab), .slot = SLOT_NONE, .q = DIST_NONE};
        nodes[n] = (struct verify_node){.parent = parent, .token = round[n].token, .pos = nodes[parent].pos + 1};
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        logits_at[i] = q_at[i] = NULL;
        if (round[i].slot != SLOT_NONE) {
            EXPECT(p, context_read_logits(p->c, round[i].slot, p->layers, logits[i]));
            logits_at[i] = logits[i];
        }
        if (i > 0 && row_one_in(p, 2)) {
            round[i].q = random_dist(p, round[nodes[i].parent].slot, &sampling);
            EXPECT(p, round[i].q != DIST_NONE && context_read_dist(p->c, round[i].q, dists[i]));
            q_at[i] = dists[i];
        }
    }
    struct verdict got, expected;
    const uint64_t seed = row_below(p, 1000);
    const struct verify_req request = {.nodes = nodes, .n = n, .sampling = sampling, .seed = seed};
    EXPECT(p, context_verify(p->c, seq, round, n, &sampling, seed, &got));
    EXPECT(p, sampling_verify(&request, p->vocab, logits_at, q_at, p->pool->vocab, scratch, order, &expected));
    EXPECT(p, got.kind == expected.kind && got.next == expected.next && got.n_path == expected.n_path);
    EXPECT(p, memcmp(got.path, expected.path, got.n_path * sizeof *got.path) == 0);
    for (uint32_t i = 0; i < n; i++)
        EXPECT(p, got.judged[i].token == (logits_at[i] != NULL ? sampling_argmax(logits_at[i], p->vocab) : TOKEN_NONE));
    p->n.verify++;
}
