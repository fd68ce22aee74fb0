/* Scores of drafters on finished texts: sums over simulated rounds compared with a slow definition, verdicts on
 * drafters of known speed, costs at several sequences, and the report's JSON and CSV. */
#include <cjson/cJSON.h>
#include <math.h>

#include "base/rng.h"
#include "engine/measure/metrics.h"
#include "engine/tune/score.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { LAYERS = 6, TOKENS = 60, CONVERSATIONS = 20, SCORES = 1000, DAMAGES = 3000 };

static uint64_t seed;
TEST_SEED(seed, 11);

static double
uniform(uint64_t a, uint64_t b)
{
    uint64_t random = seed ^ (a << 20 | b);
    splitmix64(&random);
    return (double)(splitmix64(&random) >> 11) * 0x1p-53;
}

static double faster = 1; /* than plain decoding, on average over texts */

/* Rounds of a record, whose `first` is the only thing that they depend on besides the knob. */
static bool
what_if(const struct layer_record *r, const double *value, struct tally *out)
{
    const uint32_t n = r->n - r->begin, rounds = n / 2 + (uint32_t)(uniform(r->first, 1) * n / 2),
                   accepted = r->accepts ? n : n - rounds;
    const double work = rounds * (1 + 0.6 * (uniform(r->first, 2 + (uint64_t)value[0]) - 0.5)) * n / rounds / faster;
    *out = (struct tally){.rounds = rounds,
                          .emitted = n,
                          .drafted = n,
                          .verified = accepted + rounds / 2,
                          .accepted = accepted,
                          .rejected_rounds = r->accepts ? 0 : rounds / 2,
                          .drafting_rounds = rounds,
                          .layers = LAYERS * work,
                          .heads = work};
    if (r->accepts)
        out->verified = accepted;
    r->loads->layers[0] += out->layers;
    r->loads->heads[0] += out->heads;
    cost_add(&r->loads->steps[0], COST_PASS, LAYERS, work, r->first + r->n / 2);
    cost_add(&r->loads->steps[0], COST_HEAD, 1, work, r->first + r->n / 2);
    r->loads->steps[0].rounds += work;
    return true;
}

static bool
open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "k", 1, 12, 1, 4, "drafts");
}

static const struct policy_ops known = {.name = "known", .title = "", .paper = "", .open = open, .what_if = what_if},
                               unknown = {.name = "unknown",
                                          .title = "",
                                          .paper = "",
                                          .open = open,
                                          .length = "k",
                                          .no_what_if = "no record has its drafts"};
static const char *const categories[] = {"code", "questions", ""};
static const uint32_t depths[] = {0, 1023, 1024, 5000, 20000};

/* Answer number i of a conversation. */
static struct layer_record
record_of(uint32_t conversation, uint32_t i)
{
    const uint32_t depth = depths[(conversation + i) % 5];
    return (struct layer_record){
        .layers = LAYERS, .first = depth + conversation * 8 + i, .n = TOKENS + 10 * i, .begin = 4, .head_load = 1};
}

static struct cost_model
costs_of(double plain)
{
    struct cost_model m = {.context = 64, .round = plain / 10};
    for (int i = 0; i < COST_ROWS; i++) {
        m.us[COST_OF_LAYER][i] = plain * (0.9 + 0.1 * cost_rows[i]);
        m.us[COST_OF_PASS][i] = plain * cost_rows[i];
        m.us[COST_OF_HEAD][i] = m.us[COST_OF_PROBE][i] = plain * (0.8 + 0.2 * cost_rows[i]);
        m.us[COST_OF_EXITS][i] = plain * cost_rows[i];
        m.far[COST_FAR_LAYER][i] = plain / 50 * cost_rows[i];
    }
    cost_reset(&m);
    return m;
}

/* Scores `known` and `unknown` on some conversations of one or two answers. */
static struct score_report *
score_of(uint32_t from, const struct cost_model *cost)
{
    const struct model_info model = {.layers = LAYERS, .width = 16, .vocab = 100, .rho = 1};
    const struct sampling greedy = {.top_p = 1};
    const struct policy_ops *const ops[] = {&known, &unknown};
    struct score *s;
    struct err err;
    struct score_report *r = calloc(1, sizeof *r);
    assert_ok(score_open(&s, LAYERS, 1, &err), err);
    struct policy p[2];
    const struct layer_record first = record_of(from, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(policy_open(&p[i], ops[i], &model, &greedy, &err), err);
        struct score_entry e = {.ops = ops[i], .info = &p[i].info, .drafter = "small"};
        if (cost != NULL)
            e.costs = *cost;
        assert_int_equal(score_enter(s, &e), i);
        score_choose(s, i, &first, 1);
    }
    for (uint32_t c = from; c < from + CONVERSATIONS; c++) {
        score_conversation(s, categories[c % 3]);
        for (uint32_t i = 0; i <= c % 2 && score_wants(s, 0); i++) {
            const struct layer_record record = record_of(c, i);
            score_add(s, 0, &record, depths[(c + i) % 5]);
        }
    }
    score_write(s, r);
    score_close(s);
    policy_close(&p[0]);
    policy_close(&p[1]);
    return r;
}

/* Adds up the conversations, or those of a category or from one of score_depths on, by definition. */
static void
assert_sums(const struct score_part *part, double knob, const char *category, int depth)
{
    double y[CONVERSATIONS] = {0}, x[CONVERSATIONS] = {0}, plain[CONVERSATIONS] = {0}, work[CONVERSATIONS] = {0};
    double n = 0, sum_y = 0, sum_x = 0, sum_plain = 0, sum_work = 0, squares = 0;
    for (uint32_t c = 0; c < CONVERSATIONS; c++)
        for (uint32_t i = 0; i <= c % 2; i++) {
            const uint32_t at = depths[(c + i) % 5];
            if ((category != NULL && strcmp(categories[c % 3], category) != 0) ||
                (depth >= 0 && (at < score_depths[depth] || (depth < 3 && at >= score_depths[depth + 1]))))
                continue;
            struct layer_record record = record_of(c, i);
            struct record_loads loads = {.drawn = 0};
            struct tally t;
            record.loads = &loads;
            what_if(&record, &knob, &t);
            y[c] += (double)t.emitted;
            x[c] += (double)t.rounds;
            plain[c] += (LAYERS + 1) * (double)t.emitted;
            work[c] += t.layers + t.heads;
        }
    for (uint32_t c = 0; c < CONVERSATIONS; c++) {
        n += x[c] > 0;
        sum_y += y[c];
        sum_x += x[c];
        sum_plain += plain[c];
        sum_work += work[c];
    }
    for (uint32_t c = 0; c < CONVERSATIONS; c++)
        squares += (y[c] - sum_y / sum_x * x[c]) * (y[c] - sum_y / sum_x * x[c]);
    assert_int_equal(part->tokens, (int)sum_y);
    assert_int_equal(part->per_round.n, (int)n);
    assert_near(part->per_round.value, sum_y / sum_x, 1e-9);
    assert_near(part->per_round.se, sqrt(squares / (n * (n - 1))) / (sum_x / n), 1e-9);
    assert_near(part->speedup.value, sum_plain / sum_work, 1e-9);
}

TEST(sums_are_those_of_conversations_categories_and_depths)
{
    struct score_report *r = score_of(0, NULL);
    assert_int_equal(r->conversations, CONVERSATIONS);
    assert_int_equal(r->n_categories, 2);
    assert_false(r->in_time);
    assert_greater(r->n, 2);
    for (uint32_t i = 0; i + 1 < r->n; i++) {
        const double knob = strtod(r->row[i].preset.set[0].text, NULL);
        assert_int_equal(r->row[i].best, i == 0);
        assert_true(r->row[i].all.speedup.value <= r->row[0].all.speedup.value);
        assert_sums(&r->row[i].all, knob, NULL, -1);
        for (uint32_t c = 0; c < 2; c++)
            assert_sums(&r->row[i].category[c], knob, r->category[c], -1);
        for (int d = 0; d < SCORE_DEPTHS; d++)
            assert_sums(&r->row[i].depth[d], knob, NULL, d);
    }
    const struct score_row *last = &r->row[r->n - 1];
    uint32_t order[SCORE_ROWS];
    assert_string_equal(score_verdict(last), "no record has its drafts");
    assert_int_equal(score_order(r, order), 2);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], r->n - 1);
    free(r);
}

/* Of drafters that are as fast as plain decoding on average, at most 6% get another verdict. */
static uint32_t
found(double speed, enum difference_verdict verdict)
{
    uint32_t n = 0;
    faster = speed;
    for (uint32_t i = 0; i < SCORES; i++) {
        struct score_report *r = score_of(i * CONVERSATIONS, NULL);
        n += r->row[0].all.speedup.verdict == verdict;
        free(r);
    }
    faster = 1;
    print_message("of %d scores %u have the verdict, at a speedup of %.2f\n", SCORES, n, speed);
    return n;
}

TEST(a_drafter_without_effect_has_no_clear_difference)
{
    assert_true(found(1, DIFFERENCE_NOISE) >= SCORES * 94 / 100);
}

TEST(a_drafter_that_is_15_percent_faster_is_found)
{
    assert_true(found(1.15, DIFFERENCE_MORE) >= SCORES * 3 / 4);
}

TEST(one_of_several_sequences_costs_what_one_sequence_costs)
{
    const struct cost_model m = costs_of(10);
    struct score_report *r = score_of(0, &m);
    const struct score_row *row = &r->row[0];
    assert_true(r->in_time);
    assert_near((double)row->speedup_at[0], row->all.speedup.value, 1e-3);
    assert_true(row->need_at[0] > 0 && row->need_at[0] <= 1);
    free(r);
    struct cost_count c = {.rounds = 3, .passes = 5};
    double us[COST_PHASES], before = 0;
    for (enum cost_step step = 0; step < COST_STEPS; step++)
        if (step != COST_DRAFT && step != COST_DRAFT_HEAD)
            cost_add(&c, step == COST_TRAINED_PROBE || step == COST_TRAINED_EXITS ? COST_PROBE : COST_LAYER,
                     1 + (uint32_t)(uniform(step, 5) * 70), 1 + uniform(step, 6), 4000);
    cost_add(&c, COST_EXITS, 3, 2, 4000);
    assert_number_equal(cost_price_sequences(&m, &c, 1, us), cost_price(&m, &c, us));
    for (uint32_t n = 1; n <= 64; n++) {
        const double price = cost_price_sequences(&m, &c, n, us);
        assert_greater(price, before);
        assert_true(n == 1 || price < 2 * before); /* of n sequences: less than twice as much as of n - 1 */
        before = price;
    }
}

TEST(a_drafter_that_cannot_gain_has_its_ceiling_as_the_reason)
{
    const struct cost_model m = costs_of(10);
    faster = 0.4;
    struct score_report *r = score_of(0, &m);
    faster = 1;
    assert_int_equal(r->n, 2);
    assert_int_equal(r->row[0].kind, SCORE_NOT);
    assert_non_null(strstr(r->row[0].why, "× plain decoding, if every draft were accepted"));
    assert_true(isnan(r->row[0].all.speedup.value));
    free(r);
}

static char *
printed(const struct score_report *r)
{
    cJSON *j = score_json(r);
    char *text = cJSON_Print(j);
    cJSON_Delete(j);
    assert_non_null(text);
    return text;
}

TEST(a_report_is_read_as_it_was_written_and_damage_is_refused)
{
    const struct cost_model m = costs_of(10);
    struct score_report *r = score_of(0, &m), *again;
    struct err err;
    snprintf(r->model, sizeof r->model, "a\"b\\\x1b[2J");
    char *text = printed(r), *second;
    assert_ok(score_parse(&again, text, strlen(text), "report", &err), err);
    assert_string_equal(again->model, "a\"b\\?[2J");
    assert_true(again->row[0].all.speedup.value == r->row[0].all.speedup.value);
    memcpy(again->model, r->model, sizeof r->model);
    second = printed(again);
    assert_string_equal(text, second);
    free(again);
    uint64_t random = seed;
    for (uint32_t i = 0; i < DAMAGES; i++) {
        const size_t n = strlen(second), at = splitmix64(&random) % n;
        char *damaged = strdup(text);
        if (i % 2 == 0)
            damaged[at] = (char)splitmix64(&random);
        else
            memmove(damaged + at, damaged + at / 2, n - at);
        if (score_parse(&again, damaged, n, "report", &err))
            free(again);
        free(damaged);
    }
    cJSON_free(text);
    cJSON_free(second);
    free(r);
}

TEST(csv_has_a_line_for_each_row_category_and_depth)
{
    struct score_report *r = score_of(0, NULL);
    char *text, *at;
    size_t n, lines = 0;
    FILE *out = open_memstream(&text, &n);
    assert_true(score_csv(r, out));
    assert_int_equal(fclose(out), 0);
    for (at = text; (at = strstr(at, "\r\n")) != NULL; at += 2)
        lines++;
    assert_int_equal(lines, 1 + (r->n - 1) * (1 + r->n_categories + SCORE_DEPTHS) + 1);
    assert_memory_equal(text, score_csv_file.begins, strlen(score_csv_file.begins));
    free(text);
    free(r);
}
