/* Drafts from earlier text against a slow definition, on random texts of few tokens: the matching occurrences, the
 * drafted continuation, and the likeliest paths of a tree. */
#include "policies/lookup.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

enum { TEXT = 200, TRIALS = 4000 };

struct text {
    token_t token[TEXT];
    uint32_t n;
};

/* A text of few different tokens, which repeat. Some parts are copies, so that long matches occur. */
static struct text
random_text(void)
{
    struct text t = {.n = 1 + random_below(TEXT)};
    const uint32_t alphabet = 1 + random_below(6);
    for (uint32_t i = 0; i < t.n; i++)
        t.token[i] = (token_t)random_below(alphabet);
    if (t.n > 60)
        memcpy(&t.token[t.n - 30], &t.token[random_below(t.n - 60)], sizeof t.token[0] * 30);
    return t;
}

static struct lookup_rule
random_rule(bool tree)
{
    struct lookup_rule rule = {.least = 1 + random_below(3),
                               .depth = 1 + random_below(12),
                               .latest = !tree && random_below(2) == 0,
                               .full = "k",
                               .full_match = "spec_factor",
                               .full_tree = "nodes"};
    rule.most = rule.least + random_below(20);
    rule.per_match = random_below(2) == 0 ? 0 : 0.25 * (1 + random_below(8));
    rule.probability = random_below(2) == 0 ? 0 : 0.1 * random_below(8);
    rule.nodes = tree ? rule.depth + 1 + random_below(LOOKUP_NODES - rule.depth) : rule.depth;
    return rule;
}

/* The occurrences of the longest match, by the positions after them, the latest first. Returns the match's length. */
static uint32_t
occurrences(const struct text *t, const struct lookup_rule *rule, uint32_t *next, uint32_t *n)
{
    *n = 0;
    for (uint32_t length = rule->most; length >= rule->least; length--)
        for (uint32_t end = t->n - 1; end >= length && end > 0; end--) {
            if (length > t->n - 1)
                break;
            if (memcmp(&t->token[end - length], &t->token[t->n - length], length * sizeof t->token[0]) == 0 &&
                *n < (rule->latest ? 1 : LOOKUP_PLACES))
                next[(*n)++] = end;
            if (end == length && *n > 0)
                return length;
        }
    return 0;
}

/* Counts the occurrences that continue with these tokens. */
static uint32_t
agreeing(const struct text *t, const uint32_t *next, uint32_t n, const token_t *path, uint32_t depth)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += next[i] + depth <= t->n && memcmp(&t->token[next[i]], path, depth * sizeof *path) == 0;
    return count;
}

static uint32_t
most_deep(const struct lookup_rule *rule, uint32_t length)
{
    const uint32_t most = rule->per_match > 0 ? (uint32_t)(rule->per_match * length) : rule->depth;
    return most < rule->depth ? most : rule->depth;
}

TEST(a_chain_is_the_most_frequent_continuation)
{
    uint32_t drafted = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct text t = random_text();
        const struct lookup_rule rule = random_rule(false);
        uint32_t next[LOOKUP_PLACES], n;
        const uint32_t length = occurrences(&t, &rule, next, &n);
        token_t path[LOOKUP_NODES];
        uint32_t depth = 0;
        for (bool more = n > 0; more && depth < most_deep(&rule, length);) {
            uint32_t best = 0;
            for (uint32_t i = 0; i < n; i++) {
                token_t other[LOOKUP_NODES];
                memcpy(other, path, sizeof other);
                if (next[i] + depth >= t.n || agreeing(&t, &next[i], 1, path, depth) == 0)
                    continue;
                other[depth] = t.token[next[i] + depth];
                const uint32_t count = agreeing(&t, next, n, other, depth + 1);
                if (count > best) {
                    best = count;
                    path[depth] = other[depth];
                }
            }
            more = best > 0 && (double)best / n >= rule.probability;
            depth += more;
        }
        struct lookup l;
        lookup_text(&l, &rule, t.token, t.n, LOOKUP_NODES);
        assert_int_equal(l.matched, length);
        assert_int_equal(l.n, depth);
        for (uint32_t i = 0; i < depth; i++) {
            assert_int_equal(l.node[i].token, path[i]);
            assert_int_equal(l.node[i].parent, (int32_t)i - 1);
        }
        drafted += depth;
    }
    assert_greater(drafted, TRIALS);
}

/* Stores the tokens from the pending one to a draft. Returns their number. */
static uint32_t
path_to(const struct lookup *l, uint32_t node, token_t *path)
{
    const uint32_t depth = l->node[node].depth;
    for (int32_t at = (int32_t)node; at >= 0; at = l->node[at].parent)
        path[l->node[at].depth - 1] = l->node[at].token;
    return depth;
}

static bool
has_child(const struct lookup *l, int32_t parent, token_t token)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->node[i].parent == parent && l->node[i].token == token)
            return true;
    return false;
}

/* Checks that no continuation missing from the tree is likelier than `least`, or, if the tree has room, likely enough
 * for the rule. */
static void
check_left_out(const struct lookup *l, int32_t parent, const struct text *t, const struct lookup_rule *rule,
               const uint32_t *next, uint32_t n, double least)
{
    token_t path[LOOKUP_NODES + 1];
    const uint32_t depth = parent < 0 ? 0 : path_to(l, (uint32_t)parent, path);
    for (uint32_t i = 0; i < n && depth < most_deep(rule, l->matched); i++) {
        if (next[i] + depth >= t->n || agreeing(t, &next[i], 1, path, depth) == 0)
            continue;
        path[depth] = t->token[next[i] + depth];
        const double probability = (double)agreeing(t, next, n, path, depth + 1) / n;
        if (!has_child(l, parent, path[depth]))
            assert_true(l->n == rule->nodes ? probability <= least : probability < rule->probability);
    }
}

TEST(a_tree_has_the_likeliest_paths)
{
    uint32_t forks = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct text t = random_text();
        const struct lookup_rule rule = random_rule(true);
        uint32_t next[LOOKUP_PLACES], n;
        struct lookup l;
        lookup_text(&l, &rule, t.token, t.n, LOOKUP_NODES);
        assert_int_equal(l.matched, occurrences(&t, &rule, next, &n));
        assert_at_most(l.n, rule.nodes);
        double least = 1;
        for (uint32_t i = 0; i < l.n; i++) {
            token_t path[LOOKUP_NODES];
            assert_less(l.node[i].parent, (int32_t)i);
            const uint32_t depth = path_to(&l, i, path);
            assert_at_most(depth, most_deep(&rule, l.matched));
            assert_number_equal(l.node[i].probability, (double)agreeing(&t, next, n, path, depth) / n);
            assert_greater(l.node[i].probability, 0);
            assert_at_least(l.node[i].probability, rule.probability);
            least = l.node[i].probability < least ? l.node[i].probability : least;
            forks += i > 0 && l.node[i].parent != (int32_t)i - 1;
        }
        for (int32_t parent = -1; parent < (int32_t)l.n; parent++)
            check_left_out(&l, parent, &t, &rule, next, n, least);
    }
    assert_greater(forks, TRIALS);
}

/* Siblings that are not as deep as the last path are kept. */
TEST(a_tree_near_the_length_has_all_paths_that_fit)
{
    uint32_t siblings = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct text t = random_text();
        struct lookup_rule rule = random_rule(true);
        const uint32_t budget = random_below(5), nodes = rule.nodes;
        struct lookup l, shallow;
        lookup_text(&l, &rule, t.token, t.n, budget);
        rule.depth = budget < rule.depth ? budget : rule.depth;
        rule.nodes = nodes;
        lookup_text(&shallow, &rule, t.token, t.n, LOOKUP_NODES);
        assert_int_equal(l.n, shallow.n);
        for (uint32_t i = 0; i < l.n; i++) {
            assert_int_equal(l.node[i].token, shallow.node[i].token);
            assert_int_equal(l.node[i].parent, shallow.node[i].parent);
        }
        siblings += budget == 1 && l.n > 1;
    }
    print_message("# %u trees of depth 1 have siblings\n", (unsigned)siblings);
    assert_greater(siblings, TRIALS / 100);
}

/* The text "ab ab ab a", with a number for each letter: two tokens match, and the continuation occurs three times. */
TEST(the_reason_is_the_limit_that_ended_the_draft)
{
    static const token_t text[] = {1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2, 3, 1, 2};
    const struct lookup_rule rule = {
        .least = 1, .most = 2, .depth = 4, .nodes = 4, .full = "k", .full_match = "spec_factor", .full_tree = "nodes"};
    static const struct {
        uint32_t depth, nodes, budget;
        double per_match, probability;
        const char *reason;
    } cases[] = {{3, 3, 9, 0, 0, "k"},           {8, 8, 2, 0, 0, "budget"},
                 {8, 8, 9, 1, 0, "spec_factor"}, {8, 8, 9, 0, 0.8, "probability"},
                 {2, 3, 9, 0, 0, "nodes"},       {3, 3, 0, 0, 0, "budget"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lookup_rule r = rule;
        struct lookup l;
        r.depth = cases[i].depth;
        r.nodes = cases[i].nodes;
        r.per_match = cases[i].per_match;
        r.probability = cases[i].probability;
        lookup_text(&l, &r, text, sizeof text / sizeof *text, cases[i].budget);
        assert_int_equal(l.matched, 2);
        assert_string_equal(l.reason, cases[i].reason);
    }
}

TEST_SEED(seed, 20);
