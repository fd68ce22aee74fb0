/* Several sequences in one call of the context on the symbolic backend: verification of all, and one new row for each.
 * test_context_batch compares their bits. */
#include "tests/rigs/context_fixture.h"
#include "tests/rigs/test.h"

/* Makes sequences of one row each; number 0 is the fixture's own. */
static void
more_sequences(struct fixture *f, struct verify_row *rows, struct verify_round *rounds, struct verdict *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const seq_t seq = i == 0 ? f->s : context_sequence(f->c);
        const token_t token = (token_t)(3 * i);
        assert_true(context_prefill(f->c, seq, &token, 1, NULL, NULL));
        rows[i] = (struct verify_row){.parent = -1, .token = token, .slot = context_at(f->c, seq, 0), .q = DIST_NONE};
        rounds[i] = (struct verify_round){
            .seq = seq, .rows = &rows[i], .n = 1, .sampling = {.top_p = 1}, .seed = i, .out = &out[i]};
    }
}

TEST(rounds_are_verified_together_or_not_at_all)
{
    struct fixture f;
    struct verify_row rows[3];
    struct verify_round rounds[4] = {{0}};
    struct verdict v[3];
    open_with(&f, (struct context_options){.ctx = 8, .seqs = 3});
    more_sequences(&f, rows, rounds, v, 3);
    struct loads before = context_loads(f.c);
    const uint32_t waits = symbolic_calls(f.weights).waits;
    assert_true(context_verify_all(f.c, rounds, 3));
    assert_int_equal(symbolic_calls(f.weights).waits, waits + 1);
    assert_loads(&f, &before, 0, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(v[i].kind, NEXT_BONUS);
        assert_int_equal(v[i].next, v[i].judged[0].token);
    }
    assert_true(context_verify_all(f.c, rounds, 0));
    assert_false(context_verify_all(f.c, rounds, 4));
    assert_error(f.c, ERR_WORK, "4 rounds can't be verified at once: the context has 3 sequences");
    v[0].next = TOKEN_NONE;
    rounds[2].seq = rounds[1].seq; /* the row is not in this sequence */
    assert_false(context_verify_all(f.c, rounds, 3));
    assert_error(f.c, ERR_WORK, "does not follow its parent in sequence 1");
    rounds[1].n = VERIFY_NODES + 1;
    assert_false(context_verify_all(f.c, rounds, 3));
    assert_error(f.c, ERR_WORK, "a round of 65 rows");
    assert_int_equal(v[0].next, TOKEN_NONE);
    assert_int_equal(symbolic_calls(f.weights).waits, waits + 1);
    assert_loads(&f, &before, 0, 0);
    close_fixture(&f);
}

TEST(a_seed_alone_names_the_random_numbers_of_a_round)
{
    struct fixture f;
    struct verdict v[2];
    struct verify_row rows[2];
    struct verify_round rounds[2];
    const token_t same = 5;
    uint32_t different = 0;
    open_with(&f, (struct context_options){.ctx = 8});
    for (int i = 0; i < 2; i++) {
        const seq_t seq = i == 0 ? f.s : context_sequence(f.c);
        assert_true(context_prefill(f.c, seq, &same, 1, NULL, NULL));
        rows[i] = (struct verify_row){.parent = -1, .token = same, .slot = context_at(f.c, seq, 0), .q = DIST_NONE};
        rounds[i] = (struct verify_round){
            .seq = seq, .rows = &rows[i], .n = 1, .sampling = {.temperature = 2, .top_p = 1}, .out = &v[i]};
    }
    for (uint64_t seed = 0; seed < 20; seed++) {
        rounds[0].seed = rounds[1].seed = seed;
        assert_true(context_verify_all(f.c, rounds, 2));
        assert_int_equal(v[0].next, v[1].next);
        rounds[1].seed++;
        assert_true(context_verify_all(f.c, rounds, 2));
        different += v[0].next != v[1].next;
    }
    assert_greater(different, 10);
    close_fixture(&f);
}
