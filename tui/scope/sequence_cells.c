#include "tui/scope/sequence_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Extends the ring of *n rows of `bytes` each so that row `at` exists: doubles it from `first` rows, up to `most`. `of` holds the number
 * of each row's owner; new ones are 0. False without memory. */
static bool
grow(uint32_t **of, void **rows, size_t bytes, uint32_t *n, uint32_t at, uint32_t first, uint32_t most)
{
    uint32_t room = *n > first ? *n : first;
    while (room <= at)
        room *= 2;
    room = room < most ? room : most;
    if (room <= *n)
        return true;
    uint32_t *more = realloc(*of, room * sizeof *more);
    *of = more != NULL ? more : *of;
    void *larger = more != NULL ? realloc(*rows, room * bytes) : NULL;
    *rows = larger != NULL ? larger : *rows;
    if (larger == NULL)
        return false;
    memset(*of + *n, 0, (room - *n) * sizeof **of);
    *n = room;
    return true;
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

uint8_t *
glimpses_keep(struct glimpses *g, uint32_t max_positions, uint32_t layers, uint32_t pos)
{
    if (g->max_positions == 0) {
        g->max_positions = max_positions;
        g->layers = layers;
    }
    const uint32_t at = pos % g->max_positions;
    void *bytes = g->byte;
    const bool ok = grow(&g->of, &bytes, g->layers, &g->n, at, 256, g->max_positions);
    g->byte = bytes;
    if (!ok)
        return NULL;
    g->of[at] = pos + 1;
    return g->byte + (size_t)at * g->layers;
}

const uint8_t *
glimpses_at(const struct glimpses *g, uint32_t pos)
{
    const uint32_t at = g->max_positions > 0 ? pos % g->max_positions : 0;
    return at < g->n && g->of[at] == pos + 1 ? g->byte + (size_t)at * g->layers : NULL;
}

size_t
glimpses_bytes(const struct glimpses *g)
{
    return g->n * (sizeof *g->of + g->layers);
}

void
glimpses_close(struct glimpses *g)
{
    free(g->of);
    free(g->byte);
    *g = (struct glimpses){0};
}

/* ---- cells of an auxiliary model ---- */

static bool
open_cells(struct aux_cells *h, uint32_t layers, uint32_t max_columns)
{
    const size_t rows = (size_t)layers + 1;
    h->cells_of = calloc(max_columns, sizeof *h->cells_of);
    h->cells = calloc(max_columns * rows, sizeof *h->cells);
    h->probed = calloc(rows, sizeof *h->probed);
    h->compared = calloc(rows, sizeof *h->compared);
    h->agreed = calloc(rows, sizeof *h->agreed);
    if (h->cells_of == NULL || h->cells == NULL || h->probed == NULL || h->compared == NULL || h->agreed == NULL) {
        aux_cells_close(h);
        return false;
    }
    h->layers = layers;
    h->max_columns = max_columns;
    return true;
}

void
aux_cells_close(struct aux_cells *h)
{
    free(h->cells_of);
    free(h->cells);
    free(h->probed);
    free(h->compared);
    free(h->agreed);
    *h = (struct aux_cells){0};
}

void
aux_cells_begin(struct aux_cells *h)
{
    if (h->layers == 0)
        return;
    const size_t rows = (size_t)h->layers + 1;
    memset(h->cells_of, 0, h->max_columns * sizeof *h->cells_of);
    memset(h->probed, 0, rows * sizeof *h->probed);
    memset(h->compared, 0, rows * sizeof *h->compared);
    memset(h->agreed, 0, rows * sizeof *h->agreed);
}

size_t
aux_cells_bytes(const struct aux_cells *h)
{
    return h->layers == 0 ? 0 : h->max_columns * ((size_t)h->layers + 1) * sizeof *h->cells;
}

static struct scope_cell *
cells_place(const struct aux_cells *h, uint32_t pos)
{
    return &h->cells[(pos % h->max_columns) * ((size_t)h->layers + 1)];
}

struct scope_cell *
aux_cells_at(struct aux_cells *h, uint32_t layers, uint32_t max_columns, uint32_t pos)
{
    if (h->layers == 0 && !open_cells(h, layers, max_columns))
        return NULL;
    struct scope_cell *cells = cells_place(h, pos);
    if (aux_cells(h, pos) == NULL)
        memset(cells, 0, ((size_t)h->layers + 1) * sizeof *cells);
    h->cells_of[pos % h->max_columns] = pos + 1;
    return cells;
}

const struct scope_cell *
aux_cells(const struct aux_cells *h, uint32_t pos)
{
    return h->layers > 0 && h->cells_of[pos % h->max_columns] == pos + 1 ? cells_place(h, pos) : NULL;
}

void
aux_cells_forget(struct aux_cells *h, uint32_t pos)
{
    if (aux_cells(h, pos) != NULL)
        h->cells_of[pos % h->max_columns] = 0;
}

void
aux_cells_forget_predictions(struct aux_cells *h, uint32_t pos)
{
    struct scope_cell *cells = aux_cells(h, pos) != NULL ? cells_place(h, pos) : NULL;
    for (uint32_t l = 1; cells != NULL && l <= h->layers; l++)
        if (cells[l].probed_by == PROBED_POLICY)
            cells[l].known = false;
}

/* ---- experts ---- */

static size_t
cells(const struct expert_cells *x)
{
    return x->max_columns * ((size_t)x->layers + 1);
}

static bool
open_experts(struct expert_cells *x, const struct run_info *run, uint32_t max_columns)
{
    *x = (struct expert_cells){.layers = run->layers, .experts = run->experts, .max_columns = max_columns};
    const uint32_t used =
        run->experts_used > 0 && run->experts_used < EXPERTS_REPORTED ? run->experts_used : EXPERTS_REPORTED;
    const size_t rows = (size_t)x->layers + 1;
    x->cells_of = calloc(max_columns, sizeof *x->cells_of);
    x->n = calloc(cells(x), sizeof *x->n);
    x->expert = calloc(cells(x) * used, sizeof *x->expert);
    x->weight = calloc(cells(x) * used, sizeof *x->weight);
    x->rows = calloc(rows, sizeof *x->rows);
    x->chosen = calloc(rows * x->experts, sizeof *x->chosen);
    if (x->cells_of == NULL || x->n == NULL || x->expert == NULL || x->weight == NULL || x->rows == NULL ||
        x->chosen == NULL) {
        expert_cells_close(x);
        return false;
    }
    x->used = used;
    return true;
}

void
expert_cells_close(struct expert_cells *x)
{
    free(x->cells_of);
    free(x->n);
    free(x->expert);
    free(x->weight);
    free(x->rows);
    free(x->chosen);
    *x = (struct expert_cells){0};
}

void
expert_cells_begin(struct expert_cells *x)
{
    if (x->used == 0)
        return;
    const size_t rows = (size_t)x->layers + 1;
    memset(x->cells_of, 0, x->max_columns * sizeof *x->cells_of);
    memset(x->rows, 0, rows * sizeof *x->rows);
    memset(x->chosen, 0, rows * x->experts * sizeof *x->chosen);
}

size_t
expert_cells_bytes(const struct expert_cells *x)
{
    const size_t each = sizeof *x->n + x->used * (sizeof *x->expert + sizeof *x->weight);
    return x->used == 0 ? 0 : cells(x) * each + ((size_t)x->layers + 1) * x->experts * sizeof *x->chosen;
}

static bool
held(const struct expert_cells *x, uint32_t pos)
{
    return x->used > 0 && x->cells_of[pos % x->max_columns] == pos + 1;
}

static size_t
expert_place(const struct expert_cells *x, uint32_t pos, uint32_t layer)
{
    return (pos % x->max_columns) * ((size_t)x->layers + 1) + layer;
}

bool
expert_cells_take(struct expert_cells *x, const struct run_info *run, uint32_t max_columns,
                  const struct experts_event *e)
{
    if (x->used == 0 && !open_experts(x, run, max_columns))
        return false;
    if (!held(x, e->pos))
        memset(x->n + expert_place(x, e->pos, 0), 0, (size_t)x->layers + 1);
    x->cells_of[e->pos % x->max_columns] = e->pos + 1;
    const size_t at = expert_place(x, e->pos, (uint32_t)e->layer);
    const bool again = x->n[at] > 0;
    const uint32_t n = e->n < x->used ? e->n : x->used;
    x->n[at] = (uint8_t)n;
    memcpy(x->expert + at * x->used, e->expert, n * sizeof *x->expert);
    memcpy(x->weight + at * x->used, e->weight, n * sizeof *x->weight);
    x->rows[e->layer] += !again;
    for (uint32_t i = 0; i < e->n && !again; i++)
        x->chosen[(uint32_t)e->layer * (size_t)x->experts + e->expert[i]]++;
    return true;
}

struct scope_experts
expert_cells(const struct expert_cells *x, uint32_t pos, uint32_t layer)
{
    if (!held(x, pos) || layer > x->layers)
        return (struct scope_experts){0};
    const size_t at = expert_place(x, pos, layer);
    return (struct scope_experts){
        .n = x->n[at], .expert = x->expert + at * x->used, .weight = x->weight + at * x->used};
}

void
expert_cells_forget(struct expert_cells *x, uint32_t pos)
{
    if (held(x, pos))
        x->cells_of[pos % x->max_columns] = 0;
}

/* ---- values by round ---- */

void
round_values_keep(struct round_values *v, uint32_t max_rounds, uint32_t cells, const float *before, uint32_t round,
                  uint32_t index, float value)
{
    if (v->max_rounds == 0) {
        v->max_rounds = max_rounds;
        v->cells = cells;
    }
    const uint32_t place = round % v->max_rounds;
    void *rows = v->value;
    const bool ok =
        index < v->cells && grow(&v->of, &rows, v->cells * sizeof *v->value, &v->n_rounds, place, 64, UINT32_MAX);
    v->value = rows;
    if (!ok || v->of[place] > round + 1)
        return;
    float *values = &v->value[(size_t)place * v->cells];
    for (uint32_t i = 0; v->of[place] != round + 1 && i < v->cells; i++)
        values[i] = before != NULL ? before[i] : NAN;
    v->of[place] = round + 1;
    values[index] = value;
}

const float *
round_values(const struct round_values *v, uint32_t round)
{
    const uint32_t place = v->max_rounds > 0 ? round % v->max_rounds : 0;
    return place < v->n_rounds && v->of[place] == round + 1 ? &v->value[(size_t)place * v->cells] : NULL;
}

const float *
round_values_up_to(const struct round_values *v, uint32_t round)
{
    const float *found = NULL;
    for (uint32_t n = 0; n < v->max_rounds && n <= round && found == NULL; n++)
        found = round_values(v, round - n);
    return found;
}

size_t
round_values_bytes(const struct round_values *v)
{
    return v->n_rounds * (sizeof *v->of + v->cells * sizeof *v->value);
}

void
round_values_close(struct round_values *v)
{
    free(v->of);
    free(v->value);
    *v = (struct round_values){0};
}
