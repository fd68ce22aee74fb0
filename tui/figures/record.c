#include "tui/figures/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/utf8.h"
#include "engine/events/sampling_knobs.h"

/* The state while events are read. */
struct reading {
    struct record *r;
    const struct record_wanted *want;
    struct segments *segments;       /* of the run and those before it */
    bool begun, focused, scope_done; /* begun: the first round of the range has its first event */
    uint32_t first_token_pos;
    uint32_t lines, lines_round; /* lines so far of the newest round */
    bool no_memory;
};

#define PUSH(t, list, ...)                                                                                             \
    do {                                                                                                               \
        struct record *pushed = (t)->r;                                                                                \
        if (array_grow(&pushed->list, &pushed->most_##list, pushed->n_##list + 1, sizeof *pushed->list))               \
            pushed->list[pushed->n_##list++] = __VA_ARGS__;                                                            \
        else                                                                                                           \
            (t)->no_memory = true;                                                                                     \
    } while (0)

static bool
in_range(const struct reading *t, uint32_t round)
{
    return round >= t->want->from && round <= t->want->to;
}

/* ---- settings ---- */

/* Returns the number of the sequence whose settings count. */
static uint32_t
settings_seq(const struct reading *t)
{
    return t->want->seq > 0 ? (uint32_t)t->want->seq : 0;
}

static const struct policy_info *
policy_now(const struct reading *t)
{
    const uint32_t policy = segments_now(t->segments)->policy;
    return &t->r->info->policies[policy < t->r->info->n_policies ? policy : 0];
}

static void
begin_round(struct reading *t)
{
    if (!t->begun)
        t->r->policy = policy_now(t);
    t->begun = true;
}

static void
add_change(struct reading *t, const struct segment *s, const struct segment_change *c)
{
    const struct policy_info *policy = &t->r->info->policies[s->policy];
    const int knob = policy_knob_index(policy, c->name);
    struct record_change change = {.round = s->first_round};
    if (knob >= 0)
        snprintf(change.text, sizeof change.text, "%s %.20s → %.20s",
                 policy->knobs[knob].symbol[0] != '\0' ? policy->knobs[knob].symbol : c->name, c->before, c->after);
    else
        snprintf(change.text, sizeof change.text, "%s %.20s", c->name, c->after);
    if (knob >= 0 || sampling_knob_index(c->name) < 0)
        PUSH(t, changes, change);
}

/* Lists the settings of the rounds in the range, and the changes after its first round. */
static void
list_settings(struct reading *t)
{
    struct record *r = t->r;
    const uint32_t first = r->n_rounds > 0 ? r->rounds[0].number : 0;
    for (uint32_t back = segments_held(t->segments); back-- > 0;) {
        const struct segment *s = segments_at(t->segments, back);
        if (s->run != r->run || s->policy >= r->info->n_policies)
            continue;
        r->versus = r->versus || s->versus;
        if (!segment_concerns(s, settings_seq(t)) || s->first_round > t->want->to)
            continue;
        struct record_setting setting = {.round = s->first_round,
                                         .policy = &r->info->policies[s->policy],
                                         .trained = strcmp(s->head, "trained") == 0};
        memcpy(setting.knobs, s->value, sizeof setting.knobs);
        if (s->first_round <= first)
            r->n_settings = 0;
        PUSH(t, settings, setting);
        for (uint32_t i = 0; i < s->n_changes && s->first_round > first; i++)
            add_change(t, s, &s->change[i]);
    }
}

/* ---- rounds ---- */

static struct record_draft *
draft_of(struct reading *t, const struct event *e, int32_t candidate)
{
    for (size_t i = t->r->n_drafts; i-- > 0 && t->r->drafts[i].round == e->round;)
        if (t->r->drafts[i].candidate == candidate && t->r->drafts[i].seq == e->seq)
            return &t->r->drafts[i];
    return NULL;
}

static void
read_layer(struct reading *t, const struct event *e)
{
    const struct layer_event *g = &e->layer;
    if (g->model == MODEL_BLOCK && g->probed_by == PROBED_POLICY && !isnan(g->acceptance) && in_range(t, e->round))
        PUSH(t, forecasts, (struct record_forecast){e->round, e->seq, g->pos, g->acceptance});
}

/* Returns the confidence of a draft: the forecast about it comes before it, in its round. */
static float
confidence_of(const struct record *r, const struct event *e)
{
    for (size_t i = r->n_forecasts; i-- > 0 && r->forecasts[i].round == e->round;)
        if (r->forecasts[i].pos == e->token.pos && r->forecasts[i].seq == e->seq)
            return r->forecasts[i].p;
    return e->token.confidence;
}

static void
read_token(struct reading *t, const struct event *e)
{
    const struct token_event *k = &e->token;
    if (k->source == SOURCE_PREFILL)
        t->first_token_pos = k->pos;
    if (k->source == SOURCE_PROMPT)
        t->r->prompt = splitmix64_mix(t->r->prompt + (uint64_t)k->token + 1);
    if (k->source == SOURCE_DRAFT) {
        const struct record_draft *parent = k->parent > 0 ? draft_of(t, e, k->parent) : NULL;
        if (k->parent < 0 || (k->parent > 0 && parent == NULL) || !in_range(t, e->round))
            return;
        begin_round(t);
        const struct record_draft draft = {.round = e->round, /* before the list moves, and the parent with it */
                                           .seq = e->seq,
                                           .pos = k->pos,
                                           .depth = parent != NULL ? parent->depth + 1 : 1,
                                           .parent = k->parent,
                                           .candidate = k->candidate,
                                           .exit_layer = k->exit_layer,
                                           .token = k->token,
                                           .confidence = confidence_of(t->r, e),
                                           .accepted = -1,
                                           .committed = -1};
        PUSH(t, drafts, draft);
    } else if (k->source != SOURCE_PROMPT && k->committed != 0 &&
               (k->source == SOURCE_PREFILL || in_range(t, e->round))) {
        PUSH(t, tokens, (struct record_token){.seq = e->seq, .pos = k->pos, .token = k->token});
    }
}

static void
read_verdict(struct reading *t, const struct event *e)
{
    struct record_draft *d = draft_of(t, e, e->verdict.candidate);
    if (d == NULL || d->accepted >= 0)
        return;
    d->accepted = e->verdict.accepted > 0;
    d->committed = e->verdict.committed > 0;
    if (d->committed)
        PUSH(t, tokens, (struct record_token){.seq = e->seq, .pos = d->pos, .token = d->token});
}

/* Verdicts come in any order: now they are all there. */
static void
read_round(struct reading *t, const struct event *e)
{
    struct step_draft drafts[VERIFY_NODES];
    struct draft_step steps[VERIFY_NODES];
    uint32_t n = 0;
    if (!in_range(t, e->round))
        return;
    begin_round(t);
    PUSH(t, rounds, (struct record_round){.number = e->round, .seq = e->seq, .lines = t->lines, .end = e->round_end});
    size_t first = t->r->n_drafts;
    while (first > 0 && t->r->drafts[first - 1].round == e->round)
        first--;
    for (size_t i = first; i < t->r->n_drafts; i++) {
        const struct record_draft *d = &t->r->drafts[i];
        if (d->seq == e->seq && n < VERIFY_NODES)
            drafts[n++] = (struct step_draft){.parent = d->parent,
                                              .candidate = d->candidate,
                                              .exit_layer = d->exit_layer,
                                              .confidence = d->confidence,
                                              .accepted = d->accepted};
    }
    n = draft_steps(drafts, n, steps);
    for (uint32_t i = 0; i < n; i++)
        PUSH(t, steps, steps[i]);
}

static void
read_series(struct reading *t, const struct event *e)
{
    const int i = policy_series_index(policy_now(t), e->series.key);
    if (i < 0 || e->round > t->want->to || (t->begun && t->r->policy != policy_now(t)))
        return;
    if (in_range(t, e->round))
        begin_round(t);
    PUSH(t, values,
         (struct record_value){.round = e->round, .series = i, .index = e->series.index, .value = e->series.value});
}

/* each ROUND event contains the number of sequences */
static void
count_line(struct reading *t, const struct event *e)
{
    t->lines = e->round == t->lines_round ? t->lines + 1 : 1;
    t->lines_round = e->round;
    for (size_t i = t->r->n_rounds; i > 0 && t->r->rounds[i - 1].number == e->round; i--)
        t->r->rounds[i - 1].lines = t->lines;
}

static void
read_vocab(struct reading *t, const struct event *e)
{
    struct record *r = t->r;
    if (r->texts == NULL && (r->texts = calloc(r->info->vocab, sizeof *r->texts)) == NULL)
        t->no_memory = true;
    else
        printable_text(e->vocab.bytes, e->vocab.n_bytes, r->texts[e->vocab.token], sizeof *r->texts);
}

static void
read_for_scope(struct reading *t, const struct event *e)
{
    if (t->r->scope == NULL || t->scope_done || e->run > t->r->run)
        return;
    scope_event(t->r->scope, e);
    t->focused = t->focused || scope_set_focus(t->r->scope, settings_seq(t));
    const uint64_t to = t->want->scope_to != UINT32_MAX ? t->want->scope_to : (uint64_t)t->first_token_pos + SCOPE_SPAN;
    t->scope_done = e->type == EVENT_ROUND && e->run == t->r->run && scope_now(t->r->scope)->committed > to;
}

static void
read_event(struct reading *t, const struct event *e)
{
    const bool of_sequence = e->type == EVENT_TOKEN || e->type == EVENT_VERDICT || e->type == EVENT_LAYER ||
                             e->type == EVENT_SERIES || e->type == EVENT_EXPERTS || e->type == EVENT_ROUND;
    if (e->type == EVENT_ROUND && e->run == t->r->run)
        count_line(t, e);
    if (of_sequence && t->want->seq >= 0 && e->seq != t->want->seq)
        return;
    read_for_scope(t, e);
    if (e->run <= t->r->run)
        segments_event(t->segments, e);
    if (e->type == EVENT_VOCAB)
        read_vocab(t, e);
    if (e->run != t->r->run)
        return;
    if ((e->type == EVENT_ROUND && in_range(t, e->round)) || (e->type == EVENT_CONTROL && e->control.new_text != NULL))
        metrics_event(&t->r->metrics, e);
    switch (e->type) {
    case EVENT_TOKEN: read_token(t, e); break;
    case EVENT_LAYER: read_layer(t, e); break;
    case EVENT_VERDICT: read_verdict(t, e); break;
    case EVENT_ROUND: read_round(t, e); break;
    case EVENT_SERIES: read_series(t, e); break;
    default: break;
    }
}

/* ---- the whole ---- */

static int
by_place(const void *a, const void *b)
{
    const struct record_token *x = a, *y = b;
    return x->seq != y->seq ? (x->seq > y->seq) - (x->seq < y->seq) : (x->pos > y->pos) - (x->pos < y->pos);
}

/* Returns the selected run, or the last one with a round. */
static bool
find_run(struct record *r, const struct record_wanted *want, struct err *err)
{
    struct event e;
    struct err stop = {0};
    uint32_t last = 0;
    bool there = false;
    while (trace_reader_next(r->reader, &e, &stop))
        if (e.type == EVENT_ROUND) {
            last = e.run;
            there = there || want->run == 0 || e.run == want->run;
        }
    if (stop.kind != ERR_NONE)
        return err_copy(err, &stop);
    if (last == 0)
        return err_set(err, ERR_USAGE, "%s: this trace has no whole round, so there is nothing to draw", r->path);
    if (!there)
        return err_set(err, ERR_USAGE, "%s: there is no round of run %u; its last one is run %u", r->path,
                       (unsigned)want->run, (unsigned)last);
    r->run = want->run > 0 ? want->run : last;
    return trace_reader_rewind(r->reader, false, err);
}

bool
record_prediction(struct record *r, uint32_t seq, uint32_t pos, struct layer_event *out)
{
    struct event e;
    struct err err = {0};
    bool found = false, over = false;
    if (!trace_reader_rewind(r->reader, false, &err))
        return false;
    while (!over && trace_reader_next(r->reader, &e, &err)) {
        const bool ours = e.run == r->run && e.seq == seq;
        if (ours && e.type == EVENT_LAYER && e.layer.model == MODEL_TARGET && e.layer.pos == pos &&
            (uint32_t)e.layer.layer == r->info->layers && e.layer.top[0] != TOKEN_NONE) {
            *out = e.layer;
            found = true;
        }
        over = found && ours && e.type == EVENT_ROUND;
    }
    return found;
}

struct tally
record_tally(const struct record_round *r)
{
    struct tally t = tally_of(&r->end);
    t.shared = (double)t.emitted - (double)t.emitted / r->lines;
    return t;
}

static bool
read_all(struct record *r, const struct record_wanted *want, struct err *err)
{
    struct reading *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    *t = (struct reading){.r = r, .want = want};
    if (!segments_open(&t->segments, r->info, err)) {
        free(t);
        return false;
    }
    segments_focus(t->segments, settings_seq(t));
    metrics_begin(&r->metrics, r->info->layers, r->info->rho);
    struct event e;
    struct err stop = {0};
    while (!t->no_memory && trace_reader_next(r->reader, &e, &stop))
        read_event(t, &e);
    list_settings(t);
    const bool no_memory = t->no_memory;
    for (size_t i = 0; i < r->n_rounds && want->seq >= 0; i++) /* the measures have seen one sequence's lines */
        r->metrics.total.shared += record_tally(&r->rounds[i]).shared;
    segments_close(t->segments);
    free(t);
    if (stop.kind != ERR_NONE)
        return err_copy(err, &stop);
    r->baseline = r->metrics.baseline;
    return !no_memory || err_set(err, ERR_WORK, "out of memory for the events of %s", r->path);
}

bool
record_open(struct record *r, const char *folder, const struct record_wanted *want, struct err *err)
{
    *r = (struct record){.path = folder};
    if (!trace_reader_open(&r->reader, folder, false, err))
        return false;
    r->info = trace_reader_info(r->reader);
    if (!find_run(r, want, err) || (want->scope && !scope_open(&r->scope, r->info, err)) || !read_all(r, want, err))
        return false;
    if (r->n_rounds == 0 && want->seq > 0)
        return err_set(err, ERR_USAGE,
                       "%s: sequence %lld has no round there; read_event another --seq or another range", folder,
                       (long long)want->seq + 1);
    if (r->n_rounds == 0)
        return err_set(err, ERR_USAGE, "%s: run %u has no round from %u to %u", folder, (unsigned)r->run,
                       (unsigned)want->from, (unsigned)want->to);
    if (r->n_tokens > 0) /* the list of none may be NULL */
        qsort(r->tokens, r->n_tokens, sizeof *r->tokens, by_place);
    return true;
}

void
record_close(struct record *r)
{
    if (r->scope != NULL)
        scope_close(r->scope);
    if (r->reader != NULL) /* the scope borrows the reader's info */
        trace_reader_close(r->reader);
    free(r->rounds);
    free(r->drafts);
    free(r->forecasts);
    free(r->steps);
    free(r->tokens);
    free(r->values);
    free(r->changes);
    free(r->settings);
    free(r->texts);
    *r = (struct record){0};
}

/* ---- reading a record ---- */

const struct record_setting *
record_setting(const struct record *r, uint32_t round)
{
    size_t i = 0;
    while (i + 1 < r->n_settings && r->settings[i + 1].round <= round)
        i++;
    return &r->settings[i];
}

void
record_values(const struct record *r, int series, int index, double *out)
{
    const bool of_round = series_of_round(&r->policy->series[series]);
    double held = NAN;
    size_t at = 0;
    for (size_t i = 0; i < r->n_rounds; i++) {
        if (of_round)
            held = NAN;
        for (; at < r->n_values && r->values[at].round <= r->rounds[i].number; at++)
            if (r->values[at].series == series && r->values[at].index == index &&
                (!of_round || r->values[at].round == r->rounds[i].number))
                held = (double)r->values[at].value;
        if (strcmp(r->rounds[i].end.policy, r->policy->name) != 0)
            held = NAN;
        out[i] = held;
    }
}

/* ---- courses ---- */

bool
course_open(struct course *c, const struct record *r, struct err *err)
{
    *c = (struct course){.r = r, .n = r->n_rounds + 1};
    c->seconds = calloc(2 * c->n, sizeof *c->seconds);
    if (c->seconds == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    c->tokens = c->seconds + c->n;
    for (size_t i = 0; i < r->n_rounds; i++) {
        const struct round_event *e = &r->rounds[i].end;
        c->seconds[i + 1] = c->seconds[i] + ((double)e->draft_us + (double)e->verify_us) * 1e-6;
        c->tokens[i + 1] = c->tokens[i] + e->emitted;
    }
    return true;
}

void
course_close(struct course *c)
{
    free(c->seconds);
    *c = (struct course){0};
}

double
course_when(const struct course *c, double tokens)
{
    size_t i = 1;
    while (i + 1 < c->n && c->tokens[i] < tokens)
        i++;
    const double n = c->tokens[i] - c->tokens[i - 1];
    return n > 0 ? c->seconds[i - 1] + (c->seconds[i] - c->seconds[i - 1]) * (tokens - c->tokens[i - 1]) / n
                 : c->seconds[i];
}

size_t
texts_common(const struct record *a, const struct record *b)
{
    size_t n = 0;
    const uint64_t x = a->info->model_hash, y = b->info->model_hash; /* 0: a server's model is not known */
    if (a->prompt != b->prompt || (x != y && x != 0 && y != 0))
        return TEXTS_APART;
    while (n < a->n_tokens && n < b->n_tokens && a->tokens[n].token == b->tokens[n].token &&
           a->tokens[n].pos == b->tokens[n].pos)
        n++;
    return n;
}

bool
texts_part(const struct record *a, const struct record *b, size_t common)
{
    return common != TEXTS_APART && common < a->n_tokens && common < b->n_tokens;
}
