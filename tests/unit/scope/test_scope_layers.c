/* Predictions of layers, by either head, as the scope stores them. */
#include "engine/scope/aggregates.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

SCOPE_TEST(sure_and_wrong_is_spurious)
{
    struct fixture *f = *state;
    say_layer(&f->stream, 4, 1, 41, 0.65f);
    say_layer(&f->stream, 4, 2, 41, 0.55f);
    say_layer(&f->stream, 4, 3, 40, 0.95f);
    say_draft(&f->stream, 4, 1, 0, 40, 3);
    seen(f);
    assert_false(scope_spurious(f->scope, 4, 1)); /* the verdict is still open */
    say_verdict(&f->stream, 1, true, true);
    say_layer(&f->stream, 4, FAKE_LAYERS, 40, 0.9f)->layer.probed_by = PROBED_VERIFY;
    say_round(&f->stream, 1, 1, 1);
    seen(f);
    assert_true(scope_spurious(f->scope, 4, 1));
    assert_false(scope_spurious(f->scope, 4, 2)); /* below 0.6 */
    assert_false(scope_spurious(f->scope, 4, 3));
    assert_false(scope_spurious(f->scope, 4, FAKE_LAYERS));
}

SCOPE_TEST(a_later_probe_adds_to_the_policys_cells)
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
    assert_number_equal(cell->annealed, 0.4f);
    assert_number_equal(cell->kl_final, 1.5f);
    assert_int_equal(cell->rank_final, 7);
    assert_int_equal(scope_model_probed(f->scope, MODEL_TARGET, 2), 1);
}

/* Emits a head's prediction at position `pos`, layer 2, and whether the last layer agrees. */
static void
say_head(struct fixture *f, uint32_t pos, int head, token_t token, bool agrees)
{
    struct event *e = say_layer(&f->stream, pos, 2, token, 0.5f);
    e->layer.probed_by = PROBED_SCOPE;
    e->layer.head = head;
    e->layer.final_agrees = agrees;
}

SCOPE_TEST(both_heads_are_kept_and_the_one_in_use_is_shown)
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
    assert_int_equal(scope_cells(f->scope, 4)[FAKE_LAYERS].token, 8); /* the last layer has one prediction */
    scope_show_head(f->scope, false);
    assert_string_equal(scope_head(f->scope), "lens");
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 7);
}

SCOPE_TEST(agreement_counts_positions_where_both_heads_were_asked_once)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "head", "lens");
    say_head(f, 4, 0, 7, false);
    say_head(f, 4, 1, 8, true);
    say_head(f, 4, 1, 8, true);  /* a repeated event changes nothing */
    say_head(f, 5, 1, 8, false); /* no prediction by the lens here */
    say_head(f, 6, 1, 8, true);
    say_head(f, 6, 0, 8, true);
    assert_number_equal(scope_agreement(seen(f), 2, false), 0.5);
    assert_number_equal(scope_agreement(f->scope, 2, true), 1);
    assert_true(isnan(scope_agreement(f->scope, 3, true)));
    assert_true(isnan(scope_agreement(f->scope, FAKE_LAYERS + 1, true)));
    f->stream.run = 2;
    stream_control(&f->stream, "run", "restart");
    assert_true(isnan(scope_agreement(seen(f), 2, true)));
}

SCOPE_TEST(where_there_is_only_the_lens_its_agreement_counts_alone)
{
    struct fixture *f = *state;
    say_head(f, 4, 0, 7, false);
    say_head(f, 4, 0, 7, false); /* a repeated event changes nothing */
    say_head(f, 5, 0, 8, true);
    assert_number_equal(scope_agreement(seen(f), 2, false), 0.5);
}

/* Emits the scope's own probe of a layer of the draft model. */
static void
say_draft_probe(struct fixture *f, uint32_t pos, int layer, token_t token, bool agrees)
{
    struct event *e = say_draft_layer(&f->stream, pos, layer, token, 0.7f);
    e->layer.probed_by = PROBED_SCOPE;
    e->layer.final_agrees = agrees;
    e->layer.kl_final = 0.25f;
}

SCOPE_TEST(a_draft_models_layers_are_stored_apart_from_the_targets)
{
    struct fixture *f = *state;
    assert_int_equal(scope_model_layers(f->scope, MODEL_DRAFT), FAKE_DRAFT);
    assert_int_equal(scope_model_layers(f->scope, MODEL_COMPANION), 0);
    assert_null(scope_model_cells(seen(f), MODEL_DRAFT, 4));
    say_draft_layer(&f->stream, 4, FAKE_DRAFT, 40, 0.9f);
    assert_null(scope_cells(seen(f), 4)); /* no cells of the target */
    assert_int_equal(scope_model_probed(f->scope, MODEL_TARGET, FAKE_DRAFT), 0);
    const struct scope_cell *cells = scope_model_cells(f->scope, MODEL_DRAFT, 4);
    assert_non_null(cells);
    assert_true(cells[FAKE_DRAFT].known && !cells[1].known);
    assert_int_equal(cells[FAKE_DRAFT].token, 40);
    assert_int_equal(cells[FAKE_DRAFT].probed_by, PROBED_POLICY);
    assert_int_equal(scope_model_final(f->scope, MODEL_DRAFT, scope_column(f->scope, 4)), 40);
    assert_int_equal(scope_final(f->scope, scope_column(f->scope, 4)), TOKEN_NONE);
    say_layer(&f->stream, 4, FAKE_LAYERS, 41, 0.8f)->layer.probed_by = PROBED_VERIFY;
    say_draft_probe(f, 4, 1, 41, true);
    seen(f);
    assert_true(scope_model_spurious(f->scope, MODEL_DRAFT, 4, FAKE_DRAFT)); /* confident, and the target disagrees */
    assert_false(scope_model_spurious(f->scope, MODEL_DRAFT, 4, 1));
    assert_int_equal(scope_model_probed(f->scope, MODEL_DRAFT, 1), 1);
    /* A layer that the draft model lacks and a missing model have no cells. */
    say_draft_layer(&f->stream, 4, FAKE_DRAFT + 1, 42, 0.9f);
    say_draft_layer(&f->stream, 4, 1, 42, 0.9f)->layer.model = MODEL_COMPANION;
    assert_null(scope_model_cells(seen(f), MODEL_COMPANION, 4));
    assert_int_equal(scope_model_cells(f->scope, MODEL_DRAFT, 4)[1].token, 41);
}

SCOPE_TEST(a_draft_models_agreement_is_with_the_target)
{
    struct fixture *f = *state;
    assert_true(isnan(scope_model_agreement(f->scope, MODEL_DRAFT, 1)));
    say_draft_probe(f, 3, 1, 7, false);
    say_draft_probe(f, 4, 1, 8, true);
    say_draft_probe(f, 4, 1, 8, true); /* a repeated event changes nothing */
    say_draft_probe(f, 4, FAKE_DRAFT, 8, true);
    seen(f);
    assert_number_equal(scope_model_agreement(f->scope, MODEL_DRAFT, 1), 0.5);
    assert_number_equal(scope_model_agreement(f->scope, MODEL_DRAFT, FAKE_DRAFT), 1);
    assert_true(isnan(scope_agreement(f->scope, 1, false)));
    f->stream.run = 2;
    stream_control(&f->stream, "run", "restart");
    assert_true(isnan(scope_model_agreement(seen(f), MODEL_DRAFT, 1)));
    assert_null(scope_model_cells(f->scope, MODEL_DRAFT, 4));
}

SCOPE_TEST(a_draft_models_predictions_for_rejected_drafts_are_dropped_with_them)
{
    struct fixture *f = *state;
    say_draft_layer(&f->stream, 4, FAKE_DRAFT, 40, 0.9f);
    say_draft(&f->stream, 4, 1, 0, 40, -1);
    say_draft_layer(&f->stream, 5, FAKE_DRAFT, 41, 0.9f);
    say_draft(&f->stream, 5, 2, 1, 41, -1);
    say_verdict(&f->stream, 1, false, false);
    say_verdict(&f->stream, 2, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 4, 50);
    say_round(&f->stream, 2, 0, 1);
    assert_non_null(scope_model_cells(seen(f), MODEL_DRAFT, 5)); /* visible until the next round begins */
    f->stream.round = 2;
    say_draft_layer(&f->stream, 5, FAKE_DRAFT, 42, 0.9f);
    assert_int_equal(scope_model_cells(seen(f), MODEL_DRAFT, 4)[FAKE_DRAFT].token, 40);
    assert_int_equal(scope_model_cells(f->scope, MODEL_DRAFT, 5)[FAKE_DRAFT].token, 42);
    assert_int_equal(scope_now(f->scope)->length, 6);
}

SCOPE_TEST(as_many_positions_are_held_of_a_draft_model_as_of_the_target)
{
    struct fixture *f = *state;
    f->info.ctx = 1u << 20;
    for (uint32_t pos = 4; pos < SCOPE_COLUMNS + 50; pos++) {
        f->stream.round = pos - 3;
        say_draft_layer(&f->stream, pos, 1, 9, 0.1f);
        say_token(&f->stream, SOURCE_BONUS, pos, 8);
        say_round(&f->stream, 0, 0, 1);
    }
    seen(f);
    assert_null(scope_model_cells(f->scope, MODEL_DRAFT, 49));
    assert_non_null(scope_model_cells(f->scope, MODEL_DRAFT, 50));
    say_draft_layer(&f->stream, 30, 1, 9, 0.1f); /* about a dropped position */
    assert_null(scope_model_cells(seen(f), MODEL_DRAFT, 30));
    assert_non_null(scope_model_cells(f->scope, MODEL_DRAFT, 30 + SCOPE_COLUMNS));
}

SCOPE_TEST(a_policy_with_another_head_keeps_earlier_probes)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "head", "trained");
    say_head(f, 3, 1, 8, true);
    say_head(f, 4, 1, 9, true);
    stream_control(&f->stream, "policy", f->info.policies[1].name);
    stream_control(&f->stream, "head", "lens");
    say_head(f, 4, 0, 7, false); /* a second probe, as for recent rows */
    seen(f);
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 7);
    assert_true(scope_cells(f->scope, 3)[2].known); /* without a prediction by the lens, the trained head's is shown */
    assert_int_equal(scope_cells(f->scope, 3)[2].token, 8);
    stream_control(&f->stream, "head", "trained"); /* after a user's request only that head is shown */
    stream_control(&f->stream, "head", "lens");
    seen(f);
    assert_false(scope_cells(f->scope, 3)[2].known);
    assert_int_equal(scope_cells(f->scope, 4)[2].token, 7);
}

/* Emits round r after position `first` - 1, whose first draft is accepted: three predictions without and two with the
 * bias. */
static void
emit_a_block(struct fixture *f, uint32_t r, uint32_t first)
{
    f->stream.round = r;
    for (uint32_t i = 0; i < 3; i++)
        say_block(&f->stream, first + i, 0, 40 + (token_t)i, 0.5f);
    for (uint32_t i = 0; i < 2; i++)
        say_block(&f->stream, first + i, 1, 50 + (token_t)i, 0.7f)->layer.acceptance = 0.25f;
    say_draft(&f->stream, first, 1, 0, 50, -1);
    say_draft(&f->stream, first + 1, 2, 1, 51, -1);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, first + 1, 7);
    say_round(&f->stream, 2, 1, 2);
}

SCOPE_TEST(a_block_is_kept_by_round_with_both_heads)
{
    struct fixture *f = *state;
    emit_a_block(f, 1, 4);
    emit_a_block(f, 2, 6); /* positions 6 is in the first block, too */
    const struct scope_block *b = scope_block(seen(f), 1);
    assert_non_null(b);
    assert_int_equal(b->first, 4);
    assert_int_equal(b->n, 3);
    assert_int_equal(b->row[1].head[0].top[0], 41);
    assert_int_equal(b->row[1].head[1].top[0], 51);
    assert_number_equal(b->row[1].head[1].top_p[0], 0.7f);
    assert_true(b->row[2].head[0].known && !b->row[2].head[1].known);
    assert_number_equal(scope_block_confidence(b, 5), 0.25f);
    assert_true(isnan(scope_block_confidence(b, 6)));
    assert_true(isnan(scope_block_confidence(b, 7)));
    assert_true(isnan(scope_block_confidence(b, 3)));
    assert_true(isnan(scope_block_confidence(NULL, 4)));
    assert_int_equal(scope_block(f->scope, 2)->first, 6);
    assert_null(scope_block(f->scope, 3));
    assert_int_equal(scope_model_cells(f->scope, MODEL_BLOCK, 4)[FAKE_BLOCK].token, 50); /* with the bias */
    f->stream.run = 2;
    stream_control(&f->stream, "run", "restart");
    assert_null(scope_block(seen(f), 1));
}

SCOPE_TEST(blocks_of_old_rounds_and_far_positions_are_dropped)
{
    struct fixture *f = *state;
    uint32_t first = 4;
    f->info.ctx = 1u << 20;
    for (uint32_t r = 1; r <= SCOPE_ROUNDS + 1; r++, first += 2)
        emit_a_block(f, r, first);
    f->stream.round++;
    for (uint32_t i = 0; i < SCOPE_BLOCK + 5; i++)
        say_block(&f->stream, first + i, 0, 9, 0.5f);
    seen(f);
    assert_null(scope_block(f->scope, 2));
    assert_non_null(scope_block(f->scope, 3));
    assert_int_equal(scope_block(f->scope, f->stream.round)->n, SCOPE_BLOCK);
}

/* Only tested drafts count: the one after the rejection does not. Without a forecast the probability counts. */
SCOPE_TEST(calibration_is_of_the_confidence_head_where_it_spoke)
{
    struct fixture *f = *state;
    emit_a_block(f, 1, 4);
    const struct aggregates *a = scope_run_aggregates(seen(f));
    assert_int_equal(a->drafts.calibration.all, 2);
    assert_int_equal(a->drafts.calibration.n[2], 2); /* 0.25, and not the drafts' 0.75 */
    assert_int_equal(a->drafts.calibration.right[2], 1);
    assert_int_equal(a->forecasts, 2);
    f->stream.round = 2;
    say_block(&f->stream, 6, 0, 40, 0.5f);
    say_draft(&f->stream, 6, 1, 0, 40, -1);
    say_verdict(&f->stream, 1, true, true);
    say_round(&f->stream, 1, 1, 1);
    assert_int_equal(scope_run_aggregates(seen(f))->drafts.calibration.n[7], 1);
    assert_int_equal(a->forecasts, 2);
}
