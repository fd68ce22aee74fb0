#include "engine/scoring/scoring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/measure/forecast.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/scoring/reading.h"
#include "engine/tune/score.h"

#define PILOT     8     /* conversations on whose first answers settings are chosen */
#define COMPARED  2048  /* tokens that are compared with the target's own choice */
#define ACCEPTING 64    /* rows of the record in which everything is accepted */
#define COSTS_US  1e7   /* that measuring the costs of steps may take */
#define REPORT_US 200e3 /* between two reports */

struct entry {    /* of a number in the score */
    int drafter;  /* index in the reading's drafters; -1: none */
    bool trained; /* reads layers with trained heads */
};

struct answer {   /* with everything before it */
    token_t *ids; /* (n) owned */
    uint32_t n, n_prompt;
};

struct scoring {
    struct engine *engine;
    const struct scoring_options *o;
    const struct texts *texts;
    size_t *order;           /* (texts->n) conversations in the order in which they are read */
    struct policy *policies; /* (n_policies) owned; with o->set their values are those of the further setting */
    size_t n_policies;
    struct model_info model;
    struct prompt_format messages, plain;
    uint32_t ctx;
    struct reading *reading;
    struct score *score;
    struct entry entry[SCORE_ROWS];
    uint32_t n_entries;
    bool lens, trained;   /* layers are probed with these heads */
    uint32_t draft_vocab; /* lens: over a draft vocabulary with this base; 0: over all tokens */
    char layers_why[112]; /* why layers are not probed with the lens; "" */
    struct score_report *report;
    double start_us, reported_us;
};

/* ---- which layers are probed ---- */

/* Fills a record in which all layers and the target agree. */
static bool
accept_all(struct layer_record *r, const struct scoring *s, struct err *err)
{
    struct layer_sample *samples = calloc(s->model.layers, sizeof *samples);
    if (samples == NULL || !layer_record_open(r, s->model.layers, err)) {
        free(samples);
        return samples != NULL || err_set(err, ERR_WORK, "out of memory for a record");
    }
    for (uint32_t l = 0; l < s->model.layers; l++)
        samples[l] = (struct layer_sample){.agrees = true, .confidence = 1, .top_p = {1}};
    for (uint32_t row = 0; row < ACCEPTING; row++)
        layer_record_add(r, samples, s->model.vocab);
    free(samples);
    r->accepts = true;
    r->head_load = r->layers_load = 1;
    r->probes = KV_CACHE_PROBES;
    layer_record_order(r, s->engine->rank.vocab > 0 ? &s->engine->rank : NULL);
    return true;
}

/* Returns the highest forecast of a policy on a record that accepts everything: at its defaults, and with each knob at
 * either end. `base`: of the draft vocabulary. 0: it does not draft with layers. */
static double
ceiling_of(const struct scoring *s, const struct policy *p, const struct layer_record *accepting, uint32_t base)
{
    const struct cost_model *costs = cost_known(&s->engine->costs) ? &s->engine->costs : NULL;
    double highest = 0;
    for (uint32_t i = 0; i < 2 * p->info.n_knobs + 1; i++) {
        double values[POLICY_KNOBS];
        struct forecast f;
        for (uint32_t k = 0; k < p->info.n_knobs; k++)
            values[k] = p->info.knobs[k].def;
        if (i > 0)
            values[(i - 1) / 2] = i % 2 == 0 ? p->info.knobs[(i - 1) / 2].min : p->info.knobs[(i - 1) / 2].max;
        if (p->ops->draft_vocab > 0)
            values[p->ops->draft_vocab] = base;
        if (forecast_make(p->ops, accepting, values, s->model.rho, costs, &f) && f.exit_layers > 0)
            highest = fmax(highest, (double)f.speedup);
    }
    return highest;
}

static bool
uses_trained(const struct scoring *s, const struct policy *p)
{
    return p->ops->trained_heads && s->engine->heads != HEAD_LENS;
}

/* Layers are probed if a policy can gain: over a draft vocabulary where a head costs more than a layer, so that probes
 * would take longer than all else, or over all tokens. */
static bool
choose_probes(struct scoring *s, const bool *wanted, struct err *err)
{
    struct layer_record accepting;
    double highest[2] = {0, 0};
    const uint32_t base =
        s->engine->ops->draft_set != NULL && s->engine->rank.vocab > 0 ? cost_set_tokens(s->model.vocab) : 0;
    if (!accept_all(&accepting, s, err))
        return false;
    for (size_t i = 0; i < s->n_policies; i++) {
        const struct policy *p = &s->policies[i];
        if (!wanted[i] || p->ops->needs != 0 || p->ops->what_if == NULL)
            continue;
        const double whole = ceiling_of(s, p, &accepting, 0);
        if (uses_trained(s, p))
            s->trained = s->trained || whole > 0;
        else
            highest[0] = fmax(highest[0], whole);
        if (base > 0 && p->ops->draft_vocab > 0 && !uses_trained(s, p))
            highest[1] = fmax(highest[1], ceiling_of(s, p, &accepting, base));
    }
    layer_record_close(&accepting);
    s->draft_vocab = highest[1] >= 1 && s->model.rho > 1 ? base : 0;
    s->lens = highest[0] >= 1 || s->draft_vocab > 0;
    if (!s->lens && highest[0] > 0)
        snprintf(s->layers_why, sizeof s->layers_why, "at most %.2f × plain decoding, if every draft were accepted",
                 fmax(highest[0], highest[1]));
    return true;
}

/* ---- entries ---- */

/* Returns the costs with a drafter in the place of the draft model. */
static struct cost_model
costs_with(const struct scoring *s, const struct reading_drafter *d)
{
    struct engine *e = s->engine;
    struct cost_model costs = e->costs;
    double need;
    if (d == NULL || (d->role == AUX_DRAFT && d->draft < 0))
        return costs;
    if (d->role != AUX_DRAFT) {
        if (!engine_drafter_costs(e, d->role, s->o->cancel, &costs))
            memset(costs.us[COST_OF_DRAFT], 0, sizeof costs.us[COST_OF_DRAFT]);
        return costs;
    }
    struct engine_draft *reserve = &s->o->drafts[d->draft];
    reserve->costs = (struct cost_model){0};
    engine_draft_swap(e, reserve);
    engine_costs(e, COSTS_US, s->o->cancel, &need);
    costs = e->costs;
    engine_draft_swap(e, reserve);
    return costs;
}

static void
enter(struct scoring *s, const struct policy *p, int drafter, const struct cost_model *costs)
{
    const struct reading_drafter *d = drafter >= 0 ? &s->reading->drafter[drafter] : NULL;
    const bool layers = p->ops->needs == 0 && !uses_trained(s, p);
    struct score_entry entry = {.ops = p->ops, .info = &p->info, .costs = *costs};
    if (s->o->n_set > 0)
        entry.value = p->value;
    if (p->ops->what_if == NULL)
        entry.why = p->ops->no_what_if;
    else if ((p->ops->needs & NEEDS_ACCEPT_HEAD) != 0)
        entry.why = "texts are read without the draft model's acceptance head";
    else if (layers && s->layers_why[0] != '\0' && p->ops->draft_vocab > 0)
        entry.why = s->layers_why;
    snprintf(entry.drafter, sizeof entry.drafter, "%s", d != NULL ? d->name : "");
    const uint32_t number = score_enter(s->score, &entry);
    if (number == s->n_entries)
        s->entry[s->n_entries++] = (struct entry){.drafter = drafter, .trained = uses_trained(s, p)};
}

/* Other work of the machine may have changed the costs, or disturbed the first measurement. */
static void
measure_again(struct scoring *s)
{
    const struct reading *r = s->reading;
    double need;
    s->engine->costs = (struct cost_model){0};
    if (!engine_costs(s->engine, COSTS_US, s->o->cancel, &need))
        return;
    for (int d = -1; d < (int)r->n_drafters; d++) {
        const struct cost_model costs = costs_with(s, d >= 0 ? &r->drafter[d] : NULL);
        for (uint32_t k = 0; k < s->n_entries; k++)
            if (s->entry[k].drafter == d)
                score_measured_again(s->score, k, &costs);
    }
}

/* Enters the policies with each drafter of the role that they need. */
static void
enter_all(struct scoring *s, const bool *wanted)
{
    const struct reading *r = s->reading;
    for (int d = -1; d < (int)r->n_drafters; d++) {
        const struct cost_model costs = costs_with(s, d >= 0 ? &r->drafter[d] : NULL);
        for (size_t i = 0; i < s->n_policies; i++) {
            const unsigned of = s->policies[i].ops->needs & (NEEDS(AUX_DRAFT) | NEEDS(AUX_EAGLE) | NEEDS(AUX_MTP));
            if (wanted[i] && of == (d >= 0 ? NEEDS(r->drafter[d].role) : 0))
                enter(s, &s->policies[i], d, &costs);
        }
    }
}

/* Declares all policies for the model. */
static bool
open_policies(struct scoring *s, struct err *err)
{
    const struct policy_ops *const *registry = s->o->registry;
    const struct sampling greedy = {.top_p = 1};
    size_t n = 0;
    while (registry[n] != NULL)
        n++;
    s->policies = calloc(n, sizeof *s->policies);
    for (size_t i = 0; i < n && s->policies != NULL; i++) {
        if (s->model.layers < registry[i]->least_layers || policy_is_baseline(registry[i]->name))
            continue;
        if (!policy_open(&s->policies[s->n_policies++], registry[i], &s->model, &greedy, err))
            return false;
    }
    return s->policies != NULL || err_set(err, ERR_WORK, "out of memory for policies");
}

static bool
set_knobs(struct policy *p, const struct knob_setting *set, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const int knob = policy_knob_index(&p->info, set[i].name);
        if (knob < 0)
            return err_set(err, ERR_USAGE, "%s has no knob '%s'", p->info.name, set[i].name);
        if (!knob_parse(&p->info.knobs[knob], set[i].text, &p->value[knob], err))
            return false;
    }
    return true;
}

static bool
choose_policies(const struct scoring *s, bool *wanted, struct err *err)
{
    for (size_t i = 0; i < s->n_policies; i++)
        wanted[i] = s->o->n_policies == 0;
    for (size_t k = 0; k < s->o->n_policies; k++) {
        size_t i = 0;
        while (i < s->n_policies && strcmp(s->policies[i].info.name, s->o->policies[k]) != 0)
            i++;
        if (i == s->n_policies)
            return err_set(err, ERR_USAGE, "cannot score '%.15s': there is no such policy that drafts",
                           s->o->policies[k]);
        wanted[i] = true;
        if (!set_knobs(&s->policies[i], s->o->set, s->o->n_set, err))
            return false;
    }
    return s->o->n_set == 0 || s->o->n_policies > 0 ||
           err_set(err, ERR_USAGE, "--set is about the knobs of one policy; name it with --policy");
}

/* ---- texts ---- */

/* Conversations are read in a random order: those that were read before a stop are a sample of all. */
static bool
shuffle(struct scoring *s, struct err *err)
{
    uint64_t random = 1;
    s->order = calloc(s->texts->n + 1, sizeof *s->order);
    if (s->order == NULL)
        return err_set(err, ERR_WORK, "out of memory for an order of %zu texts", s->texts->n);
    for (size_t i = 0; i < s->texts->n; i++) {
        const size_t at = (size_t)(splitmix64(&random) % (i + 1));
        s->order[i] = s->order[at];
        s->order[at] = i;
    }
    return true;
}

/* Do the tokens of a trace have the model's bytes? */
static bool
same_vocabulary(const struct scoring *s, struct err *err)
{
    const struct tokenizer *t = s->engine->model->tokenizer;
    for (uint32_t id = 0; s->texts->piece != NULL && id < s->texts->vocab; id++) {
        const struct slice bytes =
            id < tokenizer_size(t) ? tokenizer_bytes(t, (token_t)id, true) : (struct slice){NULL, 0};
        const char *piece = s->texts->piece[id];
        if (piece != NULL && (strlen(piece) != bytes.len || memcmp(piece, bytes.data, bytes.len) != 0))
            return err_set(err, ERR_USAGE, "%s is a trace of a model with another vocabulary; give that model",
                           s->o->texts);
    }
    return true;
}

/* Tokenises an answer and what came before it, up to the end of the context. False: it is not a text that the model
 * can continue; *out is empty then. */
static bool
tokenise(const struct scoring *s, const struct conversation *c, const struct exchange *x, struct answer *out,
         struct err *err)
{
    const struct prompt_format *format = c->messages ? &s->messages : &s->plain;
    const struct tokenizer *t = s->engine->model->tokenizer;
    struct prompt p = {.n = x->n_prompt};
    token_t *answer = NULL;
    size_t n = x->ids != NULL ? x->n_ids - x->n_prompt : 0;
    *out = (struct answer){NULL, 0, 0};
    bool ok = x->ids != NULL || (prompt_read(&p, format, x->prompt, strlen(x->prompt), x->before, err) &&
                                 tokenizer_encode(t, x->answer, strlen(x->answer),
                                                  (struct tokenize_options){.bos = false}, &answer, &n, err));
    const uint32_t room = p.n < s->ctx ? s->ctx - p.n : 0;
    if (ok && (out->ids = calloc((size_t)p.n + n + 1, sizeof *out->ids)) == NULL)
        ok = err_set(err, ERR_WORK, "out of memory for a text");
    if (ok) {
        out->n_prompt = p.n;
        out->n = p.n + (n < room ? (uint32_t)n : room);
        memcpy(out->ids, x->ids != NULL ? x->ids : p.ids, p.n * sizeof *out->ids);
        memcpy(out->ids + p.n, x->ids != NULL ? x->ids + p.n : answer, (out->n - p.n) * sizeof *out->ids);
    }
    prompt_free(&p);
    free(answer);
    return ok;
}

/* Returns the record of the last part with the head and the drafter of an entry; its memory is the reading's. */
static struct layer_record
record_of(const struct reading *r, const struct entry *e)
{
    struct layer_record record = e->trained ? r->trained : r->lens;
    if (e->drafter >= 0)
        record.draft = r->drafter[e->drafter].read;
    return record;
}

/* ---- choosing settings ---- */

/* Returns a copy of n bytes; NULL: there are none, or memory ran out (*starved). */
static void *
copy_of(const void *from, size_t n, bool *starved)
{
    void *to = from != NULL && n > 0 ? malloc(n) : NULL;
    *starved = *starved || (to == NULL && from != NULL && n > 0);
    return to != NULL ? memcpy(to, from, n) : NULL;
}

/* Copies the record with its memory. free_copy() takes it in any case. */
static bool
copy_record(struct layer_record *to, const struct layer_record *r, struct err *err)
{
    bool starved = false;
    *to = *r;
    to->cells = copy_of(r->cells, (size_t)r->n * r->layers * sizeof *r->cells, &starved);
    to->text = copy_of(r->text, r->n_text * sizeof *r->text, &starved);
    to->seen = copy_of(r->seen, r->n_seen * sizeof *r->seen, &starved);
    to->draft.word = copy_of(r->draft.word, r->n * sizeof *r->draft.word, &starved);
    to->draft.run = copy_of(r->draft.run, r->n * sizeof *r->draft.run, &starved);
    return !starved || err_set(err, ERR_WORK, "out of memory for records");
}

static void
free_copy(struct layer_record *r)
{
    free(r->draft.run);
    layer_record_close(r);
}

/* Reads the first answers of some conversations, and chooses the settings of all entries on them. */
static bool
choose_settings(struct scoring *s, struct err *err)
{
    struct layer_record *records = calloc((size_t)s->n_entries * PILOT, sizeof *records);
    uint32_t n = 0;
    bool ok = records != NULL || err_set(err, ERR_WORK, "out of memory for records");
    for (size_t i = 0; i < s->texts->n && n < PILOT && ok; i++) {
        const struct conversation *c = &s->texts->at[s->order[i]];
        struct answer a;
        struct err unused;
        if (!tokenise(s, c, &c->exchange[0], &a, &unused) || a.n < a.n_prompt + 2) {
            free(a.ids);
            continue;
        }
        const uint32_t most = a.n_prompt + READING_ROWS, end = a.n < most ? a.n : most;
        ok = reading_part(s->reading, a.ids, end, a.n_prompt, true, false, err);
        for (uint32_t k = 0; k < s->n_entries && ok; k++) {
            const struct layer_record record = record_of(s->reading, &s->entry[k]);
            ok = copy_record(&records[k * PILOT + n], &record, err);
        }
        n++;
        free(a.ids);
    }
    ok = ok && (n > 0 || err_set(err, ERR_USAGE, "no text of %s fits into the context of %u tokens; raise --ctx",
                                 s->o->texts, (unsigned)s->ctx));
    for (uint32_t k = 0; k < s->n_entries && ok; k++)
        score_choose(s->score, k, &records[k * PILOT], n);
    for (uint32_t i = 0; i < s->n_entries * PILOT && records != NULL; i++)
        free_copy(&records[i]);
    free(records);
    return ok;
}

/* ---- reading ---- */

static bool
read_answer(struct scoring *s, const struct answer *a, struct err *err)
{
    for (uint32_t from = a->n_prompt, to; from + 1 < a->n; from = to) {
        to = a->n - from > READING_ROWS ? from + READING_ROWS : a->n;
        if (!reading_part(s->reading, a->ids, to, from, from == a->n_prompt, s->reading->compared < COMPARED, err))
            return false;
        for (uint32_t k = 0; k < s->n_entries; k++)
            if (score_wants(s->score, k)) {
                const struct layer_record record = record_of(s->reading, &s->entry[k]);
                score_add(s->score, k, &record, a->n_prompt);
            }
    }
    return true;
}

static void
write_report(struct scoring *s, size_t done)
{
    struct score_report *r = s->report;
    const struct reading *of = s->reading;
    const double share = of->compared > 0 ? (double)of->own / (double)of->compared : (double)NAN;
    score_write(s->score, r);
    r->conversations = (uint32_t)done;
    r->of = (uint32_t)s->texts->n;
    r->read = of->read;
    r->seconds = (clock_fine_us() - s->start_us) * 1e-6;
    r->left_s = done > 0 ? r->seconds / (double)done * (double)(s->texts->n - done) : (double)NAN;
    r->own = (struct estimate){share, sqrt(share * (1 - share) / (double)of->compared), of->compared};
}

/* Passes the report on, if the last one is old. Returns false to stop. */
static bool
goes_on(struct scoring *s, size_t done)
{
    const double now = clock_fine_us();
    const bool late = s->o->time_s > 0 && (now - s->start_us) * 1e-6 > s->o->time_s;
    if (late || (s->o->cancel != NULL && atomic_load(s->o->cancel)))
        return false;
    if (s->o->done == NULL || now - s->reported_us < REPORT_US)
        return true;
    s->reported_us = now;
    write_report(s, done);
    return s->o->done(s->o->user, s->report);
}

static bool
read_all(struct scoring *s, struct err *err)
{
    size_t done = 0;
    bool ok = true;
    for (; done < s->texts->n && ok && goes_on(s, done); done++) {
        const struct conversation *c = &s->texts->at[s->order[done]];
        score_conversation(s->score, c->category);
        for (uint32_t i = 0; i < c->n && ok; i++) {
            struct answer a;
            struct err unused;
            if (tokenise(s, c, &c->exchange[i], &a, &unused))
                ok = read_answer(s, &a, err);
            free(a.ids);
        }
    }
    const bool cancelled = !ok && err->kind == ERR_CANCELLED;
    if (ok && done > 0)
        measure_again(s);
    done -= cancelled && done > 0;
    if (!ok && !cancelled)
        return false;
    write_report(s, done);
    s->report->stopped = done < s->texts->n;
    s->report->left_s = 0;
    return done > 0 || err_set(err, ERR_CANCELLED, "interrupted before a conversation was complete");
}

static bool
begin(struct scoring *s, struct err *err)
{
    const struct engine *e = s->engine;
    struct chat_setting none = {.on = false};
    bool *wanted = calloc(POLICIES_MOST, sizeof *wanted);
    double need;
    bool ok = (wanted != NULL || err_set(err, ERR_WORK, "out of memory for policies")) && same_vocabulary(s, err) &&
              shuffle(s, err) && prompt_format_open(&s->messages, e->model->tokenizer, &s->o->chat, s->ctx, err) &&
              prompt_format_open(&s->plain, e->model->tokenizer, &none, s->ctx, err) && open_policies(s, err) &&
              choose_policies(s, wanted, err);
    if (ok)
        engine_costs(s->engine, COSTS_US, s->o->cancel, &need);
    ok = ok && choose_probes(s, wanted, err);
    const struct reading_options options = {.ctx = s->ctx,
                                            .lens = s->lens,
                                            .trained = s->trained,
                                            .draft_vocab = s->draft_vocab,
                                            .drafts = s->o->drafts,
                                            .n_drafts = s->o->n_drafts,
                                            .cancel = s->o->cancel};
    ok = ok && reading_open(&s->reading, s->engine, &options, err) &&
         score_open(&s->score, s->model.layers, s->model.rho, err);
    for (uint32_t i = 0; ok && i < s->reading->n_drafters; i++)
        if (s->reading->drafter[i].draft >= 0)
            snprintf(s->reading->drafter[i].name, sizeof s->reading->drafter[i].name, "%s",
                     s->o->draft_names[s->reading->drafter[i].draft]);
    if (ok)
        enter_all(s, wanted);
    free(wanted);
    return ok && choose_settings(s, err);
}

bool
scoring_run(struct engine *e, const struct texts *texts, const struct scoring_options *o, struct score_report **out,
            struct err *err)
{
    const struct model *m = e->model;
    struct scoring s = {.engine = e, .o = o, .texts = texts, .start_us = clock_fine_us()};
    s.ctx = o->ctx > 0 && o->ctx < e->positions ? o->ctx : e->positions;
    s.model = (struct model_info){m->desc.n_layers, m->desc.width, m->desc.vocab, m->rho, NULL};
    s.report = calloc(1, sizeof *s.report);
    bool ok = s.report != NULL || err_set(err, ERR_WORK, "out of memory for a report");
    if (ok) {
        snprintf(s.report->model, sizeof s.report->model, "%s", m->name);
        snprintf(s.report->texts, sizeof s.report->texts, "%s", o->texts);
    }
    ok = ok && begin(&s, err) && read_all(&s, err);
    score_close(s.score);
    reading_close(s.reading);
    for (size_t i = 0; i < s.n_policies; i++)
        policy_close(&s.policies[i]);
    free(s.policies);
    prompt_format_close(&s.messages);
    prompt_format_close(&s.plain);
    free(s.order);
    if (!ok)
        free(s.report);
    *out = ok ? s.report : NULL;
    return ok;
}
