/* What layers said, and what the policy reports. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tui/scope/scope_internal.h"

static void
prefer(float *held, float value)
{
    if (!isnan(value))
        *held = value;
}

static void
take_guess(struct scope *s, uint64_t *probed, struct scope_cell *cell, const struct layer_event *g)
{
    if (!cell->known) {
        *cell = (struct scope_cell){.known = true,
                                    .probed_by = (uint8_t)g->probed_by,
                                    .confidence = NAN,
                                    .annealed = NAN,
                                    .entropy = NAN,
                                    .kl_final = NAN,
                                    .rank_final = -1};
        probed[g->layer]++;
    } else if ((uint8_t)g->probed_by < cell->probed_by) {
        cell->probed_by = (uint8_t)g->probed_by;
    }
    cell->token = g->token;
    prefer(&cell->confidence, g->confidence);
    prefer(&cell->annealed, g->annealed);
    prefer(&cell->entropy, g->entropy);
    prefer(&cell->kl_final, g->kl_final);
    if (g->rank_final >= 0)
        cell->rank_final = g->rank_final;
    for (int i = 0; i < GUESS_TOP; i++) {
        const bool valid = g->top[i] >= 0 && (uint32_t)g->top[i] < s->info->vocab;
        cell->top[i] = valid ? g->top[i] : TOKEN_NONE;
        cell->top_p[i] = valid ? g->top_p[i] : NAN;
        scope_need_word(s, cell->top[i]);
    }
}

/* Positions count where both heads have been asked, and once; all of them, where there is only the lens. */
static void
compare(struct scope_sequence *q, const struct layer_event *g, struct scope_cell *cell, bool trained, bool lens_only)
{
    const struct scope_cell *other = q->cells[1] == NULL ? NULL : &sequence_cells(q, !trained, g->pos)[g->layer];
    const bool first = !cell->compared;
    cell->compared = true;
    cell->agreed = g->final_agrees > 0;
    if (first && lens_only) {
        q->compared[g->layer]++;
        q->agreed[0][g->layer] += cell->agreed;
    }
    if (!first || lens_only || other == NULL || !other->known || !other->compared)
        return;
    q->compared[g->layer]++;
    q->agreed[trained][g->layer] += cell->agreed;
    q->agreed[!trained][g->layer] += other->agreed;
}

/* A layer of a model that helps. */
static void
take_helper(struct scope *s, struct scope_sequence *q, const struct layer_event *g)
{
    struct helper_cells *h = &q->helpers[g->model - LAYERS_OF(0)];
    struct scope_cell *cells =
        helper_cells_at(h, run_info_layers(run_info_of(s->info, q->seq), g->model), q->max_columns, g->pos);
    if (cells == NULL)
        return;
    struct scope_cell *cell = &cells[g->layer];
    take_guess(s, h->probed, cell, g);
    scope_need_word(s, g->token);
    if (g->final_agrees < 0 || cell->compared)
        return;
    cell->compared = true;
    cell->agreed = g->final_agrees > 0;
    h->compared[g->layer]++;
    h->agreed[g->layer] += cell->agreed;
}

void
scope_layer_event(struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct layer_event *g = &e->layer;
    if (g->probed_by == PROBED_POLICY && e->round > q->round) /* drafting began */
        sequence_open_round(q, e, g->pos);
    if (g->layer < 1 || (uint32_t)g->layer > run_info_layers(run_info_of(s->info, q->seq), g->model) || g->token < 0 ||
        (uint32_t)g->token >= s->info->vocab || sequence_touch(q, g->pos) == NULL ||
        (q->length > q->max_columns && g->pos < q->length - q->max_columns))
        return;
    if (g->model != MODEL_TARGET) {
        take_helper(s, q, g);
        return;
    }
    const bool trained = g->head == 1, last = (uint32_t)g->layer == s->info->layers;
    if (!sequence_room_for_cells(q, trained, g->pos))
        return;
    struct scope_column *c = sequence_touch(q, g->pos);
    const size_t layers = s->info->layers + 1;
    if (!sequence_holds_cells(q, g->pos)) {
        if (q->cells_of[g->pos % q->max_columns] > 0) /* what stands there is about to go */
            scope_take_glimpse(s, q, q->cells_of[g->pos % q->max_columns] - 1);
        q->cells_of[g->pos % q->max_columns] = g->pos + 1;
        for (int head = 0; head < 2 && q->cells[head] != NULL; head++)
            memset(sequence_cells(q, head, g->pos), 0, layers * sizeof *q->cells[head]);
    }
    struct scope_cell *cell = &sequence_cells(q, trained && !last, g->pos)[g->layer];
    take_guess(s, q->probed, cell, g);
    if (g->final_agrees >= 0 && !last)
        compare(q, g, cell, trained, scope_setting_of(s, q->seq)->now.head == HEADS_POLICY);
    if (last && q->cells[1] != NULL)
        sequence_cells(q, 1, g->pos)[g->layer] = *cell;
    scope_need_word(s, g->token);
    if (last)
        c->final = g->token;
}

/* ---- series ---- */

/* Keeps a value by round, before it becomes the latest one. A LINE and a BAND have a ring instead. */
static void
keep_by_round(struct scope_sequence *q, uint32_t i, uint32_t round, uint32_t index, float value)
{
    const struct scope_series *series = &q->series[i];
    const enum series_form form = series->declared->form;
    const uint32_t declared = series_cells(series->declared);
    const uint32_t cells = declared > 0 ? declared : form == SERIES_PHASE ? 2 : series->cells;
    if (form != SERIES_LINE && form != SERIES_BAND)
        round_values_keep(&q->by_round[i], q->max_rounds, cells,
                          series_of_round(series->declared) ? NULL : series->latest, round, index, value);
}

void
scope_series_event(const struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct series_event *v = &e->series;
    if (memchr(v->key, '\0', sizeof v->key) == NULL)
        return;
    const int i = policy_series_index(scope_versus_policy(s, e->seq), v->key);
    if (i < 0 || (uint32_t)i >= q->n_series)
        return;
    struct scope_series *series = &q->series[i];
    const uint32_t declared = series_cells(series->declared);
    if (v->index < 0 || (uint32_t)v->index >= (declared > 0 ? declared : series->cells))
        return;
    const uint32_t index = (uint32_t)v->index;
    keep_by_round(q, (uint32_t)i, e->round, index, v->value);
    series->reported = e->round;
    series->latest[index] = v->value;
    series->used = index + 1 > series->used ? index + 1 : series->used;
    if (index == 0 || series->count == 0) {
        if (!sequence_room_for_value(q, (uint32_t)i))
            return;
        series->ring[series->count % SCOPE_SERIES] =
            (struct scope_value){.round = e->round, .value = NAN, .value2 = NAN};
        series->count++;
    }
    struct scope_value *last = &series->ring[(series->count - 1) % SCOPE_SERIES];
    if (index == 0)
        last->value = v->value;
    else if (index == 1)
        last->value2 = v->value;
}
