/* Contexts of two models, of many tokens and of few, share a pool of distributions. They run on the check backend,
 * which detects a missing wait(). */
#include <math.h>

#include "engine/context/context.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/context_fixture.h"
#include "tests/rigs/test.h"

enum { MANY = 40, FEW = 30, PLACES = 5, LAYERS = 2, PROMPT = 3 };

static const struct sampling plain = {.temperature = 1, .top_p = 1};

struct reader {
    struct naive_model *model;
    struct weights *weights;
    struct context *c;
    atomic_bool cancel;
    slot_t end; /* the last row of the prompt */
};

struct readers {
    struct backend *backend;
    struct dist_pool *pool;
    struct reader many, few;
};

static void
open_reader(struct readers *all, struct reader *r, uint32_t vocab)
{
    const struct naive_shape shape = {.n_layers = LAYERS,
                                      .width = 32,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .head_dim = 16,
                                      .ffn = 48,
                                      .vocab = vocab,
                                      .type = WEIGHT_F16};
    const token_t tokens[PROMPT] = {1, 2, 3};
    struct err e;
    r->model = naive_model_random(&shape, vocab);
    assert_non_null(r->model);
    atomic_init(&r->cancel, false);
    const struct model_desc *d = naive_model_desc(r->model);
    const struct context_options o = {.ctx = 16, .dists = all->pool, .cancel = &r->cancel};
    assert_true(check_backend.load(all->backend, d, NULL, NULL, &r->weights, &e));
    assert_true(context_open(&r->c, &check_backend, all->backend, r->weights, d, &o, &e));
    const seq_t s = context_sequence(r->c);
    assert_true(context_prefill(r->c, s, tokens, PROMPT, NULL, NULL));
    r->end = context_at(r->c, s, PROMPT - 1);
}

static void
close_reader(struct reader *r)
{
    context_close(r->c);
    check_backend.unload(r->weights);
    naive_model_free(r->model);
}

static int
open_readers(void **state)
{
    static struct readers all;
    struct err e;
    assert_true(check_backend.open(&all.backend, &(struct backend_options){.threads = 1}, &e));
    assert_true(dist_pool_open(&all.pool, &check_backend, all.backend, MANY, PLACES, &e));
    open_reader(&all, &all.many, MANY);
    open_reader(&all, &all.few, FEW);
    *state = &all;
    return 0;
}

static int
close_readers(void **state)
{
    struct readers *all = *state;
    if (all->many.c != NULL)
        close_reader(&all->many);
    close_reader(&all->few);
    dist_pool_close(all->pool);
    check_backend.close(all->backend);
    return 0;
}

static dist_t
dist_of(struct reader *r)
{
    const dist_t d = context_dist(r->c, r->end, LAYERS, USE_LENS, &plain);
    assert_int_not_equal(d, DIST_NONE);
    return d;
}

TEST_WITH(a_context_waits_for_what_another_is_making, open_readers, close_readers)
{
    struct readers *all = *state;
    float p[MANY], q[MANY];
    struct overlap o;
    token_t drawn[2];
    const dist_t d = dist_of(&all->many), c = dist_of(&all->few); /* both are queued */
    assert_int_not_equal(d, c);
    struct overlap_req seven = {.d = d, .c = c, .token = 7, .out = &o};
    assert_true(context_overlaps(all->few.c, &seven, 1));
    assert_true(context_read_dist(all->few.c, d, p) && context_read_dist(all->many.c, c, q));
    double similarity = 0;
    for (int v = 0; v < MANY; v++) {
        similarity += fmin((double)p[v], (double)q[v]);
        assert_greater(p[v], 0);
        assert_int_equal(q[v] > 0, v < FEW);
    }
    assert_near((double)o.similarity, similarity, 1e-6);
    assert_near((double)o.acceptance, fmin(1, (double)q[7] / (double)p[7]), 1e-6);
    const struct rng_key key = {.seed = 4, .pos = 3};
    const dist_t again = dist_of(&all->many);
    assert_int_equal(context_draw(all->few.c, again, &key, NULL, 0), context_draw(all->many.c, d, &key, NULL, 0));
    assert_true(context_draws(all->few.c, (dist_t[]){again, c}, (struct rng_key[]){key, key}, 2, drawn));
    assert_int_equal(drawn[0], context_draw(all->many.c, d, &key, NULL, 0));
    assert_int_equal(drawn[1], context_draw(all->few.c, c, &key, NULL, 0));
    seven.token = MANY;
    assert_false(context_overlaps(all->few.c, &seven, 1));
    assert_error(all->few.c, ERR_WORK, "token 40 is not in the vocabulary of 40");
    seven.token = TOKEN_NONE;
    assert_false(context_overlaps(all->few.c, &seven, 1));
    seven.token = 7;
    seven.c = 9;
    assert_false(context_overlaps(all->few.c, (struct overlap_req[]){{d, c, 7, &o}, seven}, 2));
    assert_error(all->few.c, ERR_WORK, "no distribution 9");
}

TEST_WITH(distributions_of_many_rows_are_those_of_each_and_one_head_call, open_readers, close_readers)
{
    struct readers *all = *state;
    struct reader *r = &all->many;
    const slot_t rows[PROMPT] = {context_at(r->c, 0, 0), context_at(r->c, 0, 1), r->end};
    dist_t many[PROMPT], d;
    float p[MANY], q[MANY];
    const double before = context_loads(r->c).heads;
    assert_true(context_dists(r->c, rows, PROMPT, LAYERS, USE_LENS, NULL, &plain, many));
    assert_float_equal(context_loads(r->c).heads, before + 1, 1e-9);
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(d = context_dist(r->c, rows[i + 1], LAYERS, USE_LENS, &plain), DIST_NONE);
        assert_true(context_read_dist(r->c, many[i + 1], p) && context_read_dist(r->c, d, q));
        assert_memory_equal(p, q, sizeof p);
    }
    assert_false(context_dists(r->c, rows, 1, LAYERS, USE_LENS, NULL, &plain, many)); /* all places are taken */
    assert_int_equal(context_error(r->c)->kind, ERR_WORK);
}

TEST_WITH(numbers_are_handed_out_once_until_all_are_released, open_readers, close_readers)
{
    struct readers *all = *state;
    float p[MANY];
    for (dist_t i = 0; i < PLACES; i++)
        assert_int_equal(dist_of(i % 2 ? &all->many : &all->few), i);
    assert_int_equal(context_dist(all->few.c, all->few.end, 0, USE_LENS, &plain), DIST_NONE);
    assert_error(all->few.c, ERR_WORK, "all 5 distributions");
    assert_true(context_read_dist(all->few.c, 3, p));
    dist_pool_release(all->pool); /* releases the pool while requests are still queued */
    assert_false(context_read_dist(all->many.c, 0, p));
    assert_error(all->many.c, ERR_WORK, "released");
    for (dist_t i = 0; i < PLACES; i++)
        assert_int_equal(dist_of(i % 2 ? &all->few : &all->many), i);
    assert_true(context_read_dist(all->few.c, 0, p));
    assert_greater(p[FEW], 0);
    assert_true(context_read_dist(all->many.c, 1, p));
    assert_at_most(p[FEW], 0);
}

TEST_WITH(a_draft_token_that_the_target_does_not_know_is_rejected, open_readers, close_readers)
{
    struct readers *all = *state;
    struct verdict v;
    struct verify_row rows[2] = {{.parent = -1, .token = PROMPT, .slot = all->few.end, .q = DIST_NONE},
                                 {.token = FEW, .slot = SLOT_NONE, .q = dist_of(&all->many)}};
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_true(context_verify(all->few.c, 0, rows, 2, &plain, seed, &v));
        assert_int_equal(v.kind, NEXT_CORRECTION);
        assert_at_least(v.next, 0);
        assert_less(v.next, FEW);
    }
    rows[1].token = MANY;
    assert_false(context_verify(all->few.c, 0, rows, 2, &plain, 1, &v));
    assert_error(all->few.c, ERR_WORK, "not in the vocabulary");
}

TEST_WITH(a_failure_is_told_by_the_context_that_came_for_it, open_readers, close_readers)
{
    struct readers *all = *state;
    float p[MANY];
    atomic_store(&all->many.cancel, true);
    const dist_t d = dist_of(&all->many);
    assert_false(context_read_dist(all->few.c, d, p));
    assert_int_equal(context_error(all->few.c)->kind, ERR_CANCELLED);
    assert_int_equal(context_error(all->many.c)->kind, ERR_NONE);
    atomic_store(&all->many.cancel, false);
    const dist_t next = dist_of(&all->many);
    assert_true(context_read_dist(all->few.c, next, p));
}

TEST_WITH(a_cancelled_distribution_that_nothing_read_does_not_cancel_the_next_prompt, open_readers, close_readers)
{
    struct readers *all = *state;
    const token_t tokens[PROMPT] = {1, 2, 3};
    atomic_store(&all->many.cancel, true);
    (void)dist_of(&all->many);
    atomic_store(&all->many.cancel, false);
    assert_true(context_prompt(all->many.c, context_sequence(all->many.c), tokens, PROMPT, NULL, NULL));
}

TEST_WITH(what_a_context_made_outlives_it, open_readers, close_readers)
{
    struct readers *all = *state;
    float before[MANY], after[MANY];
    const dist_t d = dist_of(&all->many), queued = dist_of(&all->many);
    assert_true(context_read_dist(all->few.c, d, before));
    assert_int_equal(dist_of(&all->many), 2);
    close_reader(&all->many);
    all->many.c = NULL;
    assert_true(context_read_dist(all->few.c, d, after));
    assert_memory_equal(before, after, sizeof before);
    assert_true(context_read_dist(all->few.c, queued, after) && context_read_dist(all->few.c, 2, after));
    assert_memory_equal(before, after, sizeof before);
}
