/* Observations of plain speculative decoding, against reading every text from its beginning and known rates. */
#include <math.h>

#include "engine/training/profile_data.h"
#include "kernels/cpu/sampling.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define PROMPT   4
#define RESPONSE 20
#define DRAFTS   4
#define VOCAB    320

static uint64_t seed;

static const struct sampling greedy = {.top_p = 1}, whole = {.temperature = 1, .top_p = 1};

/* The same weights with other rotation angles: models that agree sometimes. */
static struct engine *
open_three(float sharpness)
{
    const struct tinymodel target = {.seed = seed, .sharpness = sharpness, .rope_base = 10000, .vocab = VOCAB};
    struct tinymodel draft = target, companion = target;
    draft.rope_base = 20;
    companion.rope_base = 300;
    return exact_rig_tiny(&target, &draft, &companion);
}

static struct engine *
open_layers(void)
{
    const struct tinymodel target = {
        .seed = seed, .sharpness = 8, .n_layers = 5, .calm_after = 2, .calm = 0.3f, .vocab = VOCAB};
    return exact_rig_own_layers(&target, "self:1", "self:3");
}

struct said {
    float p[VOCAB];
    token_t first; /* the most likely token */
};

/* A model's distribution after a text that is read from its beginning. */
static struct said
after(const struct engine *e, enum reads who, const token_t *text, uint32_t n, const struct sampling *how)
{
    struct said s;
    float z[VOCAB];
    uint32_t order[VOCAB];
    exact_rig_read(e, who, text, n, z, NULL);
    sampling_dist(z, VOCAB, how, s.p, order);
    s.first = sampling_argmax(z, VOCAB);
    return s;
}

/* Σ min(p, q) */
static double
overlap(const struct said *p, const struct said *q)
{
    double sum = 0;
    for (int v = 0; v < VOCAB; v++)
        sum += fmin((double)p->p[v], (double)q->p[v]);
    return sum;
}

static void
add(struct profile_rounds *to, const struct profile_rounds *r)
{
    to->rounds += r->rounds;
    to->drafted += r->drafted;
    to->accepted += r->accepted;
    to->emitted += r->emitted;
}

/* Generates one prompt's observations. Returns their number. */
static size_t
observe(struct profile_data *d, uint64_t index, const token_t *text, struct sv_observation *o,
        struct profile_rounds *rounds)
{
    struct profile_prompt p = {.index = index, .tokens = text, .n = PROMPT, .seen = o};
    struct err err = {0};
    assert_ok(profile_data_prompts(d, &p, 1, &err), err);
    add(rounds, &p.rounds);
    return p.n_seen;
}

static void
check_greedy(const struct engine *e)
{
    const struct profile_data_options options = {
        .prompt = PROMPT, .response = RESPONSE, .drafts = DRAFTS, .sampling = greedy, .seed = seed, .sequences = 1};
    struct profile_data *d;
    struct err err = {0};
    struct profile_rounds rounds = {0};
    assert_ok(profile_data_open(&d, e, &options, NULL, &err), err);
    size_t seen = 0, matched = 0;
    for (token_t first = 300; first < 304; first++) {
        token_t text[PROMPT + RESPONSE + DRAFTS] = {1, 280, first, 285};
        struct sv_observation o[RESPONSE + DRAFTS];
        size_t at = 0;
        const size_t n_out = observe(d, 0, text, o, &rounds);
        for (uint32_t n = PROMPT; at < n_out;) { /* rounds, according to the observations */
            bool rejected = false;
            uint32_t i = 0;
            for (; i < DRAFTS && !rejected && at < n_out; i++, at++) {
                const struct said p = after(e, READS_TARGET, text, n + i, &greedy),
                                  q = after(e, READS_DRAFT, text, n + i, &whole),
                                  c = after(e, READS_COMPANION, text, n + i, &whole);
                const double a = fmin(1, (double)(c.p[q.first] / q.p[q.first]));
                assert_near((double)o[at].s, overlap(&q, &c), 1e-5);
                assert_near((double)o[at].a, a, 1e-5);
                rejected = p.first != q.first;
                assert_near((double)o[at].accepted, !rejected, 1e-6);
                text[n + i] = p.first;
                matched += !rejected;
            }
            if (!rejected)
                text[n + i] = after(e, READS_TARGET, text, n + i, &greedy).first;
            n += i + !rejected;
        }
        seen += n_out;
    }
    assert_greater(seen, 20);
    assert_greater(matched, 0);
    assert_less(matched, seen);
    assert_int_equal(rounds.accepted, matched);
    assert_at_least(rounds.emitted, rounds.accepted + rounds.rounds - 4);
    assert_at_least(rounds.drafted, seen);
    profile_data_close(d);
}

TEST(greedy_rounds_are_speculative_decodings)
{
    struct engine *e = open_three(8);
    check_greedy(e);
    engine_close(e);
}

TEST(greedy_rounds_of_the_targets_own_layers_are_speculative_decodings)
{
    struct engine *e = open_layers();
    check_greedy(e);
    engine_close(e);
}

/* E[A] = Σ min(p, q) and E[a] = Σ min(q, c) = s, for distributions after the setting's filters. */
static void
check_means(const struct engine *e, const struct sampling *how)
{
    enum { N = 4000 };
    const struct profile_data_options options = {
        .prompt = PROMPT, .response = 3, .drafts = 1, .sampling = *how, .seed = seed, .sequences = 1};
    const token_t text[PROMPT] = {1, 280, 301, 285};
    struct profile_data *d;
    struct err err = {0};
    struct profile_rounds rounds = {0};
    const struct said p = after(e, READS_TARGET, text, PROMPT, how), q = after(e, READS_DRAFT, text, PROMPT, how),
                      c = after(e, READS_COMPANION, text, PROMPT, how);
    assert_ok(profile_data_open(&d, e, &options, NULL, &err), err);
    double sum = 0, squares = 0, sum_a = 0, squares_a = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct sv_observation o[8];
        const size_t n_out = observe(d, i, text, o, &rounds);
        assert_at_least(n_out, 1);
        sum += (double)o[0].accepted;
        squares += (double)o[0].accepted * (double)o[0].accepted;
        sum_a += (double)o[0].a;
        squares_a += (double)o[0].a * (double)o[0].a;
        assert_near((double)o[0].s, overlap(&q, &c), 1e-5);
    }
    const double mean = sum / N, mean_a = sum_a / N;
    assert_near(mean, overlap(&p, &q), 4.5 * sqrt((squares / N - mean * mean) / N));
    assert_near(mean_a, overlap(&q, &c), 4.5 * sqrt((squares_a / N - mean_a * mean_a) / N));
    profile_data_close(d);
}

TEST(the_means_of_sampled_rounds_are_overlaps)
{
    struct engine *flat = open_three(1); /* otherwise the counted cases are too rare */
    const struct sampling all = {.temperature = 0.8f, .top_p = 1},
                          few = {.temperature = 0.8f, .top_k = 40, .top_p = 0.7f};
    check_means(flat, &all);
    check_means(flat, &few);
    engine_close(flat);
}

/* With one candidate the sampling is deterministic. */
TEST(top_k_of_one_is_greedy_but_for_the_companion)
{
    struct profile_data_options options = {
        .prompt = PROMPT, .response = RESPONSE, .drafts = DRAFTS, .sampling = greedy, .seed = seed, .sequences = 1};
    const token_t text[PROMPT] = {1, 280, 302, 285};
    struct engine *e = open_three(8);
    struct sv_observation o[2][RESPONSE + DRAFTS];
    size_t n[2];
    struct profile_rounds rounds[2] = {{0}, {0}};
    struct err err = {0};
    for (int i = 0; i < 2; i++) {
        struct profile_data *d;
        assert_ok(profile_data_open(&d, e, &options, NULL, &err), err);
        n[i] = observe(d, 0, text, o[i], &rounds[i]);
        profile_data_close(d);
        options.sampling = (struct sampling){.temperature = 0.9f, .top_k = 1, .top_p = 1};
    }
    assert_memory_equal(&rounds[0], &rounds[1], sizeof rounds[0]);
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        assert_number_equal(o[0][i].accepted, o[1][i].accepted);
        assert_true(o[1][i].s == 0 || o[1][i].s == 1); /* the companion is greedy, too */
    }
    engine_close(e);
}

/* Compares bit for bit: rounds of several lengths, more prompts than sequences. */
static void
check_sequences(const struct engine *e)
{
    enum { N = 7 };
    struct profile_data_options options = {.prompt = PROMPT + N,
                                           .response = RESPONSE,
                                           .drafts = DRAFTS,
                                           .sampling = {.temperature = 0.9f, .top_p = 0.95f},
                                           .seed = seed};
    struct sv_observation o[2][N][RESPONSE + DRAFTS];
    size_t n_seen[2][N];
    struct profile_rounds rounds[2] = {{0}, {0}};
    struct err err = {0};
    const token_t text[PROMPT + N] = {1, 280, 302, 285, 290, 299, 277, 310, 260, 270, 281};
    for (int side = 0; side < 2; side++) { /* one at a time, then three */
        struct profile_data *d;
        options.sequences = side == 0 ? 1 : 3;
        assert_ok(profile_data_open(&d, e, &options, NULL, &err), err);
        for (size_t at = 0; at < N; at += options.sequences) {
            struct profile_prompt p[3];
            const size_t n = N - at < options.sequences ? N - at : options.sequences;
            for (size_t i = 0; i < n; i++)
                p[i] = (struct profile_prompt){
                    .index = at + i, .tokens = text, .n = PROMPT + at + i, .seen = o[side][at + i]};
            assert_ok(profile_data_prompts(d, p, n, &err), err);
            for (size_t i = 0; i < n; i++) {
                n_seen[side][at + i] = p[i].n_seen;
                add(&rounds[side], &p[i].rounds);
            }
        }
        profile_data_close(d);
    }
    assert_memory_equal(&rounds[0], &rounds[1], sizeof rounds[0]);
    assert_greater(rounds[0].accepted, 0);
    assert_less(rounds[0].accepted, rounds[0].drafted);
    for (int i = 0; i < N; i++) {
        assert_int_equal(n_seen[0][i], n_seen[1][i]);
        assert_memory_equal(o[0][i], o[1][i], n_seen[0][i] * sizeof o[0][i][0]);
    }
}

TEST(prompts_that_share_passes_get_the_bits_that_they_get_alone)
{
    struct engine *three = open_three(8), *own = open_layers();
    check_sequences(three);
    check_sequences(own);
    engine_close(three);
    engine_close(own);
}

TEST_SEED(seed, 11);
