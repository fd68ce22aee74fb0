#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/scope/scope_internal.h"

#define LAYERS_MOST 512
#define ENOUGH_ROWS 48 /* consecutive rows for which older ones are not preferred, however many these are */

static bool
is_known(const struct scope_cell *cell)
{
    return cell->known && !cell->over_draft_vocab && cell->confidence > 0 && !isnan(cell->entropy) &&
           cell->top_p[0] > 0;
}

/* Copies the predictions of all layers at a position; false: some were not probed. */
static bool
sample_at(const struct scope *s, uint32_t pos, struct layer_sample *out)
{
    const struct scope_cell *cells = scope_cells(s, pos);
    const uint32_t last = s->info->layers;
    for (uint32_t l = 1; l <= last; l++) {
        if (cells == NULL || !is_known(&cells[l]))
            return false;
        struct layer_sample *sample = &out[l - 1];
        *sample = (struct layer_sample){.agrees = cells[l].token == cells[last].token,
                                        .confidence = cells[l].confidence,
                                        .entropy = cells[l].entropy,
                                        .annealed = cells[l].annealed,
                                        .temperature = cells[l].temperature};
        memcpy(sample->top_p, cells[l].top_p, sizeof sample->top_p);
        memcpy(sample->top, cells[l].top, sizeof sample->top);
    }
    return true;
}

/* Copies the draft model's prediction at a position; false: it was not probed. */
static bool
draft_at(const struct scope *s, uint32_t pos, struct draft_word *out)
{
    const uint32_t last = run_info_layers(run_info_of(s->info, s->focus->seq), MODEL_DRAFT);
    const struct scope_cell *cells = last > 0 ? scope_model_cells(s, MODEL_DRAFT, pos) : NULL;
    const struct scope_column *c = scope_column(s, pos);
    if (cells == NULL || !cells[last].known || cells[last].over_draft_vocab || c == NULL)
        return false;
    *out = (struct draft_word){
        .agrees = cells[last].token == c->token, .acceptance = cells[last].acceptance, .target = c->token};
    memcpy(out->top, cells[last].top, sizeof out->top);
    return true;
}

/* Sets the draft model, whose predictions are known at all positions or not. */
static void
set_draft(const struct scope *s, struct layer_record *r)
{
    const struct aux_info *info = &run_info_of(s->info, s->focus->seq)->aux[AUX_DRAFT];
    struct record_drafter *d = &r->draft;
    unsigned layer = 0;
    d->exit_layer = sscanf(info->name, "self:%u", &layer) == 1 && layer < r->layers ? layer : 0;
    d->known = d->acceptance = d->exit_layer == 0 && info->pass_load > 0;
    d->pass_load = info->pass_load;
    d->head_load = info->head_load;
    d->accept_load = info->accept_load;
    for (uint32_t row = 0; row + 1 < r->n && d->known; row++) { /* a draft after the last row would exceed the text */
        d->known = draft_at(s, r->first + row + 1, &d->word[row]);
        d->acceptance = d->known && d->acceptance && !isnan(d->word[row].acceptance);
    }
    d->known = d->known || d->exit_layer > 0;
}

/* Copies the acceptance of wrong drafts from the rounds in memory of a policy that reports it. */
static void
set_rejected(const struct scope *s, struct layer_record *r)
{
    const struct policy_info *policy = scope_policy(s);
    const int series = (policy->needs & NEEDS_ACCEPT_HEAD) != 0 ? policy_series_index(policy, "p") : -1;
    const struct scope_round *round;
    uint32_t n = 0;
    for (uint32_t back = 0; series >= 0 && (round = scope_round(s, back)) != NULL; back++) {
        const float *p = round->whole ? scope_round_values(s, (uint32_t)series, round->number) : NULL;
        for (uint32_t i = round->end.accepted; p != NULL && i < round->end.drafted && n < RECORD_REJECTED; i++)
            if (!isnan(p[i]))
                r->draft.rejected[n++] = p[i];
    }
    r->draft.n_rejected = n;
}

/* a full head is one load, an affine head a fraction */
static double
trained_load(const struct scope *s)
{
    const struct scope_round *r;
    const double affine = (double)s->info->width / s->info->vocab;
    if (strcmp(scope_head(s), "trained") != 0)
        return 0;
    for (uint32_t back = 0; (r = scope_round(s, back)) != NULL; back++)
        if (r->whole && r->end.heads_loaded > floorf(r->end.heads_loaded))
            return affine;
    return 1;
}

/* Finds the first position in memory. */
static void
set_text(const struct scope *s, struct layer_record *r)
{
    const struct scope_column *c;
    uint32_t at = RECORD_TEXT;
    for (uint32_t pos = r->first + r->n; at > 0 && (c = scope_column(s, pos)) != NULL && c->token != TOKEN_NONE; pos--)
        r->text[--at] = c->token;
    r->n_text = RECORD_TEXT - at;
    memmove(r->text, r->text + at, r->n_text * sizeof *r->text);
}

/* Copies the state of the policy's rule after the latest round. */
static void
set_state(const struct scope *s, struct layer_record *r)
{
    const struct policy_info *policy = scope_policy(s);
    snprintf(r->policy, sizeof r->policy, "%s", policy->name);
    for (uint32_t i = 0; i < POLICY_KNOBS; i++)
        r->value[i] = i < policy->n_knobs ? scope_knob(s, i) : NAN;
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        const struct scope_series *series = scope_series(s, i);
        r->series[i] = series != NULL && series->used > 0 ? (double)series->latest[0] : NAN;
    }
}

/* Returns the order of the vocabulary of the run in focus; NULL: unknown. */
static const struct draft_rank *
scope_draft_rank(const struct scope *s)
{
    const struct run_info *info = run_info_of(s->info, s->focus->seq);
    struct draft_rank *by_id = s->rank;
    if (info->rank != NULL || info->vocab_counts.path[0] != '\0')
        return info->rank;
    if (by_id->vocab != info->vocab) {
        draft_rank_close(by_id);
        if (!draft_rank_by_id(by_id, info->vocab_last, info->vocab, NULL))
            draft_rank_close(by_id);
    }
    return by_id->vocab > 0 ? by_id : NULL;
}

static void
complete(const struct scope *s, struct layer_record *r, uint32_t prompt)
{
    const uint32_t of_prompt = prompt > r->first ? prompt - r->first : 0;
    const uint32_t over = r->n > RECORD_TOKENS ? r->n - RECORD_TOKENS : 0;
    const uint32_t lead = of_prompt > 0 ? of_prompt : r->n / (RECORD_ROWS / RECORD_LEAD);
    const double trained = trained_load(s);
    r->begin = lead > over ? lead : over;
    r->sequence = s->focus->seq;
    r->policy[0] = '\0';
    r->from_prompt = of_prompt > 0 && r->begin == of_prompt;
    if (!r->from_prompt)
        set_state(s, r);
    r->trained = trained > 0;
    r->head_load = trained == 1 ? 1 : 1 + trained;
    r->layers_load = 1 + (s->info->layers - 1) * trained;
    r->probes = KV_CACHE_PROBES;
    set_text(s, r);
    layer_record_order(r, scope_draft_rank(s));
    set_draft(s, r);
    set_rejected(s, r);
    wrong_paths_estimate(&s->focus->wrong, r);
}

/* Finds consecutive rows whose layers were probed, and the draft model's if `drafts` (it reads the text later): the
 * newest ones, or if these are few, most. There are gaps if probes take a share of the time. */
static void
find_rows(const struct scope *s, bool drafts, uint32_t *first, uint32_t *end)
{
    struct layer_sample sample[LAYERS_MOST];
    struct draft_word word;
    const uint32_t least = scope_first_cells(s) > 1 ? scope_first_cells(s) : 1;
    *first = *end = 0;
    for (uint32_t to = s->focus->committed; to > least && *end - *first < ENOUGH_ROWS;) {
        uint32_t from = to;
        while (from > least && to - from < RECORD_ROWS && sample_at(s, from - 1, sample) &&
               (!drafts || (from == to ? to <= 2 || draft_at(s, to - 2, &word) : draft_at(s, from - 1, &word))))
            from--;
        if (to - from > *end - *first) {
            *first = from;
            *end = to;
        }
        to = from < to ? from : to - 1;
    }
}

const char *
scope_record(const struct scope *s, struct layer_record *out)
{
    struct layer_sample sample[LAYERS_MOST];
    const struct scope_column *c;
    out->n = out->begin = 0;
    if (scope_setting_of(s, s->focus->seq)->sampled)
        return "what-if does not support sampling";
    if (s->info->layers > LAYERS_MOST || s->info->layers != out->layers)
        return "what-if does not support so many layers";
    const bool drafts = (scope_policy(s)->needs & NEEDS(AUX_DRAFT)) != 0 &&
                        run_info_layers(run_info_of(s->info, s->focus->seq), MODEL_DRAFT) > 0;
    uint32_t prompt, first, end;
    find_rows(s, drafts, &first, &end);
    if (end - first < 2)
        return probe_is_share(s->now.probe) ? "what-if waits for positions whose layers are probed"
                                            : "what-if needs all layers: probe all";
    out->first = prompt = first - 1;
    while ((c = scope_column(s, prompt)) != NULL && c->fate == FATE_PROMPT)
        prompt++;
    for (uint32_t pos = first; pos < end; pos++) {
        sample_at(s, pos, sample);
        layer_record_add(out, sample, s->info->vocab);
    }
    complete(s, out, prompt);
    return out->n > out->begin ? NULL : "what-if needs a few generated tokens";
}
