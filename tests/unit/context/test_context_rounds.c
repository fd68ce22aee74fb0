/* The context's functions for a round on the symbolic backend: counts of loads, cancelling of forward passes and
 * prefills, verification and draws. */
#include "tests/rigs/context_fixture.h"
#include "tests/rigs/context_inside.h"
#include "tests/rigs/test.h"

/* ---- loads ---- */

TEST(loads_count_each_layer_of_a_forward_pass_once)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32, .max_probes = 2, .max_rows = 4});
    struct loads before = context_loads(f.c);
    prefill(&f, 6); /* two chunks */
    assert_loads(&f, &before, 2 * L, 0);
    slot_t rows[3];
    append_chain(&f, SLOT_NONE, 1, rows, 3);
    assert_true(context_advance(f.c, rows, 1, 4, NULL));
    assert_loads(&f, &before, 4, 0);
    assert_true(context_advance(f.c, rows, 2, 3, NULL)); /* the first row already has depth 3 */
    assert_loads(&f, &before, 3, 0);
    assert_true(context_advance(f.c, rows, 2, 5, NULL)); /* depths 4 and 3 join in one forward pass: layers 4, 5 */
    assert_loads(&f, &before, 2, 0);
    assert_true(context_advance(f.c, rows, 2, 5, NULL));
    assert_loads(&f, &before, 0, 0);
    bool attention[L + 1] = {false}, mlp[L + 1] = {false};
    attention[1] = attention[2] = mlp[2] = mlp[4] = attention[6] = true;
    assert_true(context_advance(f.c, &rows[2], 1, 4, &(struct plan){attention, mlp}));
    assert_loads(&f, &before, 2, 0); /* ½ + 0 + 1 + ½; layer 6 was not run */

    struct context_probe probes[5];
    struct prediction g[5];
    for (size_t i = 0; i < 5; i++)
        probes[i] = (struct context_probe){.slot = rows[0], .layer = (uint32_t)i, .temperature = 1};
    assert_true(context_predict(f.c, probes, 2, g));
    assert_loads(&f, &before, 0, 1);
    assert_true(context_predict(f.c, probes, 5, g)); /* calls of 2, 2 and 1 */
    assert_loads(&f, &before, 0, 3);
    assert_int_not_equal(context_dist(f.c, rows[0], 3, 0, &(struct sampling){.temperature = 1, .top_p = 1}), DIST_NONE);
    assert_loads(&f, &before, 0, 1);
    close_fixture(&f);
}

TEST(a_context_of_the_first_layers_commits_rows_there_and_knows_no_deeper_ones)
{
    struct fixture f;
    struct context *none;
    struct err err = {0};
    open_with(&f, (struct context_options){.ctx = 32, .max_rows = 4, .depth = 4});
    struct loads before = context_loads(f.c);
    prefill(&f, 6); /* two chunks */
    assert_loads(&f, &before, 2 * 4, 0);
    assert_int_equal(context_depth(f.c, context_at(f.c, f.s, 5)), 4);
    assert_saw(&f, context_at(f.c, f.s, 5), (token_t[]){0, 1, 2, 3, 4, 5}, 6);
    slot_t row;
    append_chain(&f, SLOT_NONE, 9, &row, 1);
    assert_false(context_advance(f.c, &row, 1, 5, NULL));
    assert_error(f.c, ERR_WORK, "there is no layer 5");
    assert_true(context_advance(f.c, &row, 1, 3, NULL));
    assert_false(context_keep(f.c, f.s, &row, 1));
    assert_error(f.c, ERR_WORK, "advance it to 4 first");
    assert_true(context_advance(f.c, &row, 1, 4, NULL));
    struct verdict verdict;
    const struct verify_row round = {.parent = -1, .token = 9, .slot = row, .q = DIST_NONE};
    assert_false(context_verify(f.c, f.s, &round, 1, &(struct sampling){.top_p = 1}, 1, &verdict));
    assert_true(context_keep(f.c, f.s, &row, 1));
    assert_int_equal(context_length(f.c, f.s), 7);
    assert_false(context_open(&none, &symbolic_backend, f.backend, f.weights, &f.desc,
                              &(struct context_options){.ctx = 8, .depth = L + 1}, &err));
    assert_contains(err.text, "there is no layer 7");
    close_fixture(&f);
}

TEST(a_forward_pass_until_a_depth_counts_its_layers_and_probes)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 3);
    slot_t rows[3];
    append_chain(&f, SLOT_NONE, 5, rows, 3);
    assert_true(context_advance(f.c, rows, 1, 4, NULL));
    assert_true(context_advance(f.c, rows, 2, 2, NULL));
    struct loads before = context_loads(f.c);
    float temperature[L + 1], threshold[L + 1];
    for (int l = 0; l <= L; l++) {
        temperature[l] = 1;
        threshold[l] = l == 2 ? 0.999999f : l == 3 ? 0 : 2; /* predicts at 2 and 3, exits at 3 */
    }
    struct prediction probed[L + 1];
    struct exit_result r = {.probed = probed};
    assert_true(context_advance_until(f.c, rows, 3, 5,
                                      &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &r));
    assert_true(r.exited);
    assert_int_equal(r.depth, 3);
    assert_int_equal(r.probes, 2);
    assert_loads(&f, &before, 3, 2);
    assert_int_equal(probed[1].token, TOKEN_NONE);
    assert_memory_equal(&probed[3], &r.prediction, sizeof r.prediction);
    assert_int_equal(context_depth(f.c, rows[0]), 4); /* was deeper and keeps its depth */
    assert_int_equal(context_depth(f.c, rows[1]), 3); /* was run with the others up to layer 3 */
    assert_int_equal(context_depth(f.c, rows[2]), 3);
    assert_saw(&f, rows[2], (token_t[]){0, 1, 2, 5, 6, 7}, 6);

    threshold[4] = threshold[5] = 2;
    assert_true(context_advance_until(f.c, rows, 3, 5,
                                      &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &r));
    assert_false(r.exited);
    assert_int_equal(r.depth, 5);
    assert_int_equal(r.probes, 0);
    assert_int_equal(context_depth(f.c, rows[0]), 5);
    assert_loads(&f, &before, 2, 0);
    assert_false(context_advance_until(f.c, rows, 3, 5,
                                       &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &r));
    assert_error(f.c, ERR_WORK, "already at layer 5");
    const slot_t sibling = context_append(f.c, f.s, rows[1], 20);
    assert_false(context_advance_until(f.c, (slot_t[]){sibling, rows[2]}, 2, 5,
                                       &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &r));
    assert_error(f.c, ERR_WORK, "already at layer 5");
    assert_false(context_advance_until(f.c, (slot_t[]){rows[0], rows[1], sibling, rows[2]}, 4, L,
                                       &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &r));
    assert_error(f.c, ERR_WORK, "the deciding row is deeper");
    assert_int_equal(context_depth(f.c, sibling), 0);
    close_fixture(&f);
}

TEST(a_prompt_is_read_in_chunks_of_as_many_rows_as_the_backend_asks_for)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 200});
    const uint32_t usual = context_limits(f.c)->max_rows;
    struct backend_ops more = symbolic_backend;
    const struct context_options options = {.ctx = 200}, few = {.ctx = 200, .max_rows = 8};
    token_t tokens[150];
    struct err err;
    for (size_t i = 0; i < 150; i++)
        tokens[i] = (token_t)(i % VOCAB);
    more.prompt_rows = usual + 20;
    context_close(f.c);
    assert_ok(context_open(&f.c, &more, f.backend, f.weights, &f.desc, &few, &err), err);
    assert_int_equal(context_limits(f.c)->max_rows, 8); /* the caller's value overrides the default */
    context_close(f.c);
    assert_ok(context_open(&f.c, &more, f.backend, f.weights, &f.desc, &options, &err), err);
    assert_int_equal(context_limits(f.c)->max_rows, usual + 20);
    f.s = context_sequence(f.c);
    struct loads before = context_loads(f.c);
    assert_true(context_prompt(f.c, f.s, tokens, 150, NULL, NULL));
    assert_loads(&f, &before, 2 * L, 0);
    close_fixture(&f);
}

/* ---- cancelling ---- */

TEST(a_cancelled_forward_pass_changes_no_depth_and_can_be_repeated)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 4);
    slot_t rows[2];
    append_chain(&f, SLOT_NONE, 10, rows, 2);
    assert_true(context_advance(f.c, rows, 1, 2, NULL));
    const struct loads before = context_loads(f.c);
    for (int layer = 0; layer < L; layer++) {
        symbolic_cancel_before(f.weights, layer);
        assert_false(context_advance(f.c, rows, 2, L, NULL));
        assert_error(f.c, ERR_CANCELLED, "");
        assert_int_equal(context_depth(f.c, rows[0]), 2);
        assert_int_equal(context_depth(f.c, rows[1]), 0);
    }
    assert_at_most(context_loads(f.c).layers, before.layers);
    assert_true(context_advance(f.c, rows, 2, L, NULL)); /* the backend dropped the trunk and rows[1]'s embedding */
    assert_saw(&f, rows[1], (token_t[]){0, 1, 2, 3, 10, 11}, 6);
    close_fixture(&f);
}

struct stop {
    int chunks, at;
    double done;
};

static bool
stop_at_chunk(void *user, double done)
{
    struct stop *s = user;
    assert_greater(done, s->done);
    assert_at_most(done, 1);
    s->done = done;
    return ++s->chunks != s->at;
}

TEST(a_cancelled_prefill_keeps_whole_chunks)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .max_rows = 8});
    token_t tokens[30];
    for (int i = 0; i < 30; i++)
        tokens[i] = (token_t)(i % 7);
    const uint32_t all = context_free_slots(f.c);
    struct stop stop = {.at = 2};
    assert_false(context_prefill(f.c, f.s, tokens, 30, stop_at_chunk, &stop));
    assert_error(f.c, ERR_CANCELLED, "");
    assert_int_equal(context_length(f.c, f.s), 16);
    symbolic_cancel_before(f.weights, L + 2); /* in the second chunk from here */
    assert_false(context_prefill(f.c, f.s, tokens + 16, 14, NULL, NULL));
    assert_error(f.c, ERR_CANCELLED, "");
    assert_int_equal(context_length(f.c, f.s), 24);
    assert_int_equal(context_free_slots(f.c), all - 24);
    stop = (struct stop){.at = 1}; /* too late to stop: that was the last chunk */
    assert_true(context_prefill(f.c, f.s, tokens + 24, 6, stop_at_chunk, &stop));
    assert_saw(&f, context_at(f.c, f.s, 29), tokens, 30);
    atomic_store(&f.cancel, true);
    assert_false(context_prefill(f.c, f.s, tokens, 1, NULL, NULL));
    assert_error(f.c, ERR_CANCELLED, "");
    assert_int_equal(context_length(f.c, f.s), 30);
    close_fixture(&f);
}

/* ---- distributions and verdicts ---- */

TEST(verify_maps_slots_to_places_and_positions)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 4);
    const struct sampling greedy = {.temperature = 0, .top_p = 1};
    struct verdict v;
    /* The first token after prefill is a bonus of the trunk's last row. */
    const slot_t end = context_at(f.c, f.s, 3);
    const struct verify_row first = {.parent = -1, .token = 3, .slot = end, .q = DIST_NONE};
    assert_true(context_verify(f.c, f.s, &first, 1, &greedy, 1, &v));
    assert_int_equal(v.kind, NEXT_BONUS);
    assert_int_equal(v.next, v.judged[0].token);
    const token_t pending = v.next;

    /* The round contains a wrong draft, the right draft, and then a last candidate without a row. */
    slot_t rows[3];
    rows[0] = context_append(f.c, f.s, SLOT_NONE, pending);
    assert_true(context_advance(f.c, rows, 1, L, NULL));
    struct verify_row round[4] = {{.parent = -1, .token = pending, .slot = rows[0], .q = DIST_NONE}};
    assert_true(context_verify(f.c, f.s, round, 1, &greedy, 1, &v));
    const token_t right = v.next, wrong = (right + 1) % VOCAB;
    rows[1] = context_append(f.c, f.s, rows[0], wrong);
    rows[2] = context_append(f.c, f.s, rows[0], right);
    assert_true(context_advance(f.c, rows, 3, L, NULL));
    round[1] = (struct verify_row){.parent = 0, .token = wrong, .slot = rows[1], .q = DIST_NONE};
    round[2] = (struct verify_row){.parent = 0, .token = right, .slot = rows[2], .q = DIST_NONE};
    assert_true(context_verify(f.c, f.s, round, 3, &greedy, 1, &v));
    assert_int_equal(v.n_path, 1);
    assert_int_equal(v.path[0], 2);
    round[3] = (struct verify_row){.parent = 2, .token = v.next, .slot = SLOT_NONE, .q = DIST_NONE};
    assert_true(context_verify(f.c, f.s, round, 4, &greedy, 1, &v));
    assert_int_equal(v.n_path, 2);
    assert_int_equal(v.kind, NEXT_CANDIDATE);
    assert_int_equal(v.next, round[3].token);
    assert_int_equal(v.judged[3].token, TOKEN_NONE);

    /* Random keys contain the rows' positions, so that the draw can be repeated. */
    const struct sampling hot = {.temperature = 1, .top_p = 1};
    const dist_t p = context_dist(f.c, rows[0], L, 0, &hot);
    const struct rng_key key = {.seed = 99, .pos = context_position(f.c, rows[0]) + 1, .purpose = RNG_BONUS};
    assert_true(context_verify(f.c, f.s, round, 1, &hot, 99, &v));
    assert_int_equal(v.next, context_draw(f.c, p, &key, NULL, 0));
    close_fixture(&f);
}

TEST(verify_refuses_rounds_that_are_not_trees)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 2);
    slot_t rows[3];
    append_chain(&f, SLOT_NONE, 10, rows, 3);
    assert_true(context_advance(f.c, rows, 2, L, NULL));
    const struct sampling s = {.temperature = 1, .top_p = 1};
    struct verdict v;
    struct verify_row round[3] = {{.parent = -1, .token = 10, .slot = rows[0], .q = DIST_NONE},
                                  {.parent = 0, .token = 11, .slot = rows[1], .q = DIST_NONE},
                                  {.parent = 1, .token = 12, .slot = rows[2], .q = DIST_NONE}};
    assert_true(context_verify(f.c, f.s, round, 2, &s, 1, &v));
    assert_false(context_verify(f.c, f.s, round, 3, &s, 1, &v));
    assert_error(f.c, ERR_WORK, "no hidden state at layer");
    assert_true(context_advance(f.c, rows, 3, L, NULL));
    assert_true(context_verify(f.c, f.s, round, 3, &s, 1, &v));
    round[2].parent = 0;
    assert_false(context_verify(f.c, f.s, round, 3, &s, 1, &v));
    assert_error(f.c, ERR_WORK, "does not follow its parent");
    round[2].parent = 2;
    assert_false(context_verify(f.c, f.s, round, 3, &s, 1, &v));
    assert_error(f.c, ERR_WORK, "must be an earlier row");
    round[2] = (struct verify_row){.parent = 1, .token = 9, .slot = rows[2], .q = DIST_NONE};
    assert_false(context_verify(f.c, f.s, round, 3, &s, 1, &v));
    assert_error(f.c, ERR_WORK, "its slot holds 12");
    round[1].q = 0;
    assert_false(context_verify(f.c, f.s, round, 2, &s, 1, &v));
    assert_error(f.c, ERR_WORK, "no distribution");
    assert_false(context_verify(f.c, f.s, round, 1, &(struct sampling){.temperature = -1, .top_p = 1}, 1, &v));
    assert_error(f.c, ERR_USAGE, "temperature");
    close_fixture(&f);
}

TEST(distributions_are_counted_and_drawn_without_replacement)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 2);
    const slot_t end = context_at(f.c, f.s, 1);
    const dist_t d = context_dist(f.c, end, 3, 0, &(struct sampling){.temperature = 1, .top_k = 3, .top_p = 1});
    token_t taken[4];
    for (uint32_t i = 0; i < 4; i++) {
        const struct rng_key key = {.seed = 5, .pos = 2, .purpose = RNG_DRAFT, .index = i};
        taken[i] = context_draw(f.c, d, &key, taken, i);
        assert_int_equal(context_error(f.c)->kind, ERR_NONE);
        assert_int_equal(taken[i] == TOKEN_NONE, i == 3);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(taken[i], taken[j]);
    }
    float p[VOCAB], sum = 0;
    assert_true(context_read_dist(f.c, d, p));
    for (int v = 0; v < VOCAB; v++)
        sum += p[v];
    assert_greater(sum, 0.999f);
    assert_less(sum, 1.001f);
    assert_greater(p[taken[0]], 0);
    const struct sampling plain = {.temperature = 1, .top_p = 1};
    for (int i = 1; i < 64; i++)
        assert_int_not_equal(context_dist(f.c, end, L, 0, &plain), DIST_NONE);
    assert_int_equal(context_dist(f.c, end, L, 0, &plain), DIST_NONE);
    assert_error(f.c, ERR_WORK, "all 64 distributions");
    context_release_dists(f.c);
    assert_int_equal(context_draw(f.c, d, &(struct rng_key){0}, NULL, 0), TOKEN_NONE);
    assert_error(f.c, ERR_WORK, "released");
    assert_int_equal(context_dist(f.c, end, L, 1, &plain), DIST_NONE); /* the backend does not have this head */
    assert_error(f.c, ERR_WORK, "symbolic backend refused");
    assert_int_not_equal(context_dist(f.c, end, L, 0, &plain), DIST_NONE);
    close_fixture(&f);
}
