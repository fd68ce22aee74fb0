/* Forecasts of what-if against real runs. The record comes from a run of the bundled model under a policy's defaults.
 * Each policy's knobs are set to twenty settings, its rounds are forecast from that record, and the same text is
 * generated with them. The test compares counts, not times. SPECSCOPE_LONG=1 takes every policy. Otherwise each takes
 * ten settings, on half of the prompts, and the seed chooses half of the policies. */
#include <math.h>

#include "cli/options/commands.h"
#include "engine/measure/layer_record.h"
#include "policies/registry.h"
#include "tests/rigs/observed_run.h"
#include "tests/rigs/recorded_run.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

enum { SETTINGS = 20, PROMPTS = 4, TOKENS = 120, TURNED = 2 };

static struct engine *engine;
static int settings; /* of SETTINGS */
static struct layer_record record;
static size_t prompt; /* of session_prompts */
static uint64_t seed_of_half;

static const struct session_options usual = {.policies = policy_registry,
                                             .policy = "specbound",
                                             .sampling = {.top_p = 1},
                                             .seed = 1,
                                             .tokens = TOKENS,
                                             .ctx = 320,
                                             .ignore_eos = true};

static struct session_options
options_of(const char *policy)
{
    struct session_options o = usual;
    o.policy = policy;
    o.prompt = session_prompts[prompt];
    o.prompt_len = strlen(o.prompt);
    return o;
}

/* Keeps the record of a whole run if it has rounds over so many rows. */
static void
keep_record_of(const struct session_options *o, uint32_t rows)
{
    struct err err = {0};
    assert_ok(observe_record(engine, o, &record, &err), err);
    assert_int_equal(record.n - record.begin, rows);
}

static void
keep_record(const char *policy)
{
    struct session_options o = options_of(policy);
    keep_record_of(&o, TOKENS - 1);
}

struct errors {
    double tokens, acceptance, layers,
        heads;      /* mean absolute error of tokens/round, accepted/verified, loads per token; relative */
    uint32_t exact; /* settings whose rounds are forecast exactly */
    bool
        rounds; /* accepted drafts and rounds are exact in all settings with the record's alpha, if there is such a knob */
};

static struct tally
measure(const char *policy, const struct knob_setting *set, size_t n_set)
{
    struct session_options o = options_of(policy);
    o.set = set;
    o.n_set = n_set;
    struct session_rig_result r;
    struct err err = {0};
    if (!session_rig_generate(engine, &o, NULL, NULL, &r, &err))
        fail_msg("%s: %s", policy, err.text);
    const struct tally t = r.metrics.total;
    session_rig_free(&r);
    return t;
}

static double
off_by(double foretold, double measured)
{
    return measured != 0 ? fabs(foretold - measured) / fabs(measured) : fabs(foretold);
}

static double
share(const struct tally *t) /* accepted of verified */
{
    return t->verified > 0 ? (double)t->accepted / (double)t->verified : 1;
}

/* Sets some knobs of the policy at random; the first setting is the default. tokens: of the draft vocabulary, 0: all. */
static size_t
turn(const struct policy_info *info, int setting, uint32_t tokens, uint64_t *random, double *values,
     struct knob_setting *set)
{
    size_t n = 0;
    const int vocab = policy_knob_index(info, DRAFT_VOCAB); /* the last knob */
    for (uint32_t k = 0; k < info->n_knobs; k++)
        values[k] = info->knobs[k].def;
    for (int i = 0; i < (setting > 0 ? TURNED : 0); i++) {
        const uint32_t k = (uint32_t)(splitmix64(random) % (info->n_knobs - (vocab >= 0)));
        values[k] = session_rig_knob_value(&info->knobs[k], 3, random);
    }
    if (vocab >= 0)
        values[vocab] = tokens;
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        snprintf(set[n].name, sizeof set[n].name, "%s", info->knobs[k].name);
        knob_format(&info->knobs[k], values[k], set[n].text, sizeof set[n].text);
        n++;
    }
    return n;
}

static struct errors
compare(const char *name, uint32_t tokens)
{
    const struct policy_ops *ops = policy_named(policy_registry, name);
    const struct model_info model = engine_model_info(engine);
    const struct sampling greedy = {.top_p = 1};
    struct policy p;
    struct err err;
    struct errors sum = {.rounds = true};
    uint64_t random = 5;
    assert_ok(policy_open(&p, ops, &model, &greedy, &err), err);
    const int alpha = policy_knob_index(&p.info, "alpha");
    for (int i = 0; i < settings; i++) {
        double values[POLICY_KNOBS];
        struct knob_setting set[POLICY_KNOBS];
        const size_t n = turn(&p.info, i, tokens, &random, values, set);
        if (i % (SETTINGS / PROMPTS) == 0) {
            prompt = (size_t)i / (SETTINGS / PROMPTS);
            keep_record(strcmp(name, "ngram+sd") == 0 ? "sd" : name); /* sd reads every token at once */
        }
        struct tally f;
        layer_record_restrict(&record,
                              ops->draft_vocab > 0 ? draft_vocab_base(values[ops->draft_vocab], model.vocab) : 0);
        assert_true(ops->what_if(&record, values, &f));
        const struct tally m = measure(name, set, n);
        assert_int_equal(f.emitted, m.emitted);
        if (alpha < 0 || values[alpha] == p.info.knobs[alpha].def)
            sum.rounds = sum.rounds && f.rounds == m.rounds && f.accepted == m.accepted;
        sum.tokens += off_by((double)m.rounds, (double)f.rounds) / settings; /* the tokens are the same */
        sum.acceptance += off_by(share(&f), share(&m)) / settings;
        sum.layers += off_by(f.layers, m.layers) / settings;
        sum.heads += off_by(f.heads, m.heads) / settings;
        sum.exact += f.rounds == m.rounds && f.drafted == m.drafted && f.accepted == m.accepted &&
                     fabs(f.layers - m.layers) < 1e-3 && fabs(f.heads - m.heads) < 1e-3;
    }
    policy_close(&p);
    layer_record_restrict(&record, 0);
    print_message("%s, %u tokens: tokens/round off by %.2f%%, acceptance %.2f%%, layers %.2f%%, heads %.2f%%; "
                  "%u of %d exact\n",
                  name, tokens, sum.tokens * 100, sum.acceptance * 100, sum.layers * 100, sum.heads * 100,
                  (unsigned)sum.exact, settings);
    return sum;
}

struct distance {
    double worst, sum;
    uint32_t n;
};

/* The distance of the record's annealed confidences from those of a run with this alpha. */
static struct distance
distance(const char *text, double alpha)
{
    struct session_options o = options_of("specbound");
    struct knob_setting set = {.name = "alpha"};
    snprintf(set.text, sizeof set.text, "%s", text);
    o.set = &set;
    o.n_set = 1;
    o.probe = PROBE_ALL;
    struct recorded_run run;
    struct err err;
    struct distance off = {0};
    assert_ok(record_run(engine, &o, &run, &err), err);
    for (size_t i = 0; i < run.n; i++) {
        const struct layer_event *e = &run.events[i].layer;
        const uint32_t row = e->pos - 1 - record.first;
        if (run.events[i].type != EVENT_LAYER || e->probed_by != PROBED_SCOPE || run.events[i].round == 0 ||
            isnan(e->annealed) || row >= record.n || (e->head == 0 && (uint32_t)e->layer < record.layers))
            continue;
        const struct layer_prediction *c = layer_prediction(&record, row, (uint32_t)e->layer);
        const float t = (float)(1 + alpha * (1 - (double)e->layer / record.layers));
        const double by = fabs((double)layer_record_annealed(c, t) - (double)e->annealed);
        assert_int_equal(c->agrees, e->final_agrees);
        assert_near(c->confidence, e->confidence, 1e-6);
        off.worst = fmax(off.worst, by);
        off.sum += by;
        off.n++;
    }
    recorded_run_free(&run);
    return off;
}

TEST(forecasts_equal_the_rounds_that_follow)
{
    static const struct {
        const char *name;
        bool exact;  /* in all settings; false: in half of them. Drafts from earlier text depend only on the text */
        bool rounds; /* as in struct errors */
    } policies[] = {{"specbound", false, true}, {"layerskip", true, true}, {"dv", false, false},   {"fsm", true, true},
                    {"del", false, true},       {"ngram", true, true},     {"suffix", true, true}, {"sd", true, true},
                    {"ngram+sd", true, true},   {"specdecpp", false, true}};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (settings < SETTINGS && (i + seed_of_half) % 2 == 1)
            continue;
        const struct errors e = compare(policies[i].name, 0);
        assert_less(e.tokens, 0.02);
        assert_less(e.acceptance, 0.05);
        assert_less(e.layers, 0.02);
        assert_less(e.heads, 0.03);
        assert_at_least(e.exact, (uint32_t)(policies[i].exact ? settings : settings / 2));
        assert_true(e.rounds || !policies[i].rounds);
    }
}

/* Tokens over a draft vocabulary are exact where the layer's list has one of it, which is nearly everywhere. Thresholds
 * compare estimated confidences. */
TEST(forecasts_with_a_draft_vocabulary_are_near_the_rounds_that_follow)
{
    static const struct {
        const char *name;
        uint32_t tokens;
        double most; /* mean error of tokens/round and of heads */
    } cases[] = {{"layerskip", 1024, 0.03}, {"fsm", 1024, 0.01},       {"sd", 512, 0.01},
                 {"dv", 1024, 0.05},        {"specbound", 1024, 0.06}, {"specdecpp", 1024, 0.04}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (settings < SETTINGS && (i + seed_of_half) % 3 != 0)
            continue;
        const struct errors e = compare(cases[i].name, cases[i].tokens);
        assert_less(e.tokens, cases[i].most);
        assert_less(e.heads, cases[i].most);
    }
}

/* At position 76 the confidence of layer 1 is 0.54958, and τ is 0.55. An estimate could be on either side of τ. */
TEST(the_present_setting_is_forecast_exactly)
{
    static const char text[] =
        "In a small village by the sea lived an old fisherman called Osric. One evening he found";
    struct session_options o = options_of("specbound");
    o.prompt = text;
    o.prompt_len = strlen(text);
    o.tokens = 110;
    keep_record_of(&o, o.tokens - 1);
    const struct model_info model = engine_model_info(engine);
    struct policy p;
    struct err err;
    struct tally f;
    struct session_rig_result r;
    assert_ok(policy_open(&p, policy_named(policy_registry, "specbound"), &model, &o.sampling, &err), err);
    assert_true(p.ops->what_if(&record, p.value, &f));
    policy_close(&p);
    assert_ok(session_rig_generate(engine, &o, NULL, NULL, &r, &err), err);
    assert_int_equal(f.rounds, r.metrics.total.rounds);
    assert_int_equal(f.accepted, r.metrics.total.accepted);
    session_rig_free(&r);
}

/* A record begins at the prompt's last 32 positions. DEL learns from as many positions as its window has, if the prompt
 * is that long. */
TEST(values_that_need_more_of_the_prompt_than_was_probed_have_no_forecast)
{
    struct session_options o = options_of("del");
    char text[1024] = "";
    for (int i = 0; i < 6; i++)
        strcat(text, "The miller had two sons and a grey donkey. ");
    o.prompt = text;
    o.prompt_len = strlen(text);
    o.ctx = 512;
    keep_record_of(&o, TOKENS - 1);
    assert_true(record.from_prompt);
    assert_int_equal(record.begin, 32);
    assert_greater(record.first, 32);
    const struct model_info model = engine_model_info(engine);
    struct policy p;
    struct err err;
    struct tally f;
    assert_ok(policy_open(&p, policy_named(policy_registry, "del"), &model, &o.sampling, &err), err);
    double *window = &p.value[policy_knob_index(&p.info, "window")];
    assert_true(p.ops->what_if(&record, p.value, &f));
    *window = 33;
    assert_false(p.ops->what_if(&record, p.value, &f));
    record.from_prompt = false; /* then all rows before the first round count, whatever the window */
    assert_true(p.ops->what_if(&record, p.value, &f));
    policy_close(&p);
}

/* The record has confidences at temperature 1 and approximates all others. The backend computes the true values at
 * every layer of every accepted position. */
TEST(a_record_has_the_annealed_confidence_nearly)
{
    static const struct {
        const char *alpha;
        double mean, worst;
    } bounds[] = {
        {"0", 1e-7, 1e-6}, {"0.05", 0.001, 0.01}, {"0.2", 0.002, 0.02}, {"0.8", 0.015, 0.1}, {"2", 0.03, 0.2}};
    keep_record("specbound");
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const struct distance off = distance(bounds[i].alpha, strtod(bounds[i].alpha, NULL));
        print_message("alpha %s: %u cells, off by %.2g at most, %.2g on average\n", bounds[i].alpha, (unsigned)off.n,
                      off.worst, off.sum / off.n);
        assert_greater(off.n, 500);
        assert_at_most(off.worst, bounds[i].worst);
        assert_at_most(off.sum / off.n, bounds[i].mean);
    }
}

/* In a text longer than the record, the last tokens' rounds are forecast. A rule with memory keeps its state. */
TEST(the_last_tokens_of_a_long_run_are_foretold)
{
    static const struct knob_setting set[] = {{"epsilon", "0.03"}, {"target", "0.7"}};
    struct session_options o = options_of("dv");
    o.tokens = 440;
    o.ctx = 512;
    o.set = set;
    o.n_set = 2;
    keep_record_of(&o, RECORD_TOKENS);
    assert_string_equal(record.policy, "dv");
    struct policy p;
    struct err err;
    const struct model_info model = engine_model_info(engine);
    assert_ok(policy_open(&p, policy_named(policy_registry, "dv"), &model, &o.sampling, &err), err);
    for (size_t i = 0; i < 2; i++) {
        const uint32_t k = (uint32_t)policy_knob_index(&p.info, set[i].name);
        assert_ok(knob_parse(&p.info.knobs[k], set[i].text, &p.value[k], &err), err);
    }
    struct tally f, afresh, m = {0};
    assert_true(p.ops->what_if(&record, p.value, &f));
    record.policy[0] = '\0';
    assert_true(p.ops->what_if(&record, p.value, &afresh));
    policy_close(&p);
    struct recorded_run run;
    assert_ok(record_run(engine, &o, &run, &err), err);
    uint64_t emitted = 0;
    for (size_t i = 0; i < run.n; i++) {
        const struct event *e = &run.events[i];
        emitted += e->type == EVENT_ROUND ? e->round_end.emitted : 0;
        if (e->type == EVENT_ROUND && emitted > o.tokens - 1 - RECORD_TOKENS) {
            const struct tally t = tally_of(&e->round_end);
            tally_add(&m, &t);
        }
    }
    recorded_run_free(&run);
    const double got = (double)f.emitted / (double)f.rounds, was = (double)m.emitted / (double)m.rounds,
                 anew = (double)afresh.emitted / (double)afresh.rounds;
    print_message("tokens/round %.3f, foretold %.3f, afresh %.3f\n", was, got, anew);
    assert_less(off_by(got, was), 0.05);
    assert_at_most(off_by(got, was), off_by(anew, was));
}

static int
open_model(void **state)
{
    (void)state;
    settings = getenv("SPECSCOPE_LONG") != NULL ? SETTINGS : SETTINGS / 2;
    struct err err = {0};
    if (!session_rig_engine(&engine, bundled_model_path(), "cpu", 1, &err) ||
        !layer_record_open(&record, engine->model->desc.n_layers, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}

static int
close_model(void **state)
{
    (void)state;
    layer_record_close(&record);
    engine_close(engine);
    return 0;
}

FIXTURE(open_model, close_model);
TEST_SEED(seed_of_half, 1);
