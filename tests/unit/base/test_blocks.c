/* The memory of weights and KV caches: pieces are zeroed, aligned and do not overlap, with and without huge pages.
 * SPECSCOPE_SEED=N chooses the sizes. */
#include "base/blocks.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

enum { PIECES = 300 };

/* Returns mostly small sizes, a few that exceed the rest of a region, and one larger than a region. */
static size_t
some_size(int i)
{
    if (i == PIECES / 2)
        return REGION_BYTES + random_below(1000);
    return random_below(20) == 0 ? HUGE_PAGE + random_below(8 << 20) : random_below(5000);
}

static void
take_many(bool huge)
{
    static unsigned char *at[PIECES];
    static size_t size[PIECES];
    struct blocks b = {.huge = huge};
    size_t sum = 0;
    for (int i = 0; i < PIECES; i++) {
        size[i] = some_size(i);
        sum += size[i];
        at[i] = blocks_take(&b, size[i], 1);
        assert_non_null(at[i]);
        assert_int_equal((uintptr_t)at[i] % BLOCK_ALIGN, 0);
        for (size_t k = 0; k<size[i]; k += size[i]> 64 ? size[i] / 64 : 1)
            assert_int_equal(at[i][k], 0);
        memset(at[i], 1 + i % 255, size[i]);
    }
    assert_int_equal(b.bytes, sum);
    for (int i = 0; i < PIECES; i++) /* no piece overlaps another */
        for (size_t k = 0; k < size[i]; k++)
            if (at[i][k] != 1 + i % 255)
                fail_msg("piece %d of %zu bytes was written over at %zu", i, size[i], k);
    blocks_free(&b);
    assert_int_equal(b.bytes, 0);
    unsigned char *again = blocks_take(&b, 100, 1); /* the blocks can be used again */
    assert_non_null(again);
    assert_int_equal(again[99], 0);
    blocks_free(&b);
}

TEST(pieces_are_zeroed_aligned_and_apart)
{
    take_many(false);
}

TEST(pieces_in_huge_pages_too)
{
    take_many(true);
}

TEST(impossible_sizes_are_refused)
{
    for (int huge = 0; huge < 2; huge++) {
        struct blocks b = {.huge = huge};
        assert_null(blocks_take(&b, SIZE_MAX / 2, 4)); /* the product overflows */
        if (BLOCKS_SHARE) /* no machine has this much memory; a sanitizer would end the program */
            assert_null(blocks_take(&b, SIZE_MAX / 4, 1));
        assert_int_equal(b.bytes, 0);
        assert_non_null(blocks_take(&b, 1, 1)); /* a failed request leaves the blocks usable */
        blocks_free(&b);
    }
}

TEST_SEED(seed, 1);
