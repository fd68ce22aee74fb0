/* A scope that reads two settings on one prompt: the policy, knobs, measures and history of the setting in focus are
 * shown as if it were alone. The scope also compares both. */
#include <math.h>

#include "engine/scope/aggregates.h"
#include "engine/scope/scope.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

struct pair {
    struct run_info info;
    struct stream stream[2];
    size_t at[2];
    struct scope *alone[2], *both;
};

static void
tell_control(struct scope *s, uint32_t seq, const char *name, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL, .run = 1, .seq = seq};
    control_event_set_name(&e.control, name);
    e.control.old_text = before;
    e.control.new_text = after;
    scope_event(s, &e);
}

static bool
concerns_all(const struct event *e)
{
    return e->type == EVENT_CONTROL || e->type == EVENT_VOCAB;
}

static void
tell(struct pair *p, uint32_t i)
{
    struct event e = p->stream[i].events[p->at[i]++];
    scope_event(p->alone[i], &e);
    if (i > 0 && concerns_all(&e))
        return;
    e.seq = concerns_all(&e) ? 0 : i;
    scope_event(p->both, &e);
}

/* Both settings have begun: the first under the run's policy, the second under "forms" with another knob. */
static void
begin_pair(struct pair *p, uint64_t seed)
{
    struct err err = {0};
    memset(p, 0, sizeof *p);
    fake_forms_run(&p->info, FAKE_LAYERS);
    assert_ok(scope_open(&p->both, &p->info, &err), err);
    for (uint32_t i = 0; i < 2; i++) {
        struct decoder d = {.trees = seed % 2 == 0, .probe_all = seed % 3 == 0};
        assert_ok(scope_open(&p->alone[i], &p->info, &err), err);
        stream_begin(&p->stream[i], seed * 2 + i);
        decode_begin(&d, &p->stream[i], &p->info, 4);
        for (uint32_t k = 0; k < 14; k++)
            decode_round(&d);
        while (concerns_all(&p->stream[i].events[p->at[i]]))
            tell(p, i);
    }
    const struct policy_info *forms = run_info_policy(&p->info, "forms");
    char text[96] = "forms", most[32];
    if (forms->n_knobs > 0) {
        knob_format(&forms->knobs[0], forms->knobs[0].max, most, sizeof most);
        snprintf(text, sizeof text, "forms %s=%s", forms->knobs[0].name, most);
    }
    tell_control(p->both, 0, "versus", "", text);
    tell_control(p->alone[1], 0, "policy", p->info.policy, "forms");
    if (forms->n_knobs > 0)
        tell_control(p->alone[1], 0, forms->knobs[0].name, "", most);
}

static void
end_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        scope_close(p->alone[i]);
        stream_free(&p->stream[i]);
    }
    scope_close(p->both);
    run_info_free(&p->info);
}

static void
assert_each_is_as_if_alone(const struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct scope *alone = p->alone[i];
        if (!scope_set_focus(p->both, i))
            continue; /* there is no event of it yet */
        assert_same_sequence(alone, p->both);
        assert_string_equal(scope_policy(p->both)->name, scope_policy(alone)->name);
        for (uint32_t k = 0; k < scope_policy(alone)->n_knobs; k++)
            assert_number_equal(scope_knob(p->both, k), scope_knob(alone, k));
        const struct tally *a = &scope_now(alone)->metrics.total, *b = &scope_now(p->both)->metrics.total;
        assert_memory_equal(a, b, sizeof *a);
        assert_int_equal(metrics_generated(&scope_now(alone)->metrics),
                         metrics_generated(&scope_now(p->both)->metrics));
        const struct aggregates *x = scope_run_aggregates(alone), *y = scope_run_aggregates(p->both);
        assert_int_equal(x->rounds, y->rounds);
        assert_memory_equal(x->asked, y->asked, (FAKE_LAYERS + 1) * sizeof *x->asked);
        assert_memory_equal(x->spurious[0], y->spurious[0], (FAKE_LAYERS + 1) * sizeof *x->asked);
        assert_int_equal(segments_now(scope_now(p->both)->segments)->policy,
                         segments_now(scope_now(alone)->segments)->policy);
    }
}

static void
assert_compared(const struct pair *p)
{
    const struct scope_versus *v = scope_now(p->both)->versus;
    const uint32_t a = scope_now(p->alone[0])->committed, b = scope_now(p->alone[1])->committed;
    uint32_t same = 0;
    while (same < a && same < b && scope_column(p->alone[0], same)->token == scope_column(p->alone[1], same)->token)
        same++;
    assert_int_equal(v->same, same);
    assert_int_equal(v->parted, same < a && same < b);
    for (uint32_t i = 0; i < 2 && v->parted; i++) {
        token_t token;
        assert_int_equal(scope_versus_text(p->both, i, &token, 1), 1);
        assert_int_equal(token, scope_column(p->alone[i], same)->token);
    }
}

TEST(each_of_two_settings_is_shown_as_if_it_were_alone)
{
    const uint64_t seed = seed_or(1);
    for (uint64_t round = 0; round < 12; round++) {
        struct pair p;
        struct stream random;
        stream_begin(&random, seed + round);
        begin_pair(&p, seed + round);
        assert_non_null(scope_now(p.both)->versus);
        while (p.at[0] < p.stream[0].n || p.at[1] < p.stream[1].n) {
            uint32_t i = stream_below(&random, 2);
            i = p.at[i] < p.stream[i].n ? i : 1 - i;
            bool whole = false;
            while (p.at[i] < p.stream[i].n && !whole) { /* a round of one setting, then one of either */
                whole = p.stream[i].events[p.at[i]].type == EVENT_ROUND;
                tell(&p, i);
            }
            if (stream_below(&random, 4) == 0)
                assert_each_is_as_if_alone(&p);
        }
        assert_each_is_as_if_alone(&p);
        assert_compared(&p);
        end_pair(&p);
        stream_free(&random);
    }
}

TEST(both_settings_are_measured_since_the_last_knob_change)
{
    struct pair p;
    begin_pair(&p, 3);
    while (p.at[0] < p.stream[0].n)
        tell(&p, 0);
    while (p.at[1] < p.stream[1].n)
        tell(&p, 1);
    for (uint32_t i = 0; i < 2; i++) {
        const struct measures m =
            metrics_measures(&scope_now(p.alone[i])->metrics, &scope_now(p.alone[i])->metrics.total);
        const struct estimates e = scope_versus_estimates(p.both, i);
        assert_near(e.tokens_per_round.value, m.tokens_per_round, 1e-9);
        assert_near(e.tokens_per_s.value / m.tokens_per_s, 1, 1e-9);
        assert_int_equal(scope_now(p.both)->versus->since[i], 0);
    }
    const uint32_t emitted = scope_now(p.both)->versus->emitted[0];
    tell_control(p.both, 1, "policy", "forms", "ar");
    assert_true(isnan(scope_versus_estimates(p.both, 0).tokens_per_s.value));
    assert_int_equal(scope_now(p.both)->versus->since[0], emitted);
    assert_true(scope_set_focus(p.both, 0));
    assert_string_equal(scope_policy(p.both)->name, p.info.policy);
    tell_control(p.both, 0, "run", "", "restart");
    assert_null(scope_now(p.both)->versus);
    assert_string_equal(scope_policy(p.both)->name, p.info.policy);
    end_pair(&p);
}

TEST(each_of_two_settings_has_a_head_of_its_own)
{
    struct pair p;
    begin_pair(&p, seed_or(3));
    for (uint32_t i = 0; i < 2; i++)
        for (int k = 0; k < 40 && p.at[i] < p.stream[i].n; k++)
            tell(&p, i);
    tell_control(p.both, 0, "head", "", "trained");
    tell_control(p.both, 1, "head", "", "lens");
    for (int turned = 0; turned < 2; turned++) {
        assert_true(scope_set_focus(p.both, 0));
        assert_string_equal(scope_head(p.both), "trained");
        assert_true(scope_set_focus(p.both, 1));
        assert_string_equal(scope_head(p.both), turned ? "trained" : "lens");
        tell_control(p.both, 1, "head", "lens", "trained");
    }
    tell_control(p.both, 0, "head", "trained", "lens"); /* from the setting that is not shown */
    assert_string_equal(scope_head(p.both), "trained");
    tell_control(p.both, 0, "run", "", "restart");
    tell_control(p.both, 0, "head", "", "lens");
    assert_string_equal(scope_head(p.both), "lens"); /* a run of one setting shows its own head */
    end_pair(&p);
}

TEST(the_targets_two_best_tokens_are_kept_where_greedy_texts_part)
{
    for (int sampled = 0; sampled < 2; sampled++) {
        struct run_info info;
        struct stream s;
        struct scope *scope;
        struct err err = {0};
        fake_run(&info);
        info.sampling.temperature = (float)sampled;
        assert_ok(scope_open(&scope, &info, &err), err);
        stream_begin(&s, 1);
        s.run = 1;
        stream_control(&s, "run", "start");
        stream_control(&s, "versus", "ar");
        for (s.seq = 0; s.seq < 2; s.seq++)
            say_token(&s, SOURCE_PROMPT, 0, 1);
        for (s.seq = 0; s.seq < 2; s.seq++) {
            s.round++;
            say_layer(&s, 1, FAKE_LAYERS, 7, 0.5f); /* then 8 with a fifth of that confidence */
            say_token(&s, SOURCE_BONUS, 1, 7 + (token_t)s.seq);
            say_round(&s, 0, 0, 1);
        }
        feed(scope, &s, 0);
        const struct scope_versus *v = scope_now(scope)->versus;
        assert_true(v->parted);
        assert_int_equal(v->same, 1);
        assert_int_equal(v->best[1], sampled ? TOKEN_NONE : 8);
        assert_true(sampled ? isnan(v->margin) : v->best[0] == 7 && fabs(v->margin - log(5)) < 1e-6);
        scope_close(scope);
        stream_free(&s);
        run_info_free(&info);
    }
}

/* In one run both settings sample alike and share a baseline. Each of two saved runs has its own. */
TEST(a_control_of_all_sequences_is_one_saved_runs_alone)
{
    for (int apart = 0; apart < 2; apart++) {
        struct pair p;
        begin_pair(&p, 3);
        for (uint32_t i = 0; i < 2; i++)
            for (int k = 0; k < 40 && p.at[i] < p.stream[i].n; k++)
                tell(&p, i);
        const struct run_info second = p.info;
        p.info.second = apart == 1 ? &second : NULL;
        tell_control(p.both, 0, "temperature", "0", "0.5");
        tell_control(p.both, 0, "baseline", "", "7");
        for (uint32_t i = 0; i < 2; i++) {
            const bool told = i == 0 || apart == 0;
            assert_true(scope_set_focus(p.both, i));
            assert_int_equal(scope_sampling(p.both, NULL)->temperature == 0.5f, told);
            assert_int_equal(scope_now(p.both)->metrics.baseline == 7, told);
            assert_int_equal(segments_now(scope_now(p.both)->segments)->sampling.temperature == 0.5f, told);
            assert_int_equal(segments_now(scope_now(p.both)->segments)->baseline.value == 7, told);
        }
        end_pair(&p);
    }
}
