#include "engine/session/divergence.h"

#include <math.h>
#include <stdlib.h>

#include "engine/context/context.h"

const char *const divergence_names[DIVERGENCE_VERDICTS] = {"rounding", "undecided", "not explained by rounding"};

struct tail { /* the last rows of a text */
    struct context *ctx;
    slot_t slots[DIVERGENCE_ROWS];
    float *z; /* (vocab) */
};

static bool
tail_read(struct tail *t, const struct engine *e, const token_t *tokens, uint32_t n, uint32_t rows,
          const atomic_bool *cancel, struct err *err)
{
    const struct model_desc *d = &e->model->desc;
    const struct context_options limits = {.ctx = n,
                                           .spare = DIVERGENCE_ROWS,
                                           .ring = 2 * DIVERGENCE_ROWS,
                                           .max_rows = DIVERGENCE_ROWS,
                                           .seqs = 1,
                                           .cancel = cancel};
    t->z = malloc(d->vocab * sizeof *t->z);
    if (t->z == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    if (!context_open(&t->ctx, e->ops, e->backend, e->weights, d, &limits, err))
        return false;
    const seq_t seq = context_sequence(t->ctx);
    bool ok = n == rows || context_prefill(t->ctx, seq, tokens, n - rows, NULL, NULL);
    for (uint32_t i = 0; i < rows && ok; i++) {
        t->slots[i] = context_append(t->ctx, seq, i > 0 ? t->slots[i - 1] : SLOT_NONE, tokens[n - rows + i]);
        ok = t->slots[i] != SLOT_NONE;
    }
    ok = ok && context_advance(t->ctx, t->slots, rows, d->n_layers, NULL);
    if (!ok)
        *err = *context_error(t->ctx);
    return ok;
}

static void
tail_close(struct tail *t)
{
    context_close(t->ctx);
    free(t->z);
}

static bool
tail_logits(struct tail *t, uint32_t row, uint32_t layers, struct err *err)
{
    if (context_read_logits(t->ctx, t->slots[row], layers, t->z))
        return true;
    *err = *context_error(t->ctx);
    return false;
}

/* Finds the two best logits. */
static void
best_two(const float *z, uint32_t vocab, token_t two[2])
{
    two[0] = z[1] > z[0];
    two[1] = 1 - two[0];
    for (uint32_t v = 2; v < vocab; v++)
        if (z[v] > z[two[0]]) {
            two[1] = two[0];
            two[0] = (token_t)v;
        } else if (z[v] > z[two[1]]) {
            two[1] = (token_t)v;
        }
}

/* Returns by how much the margin of a's two best tokens differs in b. */
static double
change(const float *a, const float *b, uint32_t vocab)
{
    token_t two[2];
    best_two(a, vocab, two);
    return (double)(a[two[0]] - a[two[1]]) - (double)(b[two[0]] - b[two[1]]);
}

enum divergence_verdict
divergence_judge(float distance, float sigma)
{
    const float bound = 4 * sigma;
    return distance <= bound ? DIVERGENCE_ROUNDING : distance > 3 * bound ? DIVERGENCE_OTHER : DIVERGENCE_UNDECIDED;
}

static void
judge(struct divergence *d, const float *z, uint32_t vocab)
{
    token_t two[2];
    best_two(z, vocab, two);
    d->best = two[0];
    d->margin = z[d->here] - z[d->there];
    d->distance = z[d->best] - fminf(z[d->here], z[d->there]);
    d->bound = 4 * d->sigma;
    d->verdict = divergence_judge(d->distance, d->sigma);
}

bool
divergence_measure(struct divergence *d, const struct engine *exact, const struct engine *rounded,
                   const token_t *tokens, uint32_t n, const atomic_bool *cancel, struct err *err)
{
    const uint32_t vocab = exact->model->desc.vocab, layers = exact->model->desc.n_layers;
    struct tail a = {0}, b = {0};
    double squares = 0;
    d->rows = n < DIVERGENCE_ROWS ? n : DIVERGENCE_ROWS;
    bool ok = (n > 0 && (uint32_t)d->here < vocab && (uint32_t)d->there < vocab) ||
              err_set(err, ERR_WORK, "a token where the texts part is not one of the model's %u", (unsigned)vocab);
    ok = ok && tail_read(&a, exact, tokens, n, d->rows, cancel, err) &&
         tail_read(&b, rounded, tokens, n, d->rows, cancel, err);
    for (uint32_t i = 0; i < d->rows && ok; i++) {
        ok = tail_logits(&a, i, layers, err) && tail_logits(&b, i, layers, err);
        const double by = ok ? change(a.z, b.z, vocab) : 0;
        squares += by * by;
    }
    if (ok) { /* a.z is the last row's */
        d->sigma = (float)sqrt(squares / d->rows);
        judge(d, a.z, vocab);
    }
    tail_close(&a);
    tail_close(&b);
    return ok;
}
