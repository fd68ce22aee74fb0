/* Reading what the layers of any model of the run said: the target's, and those of the models that help. */
#include <math.h>

#include "tui/scope/scope_internal.h"

#define SURE 0.5f /* of a model whose layers nobody leaves at, so that no threshold is in force */

static const struct helper_cells *
helper(const struct scope *s, enum layer_model model)
{
    return &s->focus->helpers[model - LAYERS_OF(0)];
}

uint32_t
scope_model_layers(const struct scope *s, enum layer_model model)
{
    return run_info_layers(scope_info(s), model);
}

const char *
scope_model_name(const struct scope *s, enum layer_model model)
{
    return model == MODEL_TARGET ? s->info->model_name : scope_info(s)->helpers[model - LAYERS_OF(0)].name;
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
    if ((p->needs & NEEDS(HELPER_DRAFT)) != 0)
        return DRAFTS_ELSEWHERE;
    for (uint32_t i = 0; i < p->n_series; i++)
        if (p->series[i].form == SERIES_MASK)
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
    return pos < s->focus->length ? helper_cells(helper(s, model), pos) : NULL;
}

uint64_t
scope_model_probed(const struct scope *s, enum layer_model model, uint32_t layer)
{
    if (model == MODEL_TARGET)
        return scope_probed(s, layer);
    return layer <= helper(s, model)->layers && helper(s, model)->layers > 0 ? helper(s, model)->probed[layer] : 0;
}

double
scope_model_agreement(const struct scope *s, enum layer_model model, uint32_t layer)
{
    if (model == MODEL_TARGET)
        return scope_agreement(s, layer, scope_setting_of(s, s->focus->seq)->heads.show_trained);
    const struct helper_cells *h = helper(s, model);
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
    const token_t final = scope_final(s, c);
    return final != TOKEN_NONE && cells[layer].token != final && cells[layer].confidence >= SURE;
}
