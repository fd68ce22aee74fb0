/* Scores of drafters on finished texts: sums over simulated rounds compared with a slow definition, verdicts on
 * drafters of known speed, costs at several sequences, and the report's JSON and CSV. */
#include <cjson/cJSON.h>
#include <math.h>

#include "base/rng.h"
#include "engine/measure/metrics.h"
#include "engine/tune/score.h"
#include "tests/rigs/folders.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { LAYERS = 6, TOKENS = 60, CONVERSATIONS = 20, SCORES = 1000, DAMAGES = 2000 };

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

/* Rounds that depend on the record's `first` and on the knob alone. */
static bool
what_if(const struct layer_record *r, const double *value, struct tally *out)
{
    const uint32_t n = r->n - r->begin, rounds = n / 2 + (uint32_t)(uniform(r->first, 1) * n / 2), right = n - rounds;
    const double work = (1 + 0.6 * (uniform(r->first, 2 + (uint64_t)value[0]) - 0.5)) * n / faster;
    *out = (struct tally){.rounds = rounds, .emitted = n, .drafted = n, .verified = right, .accepted = right};
    out->drafting_rounds = rounds;
    out->rejected_rounds = rounds / 2;
    r->loads->layers[0] += out->layers = LAYERS * work;
    r->loads->heads[0] += out->heads = work;
    cost_add(&r->loads->steps[0], COST_PASS, LAYERS, work, r->first + (r->begin + r->n) / 2.0);
    cost_add(&r->loads->steps[0], COST_HEAD, 1, work, r->first);
    r->loads->steps[0].rounds += work;
    return true;
}

static bool
open_policy(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "k", 1, 12, 1, 4, "drafts");
}

static const struct policy_ops policies[] = {
    {.name = "known", .title = "", .paper = "", .open = open_policy, .what_if = what_if},
    {.name = "unknown", .title = "", .paper = "", .open = open_policy, .no_what_if = "no record has its drafts"}};
static const char *const categories[] = {"code", "questions", ""};
static const uint32_t depths[] = {0, 1023, 1024, 5000, 20000};

/* Returns the record of answer 0 or 1 of a conversation; each second conversation has one answer. */
static struct layer_record
record_of(uint32_t conversation, uint32_t answer)
{
    const uint32_t first = depths[(conversation + answer) % 5] + conversation * 8 + answer;
    return (struct layer_record){.layers = LAYERS, .first = first, .n = TOKENS + 10 * answer, .begin = 4};
}

static struct cost_model
some_costs(void)
{
    struct cost_model m = {.context = 64, .round = 1, .draft = 0.1};
    for (int i = 0; i < COST_ROWS; i++) {
        for (int a = 0; a < COST_ARRAYS; a++)
            m.us[a][i] = a == COST_OF_PASS || a == COST_OF_EXITS ? 10 * cost_rows[i] : 9 + cost_rows[i];
        m.far[COST_FAR_LAYER][i] = cost_rows[i] / 5.0;
    }
    cost_reset(&m);
    return m;
}

/* Scores both policies on conversations of one or two answers. */
static struct score_report *
score_of(uint32_t from, const struct cost_model *cost)
{
    const struct model_info model = {.layers = LAYERS, .width = 16, .vocab = 100, .rho = 1};
    const struct layer_record first = record_of(from, 0);
    struct score *s = score_open(LAYERS, 1);
    struct err err;
    struct policy p[2];
    struct score_report *r = calloc(1, sizeof *r);
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(policy_open(&p[i], &policies[i], &model, &(struct sampling){.top_p = 1}, &err), err);
        const struct score_entry e = {
            .ops = &policies[i], .info = &p[i].info, .costs = *cost, .records = &first, .n_records = 1};
        assert_true(score_enter(s, &e));
    }
    for (uint32_t c = from; c < from + CONVERSATIONS; c++) {
        score_conversation(s, categories[c % 3]);
        for (uint32_t i = 0; i <= c % 2; i++) {
            const struct layer_record record = record_of(c, i);
            score_add(s, 0, &record, depths[(c + i) % 5]);
        }
    }
    score_write(s, r);
    free(s);
    policy_close(&p[0]);
    policy_close(&p[1]);
    return r;
}

/* Compares a part with sums by definition over all conversations, those of a category or those from a depth on. */
static void
assert_sums(const struct score_part *part, double knob, const char *category, int depth)
{
    double y[CONVERSATIONS] = {0}, x[CONVERSATIONS] = {0}, n = 0, tokens = 0, rounds = 0, work = 0, squares = 0;
    for (uint32_t k = 0; k < 2 * CONVERSATIONS; k++) {
        const uint32_t c = k / 2, i = k % 2, at = depths[(c + i) % 5];
        if (i > c % 2 || (category != NULL && strcmp(categories[c % 3], category) != 0) ||
            (depth >= 0 && (at < score_depths[depth] || (depth < 3 && at >= score_depths[depth + 1]))))
            continue;
        struct layer_record record = record_of(c, i);
        struct record_loads loads = {.drawn = 0};
        struct tally t;
        record.loads = &loads;
        what_if(&record, &knob, &t);
        n += x[c] > 0 ? 0 : 1;
        tokens += (double)t.emitted;
        rounds += (double)t.rounds;
        work += t.heads;
        y[c] += (double)t.emitted;
        x[c] += (double)t.rounds;
    }
    for (uint32_t c = 0; c < CONVERSATIONS; c++)
        squares += pow(y[c] - tokens / rounds * x[c], 2);
    assert_int_equal(part->tokens, (int)tokens);
    assert_int_equal(part->per_round.n, (int)n);
    assert_near(part->per_round.value, tokens / rounds, 1e-9);
    assert_near(part->per_round.se, sqrt(squares / (n * (n - 1))) / (rounds / n), 1e-9);
    assert_near(part->speedup.value, tokens / work, 1e-9);
}

static const struct cost_model no_costs;

TEST(sums_are_those_of_conversations_categories_and_depths)
{
    struct score_report *r = score_of(0, &no_costs);
    assert_false(r->in_time);
    assert_greater(r->n, 2);
    for (uint32_t i = 0; i + 1 < r->n; i++) {
        const double knob = strtod(r->row[i].preset.set[0].text, NULL);
        assert_true(r->row[i].all.speedup.value <= r->row[0].all.speedup.value);
        assert_sums(&r->row[i].all, knob, NULL, -1);
        for (uint32_t c = 0; c < 2; c++)
            assert_sums(&r->row[i].category[c], knob, r->category[c], -1);
        for (int d = 0; d < SCORE_DEPTHS; d++)
            assert_sums(&r->row[i].depth[d], knob, NULL, d);
    }
    const struct score_row *order[SCORE_ROWS];
    assert_int_equal(score_order(r, order), 2);
    assert_ptr_equal(order[0], r->row);
    assert_string_equal(score_verdict(order[1]), "no record has its drafts");
    free(r);
}

/* Returns how many scores of a drafter of this speed have the verdict. */
static int
found(double speed, enum difference_verdict verdict)
{
    int n = 0;
    faster = speed;
    for (uint32_t i = 0; i < SCORES; i++) {
        struct score_report *r = score_of(i * CONVERSATIONS, &no_costs);
        n += r->row[0].all.speedup.verdict == verdict;
        free(r);
    }
    faster = 1;
    print_message("%d of %d scores have the verdict, at a speedup of %.2f\n", n, SCORES, speed);
    return n;
}

TEST(drafters_without_effect_have_no_clear_difference_and_faster_ones_are_found)
{
    assert_greater(found(1, DIFFERENCE_NOISE), SCORES * 0.94 - 1);
    assert_greater(found(1.15, DIFFERENCE_MORE), SCORES * 0.75);
}

TEST(costs_at_several_sequences_begin_with_those_of_one_and_rise)
{
    const struct cost_model m = some_costs();
    struct score_report *r = score_of(0, &m);
    assert_true(r->in_time);
    assert_near((double)r->row[0].speedup_at[0], r->row[0].all.speedup.value, 1e-3);
    assert_true(r->row[0].need_at[0] > 0 && r->row[0].need_at[0] <= 1);
    free(r);
    struct cost_count c = {.rounds = 3, .passes = 5};
    double us[COST_PHASES], before = 0;
    for (enum cost_step step = 0; step < COST_STEPS; step++)
        cost_add(&c, step, 1 + (uint32_t)(uniform(step, 5) * 70), 1 + uniform(step, 6), 4000);
    assert_number_equal(cost_price_sequences(&m, &c, 1, us), cost_price(&m, &c, us));
    for (uint32_t n = 1; n <= 64; before = cost_price_sequences(&m, &c, n++, us))
        assert_greater(cost_price_sequences(&m, &c, n, us), before);
}

TEST(a_drafter_that_cannot_gain_has_its_ceiling_as_the_reason)
{
    const struct cost_model m = some_costs();
    faster = 0.4;
    struct score_report *r = score_of(0, &m);
    faster = 1;
    assert_int_equal(r->n, 2);
    assert_non_null(strstr(score_verdict(&r->row[0]), "× plain decoding, if every draft were accepted"));
    free(r);
}

TEST_WITH(a_report_is_read_as_it_was_written_and_damage_does_no_harm, folder_set_up, folder_tear_down)
{
    const struct cost_model m = some_costs();
    struct score_report *r = score_of(0, &m), *again;
    struct err err;
    char path[300];
    cJSON *j = score_json(r), *second;
    char *text = cJSON_Print(j), *damaged = strdup(text);
    const size_t n = strlen(text);
    snprintf(path, sizeof path, "%s/score.json", (const char *)*state);
    write_text(*state, "score.json", text);
    assert_ok(score_read_file(path, &again, &err), err);
    second = score_json(again);
    assert_true(cJSON_Compare(j, second, true));
    free(again);
    uint64_t random = seed;
    for (uint32_t i = 0; i < DAMAGES; i++) {
        const size_t at = splitmix64(&random) % n;
        memcpy(damaged, text, n);
        damaged[at] = (char)splitmix64(&random);
        if (i % 2 == 0)
            memmove(damaged + at, damaged + at / 2, n - at);
        write_text(*state, "score.json", damaged);
        score_read_file(path, &again, &err);
        free(again);
    }
    cJSON_Delete(j);
    cJSON_Delete(second);
    cJSON_free(text);
    free(damaged);
    free(r);
}

TEST(csv_has_a_line_for_each_row_category_and_depth)
{
    struct score_report *r = score_of(0, &no_costs);
    char *text;
    size_t n, lines = 0;
    FILE *out = open_memstream(&text, &n);
    assert_true(score_csv(r, out) && fclose(out) == 0);
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, 1 + (r->n - 1) * (1 + r->n_categories + SCORE_DEPTHS) + 1);
    assert_memory_equal(text, score_csv_file.begins, strlen(score_csv_file.begins));
    free(text);
    free(r);
}
