#include "kernels/cpu/settle.h"

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/dequantise.h"
#include "kernels/cpu/interleave.h"
#include "kernels/team.h"
#include "kernels/tensor.h"

#define ROWS_HELD       4                   /* of the embedding: each may have mapped a large folio */
#define EMBEDDING_LARGE ((size_t)8 << 20)   /* bytes; what is smaller may stay */
#define GROUPS_HELD     32                  /* that are in memory twice while they move */
#define FAULT_WINDOW    ((size_t)256 << 10) /* what a read may map beside its page: Linux's 64 KiB, or a large folio */

/* ---- a unit's matrices ---- */

/* Matrix i of a unit, whether it moves or not; NULL behind the last one. */
static const struct matrix *
matrix_at(const struct weights *w, uint32_t unit, size_t i)
{
#define MATRIX_FIELD(NAME, field, ...) &layer->field,
#define EXPERT_FIELD(NAME, field, ...) &expert->field,
#define NO_FIELD(...)
    const struct layer *layer = &w->layers[unit];
    const struct matrix *of_layer[] = {FOR_LAYER_TENSORS(MATRIX_FIELD, NO_FIELD, NO_FIELD)};
    const size_t n = sizeof of_layer / sizeof of_layer[0];
    if (unit == 0)
        return i == 0 ? &w->head : NULL;
    if (i < n)
        return of_layer[i];
    if (layer->experts == NULL || (i - n) / EXPERT_MATRICES >= experts_listed(&w->desc))
        return NULL;
    const struct expert *expert = &layer->experts[(i - n) / EXPERT_MATRICES];
    const struct matrix *of_expert[] = {FOR_EXPERT_TENSORS(EXPERT_FIELD, NO_FIELD)};
    return of_expert[(i - n) % EXPERT_MATRICES];
}

/* The next one that moves, *i after it; NULL: there is none. */
static const struct matrix *
next_moving(const struct weights *w, uint32_t unit, size_t *i)
{
    const struct matrix *m;
    while ((m = matrix_at(w, unit, (*i)++)) != NULL)
        if (m->q != NULL && m->data != NULL)
            return m;
    return NULL;
}

static size_t
groups_of(const struct matrix *m)
{
    return ((size_t)m->rows + Q8_GROUP - 1) / Q8_GROUP;
}

static size_t
group_quant_bytes(const struct matrix *m)
{
    return m->cols / Q8_BLOCK * quant_bytes(m->type);
}

static size_t
group_scale_bytes(const struct matrix *m)
{
    return m->cols / tensor_block_values(m->type) * scale_bytes(m->type);
}

/* Rows of the group. */
static size_t
interleave_group(const struct cpu_isa *isa, const struct matrix *m, size_t group, unsigned char *q,
                 unsigned char *scale)
{
    const size_t row = tensor_row_bytes(m->type, m->cols), first = group * Q8_GROUP, left = m->rows - first;
    const size_t n = left < Q8_GROUP ? left : Q8_GROUP;
    interleave(m->type, (const unsigned char *)m->data + first * row, n, m->cols, isa->q8_flip, q, scale);
    return n;
}

/* The pages of the file that hold bytes from `begin` on; `from` is where what goes may begin. A page that is read maps
 * those around it, too: so some before them have come again. What goes of others is read again. */
static void
give_back(const void *from, size_t begin, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)from;
    const uintptr_t first = (at + (begin > FAULT_WINDOW ? begin - FAULT_WINDOW : 0)) / page * page;
    madvise((void *)first, at + begin + bytes - first, MADV_DONTNEED); /* a wish */
}

static void
give_groups_back(const struct matrix *m, struct range groups)
{
    const size_t group = Q8_GROUP * tensor_row_bytes(m->type, m->cols), all = m->rows * group / Q8_GROUP;
    const size_t begin = groups.first * group, end = groups.last * group < all ? groups.last * group : all;
    if (m->mapped && begin < end)
        give_back(m->data, begin, end - begin);
}

void
settle_embedded(struct weights *w)
{
    const struct tensor *t = &w->desc.embedding;
    const size_t bytes = t->rows * tensor_row_bytes(t->type, t->cols);
    const bool read_by_head = w->head.q == NULL && w->head.data == t->data; /* over and over */
    if (t->mapped && !read_by_head && bytes >= EMBEDDING_LARGE &&
        atomic_fetch_add_explicit(&w->embedded, 1, memory_order_relaxed) % ROWS_HELD == ROWS_HELD - 1)
        give_back(t->data, 0, bytes);
}

/* ---- settling ---- */

void
settle_open(struct weights *w)
{
    unsigned left = 0;
    for (uint32_t unit = 0; unit <= w->desc.n_layers; unit++) {
        size_t i = 0;
        const bool moves = next_moving(w, unit, &i) != NULL;
        atomic_init(&w->units[unit].state, moves ? UNIT_IN_FILE : UNIT_SETTLED);
        left += moves;
    }
    atomic_init(&w->unsettled, left);
}

static bool
turn(struct weights *w, uint32_t unit, enum settling from, enum settling to)
{
    return atomic_compare_exchange_strong_explicit(&w->units[unit].state, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

enum use
settle_use(struct weights *w, uint32_t unit)
{
    if (atomic_load_explicit(&w->units[unit].state, memory_order_acquire) == UNIT_SETTLED)
        return USE_MEMORY;
    if (turn(w, unit, UNIT_USED, UNIT_MOVING))
        return USE_SETTLE;
    (void)turn(w, unit, UNIT_IN_FILE, UNIT_USED);
    return USE_FILE;
}

struct settling_unit {
    const struct weights *weights;
    uint32_t unit;
    size_t parts;
};

/* A part of each of the unit's matrices. */
static void
settle_part(void *arg, uint32_t rank, size_t chunk)
{
    const struct settling_unit *s = arg;
    const struct weights *w = s->weights;
    const struct matrix *m;
    (void)rank;
    for (size_t i = 0; (m = next_moving(w, s->unit, &i)) != NULL;) {
        const struct range part = team_share(groups_of(m), chunk, s->parts);
        for (struct range some = part; some.first < part.last; some.first = some.last) {
            some.last = some.first + GROUPS_HELD < part.last ? some.first + GROUPS_HELD : part.last;
            for (size_t g = some.first; g < some.last; g++)
                interleave_group(w->backend->isa, m, g, m->q + g * group_quant_bytes(m),
                                 m->scale + g * group_scale_bytes(m));
            give_groups_back(m, some);
        }
    }
}

void
settle_unit(struct weights *w, uint32_t unit)
{
    struct settling_unit s = {w, unit, w->backend->threads};
    team_for(w->backend->team, s.parts, settle_part, &s);
    const struct matrix *m;
    for (size_t i = 0; (m = next_moving(w, unit, &i)) != NULL;) /* what came again between the parts */
        give_groups_back(m, (struct range){0, groups_of(m)});
    atomic_store_explicit(&w->units[unit].state, UNIT_SETTLED, memory_order_release);
    atomic_fetch_sub_explicit(&w->unsettled, 1, memory_order_acq_rel);
}

void
cpu_weights_settle(struct weights *w, const atomic_bool *cancel)
{
    for (uint32_t unit = 0; unit <= w->desc.n_layers && !settled(w); unit++) {
        if (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed))
            return;
        if (turn(w, unit, UNIT_IN_FILE, UNIT_MOVING) || turn(w, unit, UNIT_USED, UNIT_MOVING))
            settle_unit(w, unit);
    }
}

/* ---- from the file ---- */

void
settle_group_bytes(const struct weights *w, size_t *q, size_t *scale)
{
    const struct matrix *m;
    *q = *scale = 0;
    for (uint32_t unit = 0; unit <= w->desc.n_layers; unit++)
        for (size_t i = 0; (m = next_moving(w, unit, &i)) != NULL;) {
            *q = group_quant_bytes(m) > *q ? group_quant_bytes(m) : *q;
            *scale = group_scale_bytes(m) > *scale ? group_scale_bytes(m) : *scale;
        }
}

struct matrix
matrix_part(const struct matrix *m, struct range part)
{
    struct matrix some = *m;
    some.rows = (uint32_t)(part.last - part.first);
    if (m->data != NULL)
        some.data = (const char *)m->data + part.first * tensor_row_bytes(m->type, m->cols);
    if (m->q != NULL) {
        some.q += part.first / Q8_GROUP * group_quant_bytes(m);
        some.scale += part.first / Q8_GROUP * group_scale_bytes(m);
    }
    return some;
}

void
multiply_from_file(const struct cpu_isa *isa, const struct matrix *m, const struct acts *x, size_t n, size_t first,
                   size_t last, float *y, size_t ld, struct group_buffer buffer)
{
    for (size_t o = first; o < last;) {
        const size_t group = o / Q8_GROUP, begin = group * Q8_GROUP;
        const size_t rows = interleave_group(isa, m, group, buffer.q, buffer.scale);
        const size_t end = begin + rows < last ? begin + rows : last;
        const struct matrix sixteen = {
            .type = m->type, .rows = (uint32_t)rows, .cols = m->cols, .q = buffer.q, .scale = buffer.scale};
        multiply(isa, &sixteen, x, n, o - begin, end - begin, y + begin, ld);
        o = end;
    }
}
