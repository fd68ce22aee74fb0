/* What-if in a replay: the record that a scope makes of what layers were heard to say is the session's, but for how confidences anneal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/events/metrics.h"
#include "policies/policy.h"
#include "tests/rigs/session_fixture.h"
#include "tui/scope/scope_record.h"

enum { LAYERS = 6, TOKENS = 120 };

struct watched {
    struct session *session;
    struct scope *scope;
};

/* A run to its end, seen by a scope; the session stays. */
static struct watched
watch_run(struct fixture *f, const struct session_options *o)
{
    struct watched w;
    struct err err = {0};
    const struct event *e = NULL;
    assert_true(session_open(&w.session, f->engine, o, &err));
    assert_true(scope_open(&w.scope, session_info(w.session), &err));
    struct event_reader *reader = event_reader_open(session_log(w.session));
    assert_true(session_start(w.session, &err));
    for (bool over = false; !over;) {
        while ((e = event_reader_next(reader)) != NULL) {
            scope_event(w.scope, e);
            over = over || event_is_control(e, "end", NULL);
        }
        if (!over)
            event_reader_wait(reader, 100);
    }
    event_reader_close(reader);
    return w;
}

static void
end_watch(struct watched *w)
{
    scope_close(w->scope);
    session_close(w->session);
}

static struct session_options
options_of(enum probe_mode probe)
{
    struct session_options o = session_usual();
    o.policy = "layerskip";
    o.tokens = TOKENS;
    o.ignore_eos = o.stay = true;
    o.what_if = 1;
    o.probe = probe;
    return o;
}

static const struct policy_ops *
ops_of(const char *name)
{
    const struct policy_ops *const *ops = policy_registry;
    while (strcmp((*ops)->name, name) != 0)
        ops++;
    return *ops;
}

static void
test_a_scope_tells_what_the_session_knows(void **state)
{
    const struct session_options o = options_of(PROBE_ALL);
    struct watched w = watch_run(*state, &o);
    struct layer_record told, kept;
    struct err err;
    assert_true(layer_record_open(&told, LAYERS, &err) && layer_record_open(&kept, LAYERS, &err));
    assert_null(scope_record(w.scope, &told));
    assert_true(session_rig_wait_record(w.session, &kept, scope_now(w.scope)->committed - 1) > 0);
    assert_int_equal(told.first + told.n, kept.first + kept.n);
    assert_true(told.n >= TOKENS - 1);
    assert_int_equal(told.first + told.begin, kept.first + kept.begin); /* where the prompt ends */
    assert_true(told.head_load == kept.head_load && told.layers_load == kept.layers_load);
    assert_int_equal(told.probes, kept.probes);
    for (uint32_t pos = told.first > kept.first ? told.first : kept.first; pos < told.first + told.n; pos++)
        for (uint32_t l = 1; l <= LAYERS; l++) {
            const struct layer_word *a = layer_word(&told, pos - told.first, l),
                                    *b = layer_word(&kept, pos - kept.first, l);
            assert_int_equal(a->agrees, b->agrees);
            assert_true(fabsf(a->confidence - b->confidence) < 1e-6f);
        }
    assert_int_equal(told.n_text, told.first + told.n + 1); /* the whole text is held */
    for (uint32_t pos = 0; pos <= told.first + told.n; pos++) {
        assert_true(layer_record_token(&told, pos) != TOKEN_NONE);
        assert_int_equal(layer_record_token(&told, pos), layer_record_token(&kept, pos));
        assert_int_equal(layer_record_token(&told, pos), scope_column(w.scope, pos)->token);
    }
    for (double e = 1; e < LAYERS; e++) { /* exact for rules that anneal nothing and remember nothing */
        const double values[POLICY_KNOBS] = {e, 4};
        struct tally a, b;
        kept.policy[0] = '\0';
        assert_true(ops_of("layerskip")->what_if(&told, values, &a) && ops_of("layerskip")->what_if(&kept, values, &b));
        assert_int_equal(a.emitted, b.emitted);
        assert_int_equal(a.rounds, b.rounds);
        assert_true(a.rounds > 0 && a.layers == b.layers && a.heads == b.heads);
    }
    layer_record_close(&told);
    layer_record_close(&kept);
    end_watch(&w);
}

static void
test_what_cannot_be_told_says_why(void **state)
{
    struct session_options o = options_of(PROBE_POLICY);
    struct watched w = watch_run(*state, &o);
    struct layer_record r;
    struct err err;
    assert_true(layer_record_open(&r, LAYERS, &err));
    assert_non_null(strstr(scope_record(w.scope, &r), "--probe all"));
    end_watch(&w);
    o = options_of(PROBE_ALL);
    o.sampling.temperature = 1;
    w = watch_run(*state, &o);
    assert_non_null(strstr(scope_record(w.scope, &r), "sampling"));
    scope_reset(w.scope);
    assert_non_null(scope_record(w.scope, &r));
    end_watch(&w);
    layer_record_close(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_scope_tells_what_the_session_knows),
        cmocka_unit_test(test_what_cannot_be_told_says_why),
    };
    return cmocka_run_group_tests(tests, session_fixture_open, session_fixture_close);
}
