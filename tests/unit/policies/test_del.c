/* DEL against a slow reference written directly from its formulas. The reference keeps every observation of the run,
 * weighs it by ω^age anew each round, and sums the geometric series term by term. Its observations are the *scope's*
 * probes at committed rows (probe all), not the policy's own probes. */
#include <math.h>

#include "cli/options/commands.h"
#include "policies/del.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/test.h"

#define BUNDLED bundled_model_path()

enum { ROWS = 4096, LAYERS = 32 };

/* ---- the reference ---- */

struct observation { /* one position, all layers */
    uint32_t round;  /* 0: the prompt */
    bool match[LAYERS + 1];
    double confidence[LAYERS + 1];
};

struct reference {
    uint32_t layers, n, d_max;
    uint32_t e_min, e_max;
    double omega;
    struct observation *seen; /* (ROWS) */
};

struct sums {
    double n, c, tcs, fcs, miss;
};

/* The sums of a layer at a round: all rounds before it, the last one with weight 1. */
static struct sums
sums_of(const struct reference *ref, uint32_t round, uint32_t l)
{
    struct sums s = {0};
    for (uint32_t i = 0; i < ref->n; i++) {
        const struct observation *o = &ref->seen[i];
        if (o->round >= round)
            continue;
        double weight = 1;
        for (uint32_t age = o->round + 1; age < round; age++)
            weight *= ref->omega;
        s.n += weight;
        s.c += o->match[l] ? weight : 0;
        s.miss += o->match[l] ? 0 : weight;
        s.tcs += o->match[l] ? weight * o->confidence[l] : 0;
        s.fcs += o->match[l] ? 0 : weight * o->confidence[l];
    }
    return s;
}

static double
tau_of(struct sums s)
{
    return 0.5 * ((s.c > 0 ? s.tcs / s.c : 0) + (s.miss > 0 ? s.fcs / s.miss : 0));
}

/* TPL: expected tokens of a round 1 + α + … + α^d over the layers it loads. */
static double
tpl_of(const struct reference *ref, struct sums s, uint32_t l, uint32_t d)
{
    double alpha = s.n > 0 ? s.c / s.n : 0, power = 1, tokens = 0;
    if (alpha > 1 - 1e-6)
        alpha = 1 - 1e-6;
    for (uint32_t i = 0; i <= d; i++, power *= alpha)
        tokens += power;
    return tokens / (d * l + ref->layers);
}

static struct del_choice
choice_of(const struct reference *ref, uint32_t round)
{
    struct del_choice best = {0, 0};
    double most = 0;
    for (uint32_t d = 0; d <= ref->d_max; d++)
        for (uint32_t l = ref->e_min; l <= ref->e_max; l++) {
            double tpl = tpl_of(ref, sums_of(ref, round, l), l, d);
            if (tpl > most * (1 + 1e-12)) { /* values that differ by rounding are equal: the first one stays */
                most = tpl;
                best = (struct del_choice){l, d};
            }
        }
    return best;
}

/* Shadow tokens of all layers from the scope's probes: L events of a position, with ascending layers. */
static void
read_observations(struct reference *ref, const struct recorded_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        const struct event *e = &run->events[i];
        if (e->type != EVENT_LAYER || e->layer.probed_by != PROBED_SCOPE)
            continue;
        assert_in_range(ref->n, 0, ROWS - 1);
        struct observation *o = &ref->seen[ref->n];
        o->round = e->round;
        o->match[e->layer.layer] = e->layer.final_agrees == 1;
        o->confidence[e->layer.layer] = (double)e->layer.confidence;
        if (e->layer.layer == (int32_t)ref->layers)
            ref->n++;
    }
}

static void
close_to(double got, double want, const char *what, uint32_t round, uint32_t l)
{
    if (!(fabs(got - want) <= 1e-6))
        fail_msg("round %u, layer %u: %s is %.9g, the formulas say %.9g", (unsigned)round, (unsigned)l, what, got,
                 want);
}

/* Checks a round's draft against the choice: kept tokens reach τ_E, and the draft does not stop early. */
static void
check_draft(const struct recorded_run *run, const struct event *round, struct del_choice want, double tau, bool dynamic,
            uint32_t d_max)
{
    uint32_t drafted = 0;
    for (size_t i = 0; i < run->n; i++) {
        const struct event *e = &run->events[i];
        if (e->round != round->round || e->type != EVENT_TOKEN || e->token.source != SOURCE_DRAFT)
            continue;
        drafted++;
        assert_int_equal(e->token.exit_layer, want.exit_layer);
        if (dynamic && (double)e->token.confidence < tau - 1e-6)
            fail_msg("round %u takes a token of confidence %g below tau %g", (unsigned)round->round,
                     (double)e->token.confidence, tau);
    }
    assert_int_equal(drafted, round->round_end.drafted);
    assert_int_equal(round->round_end.exit_layer, want.exit_layer);
    uint32_t most = want.length == 0 ? 0 : dynamic ? d_max : want.length;
    assert_in_range(drafted, 0, most);
    if (strcmp(round->round_end.stop_reason, "threshold") != 0 && strcmp(round->round_end.stop_reason, "budget") != 0)
        assert_int_equal(drafted, most);
}

/* The policy's incremental sums on the same rounds check the values that it does not report: τ_l of all layers. */
static void
check_sums(const struct reference *ref, uint32_t rounds)
{
    struct del_sums sums;
    assert_true(del_sums_open(&sums, ref->layers));
    struct prediction row[LAYERS];
    uint32_t at = 0;
    for (uint32_t round = 0; round <= rounds; round++) {
        del_sums_decay(&sums, round == 0 ? 1 : ref->omega);
        for (; at < ref->n && ref->seen[at].round == round; at++) {
            for (uint32_t l = 1; l <= ref->layers; l++)
                row[l - 1] = (struct prediction){.token = ref->seen[at].match[l] ? 7 : 8,
                                                 .confidence = (float)ref->seen[at].confidence[l]};
            del_sums_add(&sums, row);
        }
        for (uint32_t l = 1; l <= ref->layers; l++) {
            struct sums want = sums_of(ref, round + 1, l);
            close_to(del_alpha(&sums, l), want.c / want.n, "alpha", round, l);
            close_to(del_tau(&sums, l), tau_of(want), "tau", round, l);
        }
    }
    del_sums_close(&sums);
}

struct del_knobs { /* of the knobs */
    double omega;
    uint32_t d_max;
    bool dynamic;
    uint32_t e_min, e_max; /* 0: any */
};

static const struct del_knobs usual = {.omega = 0.95, .d_max = 18, .dynamic = true};

static void
compare(struct engine *engine, const struct session_options *options, struct del_knobs with)
{
    struct recorded_run run = exact_rig_record(engine, options);
    struct reference ref = {.layers = run.layers,
                            .d_max = with.d_max,
                            .omega = with.omega,
                            .e_min = with.e_min > 0 ? with.e_min : 1,
                            .e_max = with.e_max > 0 ? with.e_max : run.layers - 1};
    assert_in_range(run.layers, 2, LAYERS);
    ref.seen = calloc(ROWS, sizeof *ref.seen);
    assert_non_null(ref.seen);
    read_observations(&ref, &run);
    uint32_t rounds = 0, drafted = 0, exits = 0, last_exit = 0;
    for (size_t i = 0; i < run.n; i++) {
        const struct event *e = &run.events[i];
        if (e->type != EVENT_ROUND)
            continue;
        uint32_t round = e->round;
        struct del_choice want = choice_of(&ref, round);
        double tau = tau_of(sums_of(&ref, round, want.exit_layer));
        close_to(recorded_value(&run, round, "E", 0), want.exit_layer, "E", round, want.exit_layer);
        close_to(recorded_value(&run, round, "gamma", 0), want.length, "gamma", round, want.exit_layer);
        close_to(recorded_value(&run, round, "tau", 0), tau, "tau", round, want.exit_layer);
        close_to((double)e->round_end.threshold, tau, "the round's threshold", round, want.exit_layer);
        for (uint32_t l = 1; l <= run.layers; l++) {
            struct sums s = sums_of(&ref, round, l);
            close_to(recorded_value(&run, round, "alpha", (int)l - 1), s.c / s.n, "alpha", round, l);
        }
        check_draft(&run, e, want, tau, with.dynamic, with.d_max);
        rounds++;
        drafted += e->round_end.drafted;
        exits += last_exit != 0 && last_exit != want.exit_layer;
        last_exit = want.exit_layer;
    }
    check_sums(&ref, rounds);
    print_message("%u rounds, %u drafts, E changed %u times, %u observations\n", (unsigned)rounds, (unsigned)drafted,
                  (unsigned)exits, (unsigned)ref.n);
    assert_greater(rounds, 5);
    assert_greater(drafted, 0);
    free(ref.seen);
    recorded_run_free(&run);
}

/* ---- recorded runs ---- */

static struct session_options
session_of(const char *prompt, uint32_t tokens)
{
    struct session_options o = exact_rig_session("del", prompt, tokens);
    o.probe = PROBE_ALL;
    return o;
}

TEST(del_follows_its_formulas_on_tiny_models)
{
    const struct tinymodel shapes[] = {
        {.seed = 1, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8},
        {.seed = 2, .n_layers = 4, .calm_after = 1, .calm = 0.05f},
        {.seed = 3, .n_layers = 9, .width = 32, .calm_after = 3, .calm = 0.3f},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        print_message("model seed %llu\n", (unsigned long long)shapes[i].seed);
        struct engine *engine = exact_rig_tiny(&shapes[i], NULL, NULL);
        struct session_options o = session_of("a longer prompt, so that the window has an edge to it: 1, 2, 3", 120);
        compare(engine, &o, usual);
        o.sampling.temperature = 0.7f; /* shadow tokens are compared by argmax, also when sampling */
        compare(engine, &o, usual);
        o.sampling.temperature = 0;
        const struct knob_setting other[] = {{"omega", "0.6"}, {"d_max", "5"}, {"length", "tpl"}};
        o.set = other;
        o.n_set = 3;
        o.prompt = "hi";
        o.prompt_len = 2;
        compare(engine, &o, (struct del_knobs){.omega = 0.6, .d_max = 5});
        engine_close(engine);
    }
}

TEST(del_follows_its_formulas_on_the_bundled_model)
{
    struct engine *engine = exact_rig_open(BUNDLED, NULL, NULL);
    struct session_options o = session_of("Once upon a time there was a king who had three daughters, and", 60);
    compare(engine, &o, usual);
    engine_close(engine);
}

TEST(del_keeps_to_the_exit_layers_that_are_left_to_it)
{
    const struct tinymodel shape = {.seed = 3, .n_layers = 9, .width = 32, .calm_after = 3, .calm = 0.3f};
    struct engine *engine = exact_rig_tiny(&shape, NULL, NULL);
    struct session_options o = session_of("a longer prompt, so that the window has an edge to it: 1, 2, 3", 80);
    const struct {
        struct knob_setting set[2];
        uint32_t e_min, e_max;
    } cases[] = {
        {{{"e_fixed", "6"}, {"e_max", "2"}}, 6, 6}, /* a given value is not chosen */
        {{{"e_min", "4"}, {"e_max", "5"}}, 4, 5},
        {{{"e_min", "5"}, {"e_max", "2"}}, 5, 5}, /* if the bounds cross, the shallowest remains */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct del_knobs with = usual;
        with.e_min = cases[i].e_min;
        with.e_max = cases[i].e_max;
        o.set = cases[i].set;
        o.n_set = 2;
        compare(engine, &o, with);
    }
    engine_close(engine);
}
