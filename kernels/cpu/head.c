#include "kernels/cpu/head.h"

#include <math.h>

#include "kernels/cpu/dequantise.h"
#include "kernels/cpu/forms.h"

/* ---- logits ---- */

/* The trained head that row i of those to be computed asks for, or NULL: the lens. */
static const struct trained_head *
trained(const struct store *s, size_t i)
{
    const struct head_row *row = &s->head.rows[s->head.ready + i];
    const struct trained_head *t = s->weights->trained;
    return t == NULL || row->head != USE_TRAINED ? NULL : &t[row->layer];
}

static bool
is_affine(const struct trained_head *t)
{
    return t != NULL && t->a.data != NULL;
}

static bool
is_full(const struct trained_head *t)
{
    return t != NULL && t->full.data != NULL;
}

static const float *
hidden_row(const struct worker *w, const void *unused, size_t i)
{
    (void)unused;
    const struct head_row *row = &w->store->head.rows[w->store->head.ready + i];
    return cpu_store_hidden(w->store, row->ring, row->layer);
}

/* What the final norm sees. */
static const float *
seen_row(const struct worker *w, const void *unused, size_t i)
{
    const struct store *s = w->store;
    return is_affine(trained(s, i)) ? s->head.shifted + (s->head.ready + i) * s->weights->desc.width
                                    : hidden_row(w, unused, i);
}

/* y = M x for row i alone. */
static void
multiply_row(const struct worker *w, const struct matrix *m, const struct acts *x, size_t i, struct range part,
             float *y)
{
    struct acts one = *x;
    one.x += i * x->cols;
    multiply(w->store->isa, m, &one, 1, part.first, part.last, y, m->rows);
}

/* shifted = h + A h + b of all n rows with an affine head. */
static void
shift(struct worker *w, size_t n)
{
    struct store *s = w->store;
    const uint32_t width = s->weights->desc.width;
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = is_affine(trained(s, i));
    if (!any)
        return;
    const struct acts x = worker_activations(w, n, width, false, NULL, hidden_row, NULL, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct trained_head *t = trained(s, i);
        if (!is_affine(t))
            continue;
        const struct range part = worker_outputs(w, t->a.rows);
        float *y = s->head.shifted + (s->head.ready + i) * width;
        multiply_row(w, &t->a, &x, i, part, y);
        for (size_t o = part.first; o < part.last; o++)
            y[o] += x.x[i * width + o] + t->b[o];
    }
    worker_barrier(w);
}

/* Bias, scale and cap, where the model has them. */
static void
finish_logits(const struct weights *w, struct range part, float *z)
{
    const struct model_form *f = &w->desc.form;
    const float scale = form_factor(f->logit_scale);
    for (size_t o = part.first; w->head_bias != NULL && o < part.last; o++)
        z[o] += w->head_bias[o];
    for (size_t o = part.first; (scale < 1 || scale > 1) && o < part.last; o++)
        z[o] *= scale;
    form_cap(f->logit_cap, z + part.first, part.last - part.first);
}

void
head_logits(struct worker *w)
{
    struct store *s = w->store;
    const struct matrix *m = &s->weights->head;
    const size_t n = s->head.n - s->head.ready;
    if (n > 0) {
        worker_unit(w, 0, &s->head_use);
        shift(w, n);
        const struct acts x =
            worker_activations(w, n, m->cols, m->q != NULL, &s->weights->final_norm, seen_row, NULL, NULL);
        const struct range part = worker_outputs(w, m->rows);
        float *z = s->head.logits + s->head.ready * m->rows;
        for (size_t i = 0, last; i < n; i = last) { /* rows that go through the same matrix go together */
            const struct trained_head *t = trained(s, i);
            last = i + 1;
            if (is_full(t)) {
                multiply_row(w, &t->full, &x, i, part, z + i * m->rows);
                continue;
            }
            while (last < n && !is_full(trained(s, last)))
                last++;
            struct acts some = x;
            some.x += i * x.cols;
            some.q += i * x.stride;
            worker_multiply(w, s->head_use, m, &some, last - i, part, z + i * m->rows);
        }
        for (size_t i = 0; i < n && part.first < part.last; i++)
            finish_logits(s->weights, part, z + i * m->rows);
    }
    worker_barrier(w);
}

/* ---- pieces of a row ---- */

/* Keeps the best five, best first, the earlier among equals. */
static void
insert(token_t *top, float *top_z, token_t token, float z)
{
    size_t at = GUESS_TOP - 1;
    for (; at > 0 && (top[at - 1] == TOKEN_NONE || z > top_z[at - 1]); at--) {
        top[at] = top[at - 1];
        top_z[at] = top_z[at - 1];
    }
    top[at] = token;
    top_z[at] = z;
}

static void
summarise(const struct store *s, size_t row, size_t piece)
{
    const uint32_t vocab = s->weights->desc.vocab;
    const size_t first = piece * PIECE, n = vocab - first < PIECE ? vocab - first : PIECE;
    const float *z = s->head.logits + row * vocab + first;
    struct summary *sum = &s->head.pieces[row * s->head.n_pieces + piece];
    sum->piece = s->isa->piece(z, n, s->head.rows[row].temperature);
    for (size_t i = 0; i < GUESS_TOP; i++) {
        sum->top[i] = TOKEN_NONE;
        sum->top_z[i] = -INFINITY;
    }
    for (size_t i = 0; (i = s->isa->next_above(z, i, n, sum->top_z[GUESS_TOP - 1])) < n; i++)
        insert(sum->top, sum->top_z, (token_t)(first + i), z[i]);
}

void
head_pieces(struct worker *w)
{
    const struct head_table *t = &w->store->head;
    const struct range part = worker_share(w, t->n * t->n_pieces);
    for (size_t u = part.first; u < part.last; u++)
        summarise(w->store, u / t->n_pieces, u % t->n_pieces);
}

void
head_combine(const struct store *s, size_t row, struct guess *g, double *max, double *sum)
{
    const struct head_table *t = &s->head;
    const struct summary *pieces = t->pieces + row * t->n_pieces;
    *g = (struct guess){.kl_final = NAN, .rank_final = -1};
    float top_z[GUESS_TOP];
    for (size_t i = 0; i < GUESS_TOP; i++) {
        g->top[i] = TOKEN_NONE;
        top_z[i] = -INFINITY;
    }
    *max = -INFINITY;
    for (size_t c = 0; c < t->n_pieces; c++)
        *max = pieces[c].piece.max > *max ? pieces[c].piece.max : *max;
    double weighted = 0, annealed = 0;
    *sum = 0;
    for (size_t c = 0; c < t->n_pieces; c++) {
        const struct piece *p = &pieces[c].piece;
        const double below = p->max - *max, scale = exp(below);
        *sum += scale * p->sum;
        weighted += scale * (p->weighted + below * p->sum);
        annealed += exp(below / t->rows[row].temperature) * p->annealed;
        for (size_t i = 0; i < GUESS_TOP && pieces[c].top[i] != TOKEN_NONE; i++)
            if (g->top[GUESS_TOP - 1] == TOKEN_NONE || pieces[c].top_z[i] > top_z[GUESS_TOP - 1])
                insert(g->top, top_z, pieces[c].top[i], pieces[c].top_z[i]);
    }
    g->token = g->top[0];
    g->confidence = (float)(1 / *sum);
    g->annealed = (float)(1 / annealed);
    g->entropy = (float)fmax(0, log(*sum) - weighted / *sum);
    for (size_t i = 0; i < GUESS_TOP; i++)
        g->top_p[i] = g->top[i] == TOKEN_NONE ? 0 : (float)(exp(top_z[i] - *max) / *sum);
}

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
guess_table(struct worker *w)
{
    struct store *s = w->store;
    struct head_table *t = &s->head;
    head_pieces(w);
    worker_barrier(w);
    struct range part = worker_share(w, t->n);
    for (size_t i = part.first; i < part.last; i++)
        head_combine(s, i, &t->guesses[i], &t->max[i], &t->sum[i]);
    worker_barrier(w);
    part = worker_share(w, t->n * t->n_pieces);
    for (size_t u = part.first; u < part.last; u++) {
        size_t row = u / t->n_pieces;
        if (t->rows[row].final >= 0 && t->guesses[t->rows[row].final].token != TOKEN_NONE)
            compare_piece(s, row, u % t->n_pieces);
    }
    worker_barrier(w);
    part = worker_share(w, t->n);
    for (size_t i = part.first; i < part.last; i++)
        if (t->rows[i].final >= 0)
            compare(s, i);
}

void
head_run(struct store *s, bool guesses)
{
    worker_begin(s);
    PARALLEL(omp parallel num_threads(s->threads))
    {
        struct worker w = worker_here(s);
        head_logits(&w);
        if (guesses)
            guess_table(&w);
    }
    for (size_t i = 0; i < s->head.n && guesses; i++)
        if (!isfinite(s->head.guesses[i].confidence))
            head_broken(s, s->head.rows[i].layer);
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

void
head_guess(struct store *s, const struct probe *probes, size_t n, struct guess *out)
{
    s->head.n = s->head.ready = 0;
    for (size_t i = 0; i < n; i++) {
        bool first = true; /* of its ring entry */
        for (size_t j = 0; j < i && first; j++)
            first = probes[j].ring != probes[i].ring;
        if (first)
            add_family(s, probes, n, i, out);
    }
    run_table(s, out, -1);
}
