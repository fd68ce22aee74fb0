#include "kernels/cpu/worker.h"

#include "kernels/cpu/dequantise.h"
#include "kernels/cpu/forms.h"

struct worker
worker_here(struct store *s)
{
    uint32_t rank = team_rank();
    return (struct worker){.store = s, .own = &s->workers[rank], .rank = rank, .size = team_size()};
}

void
worker_begin(struct store *s)
{
    s->unsettled = !settled(s->weights);
    s->layer_use = s->head_use = USE_MEMORY;
}

void
worker_unit(struct worker *w, uint32_t unit, enum use *use)
{
    struct weights *weights = w->store->weights;
    if (!w->store->unsettled)
        return;
    if (w->rank == 0)
        *use = settle_use(weights, unit);
    worker_barrier(w);
    if (*use != USE_SETTLE)
        return;
    settle_share(weights, unit, w->rank, w->size);
    worker_barrier(w);
    if (w->rank == 0)
        settle_done(weights, unit);
}

void
worker_multiply(const struct worker *w, enum use use, const struct matrix *m, const struct acts *x, size_t n,
                struct range part, float *y, size_t ld)
{
    const struct cpu_isa *isa = w->store->isa;
    if (use == USE_FILE && m->q != NULL && m->data != NULL)
        multiply_from_file(isa, m, x, n, part.first, part.last, y, ld, w->own->group);
    else
        multiply(isa, m, x, n, part.first, part.last, y, ld);
}

struct range
worker_outputs(const struct worker *w, size_t n)
{
    const struct range part = worker_share(w, (n + Q8_GROUP - 1) / Q8_GROUP);
    return (struct range){part.first * Q8_GROUP, part.last * Q8_GROUP < n ? part.last * Q8_GROUP : n};
}

struct acts
worker_activations(struct worker *w, size_t n, uint32_t cols, bool in_int8, const struct norm *norm, worker_row_fn row,
                   const void *user, float *x)
{
    struct store *s = w->store;
    const bool mine = n <= PRIVATE_ROWS;
    struct acts a = mine ? w->own->acts : s->acts;
    if (row == NULL)
        a.x = x;
    a.cols = cols;
    a.stride = acts_stride(cols);
    const struct range part = mine ? (struct range){0, n} : worker_share(w, n);
    for (size_t r = part.first; r < part.last; r++) {
        if (norm != NULL && norm->weight != NULL)
            form_norm(s->weights, norm, row(w, user, r), cols, a.x + r * cols);
        else if (row != NULL)
            memcpy(a.x + r * cols, row(w, user, r), cols * sizeof *a.x);
        if (in_int8)
            s->isa->quantise(a.x + r * cols, cols, a.q + r * a.stride);
    }
    if (!mine)
        worker_barrier(w);
    return a;
}
