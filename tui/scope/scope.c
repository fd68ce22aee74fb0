#include "tui/scope/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "tui/scope/scope_internal.h"

#define MAX_LAYERS     4096
#define MAX_VOCABULARY (1u << 24)
#define MAX_WORD       256 /* bytes held of a token's text */

/* ---- the vocabulary ---- */

static bool
valid_token(const struct scope *s, token_t token)
{
    return token >= 0 && (uint32_t)token < s->info->vocab;
}

static struct scope_word *
make_word(const char *bytes, uint32_t n, bool known)
{
    struct scope_word *w = malloc(sizeof *w + 5 * (size_t)n + 1);
    if (w == NULL)
        return NULL;
    w->n = n;
    w->safe = n;
    w->known = known;
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
    struct scope_word *w = make_word(v->bytes, v->n_bytes < MAX_WORD ? v->n_bytes : MAX_WORD, true);
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
    s->words[token] = make_word(text, (uint32_t)strlen(text), false);
}

/* ---- life ---- */

static const struct policy_info no_policy = {.name = "–", .title = "unknown"};

const struct policy_info *
scope_policy(const struct scope *s)
{
    return s->policy < s->info->n_policies ? &s->info->policies[s->policy] : &no_policy;
}

static void
clear_series(struct scope *s)
{
    const struct policy_info *policy = scope_policy(s);
    s->n_series = policy->n_series < POLICY_SERIES ? policy->n_series : POLICY_SERIES;
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        struct scope_series *series = &s->series[i];
        series->declared = i < s->n_series ? &policy->series[i] : NULL;
        series->count = 0;
        series->used = 0;
        series->last_change = 0;
        for (uint32_t k = 0; k < series->cells; k++)
            series->latest[k] = NAN;
        memset(series->changed, 0, series->cells * sizeof *series->changed);
    }
}

void
scope_choose_policy(struct scope *s, const char *name)
{
    const struct policy_info *policy = run_info_policy(s->info, name);
    if (policy == NULL || policy == scope_policy(s))
        return;
    s->policy = (uint32_t)(policy - s->info->policies);
    memset(s->knob_events, 0, sizeof s->knob_events);
    clear_series(s);
}

void
scope_begin_run(struct scope *s)
{
    s->now.epoch++;
    s->now.round = 0;
    s->seq_known = false;
    s->now.end[0] = '\0';
    s->now.length = s->now.committed = s->base = 0;
    memset(s->cells_of, 0, SCOPE_COLUMNS * sizeof *s->cells_of);
    memset(s->probed, 0, (s->info->layers + 1) * sizeof *s->probed);
    memset(s->compared, 0, (s->info->layers + 1) * sizeof *s->compared);
    for (int head = 0; head < 2; head++)
        memset(s->agreed[head], 0, (s->info->layers + 1) * sizeof *s->agreed[head]);
    s->n_rounds = 0;
    s->open = false;
    s->n_struck = 0;
    clear_series(s);
}

void
scope_reset(struct scope *s)
{
    s->now.version++;
    s->now.lost = 0;
    s->now.run = 0;
    s->now.running = true;
    s->now.probe[0] = s->head[0] = '\0';
    s->show_trained = false;
    memset(s->knob_events, 0, sizeof s->knob_events);
    s->in_progress = false;
    metrics_begin(&s->now.metrics, s->info->layers, s->info->rho);
    for (uint32_t i = 0; i < s->info->vocab; i++) {
        free(s->words[i]);
        s->words[i] = NULL;
    }
    s->policy = s->info->n_policies;
    scope_choose_policy(s, s->info->policy);
    for (uint32_t i = 0; i < s->info->n_policies; i++)
        for (uint32_t k = 0; k < POLICY_KNOBS; k++)
            s->values[i * POLICY_KNOBS + k] = s->info->start_values != NULL
                                                  ? s->info->start_values[i * POLICY_KNOBS + k]
                                                  : s->info->policies[i].knobs[k].def;
    scope_begin_run(s);
}

/* Series number i of whatever policy is chosen must fit. */
static bool
open_series(struct scope *s)
{
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        struct scope_series *series = &s->series[i];
        series->cells = SCOPE_BARS;
        for (uint32_t p = 0; p < s->info->n_policies; p++)
            if (i < s->info->policies[p].n_series && series_cells(&s->info->policies[p].series[i]) > series->cells)
                series->cells = series_cells(&s->info->policies[p].series[i]);
        series->ring = calloc(SCOPE_SERIES, sizeof *series->ring);
        series->latest = calloc(series->cells, sizeof *series->latest);
        series->changed = calloc(series->cells, sizeof *series->changed);
        if (series->ring == NULL || series->latest == NULL || series->changed == NULL)
            return false;
    }
    return true;
}

bool
scope_open(struct scope **out, const struct run_info *info, struct err *err)
{
    *out = NULL;
    if (info->layers == 0 || info->layers > MAX_LAYERS || info->vocab > MAX_VOCABULARY)
        return err_set(err, ERR_WORK,
                       "a model of %u layers and %u tokens cannot be shown; at most %d layers and %u tokens",
                       (unsigned)info->layers, (unsigned)info->vocab, MAX_LAYERS, (unsigned)MAX_VOCABULARY);
    struct scope *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory for the screen's model");
    s->info = info;
    const size_t layers = info->layers + 1;
    s->words = calloc((size_t)info->vocab + 1, sizeof(struct scope_word *));
    s->values = calloc((size_t)info->n_policies * POLICY_KNOBS + 1, sizeof *s->values);
    s->columns = calloc(SCOPE_POSITIONS, sizeof *s->columns);
    s->cells_of = calloc(SCOPE_COLUMNS, sizeof *s->cells_of);
    s->cells[0] = calloc(SCOPE_COLUMNS * layers, sizeof *s->cells[0]);
    s->compared = calloc(layers, sizeof *s->compared);
    s->agreed[0] = calloc(layers, sizeof *s->agreed[0]);
    s->agreed[1] = calloc(layers, sizeof *s->agreed[1]);
    s->probed = calloc(layers, sizeof *s->probed);
    s->rounds = calloc(SCOPE_ROUNDS, sizeof *s->rounds);
    if (s->words == NULL || s->values == NULL || s->columns == NULL || s->cells_of == NULL || s->cells[0] == NULL ||
        s->compared == NULL || s->agreed[0] == NULL || s->agreed[1] == NULL || s->probed == NULL || s->rounds == NULL ||
        !open_series(s)) {
        scope_close(s);
        return err_set(err, ERR_WORK, "out of memory for the screen's model");
    }
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
    for (uint32_t i = 0; i < POLICY_SERIES; i++) {
        free(s->series[i].ring);
        free(s->series[i].latest);
        free(s->series[i].changed);
    }
    free(s->words);
    free(s->values);
    free(s->columns);
    free(s->cells_of);
    for (int head = 0; head < 2; head++) {
        free(s->cells[head]);
        free(s->agreed[head]);
    }
    free(s->probed);
    free(s->compared);
    free(s->rounds);
    free(s);
}
