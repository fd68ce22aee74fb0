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
hidden_row(const struct store *s, const void *unused, size_t i)
{
    (void)unused;
    const struct head_row *row = &s->head.rows[s->head.ready + i];
    return cpu_store_hidden(s, row->ring, row->layer);
}

/* What the final norm sees. */
static const float *
seen_row(const struct store *s, const void *unused, size_t i)
{
    return is_affine(trained(s, i)) ? s->head.shifted + (s->head.ready + i) * s->weights->desc.width
                                    : hidden_row(s, unused, i);
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

static void
shift_outputs(const struct worker *w, const void *n, struct range part)
{
    const struct acts *x = worker_acts(w);
    struct store *s = w->store;
    const uint32_t width = s->weights->desc.width;
    for (size_t i = 0; i < *(const size_t *)n; i++) {
        const struct trained_head *t = trained(s, i);
        if (!is_affine(t))
            continue;
        float *y = s->head.shifted + (s->head.ready + i) * width;
        multiply_row(w, &t->a, x, i, part, y);
        for (size_t o = part.first; o < part.last; o++)
            y[o] += x->x[i * width + o] + t->b[o];
    }
}

/* shifted = h + A h + b of all n rows with an affine head. */
static void
shift(struct store *s, size_t n)
{
    const uint32_t width = s->weights->desc.width;
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = is_affine(trained(s, i));
    if (!any)
        return;
    worker_prepare(s, n, width, false, (struct norm){0}, hidden_row, NULL, NULL);
    worker_for(s, work_of_outputs(width, n, width), shift_outputs, &n);
}

/* Bias, scale and cap, where the model has them; z (part) begins at its first output. */
static void
finish_logits(const struct weights *w, struct range part, float *z)
{
    const struct model_form *f = &w->desc.form;
    const float scale = form_factor(f->logit_scale);
    const size_t n = part.last - part.first;
    for (size_t o = 0; w->head_bias != NULL && o < n; o++)
        z[o] += w->head_bias[part.first + o];
    for (size_t o = 0; (scale < 1 || scale > 1) && o < n; o++)
        z[o] *= scale;
    form_cap(f->logit_cap, z, n);
}

/* Logits `part` (which begins at a group) of n rows from `row` on, of those to be computed; z begins at their first. */
static void
logits_of(const struct worker *w, const struct acts *x, size_t row, size_t n, struct range part, float *z, size_t ld)
{
    const struct store *s = w->store;
    const struct range all = {0, part.last - part.first};
    if (part.first == part.last)
        return;
    for (size_t i = row, last; i < row + n; i = last) { /* rows that go through the same matrix go together */
        const struct trained_head *t = trained(s, i);
        const struct matrix m = matrix_part(is_full(t) ? &t->full : &s->weights->head, part);
        struct acts some = *x;
        some.x += i * x->cols;
        some.q += i * x->stride;
        last = i + 1;
        while (!is_full(t) && last < row + n && !is_full(trained(s, last)))
            last++;
        worker_multiply(w, is_full(t) ? USE_MEMORY : s->head_use, &m, &some, last - i, all, z + (i - row) * ld, ld);
    }
    for (size_t i = 0; i < n; i++)
        finish_logits(s->weights, part, z + i * ld);
}

/* Makes the head ready, and what it sees of n rows. */
static void
look(struct store *s, size_t n)
{
    const struct weights *m = s->weights;
    worker_unit(s, 0, &s->head_use);
    shift(s, n);
    worker_prepare(s, n, m->head.cols, m->head.q != NULL, m->final_norm, seen_row, NULL, NULL);
}

static void
logits_in(const struct worker *w, const void *n, struct range part)
{
    const struct head_table *t = &w->store->head;
    const size_t vocab = w->store->weights->head.rows;
    logits_of(w, worker_acts(w), 0, *(const size_t *)n, part, t->logits + t->ready * vocab + part.first, vocab);
}

void
head_logits(struct store *s)
{
    const size_t n = s->head.n - s->head.ready;
    if (n == 0)
        return;
    look(s, n);
    worker_for(s, work_of_outputs(s->weights->head.rows, n, s->weights->head.cols), logits_in, &n);
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

static struct range
outputs_in(const struct store *s, size_t piece)
{
    const size_t vocab = s->weights->desc.vocab, first = piece * PIECE;
    return (struct range){first, vocab - first < PIECE ? vocab : first + PIECE};
}

/* z: the piece's logits. */
static void
summarise(const struct store *s, size_t row, size_t piece, const float *z)
{
    const struct range part = outputs_in(s, piece);
    const size_t n = part.last - part.first;
    struct summary *sum = &s->head.pieces[row * s->head.n_pieces + piece];
    sum->piece = s->isa->piece(z, n, s->head.rows[row].temperature);
    for (size_t i = 0; i < GUESS_TOP; i++) {
        sum->top[i] = TOKEN_NONE;
        sum->top_z[i] = -INFINITY;
    }
    for (size_t i = 0; (i = s->isa->next_above(z, i, n, sum->top_z[GUESS_TOP - 1])) < n; i++)
        insert(sum->top, sum->top_z, (token_t)(part.first + i), z[i]);
}

static void
summarise_pieces(const struct worker *w, const void *unused, struct range part)
{
    const struct head_table *t = &w->store->head;
    (void)unused;
    for (size_t u = part.first; u < part.last; u++)
        summarise(w->store, u / t->n_pieces, u % t->n_pieces,
                  t->logits + u / t->n_pieces * w->store->weights->desc.vocab + u % t->n_pieces * PIECE);
}

void
head_pieces(struct store *s)
{
    worker_for(s, work_of_pieces(s, 8), summarise_pieces, NULL);
}

static void
stream_pieces(const struct worker *w, const void *unused, struct range part)
{
    (void)unused;
    const struct store *s = w->store;
    const struct head_table *t = &s->head;
    float *z = t->logits + part.first * PIECE * HEAD_TILE; /* these pieces' own */
    for (size_t piece = part.first; piece < part.last; piece++) {
        const struct range outputs = outputs_in(s, piece);
        const size_t ld = outputs.last - outputs.first;
        for (size_t row = 0; row < t->n; row += HEAD_TILE) {
            const size_t n = t->n - row < HEAD_TILE ? t->n - row : HEAD_TILE;
            logits_of(w, worker_acts(w), row, n, outputs, z, ld);
            for (size_t i = 0; i < n; i++)
                summarise(s, row + i, piece, z + i * ld);
        }
    }
}

void
head_stream(struct store *s)
{
    look(s, s->head.n);
    worker_for(s, (struct work){s->head.n_pieces, 1, s->head.n * PIECE * s->weights->head.cols}, stream_pieces, NULL);
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
