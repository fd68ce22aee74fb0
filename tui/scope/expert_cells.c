#include "tui/scope/expert_cells.h"

#include <stdlib.h>
#include <string.h>

static size_t
cells(const struct expert_cells *x)
{
    return x->max_columns * ((size_t)x->layers + 1);
}

static bool
open_cells(struct expert_cells *x, const struct run_info *run, uint32_t max_columns)
{
    *x = (struct expert_cells){.layers = run->layers, .experts = run->experts, .max_columns = max_columns};
    const uint32_t used = run->experts_used > 0 && run->experts_used < EXPERTS_TOLD ? run->experts_used : EXPERTS_TOLD;
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
place(const struct expert_cells *x, uint32_t pos, uint32_t layer)
{
    return (pos % x->max_columns) * ((size_t)x->layers + 1) + layer;
}

bool
expert_cells_take(struct expert_cells *x, const struct run_info *run, uint32_t max_columns,
                  const struct experts_event *e)
{
    if (x->used == 0 && !open_cells(x, run, max_columns))
        return false;
    if (!held(x, e->pos))
        memset(x->n + place(x, e->pos, 0), 0, (size_t)x->layers + 1);
    x->cells_of[e->pos % x->max_columns] = e->pos + 1;
    const size_t at = place(x, e->pos, (uint32_t)e->layer);
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
    const size_t at = place(x, pos, layer);
    return (struct scope_experts){
        .n = x->n[at], .expert = x->expert + at * x->used, .weight = x->weight + at * x->used};
}

void
expert_cells_forget(struct expert_cells *x, uint32_t pos)
{
    if (held(x, pos))
        x->cells_of[pos % x->max_columns] = 0;
}
