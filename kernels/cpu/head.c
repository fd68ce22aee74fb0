/* Predictions: combines the statistics of rows, compares them with the final layer's, and writes them to the probes'
 * results. */
#include "kernels/cpu/head.h"

#include <math.h>

#include "kernels/cpu/draft_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/weights.h"
#include "kernels/tensor.h"

/* Returns the number of pieces of a row of the table. */
static size_t
pieces_of(const struct kv_cache *s, size_t row)
{
    return (draft_outputs(s, s->head.rows[row].set).end + PIECE - 1) / PIECE;
}

/* ---- against the final layer ---- */

static void
compare_piece(const struct kv_cache *s, size_t row, size_t piece)
{
    const struct head_table *t = &s->head;
    const uint32_t vocab = s->weights->head.rows;
    const size_t final = (size_t)t->rows[row].final, first = piece * PIECE;
    const size_t n = vocab - first < PIECE ? vocab - first : PIECE, best = (size_t)t->predictions[final].token;
    const float *z = t->logits + row * head_stride(s), *f = t->logits + final * head_stride(s) + first;
    struct summary *sum = &t->pieces[row * t->n_pieces + piece];
    sum->kl_term = s->isa->kl_term(f, z + first, n, t->pieces[final * t->n_pieces + piece].piece.max);
    const float bar = z[best], equals = nextafterf(bar, -INFINITY); /* among equal logits the lower id comes first */
    const size_t before = best <= first ? 0 : best - first < n ? best - first : n;
    sum->above = (uint32_t)(s->isa->count_above(z + first, before, equals) +
                            s->isa->count_above(z + first + before, n - before, bar));
}

/* KL(f || z) = sum_v f(v) (f_v - z_v) - lse(f) + lse(z), where f_v and z_v are logits. */
static void
compare(struct kv_cache *s, size_t row)
{
    struct head_table *t = &s->head;
    const size_t final = (size_t)t->rows[row].final;
    const struct summary *mine = t->pieces + row * t->n_pieces, *theirs = t->pieces + final * t->n_pieces;
    double cross = 0;
    uint32_t above = 0;
    for (size_t c = 0; c < pieces_of(s, row); c++) {
        cross += exp(theirs[c].piece.max - t->max[final]) * mine[c].kl_term;
        above += mine[c].above;
    }
    double kl = cross / t->sum[final] - (t->max[final] + log(t->sum[final])) + (t->max[row] + log(t->sum[row]));
    t->predictions[row].kl_final = (float)fmax(0, kl);
    t->predictions[row].rank_final = (int32_t)above;
}

static void
combine(const struct worker *w, const void *unused, struct range rows)
{
    struct head_table *t = &w->kv_cache->head;
    (void)unused;
    for (size_t i = rows.first; i < rows.last; i++)
        head_combine(w->kv_cache, i, &t->predictions[i], &t->max[i], &t->sum[i]);
}

static void
compare_pieces(const struct worker *w, const void *unused, struct range part)
{
    const struct head_table *t = &w->kv_cache->head;
    (void)unused;
    for (size_t u = part.first; u < part.last; u++) {
        const size_t row = u / t->used;
        if (u % t->used < pieces_of(w->kv_cache, row) && t->rows[row].final >= 0 &&
            t->predictions[t->rows[row].final].token != TOKEN_NONE)
            compare_piece(w->kv_cache, row, u % t->used);
    }
}

static void
combine_rows(struct kv_cache *s)
{
    worker_for(s, work_of_rows(s->head.n, 100 * s->head.used), combine, NULL);
}

static void
prediction_table(struct kv_cache *s)
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
check_predictions(struct kv_cache *s)
{
    for (size_t i = 0; i < s->head.n; i++)
        if (!isfinite(s->head.predictions[i].confidence))
            head_broken(s, s->head.rows[i].layer);
}

void
head_run(struct kv_cache *s, bool predictions)
{
    worker_begin(s);
    head_logits(s);
    if (!predictions)
        return;
    prediction_table(s);
    check_predictions(s);
}

/* The same for predictions that need no comparison with the last layer; up to HEAD_ROWS of them. */
static void
stream_run(struct kv_cache *s)
{
    worker_begin(s);
    head_stream(s);
    combine_rows(s);
    check_predictions(s);
}

struct prediction
head_named(const struct kv_cache *s, uint32_t set, const struct prediction *g)
{
    const token_t *tokens = s->weights->desc.drafter != NULL ? s->weights->desc.drafter->tokens : NULL;
    struct prediction named = *g;
    for (int i = 0; i < PREDICTION_RANKS; i++)
        if (g->top[i] != TOKEN_NONE)
            named.top[i] = set > 0          ? draft_token(s, set, (size_t)g->top[i])
                           : tokens != NULL ? tokens[g->top[i]]
                                            : g->top[i];
    named.token = named.top[0];
    return named;
}

void
head_broken(struct kv_cache *s, uint32_t layer)
{
    s->failed = true;
    request_not_numbers(layer, &s->err);
}

/* ---- probes ---- */

const float *
head_kept(const struct kv_cache *s, uint32_t ring)
{
    const struct head_table *t = &s->head;
    for (uint32_t i = 0; i < t->n_kept; i++)
        if (t->kept[i] == ring)
            return t->kept_logits + i * head_stride(s);
    return NULL;
}

/* Keeps the logits of the last layer in rows `first`..n-1 of a block drafter's table. */
static void
keep_logits(struct kv_cache *s, size_t first)
{
    struct head_table *t = &s->head;
    const struct drafter_desc *d = s->weights->desc.drafter;
    for (size_t i = first; d != NULL && d->block > 0 && i < t->n; i++) {
        const struct head_row *row = &t->rows[i];
        if (row->kept || row->layer != s->weights->desc.n_layers || row->set > 0 || t->n_kept == s->desc.max_rows ||
            head_kept(s, row->ring) != NULL)
            continue;
        memcpy(t->kept_logits + t->n_kept * head_stride(s), t->logits + i * head_stride(s),
               s->weights->head.rows * sizeof *t->logits);
        t->kept[t->n_kept++] = row->ring;
    }
}

/* Runs the table and writes its predictions to `out`. Row `keep`, if >= 0, and its logits stay as the first row of the
 * table. */
static void
run_table(struct kv_cache *s, struct prediction *out, int32_t keep)
{
    struct head_table *t = &s->head;
    if (t->n > t->ready && !cpu_kv_cache_stopped(s)) {
        const size_t first = t->ready;
        head_run(s, true);
        keep_logits(s, first);
        for (size_t i = 0; i < t->n; i++)
            if (t->rows[i].request >= 0)
                out[t->rows[i].request] = head_named(s, t->rows[i].set, &t->predictions[i]);
    }
    if (keep > 0) {
        t->rows[0] = t->rows[keep];
        memcpy(t->logits, t->logits + (size_t)keep * head_stride(s), s->weights->head.rows * sizeof *t->logits);
    }
    if (keep >= 0)
        t->rows[0].request = t->rows[0].final = -1; /* its prediction is already written */
    t->n = t->ready = keep >= 0;
}

/* Adds all probes of the ring entry of probe i. The final layer's row comes first and is used by all of them. */
static void
add_family(struct kv_cache *s, const struct probe *probes, size_t n, size_t i, struct prediction *out)
{
    struct head_table *t = &s->head;
    const uint32_t ring = probes[i].ring, depth = s->weights->desc.n_layers;
    bool versus = false;
    size_t own = n; /* index of a probe of the final layer */
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
                                            .set = probes[j].set,
                                            .head = probes[j].head,
                                            .temperature = probes[j].temperature,
                                            .final = probes[j].versus_final ? final : -1,
                                            .request = (int32_t)j,
                                            .kept = probes[j].kept,
                                            .before = probes[j].before};
    }
}

/* Carries out the probes that need no comparison with the last layer: the table has room for many of them. */
static void
prediction_alone(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    struct head_table *t = &s->head;
    for (size_t first = 0; first < n && !cpu_kv_cache_stopped(s); first += t->n) {
        t->n = n - first < HEAD_ROWS ? n - first : HEAD_ROWS;
        for (size_t i = 0; i < t->n; i++)
            t->rows[i] = (struct head_row){.ring = probes[first + i].ring,
                                           .layer = probes[first + i].layer,
                                           .set = probes[first + i].set,
                                           .head = probes[first + i].head,
                                           .temperature = probes[first + i].temperature,
                                           .final = -1,
                                           .request = -1};
        stream_run(s);
        for (size_t i = 0; i < t->n; i++)
            out[first + i] = head_named(s, probes[first + i].set, &t->predictions[i]);
    }
}

void
head_predict(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    const struct drafter_desc *drafter = s->weights->desc.drafter;
    bool stores = drafter != NULL && drafter->block > 0; /* logits are stored for later use */
    s->head.n = s->head.ready = 0;
    s->head.n_kept = probes[0].kept ? s->head.n_kept : 0;
    for (size_t i = 0; i < n && !stores; i++)
        stores = probes[i].versus_final;
    if (!stores && head_streams(s)) { /* then each worker has a whole piece */
        prediction_alone(s, probes, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool first = true; /* first probe of its ring entry */
        for (size_t j = 0; j < i && first; j++)
            first = probes[j].ring != probes[i].ring;
        if (first)
            add_family(s, probes, n, i, out);
    }
    run_table(s, out, -1);
}

/* ---- logits ---- */

/* Returns the trained head of row i of the rows to be computed, or NULL for the logit lens. */
static const struct trained_head *
trained(const struct kv_cache *s, size_t i)
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
hidden_row(const struct kv_cache *s, const void *unused, size_t i)
{
    (void)unused;
    const struct head_row *row = &s->head.rows[s->head.ready + i];
    return cpu_kv_cache_hidden(s, row->ring, row->layer);
}

/* Returns the input of the final norm. */
static const float *
seen_row(const struct kv_cache *s, const void *unused, size_t i)
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
    multiply(w->kv_cache->isa, m, &one, 1, part.first, part.last, y, m->rows);
}

static void
shift_outputs(const struct worker *w, const void *n, struct range part)
{
    const struct acts *x = worker_acts(w);
    struct kv_cache *s = w->kv_cache;
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
shift(struct kv_cache *s, size_t n)
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

/* Applies bias, scale and cap if the model has them; z (part) starts at the first output of `part`, of a set. */
static void
scale_logits(const struct kv_cache *s, uint32_t set, struct range part, float *z)
{
    const struct weights *w = s->weights;
    const struct model_form *f = &w->desc.form;
    const float scale = form_factor(f->logit_scale);
    const size_t n = part.last - part.first;
    for (size_t o = 0; w->head_bias != NULL && o < n; o++)
        z[o] += w->head_bias[set > 0 ? (size_t)draft_token(s, set, part.first + o) : part.first + o];
    for (size_t o = 0; (scale < 1 || scale > 1) && o < n; o++)
        z[o] *= scale;
    form_cap(f->logit_cap, z, n);
}

/* Applies scale_logits() to the outputs that the row has in `part`. */
static void
scale_row(const struct kv_cache *s, uint32_t set, struct range part, float *z)
{
    const struct outputs o = draft_outputs(s, set);
    const struct range runs[2] = {range_overlap(part, 0, o.base),
                                  range_overlap(part, o.recent, o.end > o.recent ? o.end - o.recent : 0)};
    for (size_t i = 0, at = 0; i < 2; i++, at = o.recent)
        if (runs[i].first < runs[i].last)
            scale_logits(s, set, (struct range){at + runs[i].first, at + runs[i].last},
                         z + (at + runs[i].first - part.first));
}

/* Computes logits `part` (which begins at a group) of n rows from `row` on, of the rows to be computed, as far as their
 * sets have these outputs; z starts at their first logit. */
static void
logits_of(const struct worker *w, const struct acts *x, size_t row, size_t n, struct range part, float *z, size_t ld)
{
    const struct kv_cache *s = w->kv_cache;
    const struct head_row *rows = s->head.rows + s->head.ready;
    const struct range whole = range_overlap(part, 0, s->weights->head.rows);
    for (size_t i = row, last; i < row + n; i = last) { /* multiply consecutive rows with the same matrix together */
        const struct trained_head *t = trained(s, i);
        const struct matrix *m = is_full(t) ? &t->full : &s->weights->head;
        struct acts some = *x;
        some.x += i * x->cols;
        some.q += i * x->stride;
        last = i + 1;
        while (!is_full(t) && last < row + n && rows[last].set == rows[i].set && !is_full(trained(s, last)))
            last++;
        float *to = z + (i - row) * ld;
        if (rows[i].set > 0) {
            draft_multiply(w, rows[i].set, is_full(t) ? m : NULL, &some, last - i, part, to, ld);
        } else if (whole.first < whole.last) {
            const struct matrix outputs = matrix_part(m, whole);
            worker_multiply(w, is_full(t) ? USE_MEMORY : s->head_use, &outputs, &some, last - i,
                            (struct range){0, whole.last - whole.first}, to, ld);
        }
    }
    for (size_t i = 0; i < n; i++)
        scale_row(s, rows[row + i].set, part, z + i * ld);
}

/* Returns the number of outputs in the longest row of the table, and sets the number of its pieces. */
static size_t
longest_row(struct kv_cache *s)
{
    struct head_table *t = &s->head;
    size_t end = 0;
    for (size_t i = 0; i < t->n; i++) {
        const size_t own = draft_outputs(s, t->rows[i].set).end;
        end = own > end ? own : end;
    }
    t->used = (end + PIECE - 1) / PIECE;
    return end;
}

/* Prepares the head's weights and the activations of n rows. */
static void
apply_heads(struct kv_cache *s, size_t n)
{
    const struct weights *m = s->weights;
    for (size_t i = 0; i < n; i++)
        if (s->head.rows[s->head.ready + i].set == 0) {
            worker_unit(s, 0, &s->head_use);
            break;
        }
    shift(s, n);
    worker_prepare(s, n, m->head.cols, m->head.q != NULL, m->final_norm, seen_row, NULL, NULL);
}

/* The logits of rows ready..n-1, which are kept, increased by the Markov head's outputs `part`. */
static void
biased_logits(const struct worker *w, const void *biased, struct range part)
{
    const struct kv_cache *s = w->kv_cache;
    const struct head_table *t = &s->head;
    const size_t n = t->n - t->ready, stride = head_stride(s);
    float *z = t->logits + t->ready * stride;
    if (*(const bool *)biased)
        worker_multiply(w, s->head_use, &s->weights->drafter.markov_w2, worker_acts(w), n, part, z, stride);
    for (size_t i = 0; i < n; i++) {
        const struct head_row *row = &t->rows[t->ready + i];
        const float *kept = head_kept(s, row->ring);
        for (size_t o = part.first; o < part.last; o++)
            z[i * stride + o] = row->before == TOKEN_NONE ? kept[o] : kept[o] + z[i * stride + o];
    }
}

static void
kept_logits(struct kv_cache *s, size_t n)
{
    const struct matrix *m = &s->weights->drafter.markov_w2;
    const struct head_row *rows = s->head.rows + s->head.ready;
    bool biased = false;
    for (size_t i = 0; i < n; i++) {
        biased = biased || rows[i].before != TOKEN_NONE;
        if (rows[i].before != TOKEN_NONE)
            tensor_row(&s->weights->desc.drafter->markov_w1, (size_t)rows[i].before, s->pairs + i * m->cols);
        else
            memset(s->pairs + i * m->cols, 0, m->cols * sizeof *s->pairs);
    }
    if (biased) {
        worker_unit(s, 0, &s->head_use);
        worker_prepare(s, n, m->cols, m->q != NULL, (struct norm){0}, NULL, NULL, s->pairs);
    }
    worker_for(s, work_of_outputs(s->weights->head.rows, n, 1 + m->cols), biased_logits, &biased);
}

static void
logits_in(const struct worker *w, const void *n, struct range part)
{
    const struct head_table *t = &w->kv_cache->head;
    const size_t stride = head_stride(w->kv_cache);
    logits_of(w, worker_acts(w), 0, *(const size_t *)n, part, t->logits + t->ready * stride + part.first, stride);
}

void
head_logits(struct kv_cache *s)
{
    const size_t n = s->head.n - s->head.ready, outputs = longest_row(s);
    if (n == 0)
        return;
    if (s->head.rows[s->head.ready].kept) {
        kept_logits(s, n);
        return;
    }
    apply_heads(s, n);
    worker_for(s, work_of_outputs(outputs, n, s->weights->head.cols), logits_in, &n);
}

/* ---- pieces of a row ---- */

/* Inserts into the list of the best PREDICTION_RANKS tokens, best first, the earlier first among equals. */
static void
insert(token_t *top, float *top_z, token_t token, float z)
{
    size_t at = PREDICTION_RANKS - 1;
    for (; at > 0 && (top[at - 1] == TOKEN_NONE || z > top_z[at - 1]); at--) {
        top[at] = top[at - 1];
        top_z[at] = top_z[at - 1];
    }
    top[at] = token;
    top_z[at] = z;
}

/* Returns the outputs of a set in a piece. */
static struct range
outputs_in(const struct kv_cache *s, uint32_t set, size_t piece)
{
    const struct outputs o = draft_outputs(s, set);
    const size_t first = piece * PIECE, end = first < o.recent ? o.base : o.end;
    const size_t last = first + PIECE < end ? first + PIECE : end;
    return (struct range){first, last > first ? last : first};
}

/* Computes the summary of a piece; z: the piece's logits. Logits that are at most *floor are not listed; the list's
 * last logit then becomes the floor of the row's next pieces. */
static void
summarise(const struct kv_cache *s, size_t row, size_t piece, const float *z, float *floor)
{
    const struct range part = outputs_in(s, s->head.rows[row].set, piece);
    const size_t n = part.last - part.first;
    struct summary *sum = &s->head.pieces[row * s->head.n_pieces + piece];
    if (n == 0)
        return;
    sum->piece = s->isa->piece(z, n, s->head.rows[row].temperature);
    for (size_t i = 0; i < PREDICTION_RANKS; i++) {
        sum->top[i] = TOKEN_NONE;
        sum->top_z[i] = -INFINITY;
    }
    for (size_t i = 0; (i = s->isa->next_above(z, i, n, *floor)) < n; i++) {
        insert(sum->top, sum->top_z, (token_t)(part.first + i), z[i]);
        *floor = fmaxf(*floor, sum->top_z[PREDICTION_RANKS - 1]);
    }
}

static void
summarise_pieces(const struct worker *w, const void *unused, struct range part)
{
    const struct head_table *t = &w->kv_cache->head;
    float floor = -INFINITY;
    (void)unused;
    for (size_t u = part.first; u < part.last; u++) {
        const size_t row = u / t->used, piece = u % t->used;
        floor = piece > 0 ? floor : -INFINITY;
        summarise(w->kv_cache, row, piece, t->logits + row * head_stride(w->kv_cache) + piece * PIECE, &floor);
    }
}

void
head_pieces(struct kv_cache *s)
{
    worker_for(s, work_of_pieces(s, 8), summarise_pieces, NULL);
}

static void
stream_pieces(const struct worker *w, const void *unused, struct range part)
{
    (void)unused;
    const struct kv_cache *s = w->kv_cache;
    const struct head_table *t = &s->head;
    float *z = t->logits + part.first * PIECE * HEAD_TILE; /* buffer of these pieces */
    float floor[HEAD_ROWS];
    for (size_t i = 0; i < t->n; i++)
        floor[i] = -INFINITY;
    for (size_t piece = part.first; piece < part.last; piece++) {
        const struct range outputs = {piece * PIECE, (piece + 1) * PIECE};
        for (size_t row = 0; row < t->n; row += HEAD_TILE) {
            const size_t n = t->n - row < HEAD_TILE ? t->n - row : HEAD_TILE;
            logits_of(w, worker_acts(w), row, n, outputs, z, PIECE);
            for (size_t i = 0; i < n; i++)
                summarise(s, row + i, piece, z + i * PIECE, &floor[row + i]);
        }
    }
}

void
head_stream(struct kv_cache *s)
{
    (void)longest_row(s);
    apply_heads(s, s->head.n);
    worker_for(s, (struct work){s->head.used, 1, s->head.n * PIECE * s->weights->head.cols}, stream_pieces, NULL);
}

void
head_combine(const struct kv_cache *s, size_t row, struct prediction *g, double *max, double *sum)
{
    const struct head_table *t = &s->head;
    const struct summary *pieces = t->pieces + row * t->n_pieces;
    *g = (struct prediction){.kl_final = NAN, .rank_final = -1};
    float top_z[PREDICTION_RANKS];
    for (size_t i = 0; i < PREDICTION_RANKS; i++) {
        g->top[i] = TOKEN_NONE;
        top_z[i] = -INFINITY;
    }
    const size_t n = pieces_of(s, row);
    *max = -INFINITY;
    for (size_t c = 0; c < n; c++)
        *max = pieces[c].piece.max > *max ? pieces[c].piece.max : *max;
    double weighted = 0, annealed = 0;
    *sum = 0;
    for (size_t c = 0; c < n; c++) {
        const struct piece *p = &pieces[c].piece;
        const double below = p->max - *max, scale = exp(below);
        *sum += scale * p->sum;
        weighted += scale * (p->weighted + below * p->sum);
        annealed += exp(below / t->rows[row].temperature) * p->annealed;
        for (size_t i = 0; i < PREDICTION_RANKS && pieces[c].top[i] != TOKEN_NONE; i++)
            if (g->top[PREDICTION_RANKS - 1] == TOKEN_NONE || pieces[c].top_z[i] > top_z[PREDICTION_RANKS - 1])
                insert(g->top, top_z, pieces[c].top[i], pieces[c].top_z[i]);
    }
    g->token = g->top[0];
    g->confidence = (float)(1 / *sum);
    g->annealed = (float)(1 / annealed);
    g->entropy = (float)fmax(0, log(*sum) - weighted / *sum);
    for (size_t i = 0; i < PREDICTION_TOP; i++)
        g->top_p[i] = g->top[i] == TOKEN_NONE ? 0 : (float)(exp(top_z[i] - *max) / *sum);
}
