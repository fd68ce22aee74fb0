/* Philox4x32-10, compared with the published vectors, and the uniform numbers that are made from it. */
#include "base/rng.h"
#include "tests/rigs/test.h"

/* The known answers are from Random123, the authors' implementation. */
TEST(philox_gives_the_published_vectors)
{
    static const struct {
        struct philox counter;
        uint32_t key[2];
        struct philox expected;
    } vectors[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {0xffffffff, 0xffffffff},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xa4093822, 0x299f31d0},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const struct philox got = philox4x32_10(vectors[i].counter, vectors[i].key[0], vectors[i].key[1]);
        assert_memory_equal(&got, &vectors[i].expected, sizeof got);
    }
}

TEST(every_part_of_the_key_changes_the_number)
{
    const struct rng_key key = {.seed = 1, .seq = 2, .pos = 3, .purpose = RNG_ACCEPT, .index = 4};
    struct rng_key other[6] = {key, key, key, key, key, key};
    other[0].seed ^= 1;
    other[1].seed ^= UINT64_C(1) << 40;
    other[2].seq++;
    other[3].pos++;
    other[4].purpose = RNG_DRAFT;
    other[5].index++;
    assert_number_equal(rng_uniform(&key), rng_uniform(&key));
    for (size_t i = 0; i < 6; i++)
        assert_true(rng_uniform(&key) != rng_uniform(&other[i]));
}

/* With 100 bins and 100,000 numbers, chi-square with 99 degrees of freedom exceeds 160 for one seed in 10,000. */
TEST(neighbouring_keys_are_uniform_and_uncorrelated)
{
    enum { N = 100000, BINS = 100 };
    double count[BINS] = {0}, product = 0;
    for (uint32_t i = 0; i < N; i++) {
        const struct rng_key key = {.seed = 42, .pos = i}, next = {.seed = 42, .pos = i, .index = 1};
        const double u = rng_uniform(&key), v = rng_uniform(&next);
        assert_at_least(u, 0);
        assert_less(u, 1);
        count[(int)(u * BINS)]++;
        product += (u - 0.5) * (v - 0.5);
    }
    double chi2 = 0;
    for (int b = 0; b < BINS; b++)
        chi2 += (count[b] - N / BINS) * (count[b] - N / BINS) / (N / BINS);
    assert_less(chi2, 160);
    const double correlation = product / N * 12;
    assert_greater(correlation, -0.015);
    assert_less(correlation, 0.015); /* standard deviation 0.0032 */
}

static int
ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(sequences_of_nearby_seeds_never_share_a_seed)
{
    enum { SEEDS = 500, SEQUENCES = 200 };
    static uint64_t all[SEEDS * SEQUENCES];
    for (uint32_t i = 0; i < SEEDS * SEQUENCES; i++)
        all[i] = rng_sequence_seed(7 + i / SEQUENCES, i % SEQUENCES);
    assert_int_equal(all[0], 7); /* the first sequence of a batch has the seed of a run of one sequence */
    qsort(all, SEEDS * SEQUENCES, sizeof *all, ascending);
    for (size_t i = 1; i < SEEDS * SEQUENCES; i++)
        assert_int_not_equal(all[i], all[i - 1]);
}
