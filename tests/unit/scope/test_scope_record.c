/* The record that a scope makes of its events, for what-if. */
#include <math.h>

#include "tests/rigs/observed_run.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { LAYERS = 6, TOKENS = 120 };

static struct session_options
options_of(enum probe_mode probe)
{
    struct session_options o = session_usual();
    o.policy = "layerskip";
    o.tokens = TOKENS;
    o.ignore_eos = true;
    o.probe = probe;
    return o;
}

static struct observed_run
observe(void **state, const struct session_options *o)
{
    struct fixture *f = *state;
    struct observed_run w;
    struct err err = {0};
    if (!observe_run(&w, f->engine, o, &err))
        fail_msg("%s", err.text);
    return w;
}

TEST(a_record_contains_the_layers_predictions)
{
    const struct session_options o = options_of(PROBE_ALL);
    struct observed_run w = observe(state, &o);
    struct layer_record r;
    struct err err;
    assert_true(layer_record_open(&r, LAYERS, &err));
    assert_null(scope_record(w.scope, &r));
    assert_int_equal(r.first + r.n, scope_now(w.scope)->committed - 1);
    assert_true(r.n >= TOKENS - 1);
    assert_true(r.begin == 0 ||
                scope_column(w.scope, r.first + r.begin)->fate != FATE_PROMPT); /* where the prompt ends */
    assert_true(r.head_load == 1 && r.layers_load == 1);                        /* the lens */
    for (uint32_t pos = r.first; pos < r.first + r.n; pos++)
        for (uint32_t l = 1; l <= LAYERS; l++) {
            const struct layer_prediction *word = layer_prediction(&r, pos - r.first, l);
            const struct scope_cell *cells = scope_cells(w.scope, pos + 1);
            assert_int_equal(word->agrees, cells[l].token == cells[LAYERS].token);
            assert_true(fabsf(word->confidence - cells[l].confidence) < 1e-6f);
        }
    assert_int_equal(r.n_text, r.first + r.n + 1); /* the whole text is held */
    for (uint32_t pos = 0; pos <= r.first + r.n; pos++)
        assert_int_equal(layer_record_token(&r, pos), scope_column(w.scope, pos)->token);
    layer_record_close(&r);
    observed_run_close(&w);
}

TEST(a_record_without_probes_gives_the_reason)
{
    struct session_options o = options_of(PROBE_POLICY);
    struct observed_run w = observe(state, &o);
    struct layer_record r;
    struct err err;
    assert_true(layer_record_open(&r, LAYERS, &err));
    assert_non_null(strstr(scope_record(w.scope, &r), "probe all"));
    observed_run_close(&w);
    o = options_of(PROBE_ALL);
    o.sampling.temperature = 1;
    w = observe(state, &o);
    assert_non_null(strstr(scope_record(w.scope, &r), "sampling"));
    scope_reset(w.scope);
    assert_non_null(scope_record(w.scope, &r));
    observed_run_close(&w);
    layer_record_close(&r);
}

FIXTURE(session_fixture_open, session_fixture_close);
