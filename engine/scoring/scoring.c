#include "engine/scoring/scoring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/scoring/reading.h"
#include "engine/tune/candidates.h"
#include "engine/tune/score.h"

#define PILOT     (READING_PARTS - 1) /* parts on which settings are chosen; the last one has all others */
#define LEAST     3                   /* of these, however short the time is */
#define COMPARED  2048                /* tokens that are compared with the target's own choice */
#define ACCEPTING 64                  /* rows of the record in which everything is accepted */
#define COSTS_US  1e7                 /* that measuring the costs of steps may take */
#define REPORT_US 200e3               /* between two reports */

struct entry {    /* of a number in the score */
    int drafter;  /* index in the reading's drafters; -1: none */
    bool trained; /* reads layers with trained heads */
};

struct answer { /* with everything before it */
    const token_t *ids;
    token_t *owned; /* the same; NULL: they are those of the texts */
    uint32_t n, n_prompt;
};

struct scoring {
    struct engine *engine;
    const struct scoring_options *o;
    const struct texts *texts;
    struct policy *policies; /* (n_policies) owned; with o->set their values are those of the further setting */
    size_t n_policies;
    struct model_info model;
    struct prompt_format messages, plain;
    uint32_t ctx;
    struct reading *reading;
    uint32_t n_pilot;    /* parts of the reading on which settings are chosen: the beginnings of first answers, */
    size_t pilot[PILOT]; /* (n_pilot) of these conversations */
    struct score *score;
    struct entry entry[SCORE_ENTRIES];
    uint32_t n_entries;
    bool lens, trained;   /* layers are probed with these heads */
    uint32_t draft_vocab; /* lens: over a draft vocabulary with this base; 0: over all tokens */
    char layers_why[112]; /* why layers are not probed with the lens; "" */
    struct score_report *report;
    double start_us, reported_us;
};

/* ---- policies ---- */

static bool
is_possible(const struct scoring *s, const struct policy_ops *ops)
{
    return ops != NULL && s->model.layers >= ops->least_layers && !policy_is_baseline(ops->name);
}

/* Opens a policy, with the knobs of the further setting. */
static bool
open_policy(struct scoring *s, const struct policy_ops *ops, struct err *err)
{
    const struct sampling greedy = {.top_p = 1};
    struct policy *p = &s->policies[s->n_policies++];
    if (!policy_open(p, ops, &s->model, &greedy, err))
        return false;
    for (size_t i = 0; i < s->o->n_set; i++) {
        const int knob = policy_knob_index(&p->info, s->o->set[i].name);
        if (knob < 0)
            return err_set(err, ERR_USAGE, "%s has no knob '%s'", ops->name, s->o->set[i].name);
        if (!knob_parse(&p->info.knobs[knob], s->o->set[i].text, &p->value[knob], err))
            return false;
    }
    return true;
}

static bool
open_policies(struct scoring *s, struct err *err)
{
    const struct scoring_options *o = s->o;
    for (size_t k = 0; k < o->n_policies; k++)
        if (!is_possible(s, policy_named(o->registry, o->policies[k])))
            return err_set(err, ERR_USAGE, "cannot score '%.15s': there is no such policy that drafts", o->policies[k]);
    if (o->n_set > 0 && o->n_policies == 0)
        return err_set(err, ERR_USAGE, "--set is about the knobs of one policy; name it with --policy");
    if ((s->policies = calloc(POLICIES_MOST, sizeof *s->policies)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for policies");
    for (const struct policy_ops *const *ops = o->registry; *ops != NULL; ops++) {
        bool wanted = o->n_policies == 0;
        for (size_t k = 0; k < o->n_policies; k++)
            wanted = wanted || strcmp(o->policies[k], (*ops)->name) == 0;
        if (wanted && is_possible(s, *ops) && !open_policy(s, *ops, err))
            return false;
    }
    return true;
}

static bool
uses_trained(const struct scoring *s, const struct policy *p)
{
    return p->ops->trained_heads && s->engine->heads != HEAD_LENS;
}

/* Does it draft with the target's layers alone? */
static bool
uses_layers(const struct policy *p)
{
    return p->ops->what_if != NULL && p->ops->needs == 0 && p->ops->draft_vocab > 0;
}

/* ---- which layers are probed ---- */

/* Fills a record in which all layers and the target agree. */
static bool
accept_all(struct layer_record *r, const struct scoring *s, struct err *err)
{
    struct layer_sample samples[RUN_LAYERS_MOST];
    if (!layer_record_open(r, s->model.layers, err))
        return false;
    for (uint32_t l = 0; l < s->model.layers; l++)
        samples[l] = (struct layer_sample){.agrees = true, .confidence = 1, .top_p = {1}};
    for (uint32_t row = 0; row < ACCEPTING; row++)
        layer_record_add(r, samples, s->model.vocab);
    r->accepts = true;
    r->head_load = r->layers_load = 1;
    r->probes = KV_CACHE_PROBES;
    layer_record_order(r, s->engine->rank.vocab > 0 ? &s->engine->rank : NULL);
    return true;
}

/* Layers are probed if a policy can gain; over a draft vocabulary where a head costs more than a layer, so that probes
 * would take longer than all else. It has the higher ceiling. */
static bool
choose_probes(struct scoring *s, struct err *err)
{
    const struct engine *e = s->engine;
    struct layer_record accepting;
    double highest = 0;
    bool layers = false;
    const bool ok = accept_all(&accepting, s, err);
    if (e->ops->draft_set != NULL && e->rank.vocab > 0 && s->model.rho > 1)
        s->draft_vocab = accepting.cells_base = cost_set_tokens(s->model.vocab);
    for (const struct policy *p = s->policies; p < s->policies + s->n_policies && ok; p++) {
        struct candidate found[CANDIDATES_MOST];
        if (!uses_layers(p))
            continue;
        if (uses_trained(s, p)) {
            s->trained = true;
            continue;
        }
        layers = true;
        const uint32_t n = candidates_of(&p->info, p->ops, &accepting, 1, s->model.rho, &e->costs, found);
        for (uint32_t i = 0; i < n; i++)
            highest = fmax(highest, isnan(found[i].ceiling) ? found[i].forecast : found[i].ceiling);
    }
    layer_record_close(&accepting);
    const bool hopeless = highest > 0 && highest < SCORE_HOPELESS;
    s->lens = (layers && !hopeless) || e->aux[AUX_DRAFT].exit_layer > 0; /* self:E drafts by its layer */
    if (!s->lens && hopeless)
        snprintf(s->layers_why, sizeof s->layers_why, "at most %.2f × plain decoding, if every draft were accepted",
                 highest);
    return ok;
}

/* ---- texts ---- */

/* Conversations are read in a random order: those that were read before a stop are a sample of all. */
static void
shuffle(const struct texts *t)
{
    uint64_t random = 1;
    for (size_t i = t->n; i > 1; i--) {
        const size_t k = (size_t)(splitmix64(&random) % i);
        const struct conversation last = t->at[i - 1];
        t->at[i - 1] = t->at[k];
        t->at[k] = last;
    }
}

/* Do the tokens of a trace have the model's bytes? */
static bool
same_vocabulary(const struct scoring *s, struct err *err)
{
    const struct slice *piece = s->texts->piece;
    for (uint32_t id = 0; piece != NULL && id < s->texts->vocab; id++)
        if (piece[id].data != NULL &&
            slice_compare(piece[id], tokenizer_bytes(s->engine->model->tokenizer, (token_t)id, true)) != 0)
            return err_set(err, ERR_USAGE, "%s is a trace of a model with another vocabulary; give that model",
                           s->o->texts);
    return true;
}

/* Tokenises an answer and what came before it, up to the end of the context. False: the model cannot continue it, or no
 * round is left. The caller frees out->owned in any case. */
static bool
tokenise(const struct scoring *s, const struct conversation *c, const struct exchange *x, struct answer *out)
{
    struct prompt p = {.n = 0};
    struct err unused;
    token_t *answer = NULL;
    size_t n = 0;
    *out = (struct answer){.ids = x->ids, .n = x->n_ids, .n_prompt = x->n_prompt};
    if (x->ids == NULL &&
        prompt_read(&p, c->messages ? &s->messages : &s->plain, x->prompt, strlen(x->prompt), x->before, &unused) &&
        tokenizer_encode(s->engine->model->tokenizer, x->answer, strlen(x->answer),
                         (struct tokenize_options){.bos = false}, &answer, &n, &unused) &&
        (out->owned = calloc(p.n + n, sizeof *out->owned)) != NULL) {
        memcpy(out->owned, p.ids, p.n * sizeof *p.ids);
        memcpy(out->owned + p.n, answer, n * sizeof *answer);
        *out = (struct answer){out->owned, out->owned, p.n + (uint32_t)n, p.n};
    }
    prompt_free(&p);
    free(answer);
    out->n = out->n < s->ctx ? out->n : s->ctx;
    return out->n >= out->n_prompt + 2;
}

/* ---- choosing settings ---- */

static bool
is_late(const struct scoring *s)
{
    return s->o->time_s > 0 && (clock_fine_us() - s->start_us) * 1e-6 > s->o->time_s;
}

/* Reads the first answers of some conversations. */
static bool
read_pilot(struct scoring *s, struct err *err)
{
    for (size_t i = 0; i < s->texts->n && s->n_pilot < (is_late(s) ? LEAST : PILOT); i++) {
        const struct conversation *c = &s->texts->at[i];
        struct answer a;
        bool ok = true;
        if (tokenise(s, c, &c->exchange[0], &a)) {
            const uint32_t most = a.n_prompt + READING_ROWS;
            s->pilot[s->n_pilot] = i;
            ok = reading_part(s->reading, s->n_pilot++, a.ids, a.n < most ? a.n : most, a.n_prompt, true,
                              s->reading->compared < COMPARED, err);
        }
        free(a.owned);
        if (!ok)
            return false;
    }
    return s->n_pilot > 0 || err_set(err, ERR_USAGE, "no text of %s fits into the context of %u tokens; raise --ctx",
                                     s->o->texts, (unsigned)s->ctx);
}

/* Returns the record of a part with the head and the drafter of an entry; its memory is the reading's. */
static struct layer_record
record_of(const struct scoring *s, uint32_t part, const struct entry *e)
{
    const struct reading_records *r = &s->reading->part[part];
    struct layer_record record = e->trained ? r->trained : r->lens;
    if (e->drafter >= 0)
        record.draft = r->draft[e->drafter];
    return record;
}

/* Returns the costs with a drafter in the place of the draft model. */
static struct cost_model
costs_with(const struct scoring *s, int drafter)
{
    const struct reading_drafter *d = drafter >= 0 ? &s->reading->drafter[drafter] : NULL;
    struct cost_model costs = s->engine->costs;
    if (d != NULL && (d->role != AUX_DRAFT || d->draft >= 0))
        engine_drafter_costs(s->engine, d->draft >= 0 ? &s->o->drafts[d->draft].model : &s->engine->aux[d->role],
                             s->o->cancel, &costs);
    return costs;
}

/* Chooses the settings of a policy with a drafter. */
static void
enter(struct scoring *s, const struct policy *p, int drafter, const struct cost_model *costs)
{
    const struct reading_drafter *d = drafter >= 0 ? &s->reading->drafter[drafter] : NULL;
    const char *name = d == NULL ? "" : d->draft >= 0 ? s->o->draft_names[d->draft] : d->name;
    const struct entry e = {.drafter = drafter, .trained = uses_trained(s, p)};
    struct layer_record records[READING_PARTS];
    struct score_entry entry = {
        .ops = p->ops, .info = &p->info, .costs = *costs, .records = records, .n_records = s->n_pilot};
    for (uint32_t i = 0; i < s->n_pilot; i++)
        records[i] = record_of(s, i, &e);
    entry.value = s->o->n_set > 0 ? p->value : NULL;
    if ((p->ops->needs & NEEDS_ACCEPT_HEAD) != 0)
        entry.why = "texts are read without the draft model's acceptance head";
    else if (uses_layers(p) && !e.trained && s->layers_why[0] != '\0')
        entry.why = s->layers_why;
    snprintf(entry.drafter, sizeof entry.drafter, "%s", name);
    if (score_enter(s->score, &entry))
        s->entry[s->n_entries++] = e;
}

/* A policy that needs a Markov head drafts with its bias, and all others without it. */
static bool
drafts_with(const struct policy *p, const struct reading_drafter *d)
{
    const unsigned needs = d != NULL ? NEEDS(d->role) | (d->markov ? NEEDS_MARKOV : 0) : 0;
    return (p->ops->needs & (NEEDS_DRAFTER | NEEDS_MARKOV)) == needs;
}

/* Enters the policies with each drafter that they can use. */
static void
enter_all(struct scoring *s)
{
    const struct reading *r = s->reading;
    struct cost_model costs = {.context = 0};
    for (int d = -1; d < (int)r->n_drafters; d++) {
        const struct reading_drafter *with = d >= 0 ? &r->drafter[d] : NULL;
        if (d < 0 || !with->markov) /* else it is the drafter before it */
            costs = costs_with(s, d);
        for (const struct policy *p = s->policies; p < s->policies + s->n_policies; p++)
            if (drafts_with(p, with))
                enter(s, p, d, &costs);
    }
}

/* Other work of the machine may have changed the costs, or disturbed the first measurement. */
static void
measure_again(struct scoring *s)
{
    const struct cost_model before = s->engine->costs;
    double need;
    s->engine->costs = (struct cost_model){0};
    if (!engine_costs(s->engine, COSTS_US, s->o->cancel, &need)) {
        s->engine->costs = before;
        return;
    }
    struct cost_model costs = {.context = 0};
    for (int d = -1; d < (int)s->reading->n_drafters; d++) {
        if (d < 0 || !s->reading->drafter[d].markov)
            costs = costs_with(s, d);
        for (uint32_t k = 0; k < s->n_entries; k++)
            if (s->entry[k].drafter == d)
                score_measured_again(s->score, k, &costs);
    }
}

/* ---- reading ---- */

/* `part`: of the reading. known: it has the beginning of the answer already. */
static bool
read_answer(struct scoring *s, const struct answer *a, uint32_t part, bool known, struct err *err)
{
    for (uint32_t from = a->n_prompt, to; from + 1 < a->n; from = to) {
        to = a->n - from > READING_ROWS ? from + READING_ROWS : a->n;
        if (!(known && from == a->n_prompt) && !reading_part(s->reading, part, a->ids, to, from, from == a->n_prompt,
                                                             s->reading->compared < COMPARED, err))
            return false;
        for (uint32_t k = 0; k < s->n_entries; k++) {
            const struct layer_record record = record_of(s, part, &s->entry[k]);
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
    if ((is_late(s) && done > s->pilot[s->n_pilot - 1]) || (s->o->cancel != NULL && atomic_load(s->o->cancel)))
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
    uint32_t pilot = 0;
    bool ok = true;
    for (; done < s->texts->n && ok && goes_on(s, done); done++) {
        const struct conversation *c = &s->texts->at[done];
        score_conversation(s->score, c->category);
        for (uint32_t i = 0; i < c->n && ok; i++) {
            struct answer a;
            const bool known = i == 0 && pilot < s->n_pilot && s->pilot[pilot] == done;
            ok = !tokenise(s, c, &c->exchange[i], &a) || read_answer(s, &a, known ? pilot++ : PILOT, known, err);
            free(a.owned);
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
    const struct scoring_options *o = s->o;
    const struct tokenizer *t = s->engine->model->tokenizer;
    const struct chat_setting none = {.on = false};
    double need;
    if (!same_vocabulary(s, err) || !prompt_format_open(&s->messages, t, &o->chat, s->ctx, err) ||
        !prompt_format_open(&s->plain, t, &none, s->ctx, err) || !open_policies(s, err))
        return false;
    shuffle(s->texts);
    engine_costs(s->engine, COSTS_US, o->cancel, &need);
    if (!choose_probes(s, err))
        return false;
    const struct reading_options options = {.ctx = s->ctx,
                                            .lens = s->lens,
                                            .trained = s->trained,
                                            .draft_vocab = s->draft_vocab,
                                            .drafts = o->drafts,
                                            .n_drafts = o->n_drafts,
                                            .cancel = o->cancel};
    if (!reading_open(&s->reading, s->engine, &options, err) || !read_pilot(s, err))
        return false;
    if ((s->score = score_open(s->model.layers, s->model.rho)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for the scores");
    enter_all(s);
    return true;
}

bool
scoring_run(struct engine *e, const struct texts *texts, const struct scoring_options *o, struct score_report **out,
            struct err *err)
{
    const struct model *m = e->model;
    struct scoring s = {.engine = e, .o = o, .texts = texts, .start_us = clock_fine_us()};
    s.ctx = o->ctx > 0 && o->ctx < e->positions ? o->ctx : e->positions;
    s.model = engine_model_info(e);
    s.model.profile = NULL;
    s.report = calloc(1, sizeof *s.report);
    bool ok = s.report != NULL || err_set(err, ERR_WORK, "out of memory for a report");
    if (ok) {
        snprintf(s.report->model, sizeof s.report->model, "%s", m->name);
        snprintf(s.report->texts, sizeof s.report->texts, "%s", o->texts);
    }
    ok = ok && begin(&s, err) && read_all(&s, err);
    free(s.score);
    reading_close(s.reading);
    for (size_t i = 0; i < s.n_policies; i++)
        policy_close(&s.policies[i]);
    free(s.policies);
    prompt_format_close(&s.messages);
    prompt_format_close(&s.plain);
    if (!ok)
        free(s.report);
    *out = ok ? s.report : NULL;
    return ok;
}
