/* What layers said, by either head, as the scope keeps it. */
#include "tests/rigs/scope_rig.h"

static void
test_sure_and_wrong_is_spurious(void **state)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 4, 1, 41, 0.65f);
    say_layer(&f->stream, 4, 2, 41, 0.55f);
    say_layer(&f->stream, 4, 3, 40, 0.95f);
    say_draft(&f->stream, 4, 1, 0, 40, 3);
    seen(f);
    assert_false(scope_spurious(f->scope, 4, 1)); /* nobody knows yet */
    say_verdict(&f->stream, 1, true, true);
    say_layer(&f->stream, 4, FAKE_LAYERS, 40, 0.9f)->layer.probed_by = PROBED_VERIFY;
    say_round(&f->stream, 1, 1, 1);
    seen(f);
    assert_true(scope_spurious(f->scope, 4, 1));
    assert_false(scope_spurious(f->scope, 4, 2)); /* below 0.6 */
    assert_false(scope_spurious(f->scope, 4, 3));
    assert_false(scope_spurious(f->scope, 4, FAKE_LAYERS));
}

static void
test_a_later_probe_adds_to_what_the_policy_saw(void **state)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 3, 2, 41, 0.5f)->layer.annealed = 0.4f;
    struct event *e = say_layer(&f->stream, 3, 2, 41, 0.5f);
    e->layer.probed_by = PROBED_SCOPE;
    e->layer.kl_final = 1.5f;
    e->layer.rank_final = 7;
    seen(f);
    const struct scope_cell *cell = &scope_cells(f->scope, 3)[2];
    assert_int_equal(cell->probed_by, PROBED_POLICY);
    assert_true(cell->annealed == 0.4f && cell->kl_final == 1.5f);
    assert_int_equal(cell->rank_final, 7);
    assert_int_equal(scope_probed(f->scope, 2), 1);
}

/* Position 4, layer 2: what a head says, and whether the last layer says so too. */
static void
say_head(struct fixture *f, uint32_t pos, int head, token_t token, bool agrees)
{
    struct event *e = say_layer(&f->stream, pos, 2, token, 0.5f);
    e->layer.probed_by = PROBED_SCOPE;
    e->layer.head = head;
    e->layer.final_agrees = agrees;
}

static void
test_both_heads_are_kept_and_the_one_in_use_is_shown(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(scope_head(seen(f)), "");
    stream_control(&f->stream, "head", "lens");
    say_head(f, 4, 0, 7, false);
    assert_true(isnan(scope_agreement(seen(f), 2, false)));
    say_head(f, 4, 1, 8, true);
    say_layer(&f->stream, 4, FAKE_LAYERS, 8, 0.9f)->layer.probed_by = PROBED_SCOPE;
    assert_int_equal(scope_cells(seen(f), 4)[2].token, 7);
    assert_string_equal(scope_head(f->scope), "lens");
    stream_control(&f->stream, "head", "trained");
    assert_int_equal(scope_cells(seen(f), 4)[2].token, 8);
    assert_int_equal(scope_cells(f->scope, 4)[FAKE_LAYERS].token, 8); /* the last layer has one word */
    scope_show_head(f->scope, false);
    assert_string_equal(scope_head(f->scope), "lens");
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 7);
}

static void
test_agreement_counts_positions_where_both_heads_were_asked_once(void **state)
{
    struct fixture *f = *state;
    say_head(f, 4, 0, 7, false);
    say_head(f, 4, 1, 8, true);
    say_head(f, 4, 1, 8, true);  /* again: no news */
    say_head(f, 5, 1, 8, false); /* the lens was not asked here */
    say_head(f, 6, 1, 8, true);
    say_head(f, 6, 0, 8, true);
    assert_true(scope_agreement(seen(f), 2, false) == 0.5);
    assert_true(scope_agreement(f->scope, 2, true) == 1);
    assert_true(isnan(scope_agreement(f->scope, 3, true)));
    assert_true(isnan(scope_agreement(f->scope, FAKE_LAYERS + 1, true)));
    f->stream.run = 2;
    stream_control(&f->stream, "run", "restart");
    assert_true(isnan(scope_agreement(seen(f), 2, true)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPE_TEST(test_sure_and_wrong_is_spurious),
        SCOPE_TEST(test_a_later_probe_adds_to_what_the_policy_saw),
        SCOPE_TEST(test_both_heads_are_kept_and_the_one_in_use_is_shown),
        SCOPE_TEST(test_agreement_counts_positions_where_both_heads_were_asked_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
