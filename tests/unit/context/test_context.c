/* The context's bookkeeping of rows, sequences and hidden states, on a backend whose hidden states are hashes of a
 * row's tokens (symbolic_backend.h). */
#include "tests/rigs/context_fixture.h"
#include "tests/rigs/context_inside.h"
#include "tests/rigs/test.h"

/* ---- rows ---- */

TEST(append_gives_positions_along_the_tree)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 3);
    const slot_t a = context_append(f.c, f.s, SLOT_NONE, 7), b = context_append(f.c, f.s, context_at(f.c, f.s, 2), 8);
    const slot_t c = context_append(f.c, f.s, a, 9);
    assert_int_equal(context_position(f.c, a), 3);
    assert_int_equal(context_position(f.c, b), 3);
    assert_int_equal(context_position(f.c, c), 4);
    assert_int_equal(context_depth(f.c, c), 0);
    assert_int_equal(context_token(f.c, c), 9);
    assert_int_equal(context_append(f.c, f.s, context_at(f.c, f.s, 1), 1), SLOT_NONE); /* it is not the trunk's end */
    assert_error(f.c, ERR_WORK, "can't be a parent");
    assert_int_equal(context_append(f.c, f.s, SLOT_NONE, VOCAB), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "vocabulary");
    assert_int_equal(context_append(f.c, f.s + 1, SLOT_NONE, 0), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "no sequence");
    close_fixture(&f);
}

TEST(siblings_do_not_see_each_other)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 2);
    slot_t rows[4];
    rows[0] = context_append(f.c, f.s, SLOT_NONE, 10);
    rows[1] = context_append(f.c, f.s, rows[0], 11);
    rows[2] = context_append(f.c, f.s, rows[0], 12);
    rows[3] = context_append(f.c, f.s, rows[2], 13);
    assert_true(context_advance(f.c, rows, 4, L, NULL));
    assert_saw(&f, rows[1], (token_t[]){0, 1, 10, 11}, 4);
    assert_saw(&f, rows[3], (token_t[]){0, 1, 10, 12, 13}, 5);
    close_fixture(&f);
}

TEST(advance_refuses_rows_whose_ancestors_lag)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    slot_t rows[3];
    append_chain(&f, SLOT_NONE, 1, rows, 3);
    assert_true(context_advance(f.c, rows, 1, 3, NULL));
    assert_true(context_advance(f.c, rows, 2, 2, NULL));
    assert_false(context_advance(f.c, &rows[1], 1, 4, NULL));
    assert_error(f.c, ERR_WORK, "its parent");
    assert_false(context_advance(f.c, (slot_t[]){rows[1], rows[0]}, 2, 4, NULL)); /* a child before its parent */
    assert_false(context_advance(f.c, (slot_t[]){rows[0], rows[0]}, 2, 4, NULL));
    assert_error(f.c, ERR_WORK, "twice");
    assert_false(context_advance(f.c, rows, 1, L + 1, NULL));
    assert_error(f.c, ERR_WORK, "no layer");
    assert_int_equal(context_depth(f.c, rows[0]), 3);
    assert_int_equal(context_depth(f.c, rows[1]), 2);
    assert_true(context_advance(f.c, rows, 3, L, NULL)); /* three depths join one forward pass */
    assert_saw(&f, rows[2], (token_t[]){1, 2, 3}, 3);
    close_fixture(&f);
}

TEST(discard_removes_descendants_only)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    const uint32_t free_slots = context_free_slots(f.c);
    const slot_t a = context_append(f.c, f.s, SLOT_NONE, 1), b = context_append(f.c, f.s, a, 2),
                 c = context_append(f.c, f.s, a, 3), d = context_append(f.c, f.s, b, 4);
    context_discard(f.c, b);
    assert_int_equal(context_free_slots(f.c), free_slots - 2);
    assert_int_equal(context_token(f.c, b), TOKEN_NONE);
    assert_int_equal(context_token(f.c, d), TOKEN_NONE);
    assert_true(context_advance(f.c, (slot_t[]){a, c}, 2, L, NULL));
    assert_saw(&f, c, (token_t[]){1, 3}, 2);
    context_discard(f.c, b);
    assert_error(f.c, ERR_WORK, "no row");
    close_fixture(&f);
}

/* ---- sequences ---- */

TEST(keep_commits_a_path_and_frees_the_rest)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 2);
    const uint32_t free_slots = context_free_slots(f.c);
    slot_t rows[5];
    append_chain(&f, SLOT_NONE, 10, rows, 3);
    rows[3] = context_append(f.c, f.s, rows[0], 20);
    rows[4] = context_append(f.c, f.s, rows[3], 21);
    assert_true(context_advance(f.c, rows, 3, L, NULL));
    assert_false(context_keep(f.c, f.s, (slot_t[]){rows[0], rows[3]}, 2));
    assert_error(f.c, ERR_WORK, "depth 0");
    assert_true(context_advance(f.c, rows, 5, L, NULL));
    assert_false(context_keep(f.c, f.s, (slot_t[]){rows[0], rows[4]}, 2));
    assert_error(f.c, ERR_WORK, "not an uncommitted child");
    assert_false(context_keep(f.c, f.s, &rows[1], 1));
    assert_true(context_keep(f.c, f.s, (slot_t[]){rows[0], rows[3], rows[4]}, 3));
    assert_int_equal(context_length(f.c, f.s), 5);
    assert_int_equal(context_at(f.c, f.s, 4), rows[4]);
    assert_int_equal(context_at(f.c, f.s, 5), SLOT_NONE);
    assert_int_equal(context_free_slots(f.c), free_slots - 3);
    const slot_t next = context_append(f.c, f.s, SLOT_NONE, 30);
    assert_true(context_advance(f.c, &next, 1, L, NULL));
    assert_saw(&f, next, (token_t[]){0, 1, 10, 20, 21, 30}, 6);
    close_fixture(&f);
}

TEST(truncate_drops_rejected_rows)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    const uint32_t all = context_free_slots(f.c);
    prefill(&f, 8);
    slot_t rows[2];
    append_chain(&f, SLOT_NONE, 10, rows, 2);
    context_truncate(f.c, f.s, 5);
    assert_int_equal(context_length(f.c, f.s), 5);
    assert_int_equal(context_free_slots(f.c), all - 5);
    const slot_t next = context_append(f.c, f.s, SLOT_NONE, 30);
    assert_int_equal(context_position(f.c, next), 5);
    assert_true(context_advance(f.c, &next, 1, L, NULL));
    assert_saw(&f, next, (token_t[]){0, 1, 2, 3, 4, 30}, 6);
    context_truncate(f.c, f.s, 6);
    assert_error(f.c, ERR_WORK, "can't be cut");
    context_drop(f.c, f.s);
    assert_int_equal(context_free_slots(f.c), all);
    assert_int_equal(context_length(f.c, f.s), 0);
    close_fixture(&f);
}

TEST(forks_share_rows_until_the_last_holder_lets_go)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32, .seqs = 3});
    const uint32_t all = context_free_slots(f.c);
    prefill(&f, 6);
    const seq_t fork = context_fork(f.c, f.s, 4), second = context_fork(f.c, fork, 2);
    assert_int_equal(context_free_slots(f.c), all - 6);
    assert_int_equal(context_at(f.c, fork, 3), context_at(f.c, f.s, 3));
    assert_int_equal(context_sequence(f.c), SEQ_NONE);
    assert_error(f.c, ERR_WORK, "sequences are in use");
    context_truncate(f.c, f.s, 1);
    assert_int_equal(context_free_slots(f.c), all - 4); /* the fork keeps rows 1..3 */
    const slot_t row = context_append(f.c, fork, SLOT_NONE, 9), other = context_append(f.c, f.s, SLOT_NONE, 8);
    assert_true(context_advance(f.c, (slot_t[]){row, other}, 2, L, NULL)); /* two sequences, one forward pass */
    assert_saw(&f, row, (token_t[]){0, 1, 2, 3, 9}, 5);
    assert_saw(&f, other, (token_t[]){0, 8}, 2);
    context_drop(f.c, fork);
    assert_int_equal(context_token(f.c, row), TOKEN_NONE);
    assert_int_equal(context_free_slots(f.c), all - 3); /* rows 0, 1 of the second fork, and the one uncommitted */
    context_drop(f.c, second);
    context_drop(f.c, f.s);
    assert_int_equal(context_free_slots(f.c), all);
    assert_int_equal(context_fork(f.c, f.s, 0), SEQ_NONE);
    close_fixture(&f);
}

TEST(trunk_tables_are_sent_once_and_piecewise)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .max_rows = 8});
    prefill(&f, 40);
    slot_t row = context_append(f.c, f.s, SLOT_NONE, 1);
    assert_true(context_advance(f.c, &row, 1, L, NULL));
    assert_int_equal(symbolic_calls(f.weights).trunk_entries, 40);
    assert_int_equal(symbolic_calls(f.weights).embeds, 6); /* a chunk of rows is embedded in one call */
    for (int round = 0; round < 3; round++) {              /* the fork's 30 entries are sent only once */
        const seq_t fork = context_fork(f.c, f.s, 30);
        row = context_append(f.c, fork, SLOT_NONE, 2);
        assert_true(context_advance(f.c, &row, 1, L, NULL));
        context_drop(f.c, fork);
        assert_int_equal(symbolic_calls(f.weights).trunk_entries, 70);
    }
    close_fixture(&f);
}

/* ---- the ring of hidden states ---- */

TEST(the_ring_keeps_the_most_recent_rows)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .ring = 8});
    assert_int_equal(context_limits(f.c)->max_rows, 4);
    prefill(&f, 20);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(context_hidden_kept(f.c, context_at(f.c, f.s, i)), i >= 12);
    for (int round = 0; round < 10; round++) { /* places of rejected drafts are reused before those of old rows */
        slot_t rows[2];
        append_chain(&f, SLOT_NONE, 1, rows, 2);
        context_discard(f.c, rows[0]);
    }
    for (uint32_t i = 14; i < 20; i++)
        assert_true(context_hidden_kept(f.c, context_at(f.c, f.s, i)));
    struct prediction g;
    const struct context_probe old = {.slot = context_at(f.c, f.s, 3), .layer = 2, .temperature = 1};
    assert_false(context_predict(f.c, &old, 1, &g));
    assert_error(f.c, ERR_WORK, "no longer kept");
    close_fixture(&f);
}

TEST(rows_in_flight_never_lose_their_place)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .ring = 8});
    prefill(&f, 10);
    slot_t rows[8];
    append_chain(&f, SLOT_NONE, 1, rows, 8);
    const uint32_t free_slots = context_free_slots(f.c);
    assert_int_equal(context_append(f.c, f.s, rows[7], 1), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "hidden-state ring");
    assert_int_equal(context_free_slots(f.c), free_slots);
    assert_true(context_advance(f.c, rows, 4, L, NULL));
    assert_true(context_advance(f.c, rows + 4, 4, L, NULL));
    for (int i = 0; i < 8; i++)
        assert_true(context_hidden_kept(f.c, rows[i]));
    assert_int_equal(context_append(f.c, f.s, rows[7], 1), SLOT_NONE); /* verification still needs all rows */
    assert_true(context_keep(f.c, f.s, rows, 8));
    assert_int_not_equal(context_append(f.c, f.s, SLOT_NONE, 1), SLOT_NONE);
    assert_false(context_hidden_kept(f.c, rows[0]));
    assert_true(context_hidden_kept(f.c, rows[1]));
    close_fixture(&f);
}

TEST(positions_and_slots_run_out_with_a_message)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 6, .spare = 2});
    prefill(&f, 4);
    slot_t rows[2];
    append_chain(&f, SLOT_NONE, 1, rows, 2);
    assert_int_equal(context_append(f.c, f.s, rows[1], 1), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "context of 6 positions is full");
    assert_int_not_equal(context_append(f.c, f.s, rows[0], 1), SLOT_NONE);
    assert_int_not_equal(context_append(f.c, f.s, rows[0], 1), SLOT_NONE);
    assert_int_equal(context_append(f.c, f.s, rows[0], 1), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "all 8 slots");
    const token_t three[3] = {1, 2, 3};
    assert_false(context_prefill(f.c, f.s, three, 3, NULL, NULL));
    assert_error(f.c, ERR_WORK, "do not fit");
    close_fixture(&f);
}

TEST(dropping_a_fork_keeps_its_error)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 6, .seqs = 2});
    prefill(&f, 6);
    const seq_t fork = context_fork(f.c, f.s, 6);
    assert_int_equal(context_append(f.c, fork, SLOT_NONE, 1), SLOT_NONE);
    context_drop(f.c, fork);
    assert_error(f.c, ERR_WORK, "context of 6 positions is full");
    assert_int_not_equal(context_sequence(f.c), SEQ_NONE); /* the fork is dropped nevertheless */
    assert_int_equal(context_error(f.c)->kind, ERR_NONE);
    close_fixture(&f);
}

TEST(one_forward_pass_takes_max_rows)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .ring = 16, .max_rows = 3});
    slot_t rows[4];
    append_chain(&f, SLOT_NONE, 1, rows, 4);
    assert_false(context_advance(f.c, rows, 4, L, NULL));
    assert_error(f.c, ERR_WORK, "3 rows at most");
    assert_true(context_advance(f.c, rows, 3, L, NULL));
    assert_true(context_advance(f.c, rows, 4, L, NULL)); /* only the last row is run, the others have this depth */
    assert_saw(&f, rows[3], (token_t[]){1, 2, 3, 4}, 4);
    close_fixture(&f);
}

/* ---- opening ---- */

TEST(open_fills_in_defaults_and_refuses_nonsense)
{
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 10});
    const struct context_options *o = context_limits(f.c);
    assert_int_equal(o->spare, 128);
    assert_int_equal(o->ring, 128);
    assert_int_equal(o->seqs, 4);
    assert_int_equal(o->max_rows, 64);
    assert_int_equal(o->max_probes, 512);
    assert_int_equal(o->dists->n, 64);
    assert_int_equal(context_free_slots(f.c), 138);

    struct context *c = f.c;
    struct err e = {.kind = ERR_NONE};
    assert_false(
        context_open(&c, &symbolic_backend, f.backend, f.weights, &f.desc, &(struct context_options){.ctx = 0}, &e));
    assert_null(c);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_false(context_open(&c, &symbolic_backend, f.backend, f.weights, &f.desc,
                              &(struct context_options){.ctx = UINT32_MAX}, &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_false(context_open(&c, &symbolic_backend, f.backend, f.weights, &f.desc,
                              &(struct context_options){.ctx = 9, .ring = 1}, &e));
    symbolic_fail_kv_cache(f.weights, true);
    e.kind = ERR_NONE;
    assert_false(
        context_open(&c, &symbolic_backend, f.backend, f.weights, &f.desc, &(struct context_options){.ctx = 9}, &e));
    assert_null(c);
    assert_int_equal(e.kind, ERR_WORK);
    context_close(NULL);
    close_fixture(&f);
}
