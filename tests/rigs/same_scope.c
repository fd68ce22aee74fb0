/* Compares scopes through their public functions. */

#include <math.h>

#include "tests/rigs/scope_events.h"
#include "tests/rigs/test.h"

static void
assert_same_real(float a, float b)
{
    if (isnan(a) || isnan(b))
        assert_true(isnan(a) && isnan(b));
    else
        assert_number_equal(a, b);
}

static void
assert_same_cells(const struct scope *a, const struct scope *b, enum layer_model model, uint32_t pos)
{
    const struct scope_cell *x = scope_model_cells(a, model, pos), *y = scope_model_cells(b, model, pos);
    assert_int_equal(x == NULL, y == NULL);
    for (uint32_t l = 1; x != NULL && l <= scope_model_layers(a, model); l++) {
        assert_int_equal(x[l].known, y[l].known);
        assert_int_equal(scope_model_spurious(a, model, pos, l), scope_model_spurious(b, model, pos, l));
        if (!x[l].known)
            continue;
        assert_int_equal(x[l].token, y[l].token);
        assert_int_equal(x[l].probed_by, y[l].probed_by);
        assert_int_equal(x[l].rank_final, y[l].rank_final);
        assert_same_real(x[l].confidence, y[l].confidence);
        assert_same_real(x[l].annealed, y[l].annealed);
        assert_same_real(x[l].temperature, y[l].temperature);
        assert_same_real(x[l].entropy, y[l].entropy);
        assert_same_real(x[l].kl_final, y[l].kl_final);
        assert_memory_equal(x[l].top, y[l].top, sizeof x[l].top);
    }
}

static void
assert_same_experts(const struct scope *a, const struct scope *b, uint32_t pos)
{
    for (uint32_t l = 1; l <= scope_info(a)->layers; l++) {
        const struct scope_experts x = scope_experts(a, pos, l), y = scope_experts(b, pos, l);
        assert_int_equal(x.n, y.n);
        for (uint32_t i = 0; i < x.n; i++) {
            assert_int_equal(x.expert[i], y.expert[i]);
            assert_same_real(x.weight[i], y.weight[i]);
        }
        for (uint32_t e = 0; e < scope_expert_count(a, NULL); e++)
            assert_int_equal(scope_expert_chosen(a, l, e), scope_expert_chosen(b, l, e));
        assert_int_equal(scope_expert_rows(a, l), scope_expert_rows(b, l));
    }
}

static void
assert_same_columns(const struct scope *a, const struct scope *b)
{
    assert_int_equal(scope_now(a)->length, scope_now(b)->length);
    assert_int_equal(scope_now(a)->committed, scope_now(b)->committed);
    for (uint32_t pos = 0; pos < scope_now(a)->length; pos++) {
        const struct scope_column *x = scope_column(a, pos), *y = scope_column(b, pos);
        assert_int_equal(x == NULL, y == NULL);
        for (unsigned model = 0; model < LAYER_MODELS; model++)
            assert_same_cells(a, b, (enum layer_model)model, pos);
        assert_same_experts(a, b, pos);
        if (x == NULL)
            continue;
        assert_int_equal(x->token, y->token);
        assert_int_equal(x->fate, y->fate);
        assert_int_equal(x->round, y->round);
        assert_int_equal(x->exit_layer, y->exit_layer);
        assert_int_equal(x->rejected, y->rejected);
        assert_int_equal(x->rejected_exit, y->rejected_exit);
        assert_int_equal(x->final, y->final);
        assert_int_equal(x->siblings, y->siblings);
        assert_same_real(x->confidence, y->confidence);
        assert_same_real(x->threshold, y->threshold);
        assert_string_equal(scope_text(a, x->token), scope_text(b, y->token));
    }
}

static void
assert_same_rounds(const struct scope *a, const struct scope *b)
{
    assert_int_equal(scope_rounds(a), scope_rounds(b));
    for (uint32_t i = 0; i < scope_rounds(a); i++) {
        const struct scope_round *x = scope_round(a, i), *y = scope_round(b, i);
        assert_int_equal(x->number, y->number);
        assert_int_equal(x->run, y->run);
        assert_int_equal(x->first_pos, y->first_pos);
        assert_int_equal(x->last, y->last);
        assert_int_equal(x->whole, y->whole);
        assert_int_equal(x->n_drafts, y->n_drafts);
        assert_string_equal(x->end.stop_reason, y->end.stop_reason);
        assert_int_equal(x->end.accepted, y->end.accepted);
        for (uint32_t k = 0; k < x->n_drafts; k++) {
            assert_int_equal(x->drafts[k].token, y->drafts[k].token);
            assert_int_equal(x->drafts[k].accepted, y->drafts[k].accepted);
            assert_int_equal(x->drafts[k].committed, y->drafts[k].committed);
            assert_int_equal(x->drafts[k].main_line, y->drafts[k].main_line);
        }
        const struct scope_block *p = scope_block(a, x->number), *q = scope_block(b, x->number);
        assert_int_equal(p != NULL, q != NULL);
        if (p != NULL)
            assert_memory_equal(p, q, sizeof *p);
    }
}

/* Compares a series' values in the stored rounds. */
static void
assert_same_values(const struct scope *a, const struct scope *b, uint32_t series)
{
    const struct scope_round *r;
    for (uint32_t back = 0; (r = scope_round(a, back)) != NULL; back++) {
        const float *x = scope_round_values(a, series, r->number), *y = scope_round_values(b, series, r->number);
        assert_int_equal(x == NULL, y == NULL);
        for (uint32_t k = 0; x != NULL && k < series_cells(scope_series(a, series)->declared); k++)
            assert_same_real(x[k], y[k]);
    }
}

static void
assert_same_series(const struct scope *a, const struct scope *b)
{
    const struct scope_series *x, *y;
    for (uint32_t i = 0; (x = scope_series(a, i)) != NULL; i++) {
        assert_non_null(y = scope_series(b, i));
        assert_same_values(a, b, i);
        assert_int_equal(x->count, y->count);
        assert_int_equal(x->used, y->used);
        for (uint32_t k = 0; k < x->cells; k++)
            assert_same_real(x->latest[k], y->latest[k]);
        for (uint64_t k = 0; k < x->count && k < SCOPE_SERIES; k++) {
            assert_int_equal(x->ring[k].round, y->ring[k].round);
            assert_same_real(x->ring[k].value, y->ring[k].value);
            assert_same_real(x->ring[k].value2, y->ring[k].value2);
        }
    }
}

void
assert_same_sequence(const struct scope *a, const struct scope *b)
{
    assert_same_columns(a, b);
    assert_same_rounds(a, b);
    assert_same_series(a, b);
    for (uint32_t l = 1; l <= scope_model_layers(a, MODEL_TARGET); l++) {
        assert_int_equal(scope_model_probed(a, MODEL_TARGET, l), scope_model_probed(b, MODEL_TARGET, l));
        for (int trained = 0; trained < 2; trained++)
            assert_same_real((float)scope_agreement(a, l, trained), (float)scope_agreement(b, l, trained));
    }
    for (uint32_t l = 1; l <= scope_model_layers(a, MODEL_DRAFT); l++) {
        assert_int_equal(scope_model_probed(a, MODEL_DRAFT, l), scope_model_probed(b, MODEL_DRAFT, l));
        assert_same_real((float)scope_model_agreement(a, MODEL_DRAFT, l),
                         (float)scope_model_agreement(b, MODEL_DRAFT, l));
    }
    const struct scope_draft *p, *q;
    const uint32_t n = scope_struck(a, &p);
    assert_int_equal(n, scope_struck(b, &q));
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(p[i].token, q[i].token);
    assert_int_equal(scope_exit_layer(a), scope_exit_layer(b));
    assert_int_equal(scope_d_max(a), scope_d_max(b));
}

void
assert_same_scope(const struct scope *a, const struct scope *b)
{
    assert_same_sequence(a, b);
    assert_int_equal(scope_now(a)->run, scope_now(b)->run);
    assert_int_equal(scope_now(a)->round, scope_now(b)->round);
    assert_int_equal(scope_now(a)->running, scope_now(b)->running);
    assert_string_equal(scope_now(a)->end, scope_now(b)->end);
    assert_string_equal(scope_now(a)->probe, scope_now(b)->probe);
    assert_string_equal(scope_policy(a)->name, scope_policy(b)->name);
    for (uint32_t i = 0; i < scope_policy(a)->n_knobs; i++)
        assert_number_equal(scope_knob(a, i), scope_knob(b, i));
    assert_memory_equal(&scope_now(a)->metrics, &scope_now(b)->metrics, sizeof(struct metrics));
}
