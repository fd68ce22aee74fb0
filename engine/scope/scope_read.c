/* Functions that read the scope: positions, rounds, texts; the window; rounds that meet a condition. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/scope/scope_internal.h"

const struct scope_now *
scope_now(const struct scope *s)
{
    return &s->now;
}

const struct run_info *
scope_info(const struct scope *s)
{
    return run_info_of(s->info, s->focus->seq);
}

double
scope_knob(const struct scope *s, uint32_t index)
{
    return scope_versus_knob(s, s->focus->seq, index);
}

const char *
scope_head(const struct scope *s)
{
    const struct scope_setting *setting = scope_setting_of(s, s->focus->seq);
    return setting->now.head == HEADS_POLICY
               ? ""
               : head_mode_names[setting->heads.show_trained ? HEADS_TRAINED : HEADS_LENS];
}

/* ---- positions ---- */

uint32_t
scope_first(const struct scope *s)
{
    return sequence_first(s->focus);
}

uint32_t
scope_first_cells(const struct scope *s)
{
    return s->focus->length > s->focus->max_columns ? s->focus->length - s->focus->max_columns : 0;
}

const struct scope_column *
scope_column(const struct scope *s, uint32_t pos)
{
    return sequence_column(s->focus, pos);
}

/* For any layer except the last, whose prediction is the same for both heads. */
static bool
was_asked(const struct scope *s, const struct scope_cell *cells)
{
    for (uint32_t l = 1; l < s->info->layers; l++)
        if (cells[l].known)
            return true;
    return false;
}

static const struct scope_cell *
cells_of(const struct scope *s, const struct scope_sequence *q, uint32_t pos)
{
    const struct scope_heads *heads = &scope_setting_of(s, q->seq)->heads;
    const int head = heads->show_trained && q->cells[1] != NULL ? 1 : 0;
    if (pos >= q->length || !sequence_holds_cells(q, pos))
        return NULL;
    const struct scope_cell *cells = sequence_cells(q, head, pos);
    if (!heads->other_head || q->cells[1] == NULL || was_asked(s, cells))
        return cells;
    const struct scope_cell *other = sequence_cells(q, !head, pos);
    return was_asked(s, other) ? other : cells;
}

const struct scope_cell *
scope_cells(const struct scope *s, uint32_t pos)
{
    return cells_of(s, s->focus, pos);
}

double
scope_agreement(const struct scope *s, uint32_t layer, bool trained)
{
    const struct scope_sequence *q = s->focus;
    const bool asked = layer <= s->info->layers && q->compared[layer] > 0;
    return asked ? (double)q->agreed[trained][layer] / (double)q->compared[layer] : NAN;
}

void
scope_show_head(struct scope *s, bool trained)
{
    struct scope_heads *heads = &s->setting[scope_side(s, s->focus->seq)].heads;
    heads->show_trained = trained;
    heads->other_head = false; /* the user chose this head, so positions without it stay empty */
    s->now.version++;
}

/* Returns the newest complete round, if the current policy ran it. */
static const struct round_event *
last_end(const struct scope *s)
{
    const struct scope_round *r = scope_round(s, s->focus->open ? 1 : 0);
    return r != NULL && strcmp(r->end.policy, scope_policy(s)->name) == 0 ? &r->end : NULL;
}

int32_t
scope_exit_layer(const struct scope *s)
{
    const struct round_event *r = last_end(s);
    return r != NULL && r->exit_layer >= 1 && (uint32_t)r->exit_layer <= s->info->layers ? r->exit_layer : -1;
}

int32_t
scope_d_max(const struct scope *s)
{
    const struct round_event *r = last_end(s);
    double d_max = r != NULL ? (double)r->d_max : -1;
    const int knob = policy_knob_index(scope_policy(s), "d_max");
    if (r == NULL && knob >= 0)
        d_max = scope_knob(s, (uint32_t)knob);
    return d_max >= 1 && d_max <= s->info->layers ? (int32_t)d_max : -1;
}

static float
threshold_at(const struct scope *s, const struct scope_column *c)
{
    const struct round_event *r = last_end(s);
    return isnan(c->threshold) && c->pos >= s->focus->committed && r != NULL ? r->threshold : c->threshold;
}

const struct sampling *
scope_sampling(const struct scope *s, uint64_t *seed)
{
    const struct settings *now = &scope_setting_of(s, s->focus->seq)->now;
    if (seed != NULL)
        *seed = now->seed;
    return &now->sampling;
}

token_t
scope_final_of(const struct scope *s, const struct scope_sequence *q, const struct scope_column *c)
{
    const bool targets_own =
        c->fate == FATE_PREFILL || c->fate == FATE_ACCEPTED || c->fate == FATE_CORRECTION || c->fate == FATE_BONUS;
    if (c->final != TOKEN_NONE)
        return c->final;
    return targets_own && !scope_setting_of(s, q->seq)->sampled ? c->token : TOKEN_NONE;
}

token_t
scope_final(const struct scope *s, const struct scope_column *c)
{
    return scope_final_of(s, s->focus, c);
}

static bool
is_spurious(const struct scope_cell *cell, token_t final, float threshold)
{
    return cell->known && event_spurious(cell->token, cell->confidence, final, threshold);
}

bool
scope_spurious(const struct scope *s, uint32_t pos, uint32_t layer)
{
    const struct scope_column *c = scope_column(s, pos);
    const struct scope_cell *cells = scope_cells(s, pos);
    return c != NULL && cells != NULL && layer >= 1 && layer < s->info->layers &&
           is_spurious(&cells[layer], scope_final(s, c), threshold_at(s, c));
}

static void
glimpse_at(const struct scope *s, const struct scope_sequence *q, const struct scope_column *c,
           const struct scope_cell *cells, float threshold, uint8_t *out)
{
    const token_t final = scope_final_of(s, q, c);
    for (uint32_t l = 1; l <= s->info->layers; l++)
        out[l - 1] = cells[l].known ? glimpse_make(cells[l].confidence,
                                                   l < s->info->layers && is_spurious(&cells[l], final, threshold))
                                    : 0;
}

void
scope_take_glimpse(const struct scope *s, struct scope_sequence *q, uint32_t pos)
{
    const struct scope_column *c = sequence_column(q, pos);
    const struct scope_cell *cells = c == NULL ? NULL : cells_of(s, q, pos);
    uint8_t *out = cells == NULL ? NULL : ring_keep(&q->glimpses, q->max_positions, s->info->layers, pos);
    if (out != NULL)
        glimpse_at(s, q, c, cells, c->threshold, out);
}

static bool
glimpse_of(const struct scope *s, const struct scope_sequence *q, uint32_t pos, uint8_t *out)
{
    const struct scope_column *c = sequence_column(q, pos);
    const struct scope_cell *cells = c == NULL ? NULL : cells_of(s, q, pos);
    const uint8_t *kept = c == NULL ? NULL : ring_at(&q->glimpses, pos);
    if (cells != NULL)
        glimpse_at(s, q, c, cells, q == s->focus ? threshold_at(s, c) : c->threshold, out);
    else if (kept != NULL)
        memcpy(out, kept, s->info->layers);
    return cells != NULL || kept != NULL;
}

bool
scope_glimpse(const struct scope *s, uint32_t pos, uint8_t *out)
{
    return glimpse_of(s, s->focus, pos, out);
}

uint32_t
scope_struck(const struct scope *s, const struct scope_draft **out)
{
    *out = s->focus->struck;
    return s->focus->n_struck;
}

/* ---- rounds, series, words ---- */

uint32_t
scope_rounds(const struct scope *s)
{
    return sequence_rounds(s->focus);
}

const struct scope_round *
scope_round(const struct scope *s, uint32_t back)
{
    return sequence_round(s->focus, back);
}

const struct scope_series *
scope_series(const struct scope *s, uint32_t index)
{
    return index < s->focus->n_series ? &s->focus->series[index] : NULL;
}

uint32_t
scope_round_position(const struct scope *s, uint32_t round)
{
    uint32_t low = scope_first(s), high = s->focus->length; /* round numbers ascend along the text */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct scope_column *c = scope_column(s, middle);
        if (c == NULL || c->round < round || c->fate == FATE_PROMPT || c->fate == FATE_PREFILL)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct scope_pace *
scope_round_pace(const struct scope *s, uint32_t round)
{
    const struct scope_pace *pace = &s->pace[round % SCOPE_ROUNDS];
    return pace->round == round && pace->us > 0 ? pace : NULL;
}

uint32_t
scope_round_back(const struct scope *s, uint32_t round)
{
    uint32_t low = 0, high = scope_rounds(s);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (scope_round(s, middle)->number > round)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct scope_round *
scope_round_numbered(const struct scope *s, uint32_t round)
{
    const struct scope_round *r = scope_round(s, scope_round_back(s, round));
    return r != NULL && r->number == round ? r : NULL;
}

uint32_t
scope_round_before(const struct scope *s, uint32_t round)
{
    const uint32_t pos = scope_round_position(s, round);
    const struct scope_column *c = pos > 0 ? scope_column(s, pos - 1) : NULL;
    return c != NULL && c->fate != FATE_PROMPT && c->fate != FATE_PREFILL && c->round < round ? c->round : 0;
}

uint32_t
scope_round_after(const struct scope *s, uint32_t round)
{
    const struct scope_column *c = scope_column(s, scope_round_position(s, round + 1));
    return c != NULL && c->round > round ? c->round : 0;
}

const float *
scope_round_values(const struct scope *s, uint32_t index, uint32_t round)
{
    const struct scope_series *series = scope_series(s, index);
    if (series == NULL || series->used == 0)
        return NULL;
    if (series_of_round(series->declared))
        return ring_at(&s->focus->by_round[index], round);
    const enum series_form form = series->declared->form;
    if (round >= series->reported && form != SERIES_LINE && form != SERIES_BAND)
        return series->latest;
    return round_values_up_to(&s->focus->by_round[index], round);
}

const struct scope_block *
scope_block(const struct scope *s, uint32_t round)
{
    return ring_at(&s->focus->blocks, round);
}

float
scope_block_confidence(const struct scope_block *b, uint32_t pos)
{
    const struct scope_block_row *row = b != NULL && pos - b->first < b->n ? &b->row[pos - b->first] : NULL;
    return row != NULL && (row->head[0].known || row->head[1].known) ? row->confidence : NAN;
}

static const struct scope_word *
word_of(const struct scope *s, token_t token)
{
    return token >= 0 && (uint32_t)token < s->info->vocab ? s->words[token] : NULL;
}

const char *
scope_text(const struct scope *s, token_t token)
{
    const struct scope_word *w = word_of(s, token);
    return w != NULL ? w->data + w->safe : token == TOKEN_NONE ? "" : "?";
}

const char *
scope_bytes(const struct scope *s, token_t token, uint32_t *n)
{
    const struct scope_word *w = word_of(s, token);
    *n = w != NULL ? w->n : 0; /* an unknown token's bytes are its number, ‹17› */
    return w != NULL ? w->data : NULL;
}

static bool
unsure(const struct scope_round *r, float below, struct scope_place *place)
{
    uint32_t i = 0;
    while (i < r->n_drafts && !(r->drafts[i].confidence < below))
        i++;
    if (i < r->n_drafts)
        place->pos = r->drafts[i].pos;
    return i < r->n_drafts;
}

static bool
spurious(const struct scope *s, const struct scope_sequence *q, const struct scope_round *r, struct scope_place *place)
{
    uint8_t glimpse[RUN_LAYERS_MOST];
    const struct scope_column *c;
    for (uint32_t pos = r->first_pos; (c = sequence_column(q, pos)) != NULL && pos < r->first_pos + r->end.emitted;
         pos++) {
        if (c->round != r->number || !glimpse_of(s, q, pos, glimpse))
            continue;
        for (uint32_t l = 1; l < s->info->layers; l++)
            if (glimpse_spurious(glimpse[l - 1])) {
                *place = (struct scope_place){pos, (int32_t)l};
                return true;
            }
    }
    return false;
}

/* Collects the bytes of the round's tokens, and of earlier ones in which the searched text may begin. */
static bool
text_ends(const struct scope *s, const struct scope_sequence *q, const struct scope_round *r, const struct until *u)
{
    char bytes[4096];
    size_t n = 0, fresh = 0;
    const uint32_t end = r->first_pos + r->end.emitted;
    for (uint32_t pos = end; pos > 0 && (pos > r->first_pos || n < fresh + UNTIL_TEXT_MOST); pos--) {
        const struct scope_column *c = sequence_column(q, pos - 1);
        uint32_t length = 0;
        const char *token = c != NULL ? scope_bytes(s, c->token, &length) : NULL;
        if (token == NULL || length > sizeof bytes - n)
            break;
        n += length;
        memcpy(bytes + sizeof bytes - n, token, length);
        fresh = pos > r->first_pos ? n : fresh;
    }
    return until_ends_text(u, bytes + sizeof bytes - n, n, fresh);
}

static bool
round_has(const struct scope *s, const struct scope_sequence *q, const struct scope_round *r, const struct until *u,
          struct scope_place *place)
{
    *place = (struct scope_place){.pos = r->first_pos};
    if (!r->whole)
        return false;
    switch (u->kind) {
    case UNTIL_REJECT: place->pos += r->end.accepted; return r->end.accepted < r->end.verified;
    case UNTIL_TEXT: return text_ends(s, q, r, u);
    case UNTIL_CONFIDENCE: return unsure(r, u->below, place);
    case UNTIL_SPURIOUS: return spurious(s, q, r, place);
    case UNTIL_ROUND: return r->number == u->round;
    case UNTIL_NOTHING: break;
    }
    return false;
}

bool
scope_round_has(const struct scope *s, const struct scope_round *r, const struct until *u, struct scope_place *place)
{
    return round_has(s, s->focus, r, u, place);
}

bool
scope_has_come(const struct scope *s, uint32_t seq, const struct until *u)
{
    struct scope_place place;
    const struct scope_sequence *q = scope_held(s, seq);
    return q != NULL && sequence_rounds(q) > 0 && round_has(s, q, sequence_round(q, 0), u, &place);
}

uint32_t
scope_find_round(const struct scope *s, const struct until *u, uint32_t number, bool before, struct scope_place *place)
{
    const struct scope_round *r;
    struct scope_place at;
    uint32_t found = 0;
    for (uint32_t back = 0; (r = scope_round(s, back)) != NULL && (before || r->number > number); back++) {
        if ((before && r->number >= number) || !scope_round_has(s, r, u, &at))
            continue;
        found = r->number;
        *place = at;
        if (before)
            break;
    }
    return found;
}

const char *const window_names[WINDOWS] = {"segment", "last", "run"};

void
scope_show_window(struct scope *s, enum scope_window window)
{
    s->now.window = window;
    s->now.version++;
}

/* Returns the newest segment of the run for the sequence in focus; NULL: no round yet. */
static const struct segment *
newest_segment(const struct scope *s)
{
    const struct segment *at;
    uint32_t back = 0;
    while ((at = segments_at(s->segments, back)) != NULL && !segment_concerns(at, s->focus->seq))
        back++;
    return at != NULL && at->run == s->now.run ? at : NULL;
}

void
scope_window_name(const struct scope *s, char *out, size_t n)
{
    const struct segment *segment = newest_segment(s);
    char letter[8] = "";
    if (segment != NULL)
        segment_letter(segment->number, letter);
    if (s->now.window == WINDOW_SEGMENT)
        snprintf(out, n, "segment%s%s", segment != NULL ? " " : "", letter);
    else if (s->now.window == WINDOW_LATEST)
        snprintf(out, n, "last %d rounds", METRICS_WINDOW);
    else
        snprintf(out, n, "run");
}

struct window_measures
scope_window_measures(const struct scope *s)
{
    const struct metrics *m = &s->now.metrics;
    const struct segment *segment = newest_segment(s), empty = {0};
    struct window_measures w = {.speedup = {.value = NAN, .se = NAN}};
    struct tally t;
    switch (s->now.window) {
    case WINDOW_LATEST:
        t = metrics_window(m);
        w.with = metrics_estimates(m);
        break;
    case WINDOW_RUN:
        t = m->total;
        w.with = metrics_run_estimates(m);
        w.speedup = sliced_speedup(&m->sliced);
        break;
    default:
        segment = segment != NULL ? segment : &empty;
        t = segment->total;
        w.with = segment_estimates(segment, s->info);
        w.speedup = sliced_speedup(&segment->sliced);
        break;
    }
    w.of = metrics_measures(m, &t);
    if (isnan(w.speedup.value))
        w.speedup.value = w.of.speedup;
    w.of.overhead *= w.speedup.value / w.of.speedup;
    w.of.speedup_all_in *= w.speedup.value / w.of.speedup;
    w.of.speedup = w.speedup.value;
    return w;
}
