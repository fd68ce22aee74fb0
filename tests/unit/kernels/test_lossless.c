/* Verification keeps the target's distribution. A target and a draft disagree on a language of six words. The first two
 * words of many rounds are counted and compared with the target's distribution. The same chi-square test must detect
 * verification with a wrong q. */
#include "base/rng.h"
#include "kernels/cpu/sampling.h"
#include "tests/rigs/chi_square.h"
#include "tests/rigs/test.h"

enum { V = 6, DRAWS = 30000, TESTS = 20 };

/* Logits of the next word after each word; row V: at the start. */
static const float target[V + 1][V] = {
    {0.2f, 1.1f, -0.4f, 0.8f, 0.0f, -0.9f}, {1.0f, -0.3f, 0.4f, 0.1f, -0.6f, 0.9f},
    {-0.2f, 0.3f, 0.9f, -0.8f, 1.2f, 0.1f}, {0.6f, 0.6f, -0.5f, 0.2f, -0.1f, 0.7f},
    {-0.7f, 0.5f, 1.3f, 0.0f, 0.4f, -0.2f}, {0.3f, -0.6f, 0.2f, 1.0f, 0.7f, -0.1f},
    {0.9f, 0.1f, -0.3f, 0.5f, -0.7f, 0.4f},
};
static const float draft[V + 1][V] = {
    {1.2f, 0.1f, 0.3f, -0.8f, 0.5f, 0.2f},  {-0.4f, 0.9f, 0.0f, 0.7f, 0.3f, -0.9f},
    {0.8f, 0.2f, -0.6f, 0.4f, 0.1f, 1.1f},  {0.0f, -0.7f, 1.0f, 0.3f, 0.6f, -0.2f},
    {0.5f, 1.1f, -0.1f, 0.9f, -0.8f, 0.3f}, {-0.3f, 0.4f, 0.8f, -0.5f, 0.2f, 1.0f},
    {-0.6f, 0.7f, 1.1f, 0.2f, 0.4f, -0.3f},
};

struct round_shape {
    const char *name;
    uint32_t first, second; /* candidates for the first and second word, drawn without replacement; */
                            /* those for the second word follow the first candidate for the first word */
    struct sampling sampling;
    bool greedy_draft; /* candidates are the draft's most likely words: q = DIST_NONE */
    bool no_last_row;  /* the candidates for the second word have no rows */
    bool wrong_q;      /* verification gets a uniform q */
    bool replaced;     /* siblings are drawn with replacement; a repeated token cannot be accepted */
    bool picky;        /* the last candidate is dropped if its token id is low, so stopping depends on the value */
};

static const float uniform[V] = {1.0f / V, 1.0f / V, 1.0f / V, 1.0f / V, 1.0f / V, 1.0f / V};

/* Draws up to k candidates from q into nodes n..; returns their number. */
static uint32_t
propose(const struct round_shape *shape, uint64_t seed, const float *q, uint32_t k, int32_t parent, uint32_t pos,
        struct verify_node *nodes, const float **qs, uint32_t n)
{
    token_t taken[V];
    uint32_t made = 0;
    for (; made < k; made++) {
        const struct rng_key key = {.seed = seed, .pos = pos, .purpose = RNG_DRAFT, .index = made};
        if (shape->greedy_draft) {
            taken[made] = 0;
            float best = -1;
            for (token_t v = 0; v < V; v++) {
                bool used = false;
                for (uint32_t i = 0; i < made; i++)
                    used = used || taken[i] == v;
                if (!used && q[v] > best) {
                    best = q[v];
                    taken[made] = v;
                }
            }
        } else {
            taken[made] = sampling_draw(q, V, &key, taken, shape->replaced ? 0 : made);
            if (taken[made] == TOKEN_NONE)
                break;
        }
        nodes[n + made] = (struct verify_node){.parent = parent, .token = taken[made], .pos = pos};
        qs[n + made] = shape->greedy_draft ? NULL : shape->wrong_q ? uniform : q;
    }
    return made;
}

/* Runs a round and stores its first two words. */
static void
speak(const struct round_shape *shape, uint64_t seed, token_t word[2])
{
    struct verify_node nodes[1 + 2 * V] = {{.parent = -1, .token = 0}};
    const float *logits[1 + 2 * V] = {target[V]}, *qs[1 + 2 * V] = {NULL};
    float q0[V], q1[V], p[V];
    uint32_t order[V];
    sampling_dist(draft[V], V, &shape->sampling, q0, order);
    uint32_t n = 1 + propose(shape, seed, q0, shape->first, 0, 1, nodes, qs, 1);
    for (uint32_t i = 1; i < n; i++)
        logits[i] = target[nodes[i].token];
    if (shape->second > 0) {
        sampling_dist(draft[nodes[1].token], V, &shape->sampling, q1, order);
        const uint32_t more = propose(shape, seed, q1, shape->second, 1, 2, nodes, qs, n);
        for (uint32_t i = n; i < n + more; i++)
            logits[i] = shape->no_last_row ? NULL : target[nodes[i].token];
        n += more;
    }
    if (shape->picky && nodes[n - 1].token < V / 2)
        n--;
    struct verdict v;
    const struct verify_req r = {.nodes = nodes, .n = n, .sampling = shape->sampling, .seed = seed};
    assert_true(sampling_verify(&r, V, logits, qs, V, p, order, &v));
    uint32_t words = 0;
    for (; words < v.n_path && words < 2; words++)
        word[words] = nodes[v.path[words]].token;
    if (words < 2 && v.kind != NEXT_CANDIDATE)
        word[words++] = v.next;
    if (words < 2) { /* the round emitted one word, so the second is drawn from the target */
        const struct rng_key key = {.seed = seed, .seq = 1};
        sampling_dist(target[word[0]], V, &shape->sampling, p, order);
        word[1] = sampling_draw(p, V, &key, NULL, 0);
    }
}

/* Returns whether the counts of word pairs fit the target at level 0.001, divided among all tests (Bonferroni). */
static bool
keeps_the_distribution(const struct round_shape *shape)
{
    static double count[V][V];
    for (int i = 0; i < V * V; i++)
        count[i / V][i % V] = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        token_t word[2];
        speak(shape, UINT64_C(0x5eed0000) + i, word);
        assert_in_range(word[0], 0, V - 1);
        assert_in_range(word[1], 0, V - 1);
        count[word[0]][word[1]]++;
    }
    float p0[V], p1[V];
    uint32_t order[V];
    double chi2 = 0, rest = 0, rest_expected = 0;
    int cells = 0;
    sampling_dist(target[V], V, &shape->sampling, p0, order);
    for (int a = 0; a < V; a++) {
        sampling_dist(target[a], V, &shape->sampling, p1, order);
        for (int b = 0; b < V; b++) {
            const double expected = (double)p0[a] * (double)p1[b] * DRAWS;
            if (!(expected > 0) && count[a][b] > 0)
                return false;
            if (expected < 10) {
                rest += count[a][b];
                rest_expected += expected;
                continue;
            }
            chi2 += (count[a][b] - expected) * (count[a][b] - expected) / expected;
            cells++;
        }
    }
    if (rest_expected >= 10) {
        chi2 += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
        cells++;
    }
    const double limit = chi_square_limit(cells - 1, 0.001 / TESTS);
    print_message("%-44s chi-square %8.1f, limit %5.1f (%d cells)\n", shape->name, chi2, limit, cells);
    return chi2 < limit;
}

#define PLAIN                                                                                                          \
    {                                                                                                                  \
        .temperature = 1, .top_p = 1                                                                                   \
    }
#define FILTERED                                                                                                       \
    {                                                                                                                  \
        .temperature = 0.8f, .top_k = 4, .top_p = 0.9f                                                                 \
    }

TEST(chains_keep_the_targets_distribution)
{
    const struct round_shape shapes[] = {
        {.name = "no draft", .sampling = PLAIN},
        {.name = "one draft", .first = 1, .sampling = PLAIN},
        {.name = "two drafts", .first = 1, .second = 1, .sampling = PLAIN},
        {.name = "two drafts, filtered", .first = 1, .second = 1, .sampling = FILTERED},
        {.name = "two drafts, the draft's best", .first = 1, .second = 1, .sampling = PLAIN, .greedy_draft = true},
        {.name = "two drafts, no row for the last", .first = 1, .second = 1, .sampling = PLAIN, .no_last_row = true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_true(keeps_the_distribution(&shapes[i]));
}

TEST(trees_keep_the_targets_distribution)
{
    const struct round_shape shapes[] = {
        {.name = "3 x 2 siblings", .first = 3, .second = 2, .sampling = PLAIN},
        {.name = "3 x 2 siblings, filtered", .first = 3, .second = 2, .sampling = FILTERED},
        {.name = "3 x 2 siblings, the draft's best", .first = 3, .second = 2, .sampling = PLAIN, .greedy_draft = true},
        {.name = "3 x 2 siblings, with replacement", .first = 3, .second = 2, .sampling = PLAIN, .replaced = true},
        {.name = "every word a sibling", .first = V, .second = V, .sampling = PLAIN},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_true(keeps_the_distribution(&shapes[i]));
}

TEST(the_same_test_catches_biased_verification)
{
    const struct round_shape shapes[] = {
        {.name = "biased: wrong q, chain", .first = 1, .second = 1, .sampling = PLAIN, .wrong_q = true},
        {.name = "biased: wrong q, tree", .first = 3, .second = 2, .sampling = PLAIN, .wrong_q = true},
        {.name = "biased: a draft dropped for its value", .first = 1, .second = 1, .sampling = PLAIN, .picky = true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_false(keeps_the_distribution(&shapes[i]));
}

/* ---- a draft of another vocabulary ---- */

enum { FEW = 5, MANY = 8 };

/* Runs rounds of k candidates, drawn without replacement from the draft. If `dropped`, a candidate that the target
 * lacks ends the list. Returns whether the rounds' words have the target's distribution. */
static bool
keeps_it_across(uint32_t target_words, uint32_t draft_words, uint32_t k, const struct sampling *s, bool dropped)
{
    static const float z[MANY] = {0.2f, 1.1f, -0.4f, 0.8f, 0.0f, -0.9f, 0.6f, 0.3f},
                       d[MANY] = {1.0f, -0.3f, 0.4f, 0.1f, 0.9f, 0.7f, -0.2f, 1.2f};
    float q[MANY] = {0}, expected[MANY], p[MANY];
    uint32_t order[MANY];
    double count[MANY] = {0}, chi2 = 0;
    int cells = 0;
    sampling_dist(d, draft_words, s, q, order);
    sampling_dist(z, target_words, s, expected, order);
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct verify_node nodes[1 + MANY] = {{.parent = -1, .ring = 0}};
        const float *logits[1 + MANY] = {z}, *qs[1 + MANY] = {NULL};
        token_t taken[MANY];
        uint32_t n = 1;
        for (; n <= k; n++) {
            const struct rng_key key = {.seed = seed, .pos = 1, .purpose = RNG_DRAFT, .index = n};
            taken[n - 1] = sampling_draw(q, MANY, &key, taken, n - 1);
            if (taken[n - 1] == TOKEN_NONE || (dropped && (uint32_t)taken[n - 1] >= target_words))
                break;
            nodes[n] = (struct verify_node){.token = taken[n - 1], .pos = 1, .ring = RING_NONE};
            qs[n] = q;
        }
        const struct verify_req r = {.nodes = nodes, .n = n, .sampling = *s, .seed = seed};
        struct verdict v;
        assert_true(sampling_verify(&r, target_words, logits, qs, MANY, p, order, &v));
        assert_in_range(v.next, 0, target_words - 1);
        count[v.next]++;
    }
    for (uint32_t v = 0; v < target_words; v++) {
        const double want = (double)expected[v] * DRAWS;
        if (!(want > 0)) {
            assert_less(count[v], 1);
            continue;
        }
        chi2 += (count[v] - want) * (count[v] - want) / want;
        cells++;
    }
    const double limit = chi_square_limit(cells - 1, 0.001 / TESTS);
    print_message("%u words, a draft of %u, %u candidates%s: chi-square %8.1f, limit %5.1f\n", target_words,
                  draft_words, k, dropped ? ", biased" : "", chi2, limit);
    return chi2 < limit;
}

TEST(drafts_of_another_vocabulary_keep_the_targets_distribution)
{
    const struct sampling plain = PLAIN, filtered = FILTERED;
    assert_true(keeps_it_across(FEW, MANY, 1, &plain, false));
    assert_true(keeps_it_across(FEW, MANY, 3, &plain, false));
    assert_true(keeps_it_across(FEW, MANY, MANY, &filtered, false));
    assert_true(keeps_it_across(MANY, FEW, 1, &plain, false));
    assert_true(keeps_it_across(MANY, FEW, 3, &filtered, false));
    assert_false(keeps_it_across(FEW, MANY, 1, &plain, true));
}

/* Verification must not reject drafts without need: a draft from the target's own distribution is always accepted. */
TEST(a_draft_equal_to_the_target_is_always_accepted)
{
    const struct sampling s = FILTERED;
    float q[V], p[V];
    uint32_t order[V];
    sampling_dist(target[V], V, &s, q, order);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const struct rng_key key = {.seed = seed, .pos = 1, .purpose = RNG_DRAFT};
        const struct verify_node nodes[2] = {{.parent = -1},
                                             {.parent = 0, .token = sampling_draw(q, V, &key, NULL, 0), .pos = 1}};
        const float *const logits[2] = {target[V], target[nodes[1].token]}, *const qs[2] = {NULL, q};
        struct verdict v;
        assert_true(sampling_verify(&(struct verify_req){.nodes = nodes, .n = 2, .sampling = s, .seed = seed}, V,
                                    logits, qs, V, p, order, &v));
        assert_int_equal(v.n_path, 1);
        assert_int_equal(v.kind, NEXT_BONUS);
    }
}
