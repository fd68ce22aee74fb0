#include "tui/scope/scope_sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

/* Series number i of whatever policy is chosen must fit. */
static bool
open_series(struct scope_sequence *q)
{
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        struct scope_series *series = &q->series[i];
        series->cells = SCOPE_BARS;
        for (uint32_t p = 0; p < q->info->n_policies; p++)
            if (i < q->info->policies[p].n_series && series_cells(&q->info->policies[p].series[i]) > series->cells)
                series->cells = series_cells(&q->info->policies[p].series[i]);
        series->ring = calloc(SCOPE_SERIES, sizeof *series->ring);
        series->latest = calloc(series->cells, sizeof *series->latest);
        series->changed = calloc(series->cells, sizeof *series->changed);
        if (series->ring == NULL || series->latest == NULL || series->changed == NULL)
            return false;
    }
    return true;
}

struct scope_sequence *
sequence_open(const struct run_info *info, const struct policy_info *policy, uint32_t share)
{
    struct scope_sequence *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    const size_t layers = (size_t)info->layers + 1;
    q->info = info;
    q->max_positions = SCOPE_POSITIONS / share;
    q->max_columns = SCOPE_COLUMNS / share;
    q->max_rounds = SCOPE_ROUNDS / share;
    q->columns = calloc(q->max_positions, sizeof *q->columns);
    q->cells_of = calloc(q->max_columns, sizeof *q->cells_of);
    q->cells[0] = calloc(q->max_columns * layers, sizeof *q->cells[0]);
    q->compared = calloc(layers, sizeof *q->compared);
    q->agreed[0] = calloc(layers, sizeof *q->agreed[0]);
    q->agreed[1] = calloc(layers, sizeof *q->agreed[1]);
    q->probed = calloc(layers, sizeof *q->probed);
    q->rounds = calloc(q->max_rounds, sizeof *q->rounds);
    if (q->columns == NULL || q->cells_of == NULL || q->cells[0] == NULL || q->compared == NULL ||
        q->agreed[0] == NULL || q->agreed[1] == NULL || q->probed == NULL || q->rounds == NULL || !open_series(q)) {
        sequence_close(q);
        return NULL;
    }
    sequence_choose_policy(q, policy);
    return q;
}

void
sequence_close(struct scope_sequence *q)
{
    if (q == NULL)
        return;
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        free(q->series[i].ring);
        free(q->series[i].latest);
        free(q->series[i].changed);
    }
    free(q->columns);
    free(q->cells_of);
    for (int head = 0; head < 2; head++) {
        free(q->cells[head]);
        free(q->agreed[head]);
    }
    for (enum helper_role role = 0; role < HELPERS; role++)
        helper_cells_close(&q->helpers[role]);
    free(q->probed);
    free(q->compared);
    free(q->rounds);
    free(q);
}

void
sequence_begin(struct scope_sequence *q, const struct policy_info *policy)
{
    const size_t layers = (size_t)q->info->layers + 1;
    q->heard = false;
    q->length = q->committed = q->base = q->round = 0;
    memset(q->cells_of, 0, q->max_columns * sizeof *q->cells_of);
    memset(q->probed, 0, layers * sizeof *q->probed);
    memset(q->compared, 0, layers * sizeof *q->compared);
    for (int head = 0; head < 2; head++)
        memset(q->agreed[head], 0, layers * sizeof *q->agreed[head]);
    for (enum helper_role role = 0; role < HELPERS; role++)
        helper_cells_begin(&q->helpers[role]);
    q->n_rounds = 0;
    q->open = false;
    q->n_struck = 0;
    sequence_choose_policy(q, policy);
}

void
sequence_choose_policy(struct scope_sequence *q, const struct policy_info *policy)
{
    const uint32_t n = policy == NULL ? 0 : policy->n_series;
    q->n_series = n < POLICY_SERIES ? n : POLICY_SERIES;
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        struct scope_series *series = &q->series[i];
        series->declared = i < q->n_series ? &policy->series[i] : NULL;
        series->count = 0;
        series->used = 0;
        series->last_change = 0;
        for (uint32_t k = 0; k < series->cells; k++)
            series->latest[k] = NAN;
        memset(series->changed, 0, series->cells * sizeof *series->changed);
    }
}

/* ---- positions ---- */

uint32_t
sequence_first(const struct scope_sequence *q)
{
    return q->length > q->max_positions ? q->length - q->max_positions : 0;
}

const struct scope_column *
sequence_column(const struct scope_sequence *q, uint32_t pos)
{
    const struct scope_column *c = &q->columns[pos % q->max_positions];
    return pos < q->length && pos >= sequence_first(q) && c->pos == pos ? c : NULL;
}

struct scope_cell *
sequence_cells(const struct scope_sequence *q, int head, uint32_t pos)
{
    return &q->cells[head][(pos % q->max_columns) * ((size_t)q->info->layers + 1)];
}

bool
sequence_holds_cells(const struct scope_sequence *q, uint32_t pos)
{
    return q->cells_of[pos % q->max_columns] == pos + 1;
}

struct scope_column *
sequence_touch(struct scope_sequence *q, uint32_t pos)
{
    const uint32_t limit = q->info->ctx > 0 ? q->info->ctx : UINT32_MAX / 2;
    if (pos > limit || (q->length > q->max_positions && pos < q->length - q->max_positions))
        return NULL;
    struct scope_column *c = &q->columns[pos % q->max_positions];
    if (pos >= q->length || sequence_column(q, pos) == NULL) {
        /* Positions that were skipped must not show what stood in their place long ago. */
        for (uint32_t p = q->length; p < pos && p < q->length + q->max_positions; p++)
            q->columns[p % q->max_positions].pos = UINT32_MAX;
        *c = (struct scope_column){.pos = pos,
                                   .token = TOKEN_NONE,
                                   .exit_layer = -1,
                                   .confidence = NAN,
                                   .rejected = TOKEN_NONE,
                                   .rejected_exit = -1,
                                   .rejected_confidence = NAN,
                                   .final = TOKEN_NONE,
                                   .threshold = NAN};
        q->length = pos >= q->length ? pos + 1 : q->length;
    }
    return c;
}

void
sequence_forget_from(struct scope_sequence *q, uint32_t from)
{
    for (uint32_t p = from; p < q->length && p < from + q->max_positions; p++) {
        q->columns[p % q->max_positions].pos = UINT32_MAX;
        if (sequence_holds_cells(q, p))
            q->cells_of[p % q->max_columns] = 0;
        for (enum helper_role role = 0; role < HELPERS; role++)
            helper_cells_forget(&q->helpers[role], p);
    }
    q->length = from < q->length ? from : q->length;
}

/* ---- rounds ---- */

uint32_t
sequence_rounds(const struct scope_sequence *q)
{
    return q->n_rounds < q->max_rounds ? (uint32_t)q->n_rounds : q->max_rounds;
}

const struct scope_round *
sequence_round(const struct scope_sequence *q, uint32_t back)
{
    return back < sequence_rounds(q) ? &q->rounds[(q->n_rounds - 1 - back) % q->max_rounds] : NULL;
}

struct scope_round *
sequence_newest(struct scope_sequence *q)
{
    return &q->rounds[(q->n_rounds - 1) % q->max_rounds];
}

struct scope_round *
sequence_open_round(struct scope_sequence *q, const struct event *e, uint32_t pos)
{
    if (q->open && sequence_newest(q)->number == e->round)
        return sequence_newest(q);
    if (q->open) /* its end was lost */
        q->n_rounds--;
    sequence_forget_from(q, q->committed);
    q->n_rounds++;
    q->open = true;
    q->base = q->committed;
    q->main_tail = 0;
    q->left_main = UINT32_MAX;
    q->n_struck = 0;
    for (int i = 0; i < VERIFY_NODES; i++)
        q->node[i] = -1;
    struct scope_round *r = sequence_newest(q);
    *r = (struct scope_round){.number = e->round, .run = e->run, .t_us = e->t_us, .first_pos = pos, .last = ROUND_OPEN};
    r->end.exit_layer = r->end.d_max = r->end.w_max = -1;
    r->end.threshold = NAN;
    return r;
}

void
sequence_lost(struct scope_sequence *q)
{
    if (q->open) {
        q->open = false;
        q->n_rounds--;
    }
    q->n_struck = 0;
    sequence_forget_from(q, q->committed);
}
