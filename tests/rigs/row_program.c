#include "tests/rigs/row_program.h"

#include <math.h>

#include "kernels/base/rng.h"
#include "tests/rigs/row_program_internal.h"
#include "tests/rigs/test.h"

uint32_t
row_below(struct program *p, uint32_t n)
{
    const struct rng_key key = {.seed = p->seed, .seq = 77, .pos = p->n_random++};
    return (uint32_t)(rng_uniform(&key) * n);
}

bool
row_one_in(struct program *p, uint32_t n)
{
    return row_below(p, n) == 0;
}

/* ---- the shadow ---- */

size_t
row_path_of(const struct program *p, seq_t seq, slot_t s, bool committed, struct naive_token *path)
{
    const struct shadow_seq *q = &p->seqs[seq];
    const uint32_t n = p->rows[s].pos + 1;
    for (uint32_t i = n; i-- > 0;) {
        const slot_t at = committed || i < q->len ? q->trunk[i] : s;
        const int plan = p->rows[at].plan;
        path[i] = (struct naive_token){.token = p->rows[at].token,
                                       .skip_attention = plan ? p->skip_attention[plan] : NULL,
                                       .skip_mlp = plan ? p->skip_mlp[plan] : NULL};
        if (!committed && i >= q->len)
            s = p->rows[s].parent;
    }
    return n;
}

void
row_forget_open(struct program *p, const bool *gone)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_open; i++)
        if (!gone[i])
            p->open[kept++] = p->open[i];
    p->n_open = kept;
}

void
row_forget_open_of(struct program *p, seq_t seq)
{
    bool gone[MAX_RING];
    for (uint32_t i = 0; i < p->n_open; i++)
        gone[i] = p->rows[p->open[i]].seq == seq;
    row_forget_open(p, gone);
}

uint32_t
row_slots_in_use(const struct program *p)
{
    bool held[MAX_SLOTS] = {false};
    uint32_t n = p->n_open;
    for (seq_t s = 0; s < SEQS; s++)
        for (uint32_t i = 0; p->seqs[s].used && i < p->seqs[s].len; i++)
            if (!held[p->seqs[s].trunk[i]]) {
                held[p->seqs[s].trunk[i]] = true;
                n++;
            }
    return n;
}

/* Is the context what the shadow says? */
static void
compare_books(struct program *p)
{
    EXPECT(p, context_free_slots(p->c) == p->n_slots - row_slots_in_use(p));
    for (seq_t s = 0; s < SEQS; s++) {
        const uint32_t len = p->seqs[s].used ? p->seqs[s].len : 0;
        EXPECT(p, context_length(p->c, s) == len);
        for (uint32_t i = 0; i < len; i++) {
            EXPECT(p, context_at(p->c, s, i) == p->seqs[s].trunk[i]);
            EXPECT(p, context_token(p->c, p->seqs[s].trunk[i]) == p->rows[p->seqs[s].trunk[i]].token);
            EXPECT(p, context_position(p->c, p->seqs[s].trunk[i]) == i);
        }
    }
    for (uint32_t i = 0; i < p->n_open; i++) {
        const struct shadow_row *r = &p->rows[p->open[i]];
        EXPECT(p, context_depth(p->c, p->open[i]) == r->depth);
        EXPECT(p, context_position(p->c, p->open[i]) == r->pos);
        EXPECT(p, context_token(p->c, p->open[i]) == r->token);
        EXPECT(p, context_hidden_kept(p->c, p->open[i]));
    }
}

/* ---- comparisons of numbers ---- */

static double
difference(const float *got, const double *expected, uint32_t n)
{
    double d = 0, norm = 0;
    for (uint32_t i = 0; i < n; i++) {
        d += ((double)got[i] - expected[i]) * ((double)got[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    return d > 0 ? sqrt(d / norm) : d; /* NaN stays NaN, and no comparison is true of it */
}

slot_t
row_clean(struct program *p, const struct naive_token *path, size_t n, uint32_t depth)
{
    uint32_t same = 0;
    while (same < p->clean_len && same + 1 < n && p->clean_path[same].token == path[same].token &&
           p->clean_path[same].skip_mlp == path[same].skip_mlp)
        same++;
    context_truncate(p->clean, 0, same);
    for (uint32_t i = same; i + 1 < n; i++) {
        const struct plan plan = {path[i].skip_attention, path[i].skip_mlp};
        const slot_t s = context_append(p->clean, 0, SLOT_NONE, path[i].token);
        EXPECT(p, context_advance(p->clean, &s, 1, p->layers, &plan) && context_keep(p->clean, 0, &s, 1));
        p->clean_path[i] = path[i];
    }
    p->clean_len = (uint32_t)n - 1;
    const struct plan plan = {path[n - 1].skip_attention, path[n - 1].skip_mlp};
    const slot_t last = context_append(p->clean, 0, SLOT_NONE, path[n - 1].token);
    EXPECT(p, context_advance(p->clean, &last, 1, depth, &plan));
    return last;
}

void
row_compare(struct program *p, seq_t seq, slot_t s, bool committed)
{
    struct naive_token path[CTX];
    double expected[(MAX_LAYERS + 1) * MAX_WIDTH], logits[MAX_VOCAB];
    float got[MAX_WIDTH], clean[MAX_WIDTH];
    const struct row_world *w = p->w;
    const size_t n = row_path_of(p, seq, s, committed, path);
    const uint32_t depth = p->rows[s].depth, width = w->desc->width;
    EXPECT(p, w->hidden(w->model, path, n, depth, expected));
    const slot_t twin = row_clean(p, path, n, depth);
    for (uint32_t l = 0; l <= depth; l++) {
        EXPECT(p, context_read_hidden(p->c, s, l, got) && context_read_hidden(p->clean, twin, l, clean));
        EXPECT(p, difference(got, expected + l * width, width) <= w->tolerance);
        EXPECT(p, memcmp(got, clean, width * sizeof *got) == 0);
    }
    if (depth == p->layers) {
        EXPECT(p, context_read_logits(p->c, s, depth, got) && context_read_logits(p->clean, twin, depth, clean));
        EXPECT(p, memcmp(got, clean, p->vocab * sizeof *got) == 0);
        if (w->logits != NULL) {
            w->logits(w->model, expected + depth * width, logits);
            EXPECT(p, difference(got, logits, p->vocab) <= w->tolerance);
        }
    }
    p->n.compared++;
}

/* ---- programs ---- */

static void
open_contexts(struct program *p)
{
    const struct row_world *w = p->w;
    struct err e = {.kind = ERR_NONE};
    const uint32_t ring = 12 + row_below(p, MAX_RING - 12);
    EXPECT(p, dist_pool_open(&p->pool, w->ops, w->backend, p->vocab + row_below(p, SPARE_VOCAB + 1), 24, &e));
    const struct context_options options = {.ctx = CTX,
                                            .spare = 8 + row_below(p, 48),
                                            .ring = ring,
                                            .seqs = SEQS,
                                            .max_rows = 3 + row_below(p, 24),
                                            .max_probes = 3 + row_below(p, 9),
                                            .dists = p->pool,
                                            .cancel = &p->cancel};
    const struct context_options alone = {
        .ctx = CTX, .spare = 4, .ring = 16, .seqs = 1, .max_rows = 1, .dists = p->pool};
    EXPECT(p, p->layers <= MAX_LAYERS && p->vocab <= MAX_VOCAB && p->vocab <= MAX_WIDTH && w->desc->width <= MAX_WIDTH);
    EXPECT(p, context_open(&p->c, w->ops, w->backend, w->weights, w->desc, &options, &e));
    EXPECT(p, context_open(&p->clean, w->ops, w->backend, w->weights, w->desc, &alone, &e));
    EXPECT(p, context_sequence(p->clean) == 0);
    EXPECT(p, context_sequence(p->c) == 0);
    p->n_slots = context_free_slots(p->c);
    p->seqs[0].used = true;
    for (int plan = 1; plan < PLANS; plan++)
        for (uint32_t l = 1; l <= p->layers; l++) {
            p->skip_attention[plan][l] = row_one_in(p, 3);
            p->skip_mlp[plan][l] = row_one_in(p, 3);
        }
}

void
row_program_run(const struct row_world *w, uint64_t seed, unsigned n, struct row_counts *counts)
{
    struct program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->w = w;
    p->seed = seed;
    p->layers = w->desc->n_layers;
    p->vocab = w->desc->vocab;
    atomic_init(&p->cancel, false);
    open_contexts(p);
    for (p->op = 0; p->op < n; p->op++) {
        row_operation(p);
        compare_books(p);
    }
    for (seq_t s = 0; s < SEQS; s++)
        if (p->seqs[s].used)
            context_drop(p->c, s);
    EXPECT(p, context_free_slots(p->c) == p->n_slots); /* nothing leaked */
    const unsigned *from = (const unsigned *)&p->n;
    for (size_t i = 0; i < sizeof p->n / sizeof *from; i++)
        ((unsigned *)counts)[i] += from[i];
    context_close(p->c);
    context_close(p->clean);
    dist_pool_close(p->pool);
    free(p);
}
