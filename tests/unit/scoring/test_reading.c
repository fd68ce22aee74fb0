/* Records of finished texts against real runs. A text is generated greedily and read; then the rounds of policies at
 * random settings, simulated over that record, are those of runs that generate the same text. SPECSCOPE_LONG=1 takes
 * eight settings of each policy instead of two. */
#include <math.h>

#include "cli/options/commands.h"
#include "engine/scoring/reading.h"
#include "engine/session/session.h"
#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

enum { TOKENS = 120, CTX = 512, CHANGED = 2 };

static struct engine *bundled, *with_head; /* with a draft model and random feature drafters; with a trained head */
static uint64_t seed;
static int settings;

static struct text {
    token_t token[CTX];
    uint32_t n, prompt;
} text;

static struct session_options
options_of(const char *policy, size_t prompt)
{
    return (struct session_options){.policies = policy_registry,
                                    .policy = policy,
                                    .prompt = session_prompts[prompt],
                                    .prompt_len = strlen(session_prompts[prompt]),
                                    .sampling = {.top_p = 1},
                                    .seed = 1,
                                    .tokens = TOKENS,
                                    .ctx = CTX,
                                    .ignore_eos = true};
}

static void
note_prompt(void *user, struct live *live, const struct event *e)
{
    struct text *t = user;
    (void)live;
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT)
        t->token[t->n++] = e->token.token;
}

static void
generate(struct engine *engine, size_t prompt)
{
    const struct session_options o = options_of("ar", prompt);
    struct session_rig_result r;
    struct err err;
    text.n = 0;
    assert_ok(session_rig_generate(engine, &o, note_prompt, &text, &r, &err), err);
    text.prompt = text.n;
    for (size_t i = 0; i < r.n; i++)
        text.token[text.n++] = r.tokens[i];
    session_rig_free(&r);
}

static struct reading *
open_reading(struct engine *engine, uint32_t draft_vocab)
{
    const struct reading_options o = {
        .ctx = CTX, .lens = true, .trained = engine->heads != HEAD_LENS, .draft_vocab = draft_vocab};
    struct reading *r;
    struct err err;
    assert_ok(reading_open(&r, engine, &o, &err), err);
    return r;
}

static void
read_part(struct reading *r, uint32_t n, uint32_t from, bool first)
{
    struct err err;
    assert_ok(reading_part(r, text.token, n, from, first, true, &err), err);
}

/* The record of the head in use, with the drafter that the policy needs. */
static struct layer_record
record_for(const struct reading *r, const struct policy_ops *ops)
{
    struct layer_record record = ops->trained_heads ? r->trained : r->lens;
    for (uint32_t i = 0; i < r->n_drafters; i++)
        if ((ops->needs & NEEDS(r->drafter[i].role)) != 0)
            record.draft = r->drafter[i].read;
    assert_null(layer_record_lacks(&record, ops->needs));
    return record;
}

struct sums {
    double rounds, measured;
    bool exact, loads; /* all settings */
};

/* Compares simulated rounds with a run at one setting. */
static void
compare_one(struct engine *engine, const struct layer_record *record, const struct policy *p, const double *values,
            size_t prompt, struct sums *sums)
{
    struct session_options o = options_of(p->info.name, prompt);
    struct knob_setting set[POLICY_KNOBS];
    struct session_rig_result r;
    struct tally f;
    struct err err;
    for (uint32_t k = 0; k < p->info.n_knobs; k++) {
        snprintf(set[k].name, sizeof set[k].name, "%s", p->info.knobs[k].name);
        knob_format(&p->info.knobs[k], values[k], set[k].text, sizeof set[k].text);
    }
    o.set = set;
    o.n_set = p->info.n_knobs;
    assert_ok(session_rig_generate(engine, &o, NULL, NULL, &r, &err), err);
    const struct tally m = r.metrics.total;
    session_rig_free(&r);
    assert_true(p->ops->what_if(record, values, &f));
    assert_int_equal(f.emitted, m.emitted);
    if (f.rounds != m.rounds || f.accepted != m.accepted)
        print_message("%s on prompt %zu: %u rounds and %u accepted, simulated %u and %u\n", p->info.name, prompt,
                      (unsigned)m.rounds, (unsigned)m.accepted, (unsigned)f.rounds, (unsigned)f.accepted);
    sums->exact = sums->exact && f.rounds == m.rounds && f.accepted == m.accepted;
    sums->loads = sums->loads && fabs(f.layers - m.layers) < 1e-3 && fabs(f.heads - m.heads) < 1e-3;
    sums->rounds += (double)f.rounds;
    sums->measured += (double)m.rounds;
}

static struct sums
compare(struct engine *engine, const char *name, uint64_t *random)
{
    const struct model_desc *d = &engine->model->desc;
    const struct model_info model = {d->n_layers, d->width, d->vocab, engine->model->rho, NULL};
    const struct sampling greedy = {.top_p = 1};
    struct sums sums = {.exact = true, .loads = true};
    struct policy p;
    struct err err;
    assert_ok(policy_open(&p, policy_named(policy_registry, name), &model, &greedy, &err), err);
    struct reading *r = open_reading(engine, 0);
    for (int i = 0; i < settings; i++) {
        const size_t prompt = splitmix64(random) % SESSION_PROMPTS;
        generate(engine, prompt);
        read_part(r, text.n, text.prompt, true);
        assert_int_equal(r->own, r->compared); /* the text is the target's */
        const struct layer_record record = record_for(r, p.ops);
        double values[POLICY_KNOBS];
        for (uint32_t k = 0; k < p.info.n_knobs; k++)
            values[k] = p.info.knobs[k].def;
        for (int c = 0; c < CHANGED; c++) {
            const uint32_t k = (uint32_t)splitmix64(random) % p.info.n_knobs;
            if (strcmp(p.info.knobs[k].name, "topk") != 0 && strcmp(p.info.knobs[k].name, "alpha") != 0 &&
                k != p.ops->draft_vocab)
                values[k] = session_rig_knob_value(&p.info.knobs[k], 3, random);
        }
        compare_one(engine, &record, &p, values, prompt, &sums);
    }
    reading_close(r);
    policy_close(&p);
    return sums;
}

TEST(rounds_on_a_read_text_are_those_of_runs)
{
    static const struct {
        const char *name;
        bool exact;
    } policies[] = {{"sd", true},  {"eagle", true}, {"mtp", true},    {"layerskip", true},  {"fsm", true},
                    {"del", true}, {"ngram", true}, {"suffix", true}, {"specbound", false}, {"dv", false}};
    uint64_t random = seed;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const bool head = strcmp(policies[i].name, "eagle") == 0;
        const struct sums s = compare(head ? with_head : bundled, policies[i].name, &random);
        print_message("%s: %g rounds, simulated %g%s\n", policies[i].name, s.measured, s.rounds,
                      s.loads ? "; all loads are equal" : "");
        assert_true(s.exact || !policies[i].exact);
        assert_less(fabs(s.rounds / s.measured - 1), 0.02);
    }
}

static int
open_models(void **state)
{
    (void)state;
    settings = getenv("SPECSCOPE_LONG") != NULL ? 8 : 2;
    char head[PATH_MAX];
    struct err err = {0};
    const char *model = bundled_model_path(), *base = strrchr(model, '/');
    snprintf(head, sizeof head, "%.*s/fables-eagle-q8_0.gguf", base != NULL ? (int)(base - model) : 1,
             base != NULL ? model : ".");
    if (session_rig_engine(&bundled, model, "cpu", 1, &err) &&
        session_rig_engine_with(&with_head, model, head, "cpu", 1, &err))
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

static int
close_models(void **state)
{
    (void)state;
    engine_close(bundled);
    engine_close(with_head);
    return 0;
}

FIXTURE(open_models, close_models);
TEST_SEED(seed, 1);
