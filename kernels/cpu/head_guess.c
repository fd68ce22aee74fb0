/* Guesses: rows' statistics put together, compared with the final layer's, and handed out to probes. */
#include <math.h>

#include "kernels/cpu/head.h"

/* ---- against the final layer ---- */

static void
compare_piece(const struct store *s, size_t row, size_t piece)
{
    const struct head_table *t = &s->head;
    const uint32_t vocab = s->weights->desc.vocab;
    const size_t final = (size_t)t->rows[row].final, first = piece * PIECE;
    const size_t n = vocab - first < PIECE ? vocab - first : PIECE, best = (size_t)t->guesses[final].token;
    const float *z = t->logits + row * vocab, *f = t->logits + final * vocab + first;
    struct summary *sum = &t->pieces[row * t->n_pieces + piece];
    sum->kl_term = s->isa->kl_term(f, z + first, n, t->pieces[final * t->n_pieces + piece].piece.max);
    const float bar = z[best], equals = nextafterf(bar, -INFINITY); /* equals come first when their id is lower */
    const size_t before = best <= first ? 0 : best - first < n ? best - first : n;
    sum->above = (uint32_t)(s->isa->count_above(z + first, before, equals) +
                            s->isa->count_above(z + first + before, n - before, bar));
}

/* KL(f || z) = sum_v f(v) (f_v - z_v) - lse(f) + lse(z), the f_v and z_v being logits. */
static void
compare(struct store *s, size_t row)
{
    struct head_table *t = &s->head;
    const size_t final = (size_t)t->rows[row].final;
    const struct summary *mine = t->pieces + row * t->n_pieces, *theirs = t->pieces + final * t->n_pieces;
    double cross = 0;
    uint32_t above = 0;
    for (size_t c = 0; c < t->n_pieces; c++) {
        cross += exp(theirs[c].piece.max - t->max[final]) * mine[c].kl_term;
        above += mine[c].above;
    }
    double kl = cross / t->sum[final] - (t->max[final] + log(t->sum[final])) + (t->max[row] + log(t->sum[row]));
    t->guesses[row].kl_final = (float)fmax(0, kl);
    t->guesses[row].rank_final = (int32_t)above;
}

static void
combine(const struct worker *w, const void *unused, struct range rows)
{
    struct head_table *t = &w->store->head;
    (void)unused;
    for (size_t i = rows.first; i < rows.last; i++)
        head_combine(w->store, i, &t->guesses[i], &t->max[i], &t->sum[i]);
}

static void
compare_pieces(const struct worker *w, const void *unused, struct range part)
{
    const struct head_table *t = &w->store->head;
    (void)unused;
    for (size_t u = part.first; u < part.last; u++) {
        const size_t row = u / t->n_pieces;
        if (t->rows[row].final >= 0 && t->guesses[t->rows[row].final].token != TOKEN_NONE)
            compare_piece(w->store, row, u % t->n_pieces);
    }
}

static void
combine_rows(struct store *s)
{
    worker_for(s, work_of_rows(s->head.n, 100 * s->head.n_pieces), combine, NULL);
}

static void
guess_table(struct store *s)
{
    bool versus = false;
    head_pieces(s);
    combine_rows(s);
    for (size_t i = 0; i < s->head.n; i++)
        versus = versus || s->head.rows[i].final >= 0;
    if (versus)
        worker_for(s, work_of_pieces(s, 16), compare_pieces, NULL);
    for (size_t i = 0; i < s->head.n; i++)
        if (s->head.rows[i].final >= 0)
            compare(s, i);
}

static void
check_guesses(struct store *s)
{
    for (size_t i = 0; i < s->head.n; i++)
        if (!isfinite(s->head.guesses[i].confidence))
            head_broken(s, s->head.rows[i].layer);
}

void
head_run(struct store *s, bool guesses)
{
    worker_begin(s);
    head_logits(s);
    if (!guesses)
        return;
    guess_table(s);
    check_guesses(s);
}

/* The same for guesses that ask for nothing of the last layer; there may be HEAD_ROWS of them. */
static void
stream_run(struct store *s)
{
    worker_begin(s);
    head_stream(s);
    combine_rows(s);
    check_guesses(s);
}

void
head_broken(struct store *s, uint32_t layer)
{
    s->failed = true;
    request_not_numbers(layer, &s->err);
}

/* ---- probes ---- */

/* Runs the table and hands its guesses out. Row `keep`, when >= 0, stays with its logits as the table's first. */
static void
run_table(struct store *s, struct guess *out, int32_t keep)
{
    struct head_table *t = &s->head;
    const size_t vocab = s->weights->desc.vocab;
    if (t->n > t->ready && !cpu_store_stopped(s)) {
        head_run(s, true);
        for (size_t i = 0; i < t->n; i++)
            if (t->rows[i].request >= 0)
                out[t->rows[i].request] = t->guesses[i];
    }
    if (keep > 0) {
        t->rows[0] = t->rows[keep];
        memcpy(t->logits, t->logits + (size_t)keep * vocab, vocab * sizeof *t->logits);
    }
    if (keep >= 0)
        t->rows[0].request = t->rows[0].final = -1; /* it has had its guess */
    t->n = t->ready = keep >= 0;
}

/* All probes of the ring entry of probe i. The final layer's row comes first and serves them all. */
static void
add_family(struct store *s, const struct probe *probes, size_t n, size_t i, struct guess *out)
{
    struct head_table *t = &s->head;
    const uint32_t ring = probes[i].ring, depth = s->weights->desc.n_layers;
    bool versus = false;
    size_t own = n; /* a probe of the final layer itself */
    for (size_t j = n; j-- > i;)
        if (probes[j].ring == ring) {
            versus = versus || probes[j].versus_final;
            own = probes[j].layer == depth ? j : own;
        }
    int32_t final = -1;
    if (versus) {
        if (t->n == HEAD_TILE)
            run_table(s, out, -1);
        final = (int32_t)t->n;
        t->rows[t->n++] = (struct head_row){.ring = ring,
                                            .layer = depth,
                                            .temperature = own < n ? probes[own].temperature : 1,
                                            .final = own < n && probes[own].versus_final ? final : -1,
                                            .request = own < n ? (int32_t)own : -1};
    }
    for (size_t j = i; j < n; j++) {
        if (probes[j].ring != ring || (versus && j == own))
            continue;
        if (t->n == HEAD_TILE) {
            run_table(s, out, final);
            final = final >= 0 ? 0 : -1;
        }
        t->rows[t->n++] = (struct head_row){.ring = ring,
                                            .layer = probes[j].layer,
                                            .head = probes[j].head,
                                            .temperature = probes[j].temperature,
                                            .final = probes[j].versus_final ? final : -1,
                                            .request = (int32_t)j};
    }
}

/* Probes that ask for nothing of the last layer: the table has room for many. */
static void
guess_alone(struct store *s, const struct probe *probes, size_t n, struct guess *out)
{
    struct head_table *t = &s->head;
    for (size_t first = 0; first < n && !cpu_store_stopped(s); first += t->n) {
        t->n = n - first < HEAD_ROWS ? n - first : HEAD_ROWS;
        for (size_t i = 0; i < t->n; i++)
            t->rows[i] = (struct head_row){.ring = probes[first + i].ring,
                                           .layer = probes[first + i].layer,
                                           .head = probes[first + i].head,
                                           .temperature = probes[first + i].temperature,
                                           .final = -1,
                                           .request = -1};
        stream_run(s);
        memcpy(out + first, t->guesses, t->n * sizeof *out);
    }
}

void
head_guess(struct store *s, const struct probe *probes, size_t n, struct guess *out)
{
    bool versus = false;
    s->head.n = s->head.ready = 0;
    for (size_t i = 0; i < n && !versus; i++)
        versus = probes[i].versus_final;
    if (!versus && s->head.n_pieces >= s->weights->backend->threads) { /* workers take whole pieces */
        guess_alone(s, probes, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool first = true; /* of its ring entry */
        for (size_t j = 0; j < i && first; j++)
            first = probes[j].ring != probes[i].ring;
        if (first)
            add_family(s, probes, n, i, out);
    }
    run_table(s, out, -1);
}
