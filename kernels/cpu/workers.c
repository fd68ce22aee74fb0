#include "kernels/cpu/forward.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/weights.h"
#include "kernels/team_sizing.h"

#define CHUNKS 2     /* per thread in a step: a thread that does not run delays the step by one of them */
#define LEAST  16384 /* least number of multiplications in a chunk */

/* ---- steps ---- */

struct step {
    struct kv_cache *kv_cache;
    worker_fn fn;
    const void *arg;
    size_t units, grain, grains, chunks;
};

static void
carry_out(void *arg, uint32_t rank, size_t chunk)
{
    const struct step *s = arg;
    const struct worker w = {s->kv_cache, &s->kv_cache->workers[rank]};
    struct range part = range_times(team_share(s->grains, chunk, s->chunks), s->grain);
    part.last = part.last < s->units ? part.last : s->units;
    s->fn(&w, s->arg, part);
}

void
worker_for(struct kv_cache *kv_cache, struct work work, worker_fn fn, const void *arg)
{
    struct team *team = kv_cache->weights->backend->team;
    const size_t most = team_most(team), now = team_size(team),
                 size = now > 1 || most == 1 ? now : 2; /* the team may grow */
    const size_t each = 1 + work.units * work.cost / LEAST / size;
    struct step s = {kv_cache, fn, arg, work.units, work.grain, (work.units + work.grain - 1) / work.grain, 1};
    if (each > 1 && size > 1)
        s.chunks = size * (each < CHUNKS ? each : CHUNKS);
    if (s.chunks > s.grains)
        s.chunks = s.grains;
    team_for(team, s.chunks, carry_out, &s);
}

/* ---- weights ---- */

void
worker_begin(struct kv_cache *s)
{
    s->not_repacked = !repacked(s->weights);
    s->layer_use = s->head_use = USE_MEMORY;
}

void
worker_unit(struct kv_cache *s, uint32_t unit, enum use *use)
{
    if (!s->not_repacked)
        return;
    *use = repack_use(s->weights, unit);
    if (*use == USE_REPACK)
        repack_unit(s->weights, unit);
}

void
worker_multiply(const struct worker *w, enum use use, const struct matrix *m, const struct acts *x, size_t n,
                struct range part, float *y, size_t ld)
{
    const struct cpu_isa *isa = w->kv_cache->isa;
    if (use == USE_FILE && m->q != NULL && m->data != NULL)
        multiply_from_file(isa, m, x, n, part.first, part.last, y, ld, w->own->group);
    else
        multiply(isa, m, x, n, part.first, part.last, y, ld);
}

/* ---- activations ---- */

static void
prepare_rows(const struct kv_cache *s, const struct acts *to, struct range rows)
{
    const struct preparation *p = &s->preparation;
    for (size_t r = rows.first; r < rows.last; r++) {
        float *x = to->x + r * to->cols;
        if (p->norm.weight != NULL)
            form_norm(s->weights, &p->norm, p->row(s, p->user, r), to->cols, x);
        else if (p->row != NULL)
            memcpy(x, p->row(s, p->user, r), to->cols * sizeof *x);
        if (p->in_int8)
            s->isa->quantise(x, to->cols, to->q + r * to->stride);
    }
}

static void
prepare_share(const struct worker *w, const void *unused, struct range rows)
{
    (void)unused;
    prepare_rows(w->kv_cache, &w->kv_cache->preparation.to, rows);
}

void
worker_prepare(struct kv_cache *s, size_t n, uint32_t cols, bool in_int8, struct norm norm, acts_row_fn row,
               const void *user, float *x)
{
    s->preparation = (struct preparation){{row != NULL ? s->acts.x : x, s->acts.q, cols, acts_stride(cols)},
                                          n,
                                          in_int8,
                                          norm,
                                          row,
                                          user,
                                          s->preparation.number + 1};
    if (n > FEW_ROWS)
        worker_for(s, work_of_rows(n, 8 * cols), prepare_share, NULL);
}

const struct acts *
worker_acts(const struct worker *w)
{
    const struct preparation *p = &w->kv_cache->preparation;
    struct worker_buffers *own = w->own;
    if (p->n > FEW_ROWS)
        return &p->to;
    if (own->prepared != p->number) {
        own->prepared = p->number;
        own->now = (struct acts){p->row != NULL ? own->acts.x : p->to.x, own->acts.q, p->to.cols, p->to.stride};
        prepare_rows(w->kv_cache, &own->now, (struct range){0, p->n});
    }
    return &own->now;
}
