/* A case: a model, the texts that autoregressive decoding generates from some prompts on one thread, and runs that must
 * generate the same texts. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "policies/registry.h"
#include "tests/rigs/knob_changes.h"
#include "tests/soak/soak.h"

#define RUNS 12

static void
free_texts(struct soak_texts *t)
{
    for (size_t i = 0; i < SOAK_PROMPTS; i++) {
        free(t->prompt[i]);
        free(t->greedy[i]);
    }
}

/* Returns a known prompt or random bytes; short ones for slow models. */
static char *
draw_prompt(uint64_t *random, bool slow)
{
    const char *known = session_prompts[soak_below(random, SESSION_PROMPTS)];
    size_t n = strlen(known);
    if (slow && n > 9)
        n = 9;
    char *text = strndup(known, n);
    if (text != NULL && soak_chance(random, 20))
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(1 + soak_below(random, 255));
    return text;
}

static bool
autoregressive(struct engine *e, struct soak_texts *t, size_t i, uint32_t ctx, struct err *err)
{
    struct session_rig_result r;
    const struct session_options o = {.policies = policy_registry,
                                      .policy = "ar",
                                      .prompt = t->prompt[i],
                                      .prompt_len = strlen(t->prompt[i]),
                                      .sampling = {.top_p = 1},
                                      .seed = 1,
                                      .tokens = 2 * t->tokens,
                                      .ctx = ctx,
                                      .ignore_eos = true};
    if (!session_rig_generate(e, &o, NULL, NULL, &r, err))
        return false;
    t->n_greedy[i] = r.n;
    t->greedy[i] = malloc(r.n * sizeof *r.tokens);
    const bool ok = t->greedy[i] != NULL && r.wrong[0] == '\0';
    if (ok)
        memcpy(t->greedy[i], r.tokens, r.n * sizeof *r.tokens);
    else
        err_set(err, ERR_WORK, "autoregressive decoding: %s", r.wrong);
    session_rig_free(&r);
    return ok;
}

static bool
draw_texts(struct engine *e, struct soak_texts *t, bool slow, uint32_t *ctx, uint64_t *random, struct err *err)
{
    t->n = 1 + soak_below(random, slow ? 2 : SOAK_PROMPTS);
    t->tokens = slow ? 4 + soak_below(random, 6) : 8 + soak_below(random, 100);
    *ctx = 2 * t->tokens + 180; /* each byte of a prompt may be a token */
    if (soak_chance(random, 10))
        *ctx = 180 + soak_below(random, t->tokens); /* the context may end first */
    for (size_t i = 0; i < t->n; i++) {
        t->prompt[i] = draw_prompt(random, slow);
        if (t->prompt[i] == NULL || !autoregressive(e, t, i, *ctx, err))
            return t->prompt[i] != NULL || err_set(err, ERR_WORK, "out of memory");
    }
    return true;
}

/* ---- runs ---- */

struct draw {
    const struct soak_texts *texts;
    struct session_options o;
    struct soak_play play;
    struct prompt_text prompts[2 * SOAK_PROMPTS];
    struct knob_setting set[POLICY_KNOBS];
};

/* Draws a policy that a session with this engine can run. */
static bool
draw_policy(struct engine *e, struct draw *d, uint64_t *random, struct err *err)
{
    const struct model_info model = engine_model_info(e);
    uint32_t n = 0, chosen;
    while (policy_registry[n] != NULL)
        n++;
    do
        chosen = soak_below(random, n);
    while (engine_missing(e, policy_registry[chosen]->needs) != 0);
    struct policy p;
    if (!policy_open(&p, policy_registry[chosen], &model, &d->o.sampling, err))
        return false;
    d->o.policy = policy_registry[chosen]->name;
    d->o.set = d->set;
    d->o.n_set = knob_settings(&p.info, (int)soak_below(random, 6), random, d->set);
    d->play.policy[0] = chosen;
    policy_close(&p);
    return true;
}

static void
draw_batch(struct draw *d, uint64_t *random)
{
    d->o.batch = d->play.batch = 1 + soak_below(random, 5);
    d->o.prompts = d->prompts;
    d->o.n_prompts = d->texts->n * (1 + soak_below(random, 2));
    for (size_t i = 0; i < d->o.n_prompts; i++) {
        const char *text = d->texts->prompt[i % d->texts->n];
        d->prompts[i] = (struct prompt_text){text, strlen(text)};
    }
}

static bool
draw_run(struct engine *e, struct draw *d, const struct soak_texts *texts, uint32_t ctx, uint64_t *random,
         struct err *err)
{
    const uint32_t draws = soak_below(random, 100);
    *d = (struct draw){.texts = texts};
    d->play = (struct soak_play){.texts = texts,
                                 .pace = (enum soak_pace)soak_below(random, 3),
                                 .greedy = draws < 80,
                                 .top_one = draws >= 65 && draws < 80,
                                 .ignore_eos = soak_chance(random, 70),
                                 .tokenizer = e->model->tokenizer,
                                 .wanted = texts->tokens,
                                 .random = splitmix64(random)};
    if (!d->play.greedy) /* a knob cannot change twice at the same moment */
        d->play.pace = (enum soak_pace)soak_below(random, SOAK_FREE);
    d->play.actions = d->play.pace == SOAK_ALONE ? 0 : soak_below(random, 4);
    d->play.prompt = soak_below(random, (uint32_t)texts->n);
    d->o = (struct session_options){
        .policies = policy_registry,
        .prompt = texts->prompt[d->play.prompt],
        .prompt_len = strlen(texts->prompt[d->play.prompt]),
        .sampling = {.top_p = 1},
        .seed = soak_below(random, 1000),
        .tokens = texts->tokens,
        .ctx = ctx,
        .ignore_eos = d->play.ignore_eos,
        .probe = (enum probe_mode)soak_below(random, PROBE_MODES),
        .probe_percent = 20,
        .head = (enum head_mode)soak_below(random, e->heads != HEAD_LENS ? HEAD_MODES : HEADS_TRAINED),
        .paused = d->play.pace == SOAK_STEPS,
        .stay = d->play.pace != SOAK_ALONE,
    };
    if (draws >= 65)
        d->o.sampling = (struct sampling){.temperature = (float)(1 + soak_below(random, 20)) / 10,
                                          .top_k = d->play.top_one ? 1 : soak_below(random, 40),
                                          .top_p = soak_chance(random, 50) ? 0.9f : 1};
    if (soak_chance(random, 35))
        draw_batch(d, random);
    return draw_policy(e, d, random, err);
}

static bool
generate(struct engine *e, const struct draw *d, struct soak_play *play, struct session_rig_result *r, struct err *err)
{
    *play = d->play;
    play->out = r;
    if (!session_rig_generate(e, &d->o, soak_play_watch, play, r, err))
        return false;
    const char *what = play->wrong[0] != '\0' ? play->wrong : r->wrong;
    if (what[0] == '\0')
        return true;
    err_set(err, ERR_WORK, "%s", what);
    session_rig_free(r);
    return false;
}

/* Repeats the run on another number of threads; the samples must be the same. */
static bool
repeat(struct soak *soak, struct engine *e, const struct draw *d, const struct session_rig_result *first,
       struct err *err)
{
    struct session_rig_result r;
    struct soak_play play;
    bool ok = generate(e, d, &play, &r, err);
    if (!ok)
        return false;
    for (size_t i = 0; i < r.n_sequences && ok; i++) {
        const struct session_rig_sequence *a = &first->sequences[i], *b = &r.sequences[i];
        if (a->n != b->n || (a->n > 0 && memcmp(a->tokens, b->tokens, a->n * sizeof *a->tokens) != 0))
            ok = err_set(err, ERR_WORK, "sequence %zu is another one when it is drawn again on other threads", i);
        soak->count.repeated += a->n;
    }
    session_rig_free(&r);
    return ok;
}

/* Checks that a sequence of a batch with constant settings has the same tokens as when it runs alone with its own
 * seed. */
static bool
alone(struct soak *soak, struct engine *e, const struct draw *d, const struct session_rig_result *batch,
      struct err *err)
{
    bool ok = true;
    for (size_t i = 0; i < batch->n_sequences && ok; i++) {
        const struct session_rig_sequence *a = &batch->sequences[i];
        if (i >= d->o.batch && policy_registry[d->play.policy[0]]->save != NULL)
            break; /* it continues with what its predecessor learned */
        struct draw one = *d;
        struct session_rig_result r;
        struct soak_play play;
        one.o.batch = one.play.batch = 0;
        one.o.n_prompts = 0;
        one.o.prompts = NULL;
        one.o.prompt = d->prompts[i % d->o.n_prompts].text;
        one.o.prompt_len = d->prompts[i % d->o.n_prompts].len;
        one.o.seed = rng_sequence_seed(d->o.seed, (uint32_t)i);
        if (!generate(e, &one, &play, &r, err))
            return false;
        if (a->n != r.n || (a->n > 0 && memcmp(a->tokens, r.tokens, a->n * sizeof *a->tokens) != 0))
            ok = err_set(err, ERR_WORK, "sequence %zu of a batch is another one when it is drawn alone", i);
        soak->count.repeated += a->n;
        session_rig_free(&r);
    }
    return ok;
}

static bool
run(struct soak *soak, struct engine *const *engines, const struct draw *d, struct err *err)
{
    struct session_rig_result r;
    struct soak_play play;
    if (!generate(engines[1], d, &play, &r, err))
        return false;
    soak->count.runs += play.runs;
    soak->count.turns += play.turns;
    soak->count.tokens += play.tokens;
    /* A policy that measures time may decide otherwise when the run is repeated. */
    const bool timed = policy_registry[d->play.policy[0]]->shared_size > 0 || d->play.pace != SOAK_ALONE;
    bool ok = true;
    if (!d->play.greedy && !timed)
        ok = d->o.batch > 0 ? alone(soak, engines[0], d, &r, err) : repeat(soak, engines[0], d, &r, err);
    session_rig_free(&r);
    return ok;
}

static void
describe(struct soak *soak, const struct soak_model *m, const struct draw *d, uint32_t threads)
{
    static const char *const paces[] = {"left alone", "in steps", "turned at any moment"};
    int n = snprintf(soak->about, sizeof soak->about, "%.60s, draft %.60s, %s%s%s%s%s, %u threads",
                     m->made ? m->name : m->path, m->made && m->draft[0] == '/' ? "its first layers" : m->draft,
                     m->backend, m->isa != NULL ? " " : "", m->isa != NULL ? m->isa : "", m->exact ? ", exact" : "",
                     m->quantize ? ", quantised" : "", threads);
    if (d == NULL)
        return;
    n += snprintf(soak->about + n, sizeof soak->about - (size_t)n, ", %s, %s, %s, batch %u: %s", d->o.policy,
                  d->play.top_one  ? "drawn among one"
                  : d->play.greedy ? "greedy"
                                   : "sampled",
                  paces[d->play.pace], d->o.batch, d->o.n_set > 0 ? "" : "no knobs");
    for (size_t i = 0; i < d->o.n_set && n < (int)sizeof soak->about; i++)
        n += snprintf(soak->about + n, sizeof soak->about - (size_t)n, "%s=%s ", d->set[i].name, d->set[i].text);
}

bool
soak_case(struct soak *soak, uint64_t number, struct err *err)
{
    uint64_t random = soak->seed * 0x9E3779B97F4A7C15u + number;
    struct soak_model model;
    struct soak_texts texts = {.n = 0};
    struct engine *engines[2] = {NULL, NULL};
    uint32_t ctx = 0;
    soak->about[0] = '\0';
    bool ok = soak_model_draw(&model, soak->cuda, &random, err);
    const uint32_t threads = soak_chance(&random, 70) ? 1 : 2 + soak_below(&random, 3);
    const bool slow = model.slow;
    if (ok)
        describe(soak, &model, NULL, threads);
    ok = ok && soak_model_engine(&model, 1, &engines[0], err) && soak_model_engine(&model, threads, &engines[1], err);
    soak_model_remove(&model); /* the files remain mapped */
    ok = ok && draw_texts(engines[0], &texts, slow, &ctx, &random, err);
    if (ok && soak->spoil)
        texts.greedy[0][texts.n_greedy[0] / 4] ^= 1;
    for (int i = 0; i < (slow ? 2 : RUNS) && ok; i++) {
        struct draw d;
        ok = draw_run(engines[1], &d, &texts, ctx, &random, err);
        if (ok)
            describe(soak, &model, &d, threads);
        ok = ok && run(soak, engines, &d, err);
    }
    soak->count.cases++;
    free_texts(&texts);
    engine_close(engines[0]);
    engine_close(engines[1]);
    return ok;
}
