#include "engine/scope/sequence_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- ring ---- */

#define FIRST_ROWS 64

/* Extends the ring so that row `at` exists: doubles it, up to `most`. False without memory. */
static bool
grow(struct ring *r, uint32_t at)
{
    uint32_t n = r->n > FIRST_ROWS ? r->n : FIRST_ROWS;
    while (n <= at)
        n *= 2;
    n = n < r->most ? n : r->most;
    if (n <= r->n)
        return true;
    uint32_t *held = realloc(r->held, n * sizeof *held);
    r->held = held != NULL ? held : r->held;
    unsigned char *rows = held != NULL ? realloc(r->rows, n * r->bytes) : NULL;
    r->rows = rows != NULL ? rows : r->rows;
    if (rows == NULL)
        return false;
    memset(held + r->n, 0, (n - r->n) * sizeof *held);
    r->n = n;
    return true;
}

void *
ring_keep(struct ring *r, uint32_t most, size_t bytes, uint32_t number)
{
    if (r->most == 0) {
        r->most = most;
        r->bytes = bytes;
    }
    const uint32_t at = number % r->most;
    if (!grow(r, at))
        return NULL;
    unsigned char *row = r->rows + at * r->bytes;
    if (r->held[at] != number + 1)
        memset(row, 0, r->bytes);
    r->held[at] = number + 1;
    return row;
}

void *
ring_at(const struct ring *r, uint32_t number)
{
    const uint32_t at = r->most > 0 ? number % r->most : 0;
    return at < r->n && r->held[at] == number + 1 ? r->rows + at * r->bytes : NULL;
}

void
ring_forget(struct ring *r, uint32_t number)
{
    if (ring_at(r, number) != NULL)
        r->held[number % r->most] = 0;
}

/* Keeps the memory. */
static void
ring_empty(struct ring *r)
{
    if (r->n > 0)
        memset(r->held, 0, r->n * sizeof *r->held);
}

size_t
ring_bytes(const struct ring *r)
{
    return r->n * (sizeof *r->held + r->bytes);
}

void
ring_close(struct ring *r)
{
    free(r->held);
    free(r->rows);
    *r = (struct ring){0};
}

/* ---- glimpses ---- */

#define STEPS 126.0f

uint8_t
glimpse_make(float confidence, bool spurious)
{
    const float held = isnan(confidence) ? 0 : fminf(fmaxf(confidence, 0), 1);
    return (uint8_t)(1 + lrintf(held * STEPS)) | (uint8_t)(spurious ? GLIMPSE_SPURIOUS : 0);
}

float
glimpse_confidence(uint8_t g)
{
    const uint8_t step = g & (uint8_t)~GLIMPSE_SPURIOUS;
    return step == 0 ? NAN : (float)(step - 1) / STEPS;
}

/* ---- cells of an auxiliary model ---- */

struct scope_cell *
aux_cells_at(struct aux_cells *h, uint32_t layers, uint32_t max_columns, uint32_t pos)
{
    const size_t rows = (size_t)layers + 1;
    if (h->layers == 0) {
        if ((h->probed = calloc(3 * rows, sizeof *h->probed)) == NULL)
            return NULL;
        h->compared = h->probed + rows;
        h->agreed = h->compared + rows;
        h->layers = layers;
    }
    return ring_keep(&h->cells, max_columns, rows * sizeof(struct scope_cell), pos);
}

void
aux_cells_begin(struct aux_cells *h)
{
    ring_empty(&h->cells);
    if (h->layers > 0)
        memset(h->probed, 0, 3 * ((size_t)h->layers + 1) * sizeof *h->probed);
}

void
aux_cells_close(struct aux_cells *h)
{
    ring_close(&h->cells);
    free(h->probed);
    *h = (struct aux_cells){0};
}

void
aux_cells_forget_predictions(struct aux_cells *h, uint32_t pos)
{
    struct scope_cell *cells = ring_at(&h->cells, pos);
    for (uint32_t l = 1; cells != NULL && l <= h->layers; l++)
        if (cells[l].probed_by == PROBED_POLICY)
            cells[l].known = false;
}

/* ---- experts ---- */

static bool
open_experts(struct expert_cells *x, const struct run_info *run)
{
    const size_t rows = (size_t)run->layers + 1;
    if ((x->counted = calloc(rows * (1 + run->experts), sizeof *x->counted)) == NULL)
        return false;
    x->chosen = x->counted + rows;
    x->layers = run->layers;
    x->experts = run->experts;
    x->used = run->experts_used > 0 && run->experts_used < EXPERTS_REPORTED ? run->experts_used : EXPERTS_REPORTED;
    return true;
}

void
expert_cells_close(struct expert_cells *x)
{
    ring_close(&x->rows);
    free(x->counted);
    *x = (struct expert_cells){0};
}

void
expert_cells_begin(struct expert_cells *x)
{
    ring_empty(&x->rows);
    if (x->used > 0)
        memset(x->counted, 0, ((size_t)x->layers + 1) * (1 + x->experts) * sizeof *x->counted);
}

/* The parts of a row of the ring. */
static struct parts {
    float *weight;
    uint16_t *expert;
    uint8_t *n;
} parts_of(const struct expert_cells *x, void *row)
{
    const size_t all = ((size_t)x->layers + 1) * x->used;
    struct parts p = {.weight = row};
    p.expert = (uint16_t *)(p.weight + all);
    p.n = (uint8_t *)(p.expert + all);
    return p;
}

bool
expert_cells_take(struct expert_cells *x, const struct run_info *run, uint32_t max_columns,
                  const struct experts_event *e)
{
    if (x->used == 0 && !open_experts(x, run))
        return false;
    const size_t each = x->used * (sizeof(float) + sizeof(uint16_t)) + 1, bytes = ((size_t)x->layers + 1) * each;
    void *row = ring_keep(&x->rows, max_columns, (bytes + 3) / 4 * 4, e->pos); /* floats are aligned in every row */
    if (row == NULL)
        return false;
    const struct parts p = parts_of(x, row);
    const uint32_t l = (uint32_t)e->layer;
    const bool again = p.n[l] > 0;
    p.n[l] = (uint8_t)(e->n < x->used ? e->n : x->used);
    memcpy(p.expert + l * x->used, e->expert, p.n[l] * sizeof *p.expert);
    memcpy(p.weight + l * x->used, e->weight, p.n[l] * sizeof *p.weight);
    x->counted[l] += !again;
    for (uint32_t i = 0; i < e->n && !again; i++)
        x->chosen[l * (size_t)x->experts + e->expert[i]]++;
    return true;
}

struct scope_experts
expert_cells(const struct expert_cells *x, uint32_t pos, uint32_t layer)
{
    void *row = ring_at(&x->rows, pos);
    if (row == NULL || layer > x->layers)
        return (struct scope_experts){0};
    const struct parts p = parts_of(x, row);
    return (struct scope_experts){
        .n = p.n[layer], .expert = p.expert + layer * x->used, .weight = p.weight + layer * x->used};
}

/* ---- values by round ---- */

void
round_values_keep(struct ring *v, uint32_t max_rounds, uint32_t cells, const float *before, uint32_t round,
                  uint32_t index, float value)
{
    const uint32_t at = v->most > 0 ? round % v->most : 0;
    const bool newer = at < v->n && v->held[at] > round + 1, fresh = ring_at(v, round) == NULL;
    float *values = index < cells && !newer ? ring_keep(v, max_rounds, cells * sizeof *values, round) : NULL;
    if (values == NULL)
        return;
    for (uint32_t i = 0; fresh && i < cells; i++)
        values[i] = before != NULL ? before[i] : NAN;
    values[index] = value;
}

const float *
round_values_up_to(const struct ring *v, uint32_t round)
{
    const float *found = NULL;
    for (uint32_t n = 0; n < v->most && n <= round && found == NULL; n++)
        found = ring_at(v, round - n);
    return found;
}
