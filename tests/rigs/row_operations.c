/* The operations that random programs are made of. */

#include "tests/rigs/row_program_internal.h"
#include "tests/rigs/test.h"

static struct plan
plan_of(const struct program *p, int plan)
{
    return plan ? (struct plan){p->skip_attention[plan], p->skip_mlp[plan]} : (struct plan){NULL, NULL};
}

seq_t
row_random_seq(struct program *p, bool plain)
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

slot_t
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
    const slot_t s = row_random(p, &seq, &committed);
    if (s != SLOT_NONE)
        row_compare(p, seq, s, committed);
}

void
row_operation(struct program *p)
{
    static void (*const operations[])(struct program *) = {
        do_append,  do_append,  do_append,   do_append, do_append, do_append,      do_append,  do_advance,
        do_advance, do_advance, do_advance,  row_until, row_until, row_prediction, row_verify, do_keep,
        do_keep,    do_discard, do_truncate, do_fork,   do_drop,   do_prefill,     do_compare, do_refused};
    operations[row_below(p, sizeof operations / sizeof *operations)](p);
}
