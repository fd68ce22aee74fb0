/* The context's bookkeeping, on a backend whose hidden states are hashes of what a row saw (symbolic_backend.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/context.h"
#include "tests/unit/symbolic_backend.h"

enum { L = 6, VOCAB = 32 };

struct fixture {
    struct model_desc desc;
    struct backend *backend;
    struct weights *weights;
    struct context *c;
    atomic_bool cancel;
    seq_t s; /* an empty sequence */
};

static void
open_with(struct fixture *f, struct context_options o)
{
    struct err e = {.kind = ERR_NONE};
    f->desc = (struct model_desc){.n_layers = L, .width = SYMBOLIC_WIDTH, .vocab = VOCAB};
    atomic_init(&f->cancel, false);
    o.cancel = &f->cancel;
    assert_true(symbolic_backend.open(&f->backend, &(struct backend_options){0}, &e));
    assert_true(symbolic_backend.load(f->backend, &f->desc, NULL, NULL, &f->weights, &e));
    assert_true(context_open(&f->c, &symbolic_backend, f->weights, &f->desc, &o, &e));
    f->s = context_sequence(f->c);
    assert_int_not_equal(f->s, SEQ_NONE);
}

static void
close_fixture(struct fixture *f)
{
    context_close(f->c);
    symbolic_backend.unload(f->weights);
    symbolic_backend.close(f->backend);
}

static void
assert_error(const struct context *c, enum err_kind kind, const char *part)
{
    if (context_error(c)->kind != kind || strstr(context_error(c)->text, part) == NULL)
        fail_msg("error %d \"%s\" instead of %d \"…%s…\"", context_error(c)->kind, context_error(c)->text, kind, part);
}

/* Appends tokens first, first + 1, … as a chain under parent. */
static void
append_chain(struct fixture *f, slot_t parent, token_t first, slot_t *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        slots[i] = context_append(f->c, f->s, i > 0 ? slots[i - 1] : parent, first + (token_t)i);
        assert_int_not_equal(slots[i], SLOT_NONE);
    }
}

static void
prefill(struct fixture *f, size_t n)
{
    token_t tokens[64];
    for (size_t i = 0; i < n; i++)
        tokens[i] = (token_t)(i % VOCAB);
    assert_true(context_prefill(f->c, f->s, tokens, n, NULL, NULL));
}

/* Does the row's hidden state say that it saw exactly this path of tokens? */
static void
assert_saw(struct fixture *f, slot_t s, const token_t *tokens, size_t n)
{
    struct naive_token path[64];
    double expected[(L + 1) * SYMBOLIC_WIDTH];
    float got[SYMBOLIC_WIDTH];
    for (size_t i = 0; i < n; i++)
        path[i] = (struct naive_token){.token = tokens[i]};
    const uint32_t depth = context_depth(f->c, s);
    symbolic_hidden(path, n, depth, expected);
    assert_true(context_read_hidden(f->c, s, depth, got));
    for (int i = 0; i < SYMBOLIC_WIDTH; i++)
        assert_true((double)got[i] >= expected[depth * SYMBOLIC_WIDTH + (uint32_t)i] &&
                    (double)got[i] <= expected[depth * SYMBOLIC_WIDTH + (uint32_t)i]);
}

/* ---- rows ---- */

static void
test_append_gives_positions_along_the_tree(void **state)
{
    (void)state;
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
    assert_int_equal(context_append(f.c, f.s, context_at(f.c, f.s, 1), 1), SLOT_NONE); /* not the trunk's end */
    assert_error(f.c, ERR_WORK, "can't be a parent");
    assert_int_equal(context_append(f.c, f.s, SLOT_NONE, VOCAB), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "vocabulary");
    assert_int_equal(context_append(f.c, f.s + 1, SLOT_NONE, 0), SLOT_NONE);
    assert_error(f.c, ERR_WORK, "no sequence");
    close_fixture(&f);
}

static void
test_siblings_do_not_see_each_other(void **state)
{
    (void)state;
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

static void
test_advance_refuses_rows_whose_ancestors_lag(void **state)
{
    (void)state;
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
    assert_true(context_advance(f.c, rows, 3, L, NULL)); /* three depths join one sweep */
    assert_saw(&f, rows[2], (token_t[]){1, 2, 3}, 3);
    close_fixture(&f);
}

static void
test_discard_takes_descendants_and_nobody_else(void **state)
{
    (void)state;
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

static void
test_keep_commits_a_path_and_frees_the_rest(void **state)
{
    (void)state;
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

static void
test_truncate_drops_rejected_rows(void **state)
{
    (void)state;
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

static void
test_forks_share_rows_until_the_last_holder_lets_go(void **state)
{
    (void)state;
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
    assert_int_equal(context_free_slots(f.c), all - 4); /* rows 1..3 live on in the fork */
    const slot_t row = context_append(f.c, fork, SLOT_NONE, 9), other = context_append(f.c, f.s, SLOT_NONE, 8);
    assert_true(context_advance(f.c, (slot_t[]){row, other}, 2, L, NULL)); /* two sequences, one sweep */
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

static void
test_trunk_tables_are_sent_once_and_piecewise(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .max_rows = 8});
    prefill(&f, 40);
    slot_t row = context_append(f.c, f.s, SLOT_NONE, 1);
    assert_true(context_advance(f.c, &row, 1, L, NULL));
    assert_int_equal(symbolic_calls(f.weights).trunk_entries, 40);
    assert_int_equal(symbolic_calls(f.weights).embeds, 6); /* a chunk of rows is embedded in one call */
    for (int round = 0; round < 3; round++) {              /* the same prefix again: nothing new to say */
        const seq_t fork = context_fork(f.c, f.s, 30);
        row = context_append(f.c, fork, SLOT_NONE, 2);
        assert_true(context_advance(f.c, &row, 1, L, NULL));
        context_drop(f.c, fork);
        assert_int_equal(symbolic_calls(f.weights).trunk_entries, 70);
    }
    close_fixture(&f);
}

/* ---- the ring of hidden states ---- */

static void
test_the_ring_keeps_the_most_recent_rows(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .ring = 8});
    assert_int_equal(context_limits(f.c)->max_rows, 4);
    prefill(&f, 20);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(context_hidden_kept(f.c, context_at(f.c, f.s, i)), i >= 12);
    for (int round = 0; round < 10; round++) { /* rejected drafts give their places back before old rows lose theirs */
        slot_t rows[2];
        append_chain(&f, SLOT_NONE, 1, rows, 2);
        context_discard(f.c, rows[0]);
    }
    for (uint32_t i = 14; i < 20; i++)
        assert_true(context_hidden_kept(f.c, context_at(f.c, f.s, i)));
    struct guess g;
    const struct context_probe old = {.slot = context_at(f.c, f.s, 3), .layer = 2, .temperature = 1};
    assert_false(context_guess(f.c, &old, 1, &g));
    assert_error(f.c, ERR_WORK, "no longer kept");
    close_fixture(&f);
}

static void
test_rows_in_flight_never_lose_their_place(void **state)
{
    (void)state;
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
    assert_int_equal(context_append(f.c, f.s, rows[7], 1), SLOT_NONE); /* at depth L, but verification needs them */
    assert_true(context_keep(f.c, f.s, rows, 8));
    assert_int_not_equal(context_append(f.c, f.s, SLOT_NONE, 1), SLOT_NONE);
    assert_false(context_hidden_kept(f.c, rows[0]));
    assert_true(context_hidden_kept(f.c, rows[1]));
    close_fixture(&f);
}

static void
test_positions_and_slots_run_out_with_a_message(void **state)
{
    (void)state;
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

static void
test_one_sweep_takes_max_rows(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 64, .ring = 16, .max_rows = 3});
    slot_t rows[4];
    append_chain(&f, SLOT_NONE, 1, rows, 4);
    assert_false(context_advance(f.c, rows, 4, L, NULL));
    assert_error(f.c, ERR_WORK, "3 rows at most");
    assert_true(context_advance(f.c, rows, 3, L, NULL));
    assert_true(context_advance(f.c, rows, 4, L, NULL)); /* three of them are there already and take no room */
    assert_saw(&f, rows[3], (token_t[]){1, 2, 3, 4}, 4);
    close_fixture(&f);
}

/* ---- accounts ---- */

static void
assert_loads(struct fixture *f, struct loads *since, double layers, double heads)
{
    const struct loads now = context_loads(f->c);
    assert_true(now.layers - since->layers >= layers && now.layers - since->layers <= layers);
    assert_true(now.heads - since->heads >= heads && now.heads - since->heads <= heads);
    *since = now;
}

static void
test_loads_count_each_layer_of_a_sweep_once(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32, .max_probes = 2, .max_rows = 4});
    struct loads before = context_loads(f.c);
    prefill(&f, 6); /* two chunks */
    assert_loads(&f, &before, 2 * L, 0);
    slot_t rows[3];
    append_chain(&f, SLOT_NONE, 1, rows, 3);
    assert_true(context_advance(f.c, rows, 1, 4, NULL));
    assert_loads(&f, &before, 4, 0);
    assert_true(context_advance(f.c, rows, 2, 3, NULL)); /* the first is there already */
    assert_loads(&f, &before, 3, 0);
    assert_true(context_advance(f.c, rows, 2, 5, NULL)); /* depths 4 and 3 join in one sweep: layers 4, 5 */
    assert_loads(&f, &before, 2, 0);
    assert_true(context_advance(f.c, rows, 2, 5, NULL));
    assert_loads(&f, &before, 0, 0);
    bool attention[L + 1] = {false}, mlp[L + 1] = {false};
    attention[1] = attention[2] = mlp[2] = mlp[4] = attention[6] = true;
    assert_true(context_advance(f.c, &rows[2], 1, 4, &(struct plan){attention, mlp}));
    assert_loads(&f, &before, 2, 0); /* ½ + 0 + 1 + ½; layer 6 was not run */

    struct context_probe probes[5];
    struct guess g[5];
    for (size_t i = 0; i < 5; i++)
        probes[i] = (struct context_probe){.slot = rows[0], .layer = (uint32_t)i, .temperature = 1};
    assert_true(context_guess(f.c, probes, 2, g));
    assert_loads(&f, &before, 0, 1);
    assert_true(context_guess(f.c, probes, 5, g)); /* calls of 2, 2 and 1 */
    assert_loads(&f, &before, 0, 3);
    assert_int_not_equal(context_dist(f.c, rows[0], 3, 0, &(struct sampling){.temperature = 1, .top_p = 1}), DIST_NONE);
    assert_loads(&f, &before, 0, 1);
    close_fixture(&f);
}

static void
test_until_counts_the_layers_it_ran_and_its_probes(void **state)
{
    (void)state;
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
        threshold[l] = l == 2 ? 0.999999f : l == 3 ? 0 : 2; /* asked at 2 and 3, exits at 3 */
    }
    struct guess probed[L + 1];
    struct exit_result r = {.probed = probed};
    assert_true(context_advance_until(f.c, rows, 3, 5, &(struct exit_rule){temperature, threshold}, &r));
    assert_true(r.exited);
    assert_int_equal(r.depth, 3);
    assert_int_equal(r.probes, 2);
    assert_loads(&f, &before, 3, 2);
    assert_int_equal(probed[1].token, TOKEN_NONE);
    assert_memory_equal(&probed[3], &r.guess, sizeof r.guess);
    assert_int_equal(context_depth(f.c, rows[0]), 4); /* was deeper: stays */
    assert_int_equal(context_depth(f.c, rows[1]), 3); /* carried along through layer 3 */
    assert_int_equal(context_depth(f.c, rows[2]), 3);
    assert_saw(&f, rows[2], (token_t[]){0, 1, 2, 5, 6, 7}, 6);

    threshold[4] = threshold[5] = 2;
    assert_true(context_advance_until(f.c, rows, 3, 5, &(struct exit_rule){temperature, threshold}, &r));
    assert_false(r.exited);
    assert_int_equal(r.depth, 5);
    assert_int_equal(r.probes, 0);
    assert_int_equal(context_depth(f.c, rows[0]), 5);
    assert_loads(&f, &before, 2, 0);
    assert_false(context_advance_until(f.c, rows, 3, 5, &(struct exit_rule){temperature, threshold}, &r));
    assert_error(f.c, ERR_WORK, "already at layer 5");
    const slot_t sibling = context_append(f.c, f.s, rows[1], 20);
    assert_false(context_advance_until(f.c, (slot_t[]){sibling, rows[2]}, 2, 5,
                                       &(struct exit_rule){temperature, threshold}, &r));
    assert_error(f.c, ERR_WORK, "already at layer 5");
    assert_false(context_advance_until(f.c, (slot_t[]){rows[0], rows[1], sibling, rows[2]}, 4, L,
                                       &(struct exit_rule){temperature, threshold}, &r));
    assert_error(f.c, ERR_WORK, "the deciding row is deeper");
    assert_int_equal(context_depth(f.c, sibling), 0);
    close_fixture(&f);
}

/* ---- cancelling ---- */

static void
test_a_cancelled_sweep_changes_no_depth_and_can_be_repeated(void **state)
{
    (void)state;
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
    assert_true(context_loads(f.c).layers <= before.layers);
    assert_true(context_advance(f.c, rows, 2, L, NULL)); /* the backend forgot the trunk and rows[1]'s embedding */
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
    assert_true(done > s->done && done <= 1);
    s->done = done;
    return ++s->chunks != s->at;
}

static void
test_a_cancelled_prefill_keeps_whole_chunks(void **state)
{
    (void)state;
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

static void
test_verify_maps_slots_to_places_and_positions(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32});
    prefill(&f, 4);
    const struct sampling greedy = {.temperature = 0, .top_p = 1};
    struct verdict v;
    /* The first token after prefill: a bonus of the trunk's last row. */
    const slot_t end = context_at(f.c, f.s, 3);
    const struct verify_row first = {.parent = -1, .token = 3, .slot = end, .q = DIST_NONE};
    assert_true(context_verify(f.c, f.s, &first, 1, &greedy, 1, &v));
    assert_int_equal(v.kind, NEXT_BONUS);
    assert_int_equal(v.next, v.judged[0].token);
    const token_t pending = v.next;

    /* A draft that is what the target says, after one that is not, and a last candidate without a row. */
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

    /* The positions are those of the rows: what is drawn is what the keys say. */
    const struct sampling hot = {.temperature = 1, .top_p = 1};
    const dist_t p = context_dist(f.c, rows[0], L, 0, &hot);
    const struct rng_key key = {
        .seed = 99, .seq = f.s, .pos = context_position(f.c, rows[0]) + 1, .purpose = RNG_BONUS};
    assert_true(context_verify(f.c, f.s, round, 1, &hot, 99, &v));
    assert_int_equal(v.next, context_draw(f.c, p, &key, NULL, 0));
    close_fixture(&f);
}

static void
test_verify_refuses_rounds_that_are_not_trees(void **state)
{
    (void)state;
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

static void
test_distributions_are_counted_and_drawn_without_replacement(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 32, .dists = 2});
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
    assert_true(sum > 0.999f && sum < 1.001f && p[taken[0]] > 0);
    const struct sampling plain = {.temperature = 1, .top_p = 1};
    assert_int_not_equal(context_dist(f.c, end, L, 0, &plain), DIST_NONE);
    assert_int_equal(context_dist(f.c, end, L, 0, &plain), DIST_NONE);
    assert_error(f.c, ERR_WORK, "all 2 distributions");
    context_release_dists(f.c);
    assert_int_equal(context_draw(f.c, d, &(struct rng_key){0}, NULL, 0), TOKEN_NONE);
    assert_error(f.c, ERR_WORK, "released");
    assert_int_equal(context_dist(f.c, end, L, 1, &plain), DIST_NONE); /* no such head: the backend says no */
    assert_error(f.c, ERR_WORK, "symbolic backend refused");
    assert_int_not_equal(context_dist(f.c, end, L, 0, &plain), DIST_NONE);
    close_fixture(&f);
}

/* ---- opening ---- */

static void
test_open_fills_in_defaults_and_refuses_nonsense(void **state)
{
    (void)state;
    struct fixture f;
    open_with(&f, (struct context_options){.ctx = 10});
    const struct context_options *o = context_limits(f.c);
    assert_int_equal(o->spare, 128);
    assert_int_equal(o->ring, 128);
    assert_int_equal(o->seqs, 4);
    assert_int_equal(o->max_rows, 64);
    assert_int_equal(o->max_probes, 512);
    assert_int_equal(o->dists, 64);
    assert_int_equal(context_free_slots(f.c), 138);

    struct context *c = f.c;
    struct err e = {.kind = ERR_NONE};
    assert_false(context_open(&c, &symbolic_backend, f.weights, &f.desc, &(struct context_options){.ctx = 0}, &e));
    assert_null(c);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_false(
        context_open(&c, &symbolic_backend, f.weights, &f.desc, &(struct context_options){.ctx = UINT32_MAX}, &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_false(
        context_open(&c, &symbolic_backend, f.weights, &f.desc, &(struct context_options){.ctx = 9, .ring = 1}, &e));
    symbolic_fail_store(f.weights, true);
    e.kind = ERR_NONE;
    assert_false(context_open(&c, &symbolic_backend, f.weights, &f.desc, &(struct context_options){.ctx = 9}, &e));
    assert_null(c);
    assert_int_equal(e.kind, ERR_WORK);
    context_close(NULL);
    close_fixture(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_gives_positions_along_the_tree),
        cmocka_unit_test(test_siblings_do_not_see_each_other),
        cmocka_unit_test(test_advance_refuses_rows_whose_ancestors_lag),
        cmocka_unit_test(test_discard_takes_descendants_and_nobody_else),
        cmocka_unit_test(test_keep_commits_a_path_and_frees_the_rest),
        cmocka_unit_test(test_truncate_drops_rejected_rows),
        cmocka_unit_test(test_forks_share_rows_until_the_last_holder_lets_go),
        cmocka_unit_test(test_trunk_tables_are_sent_once_and_piecewise),
        cmocka_unit_test(test_the_ring_keeps_the_most_recent_rows),
        cmocka_unit_test(test_rows_in_flight_never_lose_their_place),
        cmocka_unit_test(test_positions_and_slots_run_out_with_a_message),
        cmocka_unit_test(test_one_sweep_takes_max_rows),
        cmocka_unit_test(test_loads_count_each_layer_of_a_sweep_once),
        cmocka_unit_test(test_until_counts_the_layers_it_ran_and_its_probes),
        cmocka_unit_test(test_a_cancelled_sweep_changes_no_depth_and_can_be_repeated),
        cmocka_unit_test(test_a_cancelled_prefill_keeps_whole_chunks),
        cmocka_unit_test(test_verify_maps_slots_to_places_and_positions),
        cmocka_unit_test(test_verify_refuses_rounds_that_are_not_trees),
        cmocka_unit_test(test_distributions_are_counted_and_drawn_without_replacement),
        cmocka_unit_test(test_open_fills_in_defaults_and_refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
