/* Simulated rounds against a slow reference. All layers' predictions of a text are given. The reference reads the text
 * token by token with a second implementation of the papers' rules, and counts loads from the depth of every row. */
#include <math.h>

#include "base/rng.h"
#include "engine/measure/layer_record.h"
#include "engine/measure/metrics.h"
#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { LAYERS = 6, TEXTS = 200 };

static struct layer_record record;

static double
uniform(uint64_t *random)
{
    return (double)(splitmix64(random) >> 11) * 0x1p-53;
}

/* A text in which deeper layers agree more often and are more confident. */
static void
make_text(uint64_t *random)
{
    record.first = 3;
    record.n = 0;
    const uint32_t n = 1 + (uint32_t)(splitmix64(random) % 60);
    for (uint32_t i = 0; i < n; i++) {
        struct layer_sample row[LAYERS];
        for (uint32_t l = 1; l <= LAYERS; l++) {
            const bool agrees = l == LAYERS || uniform(random) < 0.3 + 0.1 * l;
            const float p = (float)fmin(0.999, uniform(random) * (agrees ? 1.2 : 0.8));
            row[l - 1] = (struct layer_sample){.agrees = agrees, .confidence = p, .entropy = 1, .top_p = {p}};
        }
        layer_record_add(&record, row, 1000);
    }
    record.begin = (uint32_t)(splitmix64(random) % n);
    record.lost = 0; /* after a wrong draft, layers predict the same as at that position of the text */
    record.head_load = 1.5;
    record.layers_load = 3;
    record.probes = 12;
}

struct walk { /* the reference's round */
    uint32_t at, depth[64], rows, drafted, right;
    bool wrong, rowless;
};

static float
sure(const struct walk *w, uint32_t layer)
{
    return layer_prediction(&record, w->at + w->drafted, layer)->confidence;
}

static void
take(struct walk *w, uint32_t layer, bool rowless)
{
    w->wrong = w->wrong || !layer_prediction(&record, w->at + w->drafted, layer)->agrees;
    w->right += !w->wrong;
    w->drafted++;
    w->rowless = rowless;
    if (!rowless)
        w->depth[w->rows++] = 0;
}

/* Counts loads by layer: a layer is loaded if any row of the call passes through it. */
static void
run_rows(struct walk *w, uint32_t to, bool carry, struct tally *t)
{
    for (uint32_t l = 1; l <= to; l++) {
        bool loaded = false;
        for (uint32_t r = 0; r < w->rows; r++)
            if (w->depth[r] == l - 1 && (carry || r + 1 == w->rows)) {
                w->depth[r] = l;
                loaded = true;
            }
        t->layers += loaded;
    }
}

static uint32_t
verify(struct walk *w, struct tally *t)
{
    run_rows(w, LAYERS, true, t);
    t->heads += 1;
    const uint32_t emitted = w->right + (w->rowless && !w->wrong ? 0 : 1);
    t->rounds++;
    t->drafted += w->drafted;
    t->accepted += w->right;
    t->emitted += emitted;
    return emitted;
}

static bool
enough(const struct walk *w, uint32_t most)
{
    return w->drafted >= most || w->at + w->drafted + 1 >= record.n;
}

static void
specbound_reference(const double *v, struct tally *t)
{
    for (uint32_t at = record.begin; at < record.n;) {
        struct walk w = {.at = at, .rows = 1};
        bool exits = true;
        while (!enough(&w, (uint32_t)v[3]) && exits) {
            exits = false;
            for (uint32_t l = 1; l <= (uint32_t)v[2] && !exits; l++) {
                run_rows(&w, l, true, t);
                if (l < (uint32_t)v[4] || (l - (uint32_t)v[4]) % (uint32_t)v[5] != 0)
                    continue;
                t->heads += record.head_load;
                if (sure(&w, l) >= (float)v[1]) {
                    take(&w, l, v[6] == 0 && w.drafted + 1 == (uint32_t)v[3]);
                    exits = true;
                }
            }
        }
        at += verify(&w, t);
    }
}

static void
chain(struct walk *w, uint32_t exit, uint32_t most, double below, struct tally *t)
{
    bool stops = false;
    while (!stops && !enough(w, most)) {
        run_rows(w, exit, false, t);
        t->heads += record.head_load;
        stops = (double)sure(w, exit) < below;
        take(w, exit, false);
    }
}

static void
layerskip_reference(const double *v, struct tally *t)
{
    for (uint32_t at = record.begin; at < record.n;) {
        struct walk w = {.at = at, .rows = 1};
        chain(&w, (uint32_t)v[0], (uint32_t)v[1], -1, t);
        at += verify(&w, t);
    }
}

static void
fsm_reference(const double *v, struct tally *t)
{
    uint32_t gamma = (uint32_t)fmin(v[1], v[2]);
    for (uint32_t at = record.begin; at < record.n;) {
        struct walk w = {.at = at, .rows = 1};
        chain(&w, (uint32_t)v[0], gamma, -1, t);
        const bool cut = w.at + w.drafted + 1 >= record.n;
        at += verify(&w, t);
        if (!cut)
            gamma = w.wrong ? (gamma > 1 ? gamma - 1 : 1) : gamma < (uint32_t)v[2] ? gamma + 1 : gamma;
    }
}

static void
dv_reference(const double *v, struct tally *t)
{
    double th = v[1], mean = 0;
    for (uint32_t at = record.begin; at < record.n;) {
        struct walk w = {.at = at, .rows = 1};
        chain(&w, (uint32_t)v[0], (uint32_t)v[6], th, t);
        const bool cut = w.at + w.drafted + 1 >= record.n;
        at += verify(&w, t);
        if (cut)
            continue;
        mean = v[4] * mean + (1 - v[4]) * ((double)w.right / w.drafted);
        const double to = mean < v[2] ? th + v[3] : w.drafted == (uint32_t)v[6] ? th : th - v[3];
        th = v[5] * th + (1 - v[5]) * to;
    }
}

static const struct {
    const char *policy;
    void (*reference)(const double *, struct tally *);
} cases[] = {{"specbound", specbound_reference},
             {"layerskip", layerskip_reference},
             {"fsm", fsm_reference},
             {"dv", dv_reference}};

static void
turn(const struct policy_info *info, uint64_t *random, double *values)
{
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        const struct knob *knob = &info->knobs[k];
        assert_true(knob_check(knob, knob->min + uniform(random) * (knob->max - knob->min), &values[k], NULL));
    }
    if (strcmp(info->knobs[0].name, "alpha") == 0)
        values[0] = 0; /* the record contains confidences at temperature 1 */
}

TEST(rounds_are_those_of_a_slow_reference)
{
    uint64_t random = seed_or(31);
    const struct model_info model = {.layers = LAYERS, .width = 8, .vocab = 64, .rho = 1};
    const struct sampling greedy = {.top_p = 1};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct policy_ops *ops = policy_named(policy_registry, cases[c].policy);
        assert_non_null(ops);
        struct policy p;
        struct err err;
        assert_ok(policy_open(&p, ops, &model, &greedy, &err), err);
        for (int i = 0; i < TEXTS; i++) {
            double values[POLICY_KNOBS];
            make_text(&random);
            turn(&p.info, &random, values);
            struct tally got, expected = {0};
            assert_true(ops->what_if(&record, values, &got));
            cases[c].reference(values, &expected);
            assert_int_equal(got.rounds, expected.rounds);
            assert_int_equal(got.drafted, expected.drafted);
            assert_int_equal(got.accepted, expected.accepted);
            assert_int_equal(got.emitted, record.n - record.begin);
            assert_int_equal(got.emitted, expected.emitted);
            assert_number_equal(got.layers, expected.layers);
            assert_near(got.heads, expected.heads, 1e-9);
        }
        policy_close(&p);
    }
}

/* The latest rows stay, in order. */
TEST(a_full_record_lets_the_oldest_go)
{
    struct layer_sample row[LAYERS] = {{0}};
    record.n = record.first = 0;
    for (uint32_t i = 0; i < RECORD_ROWS + 10; i++) {
        for (uint32_t l = 0; l < LAYERS; l++)
            row[l] = (struct layer_sample){.confidence = 0.5f + (float)i / 1000, .entropy = 1, .top_p = {0.5f}};
        layer_record_add(&record, row, 1000);
    }
    assert_int_equal(record.n, RECORD_ROWS);
    assert_int_equal(record.first, 10);
    for (uint32_t i = 0; i < RECORD_ROWS; i++)
        assert_number_equal(layer_prediction(&record, i, 1)->confidence, 0.5f + (float)(i + 10) / 1000);
}

static int
open_record(void **state)
{
    (void)state;
    struct err err;
    return layer_record_open(&record, LAYERS, &err) ? 0 : 1;
}

static int
close_record(void **state)
{
    (void)state;
    layer_record_close(&record);
    return 0;
}

FIXTURE(open_record, close_record);
