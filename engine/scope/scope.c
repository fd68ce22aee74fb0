#include "engine/scope/scope.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/scope/scope_internal.h"

#define MAX_VOCABULARY (1u << 24)
#define MAX_WORD       256 /* bytes kept of a token's text */

/* ---- the vocabulary ---- */

static bool
valid_token(const struct scope *s, token_t token)
{
    return token >= 0 && (uint32_t)token < s->info->vocab;
}

static struct scope_word *
make_word(const char *bytes, uint32_t n)
{
    struct scope_word *w = malloc(sizeof *w + 5 * (size_t)n + 1);
    if (w == NULL)
        return NULL;
    w->n = n;
    w->safe = n;
    if (n > 0)
        memcpy(w->data, bytes, n);
    printable_text(w->data, n, w->data + n, 4 * (size_t)n + 1);
    return w;
}

void
scope_vocab_event(struct scope *s, const struct vocab_event *v)
{
    if (!valid_token(s, v->token) || (v->bytes == NULL && v->n_bytes > 0))
        return;
    struct scope_word **at = &s->words[v->token];
    struct scope_word *w = make_word(v->bytes, v->n_bytes < MAX_WORD ? v->n_bytes : MAX_WORD);
    s->now.starved = s->now.starved || w == NULL;
    if (w == NULL)
        return;
    free(*at);
    *at = w;
}

void
scope_need_word(struct scope *s, token_t token)
{
    if (!valid_token(s, token) || s->words[token] != NULL)
        return;
    char text[24];
    snprintf(text, sizeof text, "‹%d›", (int)token);
    s->words[token] = make_word(text, (uint32_t)strlen(text));
    s->now.starved = s->now.starved || s->words[token] == NULL;
}

/* ---- opening and closing ---- */

static const struct policy_info no_policy = {.name = "–", .title = "unknown"};

const struct policy_info *
scope_policy(const struct scope *s)
{
    return scope_chosen_policy(s) != NULL ? scope_chosen_policy(s) : &no_policy;
}

void
scope_begin_run(struct scope *s)
{
    s->now.versus = NULL;
    s->now.epoch++;
    s->now.round = 0;
    s->now.n_notes = 0;
    s->now.end[0] = '\0';
    s->now.length = s->now.committed = 0;
    scope_forget_members(s);
    memset(s->pace, 0, sizeof s->pace);
    for (int i = 0; i < 2; i++) {
        s->setting[i].sampled = s->setting[i].now.sampling.temperature > 0;
        aggregates_reset(&s->setting[i].of_run);
        aggregates_reset(&s->setting[i].of_segment);
    }
    sequence_begin(s->focus, scope_chosen_policy(s));
}

void
scope_reset(struct scope *s)
{
    s->now.version++;
    s->now.lost = 0;
    s->now.run = 0;
    s->now.running = true;
    s->now.probe[0] = s->now.device[0] = s->now.server[0] = '\0';
    s->now.emitted = s->now.outputs = 0;
    s->now.costs = s->info->costs;
    for (uint32_t i = 0; i < 2; i++) {
        settings_begin(&s->setting[i].now, run_info_of(s->info, i));
        s->setting[i].heads = (struct scope_heads){.show_trained = false};
    }
    s->now.versus = NULL;
    s->now.progress = NULL;
    metrics_begin(&s->now.metrics, s->info->layers, s->info->rho);
    segments_reset(s->segments);
    for (uint32_t i = 0; i < s->info->vocab; i++) {
        free(s->words[i]);
        s->words[i] = NULL;
    }
    scope_begin_run(s);
}

bool
scope_open(struct scope **out, const struct run_info *info, struct err *err)
{
    *out = NULL;
    if (info->layers == 0 || info->layers > RUN_LAYERS_MOST || info->vocab > MAX_VOCABULARY)
        return err_set(err, ERR_WORK,
                       "a model of %u layers and %u tokens cannot be shown; at most %u layers and %u tokens",
                       (unsigned)info->layers, (unsigned)info->vocab, RUN_LAYERS_MOST, (unsigned)MAX_VOCABULARY);
    struct scope *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory for the screen's model");
    s->info = info;
    s->words = calloc((size_t)info->vocab + 1, sizeof(struct scope_word *));
    s->rank = calloc(1, sizeof *s->rank);
    bool settings = true;
    for (int i = 0; i < 2; i++) {
        settings = settings && aggregates_open(&s->setting[i].of_run, info->layers) &&
                   aggregates_open(&s->setting[i].of_segment, info->layers);
    }
    s->focus = sequence_open(info, NULL, info->sequences);
    if (s->words == NULL || !settings || s->focus == NULL || !segments_open(&s->segments, info, NULL)) {
        scope_close(s);
        return err_set(err, ERR_WORK, "out of memory for the screen's model");
    }
    s->now.segments = s->segments;
    scope_reset(s);
    *out = s;
    return true;
}

void
scope_close(struct scope *s)
{
    if (s == NULL)
        return;
    for (uint32_t i = 0; s->words != NULL && i < s->info->vocab; i++)
        free(s->words[i]);
    scope_forget_members(s);
    sequence_close(s->focus);
    free(s->members);
    free(s->round_members);
    segments_close(s->segments);
    if (s->rank != NULL)
        draft_rank_close(s->rank);
    free(s->rank);
    free(s->words);
    for (int i = 0; i < 2; i++) {
        aggregates_close(&s->setting[i].of_run);
        aggregates_close(&s->setting[i].of_segment);
    }
    free(s);
}

/* Reads "POSITION TEXT": replaces the note at this position of the sequence; an empty text removes it. */
void
scope_note_event(struct scope *s, const struct event *e)
{
    char *text = NULL;
    const unsigned long pos = strtoul(e->control.new_text, &text, 10);
    uint32_t i = 0;
    if (text == e->control.new_text || pos >= UINT32_MAX)
        return;
    while (i < s->now.n_notes &&
           (s->now.notes[i].seq < e->seq || (s->now.notes[i].seq == e->seq && s->now.notes[i].pos < pos)))
        i++;
    const bool there = i < s->now.n_notes && s->now.notes[i].seq == e->seq && s->now.notes[i].pos == pos;
    text += text[0] == ' ';
    if (there && text[0] == '\0') {
        s->now.n_notes--;
        memmove(&s->now.notes[i], &s->now.notes[i + 1], (s->now.n_notes - i) * sizeof s->now.notes[0]);
        return;
    }
    if (text[0] == '\0' || (!there && s->now.n_notes == SCOPE_NOTES))
        return;
    if (!there) {
        memmove(&s->now.notes[i + 1], &s->now.notes[i], (s->now.n_notes - i) * sizeof s->now.notes[0]);
        s->now.n_notes++;
    }
    s->now.notes[i] = (struct scope_note){.seq = e->seq, .pos = (uint32_t)pos, .t_us = e->t_us};
    printable_text(text, strnlen(text, sizeof s->now.notes[i].text), s->now.notes[i].text, sizeof s->now.notes[i].text);
}

const struct scope_note *
scope_note_at(const struct scope *s, uint32_t seq, uint32_t pos)
{
    for (uint32_t i = 0; i < s->now.n_notes; i++)
        if (s->now.notes[i].seq == seq && s->now.notes[i].pos == pos)
            return &s->now.notes[i];
    return NULL;
}
