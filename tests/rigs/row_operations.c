/* The operations that random programs are made of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/sampling.h"
#include "tests/rigs/row_program_internal.h"

/* Two guesses about the same row and layer. Probes need not have the same bits, so equals may change places. */
static bool
same_guess(const struct guess *a, const struct guess *b)
{
    return fabsf(a->confidence - b->confidence) < 1e-4f && fabsf(a->annealed - b->annealed) < 1e-4f &&
           fabsf(a->entropy - b->entropy) < 1e-3f && (a->token == b->token || fabsf(a->top_p[0] - a->top_p[1]) < 1e-4f);
}

static struct plan
plan_of(const struct program *p, int plan)
{
    return plan ? (struct plan){p->skip_attention[plan], p->skip_mlp[plan]} : (struct plan){NULL, NULL};
}

static seq_t
random_seq(struct program *p, bool plain)
{
    for (;;) {
        const seq_t s = row_below(p, SEQS); /* sequence 0 is always there, and plain */
        if (p->seqs[s].used && !(plain && p->seqs[s].plan != 0))
            return s;
    }
}

static void
do_append(struct program *p)
{
    const seq_t seq = random_seq(p, false);
    const struct shadow_seq *q = &p->seqs[seq];
    slot_t parents[MAX_RING + 2] = {SLOT_NONE};
    uint32_t n = 1;
    if (q->len > 0)
        parents[n++] = q->trunk[q->len - 1];
    for (uint32_t i = 0; i < p->n_open; i++)
        if (p->rows[p->open[i]].seq == seq)
            parents[n++] = p->open[i];
    slot_t parent = row_one_in(p, 3) ? parents[row_below(p, n)] : parents[n - 1]; /* often a chain */
    const token_t token = (token_t)row_below(p, p->vocab);
    const bool inner = parent != SLOT_NONE && !(q->len > 0 && parent == q->trunk[q->len - 1]);
    const uint32_t pos = inner ? p->rows[parent].pos + 1 : q->len;
    const bool fits = pos < CTX && row_slots_in_use(p) < p->n_slots && p->n_open < context_limits(p->c)->ring;
    const slot_t s = context_append(p->c, seq, parent, token);
    EXPECT(p, (s != SLOT_NONE) == fits);
    if (!fits) {
        p->n.full++;
        return;
    }
    p->rows[s] = (struct shadow_row){
        .token = token, .parent = inner ? parent : SLOT_NONE, .seq = seq, .pos = pos, .plan = q->plan};
    p->open[p->n_open++] = s;
    p->n.append++;
}

/* Random open rows of all sequences with the same plan, closed under ancestors below `to`; at most max. */
static uint32_t
choose_rows(struct program *p, int plan, uint32_t to, uint32_t max, slot_t *out)
{
    bool chosen[MAX_SLOTS] = {false};
    uint32_t n = 0;
    for (uint32_t i = p->n_open; i-- > 0;) {
        const struct shadow_row *r = &p->rows[p->open[i]];
        if (r->plan != plan || (!chosen[p->open[i]] && row_one_in(p, 2)))
            continue;
        chosen[p->open[i]] = true;
        if (r->depth < to && r->parent != SLOT_NONE && p->rows[r->parent].depth < to)
            chosen[r->parent] = true;
    }
    for (uint32_t i = 0; i < p->n_open && n < max; i++)
        if (chosen[p->open[i]])
            out[n++] = p->open[i];
    return n;
}

static void
do_advance(struct program *p)
{
    slot_t rows[MAX_RING];
    const int plan = p->seqs[random_seq(p, false)].plan;
    const struct plan skip = plan_of(p, plan);
    const uint32_t to = row_one_in(p, 2) ? p->layers : 1 + row_below(p, p->layers);
    const uint32_t n = choose_rows(p, plan, to, context_limits(p->c)->max_rows, rows);
    uint32_t moving = 0;
    for (uint32_t i = 0; i < n; i++)
        moving += p->rows[rows[i]].depth < to;
    const bool cancel = moving > 0 && row_one_in(p, 12);
    if (cancel && p->w->cancel_before != NULL)
        p->w->cancel_before(p->w->weights, (int)row_below(p, 2 * p->layers));
    else
        atomic_store(&p->cancel, cancel);
    const bool ok = context_advance(p->c, rows, n, to, &skip);
    if (p->w->cancel_before != NULL)
        p->w->cancel_before(p->w->weights, -1);
    else
        EXPECT(p, ok == !cancel);
    atomic_store(&p->cancel, false);
    if (!ok) {
        EXPECT(p, cancel && context_error(p->c)->kind == ERR_CANCELLED);
        p->n.cancelled++;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (p->rows[rows[i]].depth < to)
            p->rows[rows[i]].depth = to;
    if (n > 0) {
        const slot_t s = rows[row_below(p, n)];
        row_compare(p, p->rows[s].seq, s, false);
    }
    p->n.advance += moving > 0;
}

/* A child whose parent lags behind must not be advanced without it. */
static void
do_refused(struct program *p)
{
    for (uint32_t i = 0; i < p->n_open; i++) {
        const struct shadow_row *r = &p->rows[p->open[i]];
        if (r->parent == SLOT_NONE || p->rows[r->parent].depth == p->layers)
            continue;
        EXPECT(p, !context_advance(p->c, &p->open[i], 1, p->layers, NULL));
        EXPECT(p, context_error(p->c)->kind == ERR_WORK);
        p->n.refused++;
        return;
    }
}

/* The exit that the rule gives when a row goes through the clean context layer by layer. True if it was a close call. */
static bool
clean_exit(struct program *p, const struct naive_token *path, size_t n, uint32_t from, uint32_t to,
           const struct exit_rule *rule, struct exit_result *out)
{
    const slot_t s = row_clean(p, path, n, from);
    bool close_call = false;
    *out = (struct exit_result){.depth = to, .guess.token = TOKEN_NONE};
    for (uint32_t l = from + 1; l <= to && !out->exited; l++) {
        const struct context_probe probe = {.slot = s, .layer = l, .temperature = rule->temperature[l]};
        EXPECT(p, context_advance(p->clean, &s, 1, l, NULL));
        if (rule->threshold[l] > 1)
            continue;
        EXPECT(p, context_guess(p->clean, &probe, 1, &out->guess));
        out->probes++;
        out->exited = out->guess.annealed >= rule->threshold[l];
        close_call = close_call || fabsf(out->guess.annealed - rule->threshold[l]) < 1e-4f;
        out->depth = out->exited ? l : to;
    }
    return close_call;
}

static void
do_until(struct program *p)
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
    struct guess probed[MAX_LAYERS + 1];
    struct exit_result got = {.probed = probed}, expected;
    const struct exit_rule rule = {.temperature = temperature, .threshold = threshold};
    const uint32_t from = p->rows[s].depth;
    const size_t len = row_path_of(p, p->rows[s].seq, s, false, path);
    const bool close_call = clean_exit(p, path, len, from, to, &rule, &expected);
    EXPECT(p, context_advance_until(p->c, rows, n, to, &rule, &got));
    if (!close_call) {
        EXPECT(p, got.exited == expected.exited && got.depth == expected.depth && got.probes == expected.probes);
        EXPECT(p, got.probes == 0 ? got.guess.token == TOKEN_NONE : same_guess(&got.guess, &expected.guess));
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

/* Any row whose hidden states are kept; SLOT_NONE when the first try finds none. */
static slot_t
random_row(struct program *p, seq_t *seq, bool *committed)
{
    *seq = random_seq(p, false);
    const struct shadow_seq *q = &p->seqs[*seq];
    *committed = p->n_open == 0 || row_one_in(p, 3);
    slot_t s = SLOT_NONE;
    if (!*committed) {
        s = p->open[row_below(p, p->n_open)];
        *seq = p->rows[s].seq;
    } else if (q->len > 0) {
        s = q->trunk[row_below(p, 2) ? q->len - 1 : row_below(p, q->len)];
    }
    return s != SLOT_NONE && context_hidden_kept(p->c, s) ? s : SLOT_NONE;
}

static void
do_guess(struct program *p)
{
    struct context_probe probes[12];
    struct guess got[12], twin;
    const uint32_t n = 1 + row_below(p, 12);
    for (uint32_t i = 0; i < n; i++) {
        seq_t seq;
        bool committed;
        const slot_t s = random_row(p, &seq, &committed);
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
            EXPECT(p, context_guess(p->clean, &same, 1, &twin));
        }
    }
    EXPECT(p, context_guess(p->c, probes, n, got));
    if (n > 1)
        EXPECT(p, same_guess(&got[0], &twin));
    if (n > 1 && probes[0].layer == p->layers) /* final logits: the same bits whatever shares the call */
        EXPECT(p, memcmp(&got[0].confidence, &twin.confidence, sizeof(float)) == 0 && got[0].token == twin.token);
    for (uint32_t i = 0; i < n; i++) {
        EXPECT(p, isnan(got[i].kl_final) == !probes[i].versus_final);
        EXPECT(p, (got[i].rank_final >= 0) == probes[i].versus_final);
    }
    p->n.guess++;
}

/* A round of all rows at depth L, with one more candidate that has none; greedy or sampled, with the q of a random
 * layer. The verdict must be that of the same walk on the logits and distributions that the context reads out. */
static void
do_verify(struct program *p)
{
    const seq_t seq = random_seq(p, false);
    const struct shadow_seq *q = &p->seqs[seq];
    if (q->len == 0 || !context_hidden_kept(p->c, q->trunk[q->len - 1]))
        return;
    static const float ts[3] = {0, 0.8f, 1.3f};
    const struct sampling sampling = {
        .temperature = ts[row_below(p, 3)], .top_k = row_one_in(p, 2) ? 6 : 0, .top_p = row_one_in(p, 2) ? 0.9f : 1};
    struct verify_row round[16];
    struct verify_node nodes[16];
    float logits[16][MAX_VOCAB], dists[16][MAX_VOCAB], scratch[MAX_VOCAB];
    const float *logits_at[16], *q_at[16];
    uint32_t order[MAX_VOCAB], n = 0, rowless = 1 + row_below(p, 8);
    context_release_dists(p->c);
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
            .parent = parent, .token = (token_t)row_below(p, p->vocab), .slot = SLOT_NONE, .q = DIST_NONE};
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
            round[i].q = context_dist(p->c, round[nodes[i].parent].slot, row_below(p, p->layers + 1), 0, &sampling);
            EXPECT(p, round[i].q != DIST_NONE && context_read_dist(p->c, round[i].q, dists[i]));
            q_at[i] = dists[i];
        }
    }
    struct verdict got, expected;
    const uint64_t seed = row_below(p, 1000);
    const struct verify_req request = {.nodes = nodes, .n = n, .sampling = sampling, .seed = seed, .seq = seq};
    EXPECT(p, context_verify(p->c, seq, round, n, &sampling, seed, &got));
    EXPECT(p, sampling_verify(&request, p->vocab, logits_at, q_at, scratch, order, &expected));
    EXPECT(p, got.kind == expected.kind && got.next == expected.next && got.n_path == expected.n_path);
    EXPECT(p, memcmp(got.path, expected.path, got.n_path * sizeof *got.path) == 0);
    for (uint32_t i = 0; i < n; i++)
        EXPECT(p, got.judged[i].token == (logits_at[i] != NULL ? sampling_argmax(logits_at[i], p->vocab) : TOKEN_NONE));
    p->n.verify++;
}

static void
do_keep(struct program *p)
{
    const seq_t seq = random_seq(p, false);
    struct shadow_seq *q = &p->seqs[seq];
    slot_t path[CTX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_open; i++) { /* parents first: one pass goes down the tree */
        const struct shadow_row *r = &p->rows[p->open[i]];
        if (r->seq == seq && r->depth == p->layers && r->parent == (n > 0 ? path[n - 1] : SLOT_NONE) &&
            !row_one_in(p, 4))
            path[n++] = p->open[i];
    }
    if (n == 0 && !row_one_in(p, 4))
        return;
    EXPECT(p, context_keep(p->c, seq, path, n));
    row_forget_open_of(p, seq);
    for (uint32_t i = 0; i < n; i++) {
        q->trunk[q->len++] = path[i];
        p->rows[path[i]].parent = SLOT_NONE;
        p->rows[path[i]].seq = SEQ_NONE;
    }
    p->n.keep++;
}

static void
do_discard(struct program *p)
{
    if (p->n_open == 0)
        return;
    const uint32_t which = row_below(p, p->n_open);
    bool gone[MAX_RING] = {false};
    context_discard(p->c, p->open[which]);
    for (uint32_t i = 0; i < p->n_open; i++) {
        gone[i] = i == which;
        for (uint32_t j = 0; j < i; j++)
            gone[i] = gone[i] || (gone[j] && p->rows[p->open[i]].parent == p->open[j]);
    }
    row_forget_open(p, gone);
    p->n.discard++;
}

static void
do_truncate(struct program *p)
{
    const seq_t seq = random_seq(p, false);
    struct shadow_seq *q = &p->seqs[seq];
    const uint32_t most = q->len < 9 ? q->len : 9;
    const uint32_t len = row_one_in(p, 6) ? row_below(p, q->len + 1) : q->len - row_below(p, most + 1);
    context_truncate(p->c, seq, len);
    q->len = len;
    row_forget_open_of(p, seq);
    p->n.truncate++;
}

static void
do_fork(struct program *p)
{
    const seq_t from = random_seq(p, false);
    const struct shadow_seq *old = &p->seqs[from];
    const uint32_t len = row_one_in(p, 2) ? old->len : row_below(p, old->len + 1);
    bool room = false;
    for (seq_t s = 0; s < SEQS; s++)
        room = room || !p->seqs[s].used;
    const seq_t fork = context_fork(p->c, from, len);
    EXPECT(p, (fork != SEQ_NONE) == room);
    if (!room)
        return;
    struct shadow_seq *q = &p->seqs[fork];
    EXPECT(p, !q->used);
    *q = (struct shadow_seq){.used = true, .plan = old->plan ? old->plan : (int)row_below(p, PLANS), .len = len};
    memcpy(q->trunk, old->trunk, len * sizeof *q->trunk);
    p->n.fork++;
}

static void
do_drop(struct program *p)
{
    const seq_t seq = random_seq(p, false);
    if (seq == 0)
        return;
    context_drop(p->c, seq);
    row_forget_open_of(p, seq);
    p->seqs[seq].used = false;
    p->n.drop++;
}

static void
do_prefill(struct program *p)
{
    const seq_t seq = random_seq(p, true);
    struct shadow_seq *q = &p->seqs[seq];
    token_t tokens[CTX];
    const uint32_t n = 1 + row_below(p, 2 * context_limits(p->c)->max_rows + 2);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (token_t)row_below(p, p->vocab);
    uint32_t others = 0;
    for (uint32_t i = 0; i < p->n_open; i++)
        others += p->rows[p->open[i]].seq != seq;
    /* Room for sure: positions, slots, and ring places for a whole chunk beside the rows of other sequences. */
    if (q->len + n > CTX || row_slots_in_use(p) + n > p->n_slots ||
        others + context_limits(p->c)->max_rows > context_limits(p->c)->ring)
        return;
    EXPECT(p, context_prefill(p->c, seq, tokens, n, NULL, NULL));
    row_forget_open_of(p, seq);
    for (uint32_t i = 0; i < n; i++) {
        const slot_t s = context_at(p->c, seq, q->len);
        EXPECT(p, s != SLOT_NONE);
        p->rows[s] = (struct shadow_row){
            .token = tokens[i], .parent = SLOT_NONE, .seq = SEQ_NONE, .depth = p->layers, .pos = q->len};
        q->trunk[q->len++] = s;
    }
    /* The last row is kept always; those before it unless rows of other sequences fill the ring. */
    const slot_t s = q->trunk[q->len - 1 - row_below(p, n < 4 ? n : 4)], last = q->trunk[q->len - 1];
    EXPECT(p, context_hidden_kept(p->c, last));
    row_compare(p, seq, context_hidden_kept(p->c, s) ? s : last, true);
    p->n.prefill++;
}

static void
do_compare(struct program *p)
{
    seq_t seq;
    bool committed;
    const slot_t s = random_row(p, &seq, &committed);
    if (s != SLOT_NONE)
        row_compare(p, seq, s, committed);
}

void
row_operation(struct program *p)
{
    static void (*const operations[])(struct program *) = {
        do_append,  do_append,  do_append,   do_append, do_append, do_append,  do_append,  do_advance,
        do_advance, do_advance, do_advance,  do_until,  do_until,  do_guess,   do_verify,  do_keep,
        do_keep,    do_discard, do_truncate, do_fork,   do_drop,   do_prefill, do_compare, do_refused};
    operations[row_below(p, sizeof operations / sizeof *operations)](p);
}
