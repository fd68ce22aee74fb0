/* Two settings on one prompt: each emits what it emits alone, in rounds of its own, and they alternate. Knobs and
 * policies can be changed for one of them. The rig also checks the events of every run. */
#include "kernels/request.h"
#include "policies/registry.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { ROUNDS = 512 };

struct seen {
    struct round_event line[2][ROUNDS]; /* of each sequence */
    size_t n[2];
    uint32_t emitted[2], turns; /* tokens that each emitted so far */
    uint32_t first[2];          /* rounds of each that began with equal numbers of tokens */
    bool out_of_turn;
    char told[2][96]; /* the last change of a knob or policy, by sequence */
    char versus[96];  /* the last versus event; "" in a run without */
    bool asked;
    uint32_t runs, wrong_round_two;
};

static void
watch(void *user, struct live *s, const struct event *e)
{
    (void)s;
    struct seen *w = user;
    if (event_is_control(e, "run", NULL)) {
        const uint32_t runs = w->runs + 1;
        const bool asked = w->asked;
        *w = (struct seen){.runs = runs, .asked = asked};
    }
    if (event_is_control(e, "versus", NULL))
        snprintf(w->versus, sizeof w->versus, "%s", e->control.new_text);
    if (e->type == EVENT_CONTROL && (strcmp(e->control.knob, "gamma") == 0 || e->control.kind == RECORDED_POLICY))
        snprintf(w->told[e->seq], sizeof w->told[0], "%s %s", control_event_name(&e->control), e->control.new_text);
    if (e->type != EVENT_ROUND || e->seq > 1 || w->n[e->seq] == ROUNDS)
        return;
    const uint32_t other = w->emitted[1 - e->seq];
    w->out_of_turn = w->out_of_turn || (w->versus[0] != '\0' && w->emitted[e->seq] > other);
    w->first[e->seq] += w->emitted[e->seq] == other;
    w->line[e->seq][w->n[e->seq]++] = e->round_end;
    w->emitted[e->seq] += e->round_end.emitted;
}

static struct session_options
two(const char *versus)
{
    struct session_options o = session_usual();
    o.versus = versus;
    return o;
}

/* Checks that sequence `seq` equals a run with that setting alone. */
static void
compare_with_alone(struct fixture *f, const struct session_options *o, const struct seen *both,
                   const struct session_rig_sequence *said, uint32_t seq, const char *policy, const char *knob,
                   const char *value)
{
    static struct seen alone;
    struct session_rig_result one;
    struct session_options single = *o;
    struct knob_setting set = {0};
    alone = (struct seen){.runs = 0};
    single.versus = NULL;
    single.policy = policy;
    if (knob != NULL) {
        snprintf(set.name, sizeof set.name, "%s", knob);
        snprintf(set.text, sizeof set.text, "%s", value);
        single.set = &set;
        single.n_set = 1;
    }
    session_run(f->engine, &single, watch, &alone, &one);
    assert_int_equal(said->n, one.n);
    assert_memory_equal(said->tokens, one.tokens, one.n * sizeof *one.tokens);
    assert_int_equal(both->n[seq], alone.n[0]);
    for (size_t i = 0; i < alone.n[0]; i++) {
        const struct round_event *a = &both->line[seq][i], *b = &alone.line[0][i];
        assert_string_equal(a->policy, b->policy);
        assert_int_equal(a->drafted, b->drafted);
        assert_int_equal(a->accepted, b->accepted);
        assert_int_equal(a->emitted, b->emitted);
        /* Its loads are its own, not a share of a common round. */
        assert_float_equal(a->layers_loaded, b->layers_loaded, 1e-3);
        assert_float_equal(a->heads_loaded, b->heads_loaded, 1e-3);
    }
    session_rig_free(&one);
}

TEST(sequences_in_step_do_what_each_does_alone)
{
    struct fixture *f = *state;
    static struct seen w;
    struct session_rig_result r, ar;
    for (int sampled = 0; sampled < 2; sampled++) {
        struct session_options o = two("layerskip exit_layer=3 gamma=2");
        o.sampling.temperature = sampled ? 0.9f : 0;
        w = (struct seen){.runs = 0};
        session_run(f->engine, &o, watch, &w, &r);
        assert_string_equal(w.versus, "layerskip exit_layer=3 gamma=2");
        assert_false(w.out_of_turn);
        assert_string_equal(r.end, "tokens");
        assert_string_equal(r.sequences[0].left, "tokens");
        assert_string_equal(r.sequences[1].left, "tokens");
        compare_with_alone(f, &o, &w, &r.sequences[0], 0, "specbound", NULL, NULL);
        if (!sampled) {
            struct session_options autoregressive = session_usual();
            autoregressive.policy = "ar";
            session_run(f->engine, &autoregressive, NULL, NULL, &ar);
            for (int i = 0; i < 2; i++)
                assert_memory_equal(r.sequences[i].tokens, ar.tokens, ar.n * sizeof *ar.tokens);
            assert_int_equal(r.sequences[1].n, ar.n);
            session_rig_free(&ar);
        }
        session_rig_free(&r);
    }
    /* The settings differ in one knob; the policy is the same. */
    struct session_options o = two("specbound w_max=2");
    w = (struct seen){.runs = 0};
    session_run(f->engine, &o, watch, &w, &r);
    compare_with_alone(f, &o, &w, &r.sequences[0], 0, "specbound", NULL, NULL);
    compare_with_alone(f, &o, &w, &r.sequences[1], 1, "specbound", "w_max", "2");
    session_rig_free(&r);
}

TEST(every_policy_is_lossless_in_a_versus)
{
    struct fixture *f = *state;
    struct session_rig_result r, ar;
    struct session_options o = session_usual();
    o.policy = "ar";
    session_run(f->engine, &o, NULL, NULL, &ar);
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        if (policy_registry[i]->needs != 0)
            continue;
        o = two(policy_registry[i]->name);
        o.policy =
            policy_registry[i + 1] != NULL && policy_registry[i + 1]->needs == 0 ? policy_registry[i + 1]->name : "del";
        session_run(f->engine, &o, NULL, NULL, &r);
        for (int seq = 0; seq < 2; seq++) {
            assert_int_equal(r.sequences[seq].n, ar.n);
            assert_memory_equal(r.sequences[seq].tokens, ar.tokens, ar.n * sizeof *ar.tokens);
        }
        session_rig_free(&r);
    }
    session_rig_free(&ar);
}

/* The contents of caches at the second round of a pair favour neither setting. */
TEST(each_of_two_settings_is_first_as_often_as_the_other)
{
    struct fixture *f = *state;
    static struct seen w;
    struct session_rig_result r;
    const struct session_options o = two("specbound");
    w = (struct seen){.runs = 0};
    session_run(f->engine, &o, watch, &w, &r);
    assert_at_least(w.first[0] + w.first[1], 4);
    assert_in_range(w.first[0], w.first[1] > 0 ? w.first[1] - 1 : 0, w.first[1] + 1);
    session_rig_free(&r);
}

/* ---- changes during a run ---- */

static void
post(struct live *s, enum control_kind kind, const char *name, const char *text, uint32_t seq)
{
    struct err err = {0};
    struct control c = {.kind = kind, .text = text, .seq = seq};
    snprintf(c.name, sizeof c.name, "%s", name);
    assert_ok(s->ops->post(s, &c, &err), err);
}

static void
turn_one(void *user, struct live *s, const struct event *e)
{
    struct seen *w = user;
    watch(user, s, e);
    if (e->type != EVENT_ROUND || e->round != 6 || w->asked)
        return;
    w->asked = true;
    post(s, CONTROL_KNOB, "gamma", "1", 1);
    post(s, CONTROL_POLICY, "", "ar", 0);
}

TEST(a_knob_change_applies_to_one_of_two_settings)
{
    struct fixture *f = *state;
    static struct seen w;
    struct session_rig_result r;
    struct session_options o = two("layerskip gamma=4");
    o.policy = "layerskip";
    o.tokens = 120;
    w = (struct seen){.runs = 0};
    session_run(f->engine, &o, turn_one, &w, &r);
    assert_string_equal(w.told[0], "policy ar");
    assert_string_equal(w.told[1], "gamma 1");
    assert_string_equal(w.line[0][w.n[0] - 1].policy, "ar");
    assert_string_equal(w.line[1][w.n[1] - 1].policy, "layerskip");
    uint32_t drafted = 0;
    for (size_t i = w.n[1] - 4; i < w.n[1]; i++)
        drafted = w.line[1][i].drafted > drafted ? w.line[1][i].drafted : drafted;
    assert_int_equal(drafted, 1);
    assert_int_equal(r.sequences[0].n, r.sequences[1].n);
    assert_memory_equal(r.sequences[0].tokens, r.sequences[1].tokens, r.sequences[0].n * sizeof *r.sequences[0].tokens);
    session_rig_free(&r);
}

/* ---- a versus begins and ends in a session with one setting ---- */

static void
come_and_go(void *user, struct live *s, const struct event *e)
{
    struct seen *w = user;
    watch(user, s, e);
    if (event_is_control(e, "lossless", NULL)) {
        assert_string_equal(e->control.new_text, "yes");
        post(s, CONTROL_RESTART, "", NULL, 0);
    }
    if (!event_is_control(e, "end", NULL))
        return;
    assert_string_equal(e->control.new_text, "tokens");
    switch (w->runs) {
    case 1: /* alone; its contexts have room for one setting */
        assert_int_equal(w->n[1], 0);
        post(s, CONTROL_VERSUS, "", "layerskip gamma=3", 0);
        break;
    case 2: /* again, with a changed knob and a baseline */
        assert_string_equal(w->versus, "layerskip gamma=3");
        post(s, CONTROL_KNOB, "gamma", "2", 1);
        post(s, CONTROL_BASELINE, "", NULL, 0);
        break;
    case 3:
        assert_string_equal(w->versus, "layerskip gamma=2");
        assert_greater(w->n[1], 0);
        post(s, CONTROL_VERSUS, "", "off", 0);
        break;
    default:
        assert_string_equal(w->versus, "");
        assert_int_equal(w->n[1], 0);
        post(s, CONTROL_QUIT, "", NULL, 0);
    }
}

TEST(a_session_of_one_setting_begins_a_comparison_and_ends_it)
{
    struct fixture *f = *state;
    static struct seen w;
    struct session_rig_result r;
    struct session_options o = session_usual();
    o.stay = true;
    w = (struct seen){.runs = 0};
    session_run(f->engine, &o, come_and_go, &w, &r);
    assert_int_equal(r.runs, 4);
    session_rig_free(&r);
}

/* ---- pending changes when the settings are replaced ---- */

/* Calls `post_all` while the first round waits after its second draft. */
struct pending {
    struct seen seen;
    uint32_t stops;
    void (*post_all)(struct live *);
    bool change_first; /* the first setting's change was emitted before the versus */
};

static void
post_in_mid_round(void *user, struct live *s, const struct event *e)
{
    struct pending *p = user;
    if (event_is_control(e, "versus", NULL))
        p->change_first = p->seen.told[0][0] != '\0';
    watch(&p->seen, s, e);
    if (event_is_control(e, "end", NULL))
        post(s, CONTROL_QUIT, "", NULL, 0);
    if (!event_is_control(e, "state", "paused"))
        return;
    p->stops++;
    if (p->stops < 3)
        post(s, CONTROL_STEP_TOKEN, "", NULL, 0);
    if (p->stops != 3) /* the next run is paused until it is resumed */
        return;
    p->post_all(s);
    post(s, CONTROL_RESUME, "", NULL, 0);
}

static double
requested_gamma(struct live *s, uint32_t seq)
{
    struct settings now;
    s->ops->requested(s, seq, &now);
    const struct policy_info *p = &s->ops->info(s)->policies[now.policy];
    assert_string_equal(p->name, "layerskip");
    return now.value[now.policy][policy_knob_index(p, "gamma")];
}

static void
turn_second_and_end_it(struct live *s)
{
    post(s, CONTROL_KNOB, "gamma", "3", 1);
    assert_number_equal(requested_gamma(s, 1), 3);
    assert_number_equal(requested_gamma(s, 0), 5); /* while the round still runs */
    post(s, CONTROL_POLICY, "", "ar", 1);
    post(s, CONTROL_VERSUS, "", "off", 0);
    assert_number_equal(requested_gamma(s, 0), 5);
    assert_number_equal(requested_gamma(s, 1), 5);
}

TEST(waiting_changes_of_the_second_setting_are_removed_with_it)
{
    struct fixture *f = *state;
    struct session_rig_result r;
    struct session_options o = two("layerskip gamma=4");
    static struct pending p;
    o.policy = "layerskip";
    o.paused = o.stay = true;
    p = (struct pending){.post_all = turn_second_and_end_it};
    session_run(f->engine, &o, post_in_mid_round, &p, &r);
    assert_int_equal(r.runs, 2);
    assert_string_equal(p.seen.versus, "");
    assert_string_equal(p.seen.told[0], "");
    assert_string_equal(p.seen.line[0][p.seen.n[0] - 1].policy, "layerskip");
    session_rig_free(&r);
}

static void
turn_first_and_begin_another(struct live *s)
{
    post(s, CONTROL_KNOB, "gamma", "3", 0);
    post(s, CONTROL_VERSUS, "", "layerskip exit_layer=3", 0);
    assert_number_equal(requested_gamma(s, 0), 3);
    assert_number_equal(requested_gamma(s, 1), 3);
    post(s, CONTROL_KNOB, "gamma", "2", 1); /* for the new setting */
    post(s, CONTROL_KNOB, "gamma", "1", 0);
}

TEST(a_second_begins_as_the_first_was_requested)
{
    struct fixture *f = *state;
    struct session_rig_result r;
    struct session_options o = two("layerskip gamma=4");
    static struct pending p;
    o.policy = "layerskip";
    o.paused = o.stay = true;
    p = (struct pending){.post_all = turn_first_and_begin_another};
    session_run(f->engine, &o, post_in_mid_round, &p, &r);
    assert_string_equal(p.seen.versus, "layerskip exit_layer=3");
    assert_true(p.change_first);
    assert_string_equal(p.seen.told[0], "gamma 1");
    assert_string_equal(p.seen.told[1], "gamma 2");
    assert_int_equal(p.seen.line[0][0].drafted, 1);
    assert_int_equal(p.seen.line[1][0].drafted, 2);
    session_rig_free(&r);
}

/* ---- no room for two settings ---- */

static const struct backend_ops *real;

static bool
kv_cache_of_one(struct weights *w, const struct kv_cache_desc *desc, struct kv_cache **out, struct err *err)
{
    const struct kv_cache_desc one = kv_cache_for_sequences(desc->slots, 1);
    return desc->seqs <= one.seqs ? real->kv_cache(w, desc, out, err) : err_set(err, ERR_WORK, "no room for two");
}

static void
no_room(void *user, struct live *s, const struct event *e)
{
    struct seen *w = user;
    watch(user, s, e);
    if (!event_is_control(e, "end", NULL))
        return;
    if (w->runs == 1) {
        post(s, CONTROL_VERSUS, "", "layerskip", 0);
    } else if (w->runs == 2) {
        assert_string_equal(e->control.new_text, "error: versus: no room for two");
        post(s, CONTROL_RESTART, "", NULL, 0);
    } else {
        assert_string_equal(e->control.new_text, "tokens");
        assert_int_equal(w->n[1], 0);
        post(s, CONTROL_QUIT, "", NULL, 0);
    }
}

TEST(one_setting_continues_if_memory_suffices_for_one_sequence)
{
    struct fixture *f = *state;
    static struct seen w;
    struct session_rig_result r;
    struct session_options o = session_usual();
    struct backend_ops small = *f->engine->ops;
    real = f->engine->ops;
    small.kv_cache = kv_cache_of_one;
    o.stay = true;
    w = (struct seen){.runs = 0};
    f->engine->ops = &small;
    session_run(f->engine, &o, no_room, &w, &r);
    f->engine->ops = real;
    assert_int_equal(r.runs, 3);
    session_rig_free(&r);
}

TEST(impossible_pairs_are_refused)
{
    struct fixture *f = *state;
    static const struct {
        const char *versus, *why;
    } bad[] = {
        {"", "versus which setting?"},
        {"nothing", "there is no policy 'nothing'"},
        {"layerskip depth=4", "has no knob"},
        {"layerskip gamma", "no KNOB=VALUE"},
        {"layerskip gamma=", "KNOB=VALUE"},
        {"layerskip =4", "KNOB=VALUE"},
        {"layerskip gamma=999", "gamma"},
        {"off gamma=2", "takes no further words"},
        {"layerskip head=other", "head 'other' is not known"},
        {"layerskip head=trained", "there are no trained heads"},
        {"layerskip heads=a.safetensors", "one set of trained heads at a time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct live *s;
        struct err err = {0};
        const struct session_options o = two(bad[i].versus);
        assert_false(session_open(&s, f->engine, &o, &err));
        if (strstr(err.text, bad[i].why) == NULL)
            fail_msg("'%s': %s", bad[i].versus, err.text);
    }
    struct live *s;
    struct err err = {0};
    struct session_options o = two("layerskip");
    o.batch = 2;
    assert_false(session_open(&s, f->engine, &o, &err));
    assert_contains(err.text, "this is a batch");
    o = two("layerskip");
    o.ctx = 1u << 30;
    assert_false(session_open(&s, f->engine, &o, &err));
}

FIXTURE(session_fixture_open, session_fixture_close);
