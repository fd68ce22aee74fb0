#include "tests/rigs/session_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/model/trained/sv_profile.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/heads_rig.h"
#include "tests/rigs/session_promises.h"

const char *const session_prompts[SESSION_PROMPTS] = {
    "Once upon a time there was a little girl named Lily. Lily had a red ball, and she",
    "A fox was walking to the mill with a basket of bread. On the way",
    "Question: Tom has 4 keys and finds 5 more. How many",
    "Three mice sat on a wall,",
    "def count_words(words):",
    "In the middle of the forest there stood a little house, and",
    "\"Good morning,\" said the wolf. \"Where are you going so early?\"",
    "On Monday the baker made bread. On Tuesday",
    "The king had three sons. The eldest",
    "| name | age |\n| --- | --- |\n| Tom | 7 |\n",
    "What has four legs but cannot walk?",
    "One, two, three,",
    "Dear Mother,\nI am writing to tell you that",
    "The sea was very rough that night, and the captain",
    "This is the house that Jack built. This is the malt that lay in the house that Jack built. This is",
    "Anna gave Ben an apple. Ben gave Clara",
    "1 + 1 = 2\n2 + 2 = 4\n3 + 3 =",
    "Caf\xC3\xA9, na\xC3\xAFve, \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 and",
    "The",
    "for i in range(10):\n    print(",
};

double
session_rig_knob_value(const struct knob *k, int which, uint64_t *random)
{
    double value = k->def;
    if (which == 1)
        value = k->min;
    else if (which == 2)
        value = k->max;
    else if (which > 2)
        value = k->min + (k->max - k->min) * (double)(splitmix64(random) % 1001) / 1000;
    struct err err;
    return knob_check(k, k->kind == KNOB_REAL ? value : round(value), &value, &err) ? value : k->def;
}

/* Adds what policies may need in addition to a draft model, so that every policy runs: a companion of the layers before
 * the last one, and a synthetic profile. */
static bool
add_companion(struct engine *e, struct err *err)
{
    enum { EACH = 24 };
    struct sv_observation seen[EACH * EACH];
    const uint32_t layers = e->model->desc.n_layers;
    if (!engine_has(e, AUX_COMPANION) && layers > 1)
        e->aux[AUX_COMPANION].exit_layer = layers - 1;
    for (int i = 0; i < EACH * EACH; i++) {
        const float s = (float)(i / EACH) / (EACH - 1), a = (float)(i % EACH) / (EACH - 1);
        seen[i] = (struct sv_observation){s, a, (s + a) / 2};
    }
    e->profile = calloc(1, sizeof *e->profile);
    return e->profile != NULL && sv_profile_make(e->profile, 6, 5, seen, EACH * EACH, err);
}

bool
session_rig_engine_open(struct engine **engine, const struct engine_options *options, struct err *err)
{
    struct engine_options o = *options;
    if (strcmp(o.backend, "check") == 0)
        o.ops = &check_backend;
    return engine_open(engine, &o, NULL, NULL, err) &&
           (!engine_has(*engine, AUX_DRAFT) || (add_companion(*engine, err) && heads_rig_drafters(*engine, 3, err))) &&
           heads_rig_accept(*engine, 1, 9, err);
}

bool
session_rig_engine_with(struct engine **engine, const char *model_path, const char *draft, const char *backend,
                        uint32_t threads, struct err *err)
{
    const struct engine_options options = {.model_path = model_path,
                                           .backend = backend,
                                           .backend_options = {.threads = threads, .gpu = -1},
                                           .aux = {[AUX_DRAFT] = draft}};
    return session_rig_engine_open(engine, &options, err);
}

bool
session_rig_engine(struct engine **engine, const char *model_path, const char *backend, uint32_t threads,
                   struct err *err)
{
    char beside[PATH_MAX];
    const char *draft = engine_sibling(model_path, AUX_DRAFT, beside) ? beside : NULL;
    const bool ok = session_rig_engine_with(engine, model_path, draft, backend, threads, err);
    if (!ok || engine_has(*engine, AUX_DRAFT) || (*engine)->model->desc.n_layers < 2)
        return ok;
    (*engine)->aux[AUX_DRAFT].exit_layer = 1;
    return add_companion(*engine, err) && heads_rig_drafters(*engine, 3, err) && heads_rig_accept(*engine, 1, 9, err);
}

/* ---- running ---- */

/* Follows the run to its end, or until a session that stays has failed and has no further requests. */
static bool
follow(struct live *s, struct event_reader *reader, struct promises *p, session_rig_hook hook, void *user)
{
    for (bool over = false; !over;) {
        struct err failure;
        const struct event *e;
        const bool finished =
            event_log_finished(s->ops->log(s)); /* read first, so that no event can follow an empty read */
        over = finished || (s->ops->failed(s, &failure) && s->ops->resting(s));
        while ((e = event_reader_next(reader)) != NULL) {
            promises_check(p, e);
            metrics_event(&p->out->metrics, e);
            p->out->events++;
            over = finished;
            if (hook != NULL)
                hook(user, s, e);
        }
        if (!over)
            event_reader_wait(reader, s->ops->failed(s, &failure) ? 10 : 1000);
    }
    return true;
}

bool
session_rig_generate(struct engine *engine, const struct session_options *options, session_rig_hook hook, void *user,
                     struct session_rig_result *out, struct err *err)
{
    *out = (struct session_rig_result){0};
    struct live *s;
    if (!session_open(&s, engine, options, err))
        return false;
    const struct run_info *info = s->ops->info(s);
    struct promises p = {
        .out = out, .info = info, .vocab = info->vocab, .layers = info->layers, .batch = options->batch > 0};
    metrics_begin(&out->metrics, p.layers, info->rho);
    const bool may_be_two = options->batch == 0 && (options->stay || options->versus != NULL);
    out->n_sequences = may_be_two ? 2 : info->prompts;
    out->sequences = calloc(out->n_sequences, sizeof *out->sequences);
    p.all = calloc(out->n_sequences, sizeof *p.all);
    p.seen = calloc(p.vocab, 1);
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    bool ok = out->sequences != NULL && p.all != NULL && p.seen != NULL && reader != NULL && s->ops->start(s, err) &&
              follow(s, reader, &p, hook, user);
    struct err failure;
    if (ok && s->ops->failed(s, &failure)) {
        *err = failure;
        ok = false;
    }
    event_reader_close(reader);
    live_close(s);
    free(p.seen);
    free(p.all);
    if (!ok)
        session_rig_free(out);
    else {
        out->tokens = out->sequences[0].tokens;
        out->n = out->sequences[0].n;
    }
    return ok;
}

void
session_rig_free(struct session_rig_result *out)
{
    for (size_t i = 0; i < out->n_sequences; i++)
        free(out->sequences[i].tokens);
    free(out->sequences);
    *out = (struct session_rig_result){0};
}

uint32_t
session_rig_wait_end(struct live *s)
{
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    const struct event *e = NULL;
    uint32_t prompt_tokens = 0;
    for (bool over = false; !over;) {
        while (!over && (e = event_reader_next(reader)) != NULL) {
            prompt_tokens += e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT;
            over = e->type == EVENT_CONTROL && e->control.kind == RECORDED_END;
        }
        if (!over)
            event_reader_wait(reader, 100);
    }
    event_reader_close(reader);
    return prompt_tokens;
}
