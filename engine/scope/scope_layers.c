/* Layers: predictions of the target, of auxiliary models, experts; and the values that the policy reports. */
#include <math.h>
#include <string.h>

#include "engine/scope/scope_internal.h"

static void
prefer(float *held, float value)
{
    if (!isnan(value))
        *held = value;
}

static void
store_prediction(struct scope *s, uint64_t *probed, struct scope_cell *cell, const struct layer_event *g)
{
    const bool fresh = !cell->known;
    if (fresh) {
        *cell = (struct scope_cell){.known = true,
                                    .probed_by = (uint8_t)g->probed_by,
                                    .confidence = NAN,
                                    .annealed = NAN,
                                    .temperature = NAN,
                                    .entropy = NAN,
                                    .kl_final = NAN,
                                    .acceptance = NAN,
                                    .rank_final = -1};
        probed[g->layer]++;
    } else if ((uint8_t)g->probed_by < cell->probed_by) {
        cell->probed_by = (uint8_t)g->probed_by;
    }
    if (g->draft_vocab > 0) {
        cell->draft_vocab = g->draft_vocab;
        cell->draft_token = g->token;
        cell->draft_confidence = g->confidence;
        if (!fresh && !cell->over_draft_vocab)
            return;
    }
    cell->over_draft_vocab = g->draft_vocab > 0;
    cell->token = g->token;
    prefer(&cell->confidence, g->confidence);
    prefer(&cell->annealed, g->annealed);
    prefer(&cell->temperature, g->temperature);
    prefer(&cell->entropy, g->entropy);
    prefer(&cell->kl_final, g->kl_final);
    prefer(&cell->acceptance, g->acceptance);
    if (g->rank_final >= 0)
        cell->rank_final = g->rank_final;
    for (int i = 0; i < PREDICTION_TOP; i++) {
        const bool valid = g->top[i] >= 0 && (uint32_t)g->top[i] < s->info->vocab;
        cell->top[i] = valid ? g->top[i] : TOKEN_NONE;
        cell->top_p[i] = valid ? g->top_p[i] : NAN;
        scope_need_word(s, cell->top[i]);
    }
}

/* Counts a position once, after both heads were probed; if there is only the lens, every position. */
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

/* A prediction of a block drafter, which the cell contains. */
static void
block_event(struct scope_sequence *q, const struct event *e, const struct scope_cell *cell)
{
    const struct layer_event *g = &e->layer;
    const uint32_t i = g->pos - q->base;
    if (g->probed_by != PROBED_POLICY || !q->open || sequence_newest(q)->number != e->round || i >= SCOPE_BLOCK)
        return;
    struct scope_block *b = ring_keep(&q->blocks, q->max_rounds, sizeof *b, e->round);
    if (b == NULL) {
        q->starved = true;
        return;
    }
    struct scope_block_row *row = &b->row[i];
    const int head = g->head == 1;
    b->first = q->base;
    b->n = b->n > i ? b->n : i + 1;
    if (!row->head[!head].known || !isnan(g->acceptance))
        row->confidence = g->acceptance;
    row->head[head].known = true;
    memcpy(row->head[head].top, cell->top, sizeof cell->top);
    memcpy(row->head[head].top_p, cell->top_p, sizeof cell->top_p);
    if (cell->top[0] == TOKEN_NONE) { /* a trace may have only the best token */
        row->head[head].top[0] = g->token;
        row->head[head].top_p[0] = g->confidence;
    }
}

/* A layer of an auxiliary model. */
static void
aux_layer_event(struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct layer_event *g = &e->layer;
    struct aux_cells *h = &q->aux[g->model - LAYERS_OF(0)];
    struct scope_cell *cells =
        aux_cells_at(h, run_info_layers(run_info_of(s->info, q->seq), g->model), q->max_columns, g->pos);
    if (cells == NULL)
        return;
    struct scope_cell *cell = &cells[g->layer];
    store_prediction(s, h->probed, cell, g);
    scope_need_word(s, g->token);
    if (g->model == MODEL_BLOCK)
        block_event(q, e, cell);
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
    if (g->probed_by == PROBED_POLICY)
        s->now.draft_vocab = g->draft_vocab;
    if (g->probed_by == PROBED_POLICY && e->round > q->round) /* drafting has begun */
        sequence_open_round(q, e, g->pos);
    if (g->layer < 1 || (uint32_t)g->layer > run_info_layers(run_info_of(s->info, q->seq), g->model) || g->token < 0 ||
        (uint32_t)g->token >= s->info->vocab || sequence_touch(q, g->pos) == NULL ||
        (q->length > q->max_columns && g->pos < q->length - q->max_columns))
        return;
    if (g->model != MODEL_TARGET) {
        aux_layer_event(s, q, e);
        return;
    }
    const bool trained = g->head == 1, last = (uint32_t)g->layer == s->info->layers;
    if (!sequence_room_for_cells(q, trained, g->pos))
        return;
    struct scope_column *c = sequence_touch(q, g->pos);
    const size_t layers = s->info->layers + 1;
    if (!sequence_holds_cells(q, g->pos)) {
        if (q->cells_of[g->pos % q->max_columns] > 0) /* these cells are about to be replaced */
            scope_take_glimpse(s, q, q->cells_of[g->pos % q->max_columns] - 1);
        q->cells_of[g->pos % q->max_columns] = g->pos + 1;
        for (int head = 0; head < 2 && q->cells[head] != NULL; head++)
            memset(sequence_cells(q, head, g->pos), 0, layers * sizeof *q->cells[head]);
    }
    struct scope_cell *cell = &sequence_cells(q, trained && !last, g->pos)[g->layer];
    store_prediction(s, q->probed, cell, g);
    if (g->final_agrees >= 0 && !last)
        compare(q, g, cell, trained, scope_setting_of(s, q->seq)->now.head == HEADS_POLICY);
    if (last && q->cells[1] != NULL)
        sequence_cells(q, 1, g->pos)[g->layer] = *cell;
    scope_need_word(s, g->token);
    if (last)
        c->final = g->token;
}

/* ---- series ---- */

/* Stores a value by round before it becomes the latest one. A LINE and a BAND have a ring instead. */
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

static const struct aux_cells *
aux_of(const struct scope *s, enum layer_model model)
{
    return &s->focus->aux[model - LAYERS_OF(0)];
}

uint32_t
scope_model_layers(const struct scope *s, enum layer_model model)
{
    return run_info_layers(scope_info(s), model);
}

const char *
scope_model_name(const struct scope *s, enum layer_model model)
{
    return model == MODEL_TARGET ? s->info->model_name : scope_info(s)->aux[model - LAYERS_OF(0)].name;
}

bool
scope_model_used(const struct scope *s, enum layer_model model)
{
    return model == MODEL_TARGET || (scope_policy(s)->needs & NEEDS(model - LAYERS_OF(0))) != 0;
}

enum draft_origin
scope_draft_origin(const struct scope *s)
{
    const struct policy_info *p = scope_policy(s);
    const struct draft_counts *so_far = &scope_run_aggregates(s)->drafts;
    if ((p->needs & NEEDS_DRAFTER) != 0)
        return DRAFTS_ELSEWHERE;
    if (policy_series_of_form(p, SERIES_MASK) >= 0)
        return DRAFTS_SUBLAYERS;
    if (so_far->steps == 0)
        return p->n_knobs == 0 && p->n_series == 0 ? DRAFTS_NONE : DRAFTS_LAYERS;
    return so_far->elsewhere == so_far->steps ? DRAFTS_ELSEWHERE : DRAFTS_LAYERS;
}

const struct scope_cell *
scope_model_cells(const struct scope *s, enum layer_model model, uint32_t pos)
{
    if (model == MODEL_TARGET)
        return scope_cells(s, pos);
    return pos < s->focus->length ? ring_at(&aux_of(s, model)->cells, pos) : NULL;
}

uint64_t
scope_model_probed(const struct scope *s, enum layer_model model, uint32_t layer)
{
    if (model == MODEL_TARGET)
        return layer <= s->info->layers ? s->focus->probed[layer] : 0;
    return layer <= aux_of(s, model)->layers && aux_of(s, model)->layers > 0 ? aux_of(s, model)->probed[layer] : 0;
}

double
scope_model_agreement(const struct scope *s, enum layer_model model, uint32_t layer)
{
    if (model == MODEL_TARGET)
        return scope_agreement(s, layer, scope_setting_of(s, s->focus->seq)->heads.show_trained);
    const struct aux_cells *h = aux_of(s, model);
    const bool asked = h->layers > 0 && layer <= h->layers && h->compared[layer] > 0;
    return asked ? (double)h->agreed[layer] / (double)h->compared[layer] : NAN;
}

token_t
scope_model_final(const struct scope *s, enum layer_model model, const struct scope_column *c)
{
    if (model == MODEL_TARGET)
        return scope_final(s, c);
    const struct scope_cell *cells = scope_model_cells(s, model, c->pos);
    const uint32_t last = scope_model_layers(s, model);
    return cells != NULL && cells[last].known ? cells[last].token : TOKEN_NONE;
}

bool
scope_model_spurious(const struct scope *s, enum layer_model model, uint32_t pos, uint32_t layer)
{
    if (model == MODEL_TARGET)
        return scope_spurious(s, pos, layer);
    const struct scope_column *c = scope_column(s, pos);
    const struct scope_cell *cells = scope_model_cells(s, model, pos);
    if (c == NULL || cells == NULL || layer < 1 || layer > scope_model_layers(s, model) || !cells[layer].known)
        return false;
    return event_spurious(cells[layer].token, cells[layer].confidence, scope_final(s, c), NAN);
}

void
scope_experts_event(const struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct experts_event *x = &e->experts;
    const struct run_info *run = run_info_of(s->info, q->seq);
    bool ok = x->n > 0 && x->n <= EXPERTS_REPORTED && x->layer >= 1 && (uint32_t)x->layer <= run->layers;
    for (uint32_t i = 0; ok && i < x->n; i++)
        ok = x->expert[i] < run->experts;
    if (!ok || sequence_touch(q, x->pos) == NULL || (q->length > q->max_columns && x->pos < q->length - q->max_columns))
        return;
    q->starved = !expert_cells_take(&q->experts, run, q->max_columns, x) || q->starved;
}

uint32_t
scope_expert_count(const struct scope *s, uint32_t *used)
{
    const struct run_info *run = scope_info(s);
    if (used != NULL)
        *used = run->experts_used;
    return run->experts;
}

struct scope_experts
scope_experts(const struct scope *s, uint32_t pos, uint32_t layer)
{
    return pos < s->focus->length ? expert_cells(&s->focus->experts, pos, layer) : (struct scope_experts){0};
}

uint64_t
scope_expert_rows(const struct scope *s, uint32_t layer)
{
    const struct expert_cells *x = &s->focus->experts;
    return x->used > 0 && layer <= x->layers ? x->counted[layer] : 0;
}

uint64_t
scope_expert_chosen(const struct scope *s, uint32_t layer, uint32_t expert)
{
    const struct expert_cells *x = &s->focus->experts;
    return x->used > 0 && layer <= x->layers && expert < x->experts ? x->chosen[layer * (size_t)x->experts + expert]
                                                                    : 0;
}
