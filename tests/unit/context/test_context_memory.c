/* Lets every allocation of context_open() fail in turn. The context's sources are included with an allocator that fails
 * on request, so the build needs no special settings. */
#include "tests/rigs/test.h"

static int allocations_left = -1; /* successful allocations before one fails; negative: none fails */
static int alive;                 /* blocks not freed */

static void *
failing_calloc(size_t n, size_t size)
{
    if (allocations_left >= 0 && allocations_left-- == 0)
        return NULL;
    void *block = calloc(n, size);
    alive += block != NULL;
    return block;
}

static void
counting_free(void *block)
{
    alive -= block != NULL;
    free(block);
}

#define calloc failing_calloc
#define free   counting_free
#include "base/blocks.c"
#include "engine/context/context.c"
#include "engine/context/context_decide.c"
#include "engine/context/context_features.c"
#include "engine/context/context_forward.c"
#include "engine/context/context_rows.c"
#undef calloc
#undef free

#include "tests/rigs/symbolic_backend.h"

TEST(every_failing_allocation_leaves_a_clean_error)
{
    const struct model_desc desc = {.n_layers = 3, .width = SYMBOLIC_WIDTH, .vocab = 16};
    const struct context_options options = {.ctx = 20};
    struct backend *backend;
    struct weights *weights;
    struct err e;
    assert_true(symbolic_backend.open(&backend, &(struct backend_options){0}, &e));
    assert_true(symbolic_backend.load(backend, &desc, NULL, NULL, &weights, &e));
    struct context *c = NULL;
    int failed = 0;
    for (; c == NULL && failed < 100; failed++) {
        e = (struct err){.kind = ERR_NONE};
        allocations_left = failed;
        if (context_open(&c, &symbolic_backend, backend, weights, &desc, &options, &e))
            break;
        assert_null(c);
        assert_int_equal(e.kind, ERR_WORK);
        assert_contains(e.text, "memory");
        assert_int_equal(alive, 0);
    }
    print_message("%d allocations\n", failed);
    assert_in_range(failed, 10, 20);
    allocations_left = 0; /* after opening, the context must not allocate */
    const seq_t s = context_sequence(c);
    const token_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct verdict v;
    assert_true(context_prefill(c, s, tokens, 8, NULL, NULL));
    const seq_t fork = context_fork(c, s, 5);
    const slot_t row = context_append(c, fork, SLOT_NONE, 3);
    assert_true(context_advance(c, &row, 1, 3, NULL));
    const struct verify_row round = {.parent = -1, .token = 3, .slot = row, .q = DIST_NONE};
    assert_true(context_verify(c, fork, &round, 1, &(struct sampling){.temperature = 1, .top_p = 1}, 1, &v));
    assert_true(context_keep(c, fork, &row, 1));
    assert_int_equal(allocations_left, 0);
    context_close(c);
    assert_int_equal(alive, 0);
    symbolic_backend.unload(weights);
    symbolic_backend.close(backend);
}
