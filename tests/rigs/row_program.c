#include "tests/rigs/row_program.h"

#include <math.h>

#include "base/rng.h"
#include "engine/context/context.h"
#include "kernels/cpu/sampling.h"
#include "tests/rigs/context_inside.h"
#include "tests/rigs/test.h"

enum {
    CTX = 72,
    SEQS = 4,
    MAX_SLOTS = CTX + 64,
    MAX_RING = 64,
    MAX_LAYERS = 8,
    MAX_WIDTH = 128,
    MAX_VOCAB = 64,
    SPARE_VOCAB = 4, /* at most so many tokens that are in the pool's vocabulary only */
    PLANS = 4
};

struct shadow_row { /* by slot */
    token_t token;
    slot_t parent; /* SLOT_NONE: the trunk's end */
    seq_t seq;
    uint32_t depth, pos;
    int plan;
};

struct shadow_seq {
    bool used;
    int plan; /* plan of the rows appended to it; 0: nothing is skipped */
    uint32_t len;
    slot_t trunk[CTX];
};

struct program {
    const struct row_world *w;
    struct dist_pool *pool;    /* the pool of both contexts */
    struct context *c, *clean; /* clean: one sequence, one row at a time */
    struct naive_token clean_path[CTX];
    uint32_t clean_len;
    uint64_t seed;
    uint32_t n_random;
    unsigned op;
    uint32_t layers, vocab, n_slots;
    atomic_bool cancel;
    struct shadow_row rows[MAX_SLOTS];
    slot_t open[MAX_RING]; /* uncommitted rows, in order of append */
    uint32_t n_open;
    struct shadow_seq seqs[SEQS];
    bool skip_attention[PLANS][MAX_LAYERS + 1], skip_mlp[PLANS][MAX_LAYERS + 1];
    struct row_counts n;
};

#define EXPECT(p, condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("seed %llu, operation %u: not true: %s (context: %s)", (unsigned long long)(p)->seed, (p)->op,    \
                     #condition, context_error((p)->c)->text);                                                         \
    } while (0)

static uint32_t
row_below(struct program *p, uint32_t n)
{
    const struct rng_key key = {.seed = p->seed, .seq = 77, .pos = p->n_random++};
    return (uint32_t)(rng_uniform(&key) * n);
}

static bool
row_one_in(struct program *p, uint32_t n)
{
    return row_below(p, n) == 0;
}

/* ---- the shadow ---- */

static size_t
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

static void
row_forget_open(struct program *p, const bool *gone)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_open; i++)
        if (!gone[i])
            p->open[kept++] = p->open[i];
    p->n_open = kept;
}

static void
row_forget_open_of(struct program *p, seq_t seq)
{
    bool gone[MAX_RING];
    for (uint32_t i = 0; i < p->n_open; i++)
        gone[i] = p->rows[p->open[i]].seq == seq;
    row_forget_open(p, gone);
}

static uint32_t
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

/* Checks that the context agrees with the shadow. */
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

/* ---- comparisons of vectors ---- */

static double
difference(const float *got, const double *expected, uint32_t n)
{
    double d = 0, norm = 0;
    for (uint32_t i = 0; i < n; i++) {
        d += ((double)got[i] - expected[i]) * ((double)got[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    return d > 0 ? sqrt(d / norm) : d; /* NaN remains NaN, and no comparison with it is true */
}

/* Rows that skipped sublayers cannot be committed where layers are recurrent. */
static bool
row_stays_open(const struct program *p, bool planned)
{
    return planned && p->w->desc->form.recurrent.value_heads > 0;
}

static slot_t
row_clean(struct program *p, const struct naive_token *path, size_t n, uint32_t depth)
{
    uint32_t same = 0;
    while (same < p->clean_len && same + 1 < n && p->clean_path[same].token == path[same].token &&
           p->clean_path[same].skip_mlp == path[same].skip_mlp)
        same++;
    context_truncate(p->clean, 0, same);
    slot_t open = SLOT_NONE;
    for (uint32_t i = same; i + 1 < n; i++) {
        const struct plan plan = {path[i].skip_attention, path[i].skip_mlp};
        const slot_t s = context_append(p->clean, 0, open, path[i].token);
        EXPECT(p, context_advance(p->clean, &s, 1, p->layers, &plan));
        if (row_stays_open(p, path[i].skip_mlp != NULL)) {
            open = s;
            continue;
        }
        EXPECT(p, context_keep(p->clean, 0, &s, 1));
        p->clean_path[i] = path[i];
        same = i + 1;
    }
    p->clean_len = same;
    const struct plan plan = {path[n - 1].skip_attention, path[n - 1].skip_mlp};
    const slot_t last = context_append(p->clean, 0, open, path[n - 1].token);
    EXPECT(p, context_advance(p->clean, &last, 1, depth, &plan));
    return last;
}

static void
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

static struct plan
plan_of(const struct program *p, int plan)
{
    return plan ? (struct plan){p->skip_attention[plan], p->skip_mlp[plan]} : (struct plan){NULL, NULL};
}

static seq_t
row_random_seq(struct program *p, bool plain)
{
    for (;;) {
        const seq_t s = row_below(p, SEQS); /* sequence 0 always exists, and is plain */
        if (p->seqs[s].used && !(plain && p->seqs[s].plan != 0))
            return s;
    }
}

static void
do_append(struct program *p)
{
    const seq_t seq = row_random_seq(p, false);
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
    const int plan = p->seqs[row_random_seq(p, false)].plan;
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

/* Checks that a row cannot be advanced without its parent if the parent has a lower depth. */
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

static slot_t
row_random(struct program *p, seq_t *seq, bool *committed)
{
    *seq = row_random_seq(p, false);
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
do_keep(struct program *p)
{
    const seq_t seq = row_random_seq(p, false);
    struct shadow_seq *q = &p->seqs[seq];
    slot_t path[CTX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_open; i++) { /* parents come first, so one pass goes down the tree */
        const struct shadow_row *r = &p->rows[p->open[i]];
        if (r->seq == seq && r->depth == p->layers && r->parent == (n > 0 ? path[n - 1] : SLOT_NONE) &&
            !row_one_in(p, 4))
            path[n++] = p->open[i];
    }
    if ((n == 0 && !row_one_in(p, 4)) || row_stays_open(p, q->plan != 0))
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
    const seq_t seq = row_random_seq(p, false);
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
    const seq_t from = row_random_seq(p, false);
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
    const seq_t seq = row_random_seq(p, false);
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
    const seq_t seq = row_random_seq(p, true);
    struct shadow_seq *q = &p->seqs[seq];
    token_t tokens[CTX];
    const uint32_t n = 1 + row_below(p, 2 * context_limits(p->c)->max_rows + 2);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (token_t)row_below(p, p->vocab);
    uint32_t others = 0;
    for (uint32_t i = 0; i < p->n_open; i++)
        others += p->rows[p->open[i]].seq != seq;
    /* Requires enough room: positions, slots, and ring entries for a whole chunk in addition to the rows of other
     * sequences. */
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
    /* The last row is always kept. Those before it are kept unless rows of other sequences fill the ring. */
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
    const slot_t s = row_random(p, &seq, &committed);
    if (s != SLOT_NONE)
        row_compare(p, seq, s, committed);
}

/* ---- decisions: early exits, predictions, verdicts ---- */

/* Compares two predictions of the same row and layer. Probes need not have the same bits, so equal tokens may change
 * places. */
static bool
same_prediction(const struct prediction *a, const struct prediction *b)
{
    return fabsf(a->confidence - b->confidence) < 1e-4f && fabsf(a->annealed - b->annealed) < 1e-4f &&
           fabsf(a->entropy - b->entropy) < 1e-3f && (a->token == b->token || fabsf(a->top_p[0] - a->top_p[1]) < 1e-4f);
}

/* Computes the exit that the rule gives when a row passes through the clean context layer by layer. Returns true if the
 * decision was close. */
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

static void
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

static void
row_prediction(struct program *p)
{
    struct context_probe probes[12] = {{0}};
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
    if (n > 1 && probes[0].layer == p->layers) /* final logits have the same bits in any call */
        EXPECT(p, memcmp(&got[0].confidence, &twin.confidence, sizeof(float)) == 0 && got[0].token == twin.token);
    for (uint32_t i = 0; i < n; i++) {
        EXPECT(p, isnan(got[i].kl_final) == !probes[i].versus_final);
        EXPECT(p, (got[i].rank_final >= 0) == probes[i].versus_final);
    }
    p->n.prediction++;
}

/* Returns a distribution of the row, or of the clean context's last row, which is as suitable. It need not be computed
 * yet. */
static dist_t
random_dist(struct program *p, slot_t s, const struct sampling *sampling)
{
    const slot_t last = context_at(p->clean, 0, context_length(p->clean, 0) - 1); /* SLOT_NONE in an empty trunk */
    const bool other = context_hidden_kept(p->clean, last) && row_one_in(p, 3);
    return context_dist(other ? p->clean : p->c, other ? last : s, row_below(p, p->layers + 1), 0, sampling);
}

/* Verifies a round of all rows at depth L and one more candidate that has no row. The round is greedy, or sampled with
 * the q of a random layer. The verdict must be that of the same walk on the logits and distributions that the context
 * reads out. */
static void
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

static void
row_operation(struct program *p)
{
    static void (*const operations[])(struct program *) = {
        do_append,  do_append,  do_append,   do_append, do_append, do_append,      do_append,  do_advance,
        do_advance, do_advance, do_advance,  row_until, row_until, row_prediction, row_verify, do_keep,
        do_keep,    do_discard, do_truncate, do_fork,   do_drop,   do_prefill,     do_compare, do_refused};
    operations[row_below(p, sizeof operations / sizeof *operations)](p);
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
