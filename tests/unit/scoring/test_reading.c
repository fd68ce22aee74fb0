/* Records of finished texts against real runs. A text is generated greedily and read; then the rounds of policies at
 * random settings, simulated over that record, are those of runs that generate the same text. SPECSCOPE_LONG=1 takes
 * eight settings of each policy and 120 tokens instead of two and 60. */
#include <math.h>

#include "cli/options/commands.h"
#include "engine/measure/forecast.h"
#include "engine/scoring/reading.h"
#include "engine/session/session.h"
#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

enum { CTX = 512, CHANGED = 2 };

static struct engine *bundled, *with_head; /* with a draft model and random feature drafters; with a trained head */
static uint64_t seed;
static uint32_t settings, tokens; /* tokens of a text */
static struct {
    token_t token[CTX];
    uint32_t n, prompt;
} text;

static void
note_prompt(void *user, struct live *live, const struct event *e)
{
    (void)user, (void)live;
    if (e->type != EVENT_TOKEN || e->token.source != SOURCE_PROMPT)
        return;
    text.token[e->token.pos] = e->token.token;
    text.prompt = e->token.pos + 1;
}

/* Generates from a prompt with these values of the policy's knobs; p NULL: plain decoding, whose text is kept. */
static struct tally
generate(struct engine *engine, size_t prompt, const struct policy *p, const double *values)
{
    struct knob_setting set[POLICY_KNOBS];
    struct session_rig_result r;
    struct err err;
    struct session_options o = {.policies = policy_registry,
                                .policy = p != NULL ? p->info.name : "ar",
                                .prompt = session_prompts[prompt],
                                .prompt_len = strlen(session_prompts[prompt]),
                                .sampling = {.top_p = 1},
                                .seed = 1,
                                .tokens = tokens,
                                .ctx = CTX,
                                .ignore_eos = true,
                                .set = set,
                                .n_set = p != NULL ? p->info.n_knobs : 0};
    for (uint32_t k = 0; k < o.n_set; k++) {
        snprintf(set[k].name, sizeof set[k].name, "%s", p->info.knobs[k].name);
        knob_format(&p->info.knobs[k], values[k], set[k].text, sizeof set[k].text);
    }
    assert_ok(session_rig_generate(engine, &o, note_prompt, NULL, &r, &err), err);
    if (p == NULL)
        memcpy(text.token + text.prompt, r.tokens, r.n * sizeof *r.tokens);
    text.n = text.prompt + tokens;
    const struct tally t = r.metrics.total;
    session_rig_free(&r);
    return t;
}

static struct reading *
open_reading(struct engine *engine, bool lens, bool trained, uint32_t draft_vocab)
{
    const struct reading_options o = {.ctx = CTX, .lens = lens, .trained = trained, .draft_vocab = draft_vocab};
    struct reading *r;
    struct err err;
    assert_ok(reading_open(&r, engine, &o, &err), err);
    return r;
}

static void
read_part(struct reading *r, uint32_t from, bool first)
{
    struct err err;
    assert_ok(reading_part(r, 0, text.token, text.n, from, first, true, &err), err);
}

/* Opens a policy and changes two of its knobs at random, but not those on which forecasts depend otherwise: trees have
 * none, and confidences at other temperatures are estimated. Random drafters are never right, so few drafts do. */
static void
open_at_random(struct policy *p, const struct engine *engine, const char *name, uint64_t *random)
{
    const struct model_info model = engine_model_info(engine);
    struct err err;
    assert_ok(policy_open(p, policy_named(policy_registry, name), &model, &(struct sampling){.top_p = 1}, &err), err);
    for (int i = 0; i < CHANGED && strcmp(name, "mtp") != 0; i++) {
        const uint32_t k = (uint32_t)splitmix64(random) % p->info.n_knobs;
        const char *knob = p->info.knobs[k].name;
        if (strcmp(knob, "topk") != 0 && strcmp(knob, "alpha") != 0 && strcmp(knob, DRAFT_VOCAB) != 0)
            p->value[k] = session_rig_knob_value(&p->info.knobs[k], 3, random);
    }
}

/* Compares simulated rounds with those of a run. They are equal, or nearly if the policy estimates. */
static void
compare(struct engine *engine, const struct reading *r, const char *name, size_t prompt, uint64_t *random)
{
    struct policy p;
    struct tally f;
    open_at_random(&p, engine, name, random);
    struct layer_record record = p.ops->trained_heads ? r->part[0].trained : r->part[0].lens;
    for (uint32_t i = 0; i < r->n_drafters; i++)
        if ((p.ops->needs & NEEDS(r->drafter[i].role)) != 0 &&
            r->drafter[i].markov == ((p.ops->needs & NEEDS_MARKOV) != 0))
            record.draft = r->part[0].draft[i];
    assert_null(layer_record_lacks(&record, p.ops->needs));
    const struct tally m = generate(engine, prompt, &p, p.value);
    assert_true(p.ops->what_if(&record, p.value, &f));
    const double off = fabs((double)f.rounds / (double)m.rounds - 1);
    if (f.emitted != m.emitted || off > 0.05 ||
        (!p.ops->estimates && (f.rounds != m.rounds || f.accepted != m.accepted)))
        fail_msg("%s on prompt %zu: %u rounds, %u accepted; simulated %u, %u", name, prompt, (unsigned)m.rounds,
                 (unsigned)m.accepted, (unsigned)f.rounds, (unsigned)f.accepted);
    if (p.ops->needs != 0 && (fabs(f.layers - m.layers) > 1e-3 || fabs(f.heads - m.heads) > 1e-3))
        fail_msg("%s on prompt %zu: other loads", name, prompt);
    policy_close(&p);
}

TEST(rounds_on_a_read_text_are_those_of_runs)
{
    static const char *const policies[] = {"sd",  "mtp",   "dflash", "dspark",    "layerskip", "fsm",
                                           "del", "ngram", "suffix", "specbound", "dv"};
    struct reading *r = open_reading(bundled, true, true, 0), *of_head = open_reading(with_head, false, false, 0);
    uint64_t random = seed;
    for (uint32_t i = 0; i < settings; i++) {
        const size_t prompt = splitmix64(&random) % SESSION_PROMPTS;
        generate(bundled, prompt, NULL, NULL);
        read_part(r, text.prompt, true);
        read_part(of_head, text.prompt, true);
        for (size_t k = 0; k < sizeof policies / sizeof *policies; k++)
            compare(bundled, r, policies[k], prompt, &random);
        compare(with_head, of_head, "eagle", prompt, &random);
    }
    assert_true(r->compared == settings * tokens && r->own == r->compared); /* the texts are the target's */
    reading_close(r);
    reading_close(of_head);
}

/* A policy that needs the Markov head has no forecast on a record without its bias. */
TEST(a_block_drafter_with_a_markov_head_counts_as_two)
{
    struct reading *r = open_reading(bundled, false, false, 0);
    const unsigned needs = NEEDS(AUX_BLOCK) | NEEDS_MARKOV;
    struct layer_record record = r->part[0].lens;
    uint32_t i = 0;
    while (i < r->n_drafters && r->drafter[i].role != AUX_BLOCK)
        i++;
    assert_less(i + 1, r->n_drafters);
    assert_true(!r->drafter[i].markov && r->drafter[i + 1].role == AUX_BLOCK && r->drafter[i + 1].markov);
    record.draft = r->part[0].draft[i];
    assert_non_null(layer_record_lacks(&record, needs));
    record.draft = r->part[0].draft[i + 1];
    assert_null(layer_record_lacks(&record, needs));
    reading_close(r);
}

static void
assert_same_drafts(const struct record_drafter *a, uint32_t row_a, const struct record_drafter *b, uint32_t row_b)
{
    const uint32_t n = a->drafts;
    assert_int_equal(a->run[row_a], b->run[row_b]);
    if (a->role == AUX_BLOCK)
        assert_memory_equal(a->confidence + row_a * n, b->confidence + row_b * n, n * sizeof *a->confidence);
}

/* A record does not depend on the texts that were read before, nor on the parts that a text is read in. */
TEST(parts_and_texts_before_change_no_row)
{
    struct reading *once = open_reading(with_head, true, false, 0), *parts = open_reading(with_head, true, false, 0);
    generate(with_head, seed % SESSION_PROMPTS, NULL, NULL);
    const uint32_t half = text.prompt + tokens / 2;
    read_part(once, text.prompt, true);
    text.token[half] ^= 1; /* another text, with the same first half */
    read_part(parts, text.prompt, true);
    text.token[half] ^= 1;
    const uint64_t before = parts->read;
    read_part(parts, half, false);
    assert_less(parts->read - before, text.n - half + RECORD_LEAD + 2); /* the prompt is not read again */
    const uint32_t shift = parts->part[0].lens.first - once->part[0].lens.first;
    for (uint32_t row = parts->part[0].lens.begin; row < parts->part[0].lens.n; row++) {
        for (uint32_t l = 1; l <= parts->part[0].lens.layers; l++)
            assert_memory_equal(layer_prediction(&once->part[0].lens, row + shift, l),
                                layer_prediction(&parts->part[0].lens, row, l), sizeof(struct layer_prediction));
        for (uint32_t d = 0; d < once->n_drafters; d++)
            assert_same_drafts(&once->part[0].draft[d], row + shift, &parts->part[0].draft[d], row);
    }
    reading_close(once);
    reading_close(parts);
}

/* With a draft vocabulary of the lens, this value of the knob has a forecast, which is nearly exact, and no other. */
TEST(layers_read_over_a_draft_vocabulary_forecast_it)
{
    enum { BASE = 1024 };
    struct reading *r = open_reading(bundled, true, false, BASE);
    struct policy p;
    struct forecast f;
    generate(bundled, seed % SESSION_PROMPTS, NULL, NULL);
    read_part(r, text.prompt, true);
    open_at_random(&p, bundled, "layerskip", &(uint64_t){seed});
    assert_false(forecast_make(p.ops, &r->part[0].lens, p.value, bundled->model->rho, NULL, &f));
    p.value[p.ops->draft_vocab] = BASE;
    const struct tally m = generate(bundled, seed % SESSION_PROMPTS, &p, p.value);
    assert_true(forecast_make(p.ops, &r->part[0].lens, p.value, bundled->model->rho, NULL, &f));
    assert_near(f.tokens_per_round, (double)m.emitted / (double)m.rounds, 0.05);
    policy_close(&p);
    reading_close(r);
}

TEST(passes_of_a_head_have_costs_of_their_own)
{
    double need;
    struct cost_model costs;
    assert_true(engine_costs(with_head, INFINITY, NULL, &need));
    assert_true(engine_drafter_costs(with_head, &with_head->aux[AUX_EAGLE], NULL, &costs));
    assert_less(costs.us[COST_OF_DRAFT][0] + costs.us[COST_OF_DRAFT_HEAD][0],
                costs.us[COST_OF_LAYER][0] * with_head->model->desc.n_layers);
    assert_greater(costs.us[COST_OF_DRAFT][COST_ROWS - 1], costs.us[COST_OF_DRAFT][0]);
}

/* Blocks, rows that are fed, head calls and calls of the Markov head; an EAGLE head has no such steps. */
TEST(steps_of_a_block_drafter_have_costs_of_their_own)
{
    double need;
    struct cost_model costs;
    assert_true(engine_costs(bundled, INFINITY, NULL, &need));
    assert_true(engine_drafter_costs(bundled, &bundled->aux[AUX_BLOCK], NULL, &costs));
    for (size_t i = 0; i < COST_ROWS; i++) {
        assert_greater(costs.us[COST_OF_FEED][i], 0);
        assert_greater(costs.us[COST_OF_MARKOV][i], 0);
        assert_less(costs.us[COST_OF_FEED][i], costs.us[COST_OF_DRAFT][i]);
    }
    assert_greater(costs.us[COST_OF_DRAFT][COST_ROWS - 1], costs.us[COST_OF_DRAFT][0]);
    assert_true(engine_drafter_costs(bundled, &bundled->aux[AUX_EAGLE], NULL, &costs));
    assert_false(costs.us[COST_OF_FEED][0] > 0);
}

static int
open_models(void **state)
{
    (void)state;
    settings = getenv("SPECSCOPE_LONG") != NULL ? 8 : 2;
    tokens = settings > 2 ? 120 : 60;
    char head[PATH_MAX];
    struct err err = {0};
    const char *model = bundled_model_path(), *name = strrchr(model, '/') + 1;
    snprintf(head, sizeof head, "%.*sfables-eagle-q8_0.gguf", (int)(name - model), model);
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
