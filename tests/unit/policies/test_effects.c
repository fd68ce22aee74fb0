/* The ledger's marks, on the bundled model: a change without effect has no mark, and a change of at least 20% has a
 * mark of the right sign. True effects come from separate whole runs. Effects and forecasts count weights read, so the
 * test does not depend on time. The long form has 100 changes without effect, on ten prompts, and a grid of knobs. */
#include <math.h>

#include "cli/options/commands.h"
#include "engine/measure/forecast.h"
#include "engine/scope/scope.h"
#include "policies/registry.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { TOKENS = 240, CHANGED_AT = 100 };

static struct engine *engine;
static struct effects *effects;

struct play { /* a run that is stepped, with a scope */
    struct live *session;
    struct scope *scope;
    struct event_reader *reader;
    bool over;
};

static const struct policy_ops *
ops_of(const struct policy_info *p, const struct run_info *info)
{
    (void)info;
    return policy_named(policy_registry, p->name);
}

static struct session_options
options_of(const char *policy, size_t prompt, uint32_t tokens)
{
    struct session_options o = session_usual();
    o.policy = policy;
    o.prompt = session_prompts[prompt];
    o.prompt_len = strlen(o.prompt);
    o.tokens = tokens;
    o.ctx = 640;
    o.ignore_eos = true;
    return o;
}

static void
take_events(struct play *p, const char *until)
{
    const struct event *e;
    for (bool there = false; !there && !p->over;) {
        while ((e = event_reader_next(p->reader)) != NULL) {
            scope_event(p->scope, e);
            p->over = p->over || event_is_control(e, "end", NULL);
            there = there || event_is_control(e, "state", until);
        }
        if (!there && !p->over)
            event_reader_wait(p->reader, 100);
    }
}

static struct play
begin_play(const char *policy, size_t prompt, const struct knob_setting *set, uint32_t tokens)
{
    struct session_options o = options_of(policy, prompt, tokens);
    struct play p = {0};
    struct err err = {0};
    o.set = set;
    o.n_set = set != NULL;
    o.stay = o.paused = true;
    o.probe = PROBE_ALL;
    assert_ok(session_open(&p.session, engine, &o, &err), err);
    assert_ok(scope_open(&p.scope, p.session->ops->info(p.session), &err), err);
    p.reader = event_reader_open(p.session->ops->log(p.session));
    assert_ok(p.session->ops->start(p.session, &err), err);
    take_events(&p, "paused");
    memset(effects, 0, sizeof *effects);
    return p;
}

static void
end_play(struct play *p)
{
    event_reader_close(p->reader);
    scope_close(p->scope);
    live_close(p->session);
}

/* Runs rounds until the segment has so many tokens. */
static void
play_tokens(struct play *p, uint32_t tokens)
{
    const uint32_t from = scope_now(p->scope)->committed;
    while (!p->over && scope_now(p->scope)->committed < from + tokens) {
        session_control(p->session, CONTROL_STEP_ROUNDS, NULL, NULL, 1);
        take_events(p, "paused");
    }
}

/* Forecasts the newest segment's text under its setting and under those before it. */
static void
forecast_newest(struct play *p)
{
    const struct segments *all = scope_now(p->scope)->segments;
    const struct segment *s = segments_at(all, 0);
    struct layer_record record, part;
    struct err err;
    assert_ok(layer_record_open(&record, scope_info(p->scope)->layers, &err), err);
    assert_null(scope_record(p->scope, &record));
    struct effect_text *text = &effects->text[s->number % SEGMENTS];
    *text = (struct effect_text){0};
    if (effects_part(&record, scope_round_position(p->scope, s->first_round), UINT32_MAX, &part))
        while (effects_forecast(text, all, s, scope_info(p->scope), ops_of, &part))
            ;
    layer_record_close(&record);
}

static struct difference
newest_against(const struct play *p, uint32_t back)
{
    const struct segments *all = scope_now(p->scope)->segments;
    return effects_difference(effects, all, scope_info(p->scope), segments_at(all, 0), segments_at(all, back));
}

static bool
is_mark(struct difference d)
{
    return d.verdict == DIFFERENCE_MORE || d.verdict == DIFFERENCE_LESS;
}

/* ---- changes without effect ---- */

/* The newest change is compared with the segment before it, and with the first one. */
static uint32_t
marks_of_nothing(const char *policy, size_t prompt, uint32_t changes, uint32_t *forecasts)
{
    static const struct {
        const char *name, *text[2];
    } nothing[] = {{"seed", {"2", "3"}}, {"top_k", {"40", "0"}}, {"top_p", {"0.9", "1"}}};
    struct play p = begin_play(policy, prompt, NULL, 480);
    uint32_t marks = 0;
    play_tokens(&p, 40);
    forecast_newest(&p);
    for (uint32_t i = 0; i < changes && !p.over; i++) {
        const uint32_t which = i % 3;
        session_control(p.session, CONTROL_KNOB, nothing[which].name, nothing[which].text[i / 3 % 2], 0);
        play_tokens(&p, 36);
        forecast_newest(&p);
        const struct difference before = newest_against(&p, 1), first = newest_against(&p, i + 1);
        *forecasts += !isnan(before.value) && !isnan(first.value);
        marks += is_mark(before) || is_mark(first);
    }
    end_play(&p);
    return marks;
}

static const char *const names[] = {"specbound", "layerskip", "dv", "del", "fsm"};
enum { POLICIES = sizeof names / sizeof names[0] };

TEST(changes_that_do_nothing_have_no_mark)
{
    const bool full = getenv("SPECSCOPE_LONG") != NULL;
    const uint32_t prompts = full ? 10 : 2, each = full ? 10 : 3;
    uint32_t marks = 0, forecasts = 0;
    for (uint32_t i = 0; i < prompts; i++)
        marks += marks_of_nothing(names[i % POLICIES], i, each, &forecasts);
    print_message("%u of %u changes that do nothing are marked\n", (unsigned)marks, (unsigned)(prompts * each));
    assert_int_equal(forecasts, prompts * each);
    assert_at_most(marks * 20, prompts * each);
}

/* ---- real changes ---- */

struct change {
    const char *policy, *knob, *from, *to;
    bool quick;
};

static const struct change changes[] = {
    {"specbound", "tau", "0.2", "0.9", true},
    {"specbound", "tau", "0.55", "0.95", false},
    {"specbound", "tau", "0.4", "0.05", false},
    {"specbound", "w_max", "8", "1", true},
    {"specbound", "w_max", "2", "12", false},
    {"specbound", "d_max", "2", "8", false},
    {"specbound", "d_max", "5", "14", false},
    {"specbound", "alpha", "0", "2", false},
    {"layerskip", "exit_layer", "2", "10", true},
    {"layerskip", "exit_layer", "4", "1", false},
    {"layerskip", "exit_layer", "3", "8", false},
    {"layerskip", "gamma", "2", "12", false},
    {"layerskip", "gamma", "1", "4", false},
    {"layerskip", "gamma", "5", "24", false},
    {"dv", "th", "0.9", "0.05", true},
    {"dv", "exit_layer", "4", "10", false},
    {"dv", "exit_layer", "2", "7", false},
    {"dv", "w_max", "2", "12", false},
    {"del", "d_max", "1", "12", true},
    {"del", "omega", "0.95", "0", false},
    {"del", "e_fixed", "2", "12", false},
    {"del", "e_max", "3", "15", false},
    {"fsm", "exit_layer", "2", "9", true},
    {"fsm", "exit_layer", "4", "12", false},
    {"fsm", "gamma_max", "1", "12", false},
    {"fsm", "gamma", "2", "12", false},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static struct knob_setting
setting_of(const struct change *c, const char *text)
{
    struct knob_setting set;
    snprintf(set.name, sizeof set.name, "%s", c->knob);
    snprintf(set.text, sizeof set.text, "%s", text);
    return set;
}

static double
modelled_of(const struct change *c, const char *text, size_t prompt)
{
    const struct knob_setting set = setting_of(c, text);
    struct session_options o = options_of(c->policy, prompt, TOKENS);
    struct session_rig_result r;
    o.set = &set;
    o.n_set = 1;
    session_run(engine, &o, NULL, NULL, &r);
    const double modelled = metrics_measures(&r.metrics, &r.metrics.total).modelled;
    session_rig_free(&r);
    return modelled;
}

static struct difference
effect_of(const struct change *c, size_t prompt)
{
    const struct knob_setting set = setting_of(c, c->from);
    struct play p = begin_play(c->policy, prompt, &set, TOKENS);
    play_tokens(&p, CHANGED_AT);
    session_control(p.session, CONTROL_KNOB, c->knob, c->to, 0);
    play_tokens(&p, TOKENS);
    forecast_newest(&p);
    const struct difference d = newest_against(&p, 1);
    end_play(&p);
    return d;
}

TEST(changes_of_20_per_cent_have_a_mark_of_the_right_sign)
{
    const bool full = getenv("SPECSCOPE_LONG") != NULL;
    const size_t prompts = full ? 5 : 1;
    uint32_t n = 0, right = 0, wrong = 0, small = 0, small_wrong = 0;
    for (size_t i = 0; i < CHANGES; i++)
        for (size_t prompt = 0; prompt < prompts && (full || changes[i].quick); prompt++) {
            const struct change *c = &changes[i];
            const double truth = modelled_of(c, c->to, prompt) / modelled_of(c, c->from, prompt) - 1;
            const struct difference d = effect_of(c, prompt);
            const bool agrees = (truth > 0) == (d.verdict == DIFFERENCE_MORE);
            const bool large = fabs(truth) >= 0.2;
            n += large;
            right += large && is_mark(d) && agrees;
            wrong += large && is_mark(d) && !agrees;
            small += !large;
            small_wrong += !large && is_mark(d) && !agrees;
            print_message("%s %s %s to %s, prompt %zu: %+.0f%%, forecast %+.0f%% +-%.0f%s\n", c->policy, c->knob,
                          c->from, c->to, prompt, truth * 100, d.value, d.se,
                          is_mark(d) ? agrees ? "" : " WRONG" : " unmarked");
        }
    print_message(
        "of %u changes of 20%% and more: %u marked with the right sign, %u with the wrong one; of %u smaller ones "
        "%u with the wrong one\n",
        (unsigned)n, (unsigned)right, (unsigned)wrong, (unsigned)small, (unsigned)small_wrong);
    assert_at_least(n, full ? 40 : 3);
    assert_at_least(right * 10, n * 8);
    assert_at_most(wrong * 20, n);
}

int
main(void)
{
    struct err err = {0};
    effects = calloc(1, sizeof *effects);
    if (effects == NULL || !session_rig_engine_with(&engine, bundled_model_path(), "none", "cpu", 1, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const int failed = run_listed_tests();
    engine_close(engine);
    free(effects);
    return failed;
}
