/* Runs that resume until a condition is met. The session stops exactly where the scope finds it. */
#include "engine/scope/scope.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

#define ROUNDS 256

struct seen { /* the observations of a run */
    struct scope *scope;
    const char *until;
    uint32_t round, stop[ROUNDS], stops; /* the rounds after which the session paused */
    uint32_t said;                       /* number of "until" events */
};

static void
see(void *user, struct live *s, const struct event *e)
{
    struct seen *seen = user;
    scope_event(seen->scope, e);
    if (e->type == EVENT_ROUND)
        seen->round = e->round;
    if (seen->until != NULL && event_is_control(e, "until", seen->until))
        seen->said++;
    if (seen->until == NULL || !event_is_control(e, "state", "paused"))
        return;
    if (seen->round > 0 && seen->stops < ROUNDS)
        seen->stop[seen->stops++] = seen->round;
    session_control(s, CONTROL_UNTIL, NULL, seen->until, 0);
}

/* Checks that the place meets the condition. */
static void
check_place(const struct scope *s, const struct scope_round *r, const struct until *u, const struct scope_place *place)
{
    const struct scope_column *c = scope_column(s, place->pos);
    assert_at_least(place->pos, r->first_pos);
    if (u->kind == UNTIL_SPURIOUS) {
        assert_greater(place->layer, 0);
        assert_true(scope_spurious(s, place->pos, (uint32_t)place->layer));
    }
    if (u->kind == UNTIL_REJECT) {
        assert_non_null(c);
        assert_int_equal(c->fate, FATE_CORRECTION);
        assert_int_equal(c->round, r->number);
    }
}

/* Compares the rounds that the scope finds in a run without stops with the rounds at which a run stopped. */
static uint32_t
stops_where_the_scope_finds_it(struct fixture *f, const char *words, uint32_t batch)
{
    struct session_options o = session_usual();
    struct session_rig_result r;
    struct seen plain = {0}, stopped = {.until = words};
    struct until until;
    struct err err = {0};
    const struct knob_setting low = {"tau", "0.1"}; /* the tiny model is never very confident */
    o.probe = PROBE_ALL;
    o.set = &low;
    o.n_set = 1;
    o.tokens = 120;
    o.batch = batch;
    assert_ok(until_parse(words, &until, &err), err);
    struct live *s; /* it outlives the scopes, which refer to its run_info */
    assert_ok(session_open(&s, f->engine, &o, &err), err);
    assert_ok(scope_open(&plain.scope, s->ops->info(s), &err), err);
    assert_ok(scope_open(&stopped.scope, s->ops->info(s), &err), err);
    session_run(f->engine, &o, see, &plain, &r);
    uint32_t expected[ROUNDS], n = 0;
    struct scope_place place;
    for (uint32_t back = scope_rounds(plain.scope); back-- > 0;) {
        const struct scope_round *round = scope_round(plain.scope, back);
        if (scope_round_has(plain.scope, round, &until, &place)) {
            expected[n++] = round->number;
            check_place(plain.scope, round, &until, &place);
        }
    }
    for (uint32_t i = 0; i < n; i++) { /* finds each round from its neighbours, in both directions */
        assert_int_equal(scope_find_round(plain.scope, &until, i > 0 ? expected[i - 1] : 0, false, &place),
                         expected[i]);
        assert_int_equal(scope_find_round(plain.scope, &until, i + 1 < n ? expected[i + 1] : UINT32_MAX, true, &place),
                         expected[i]);
    }
    session_rig_free(&r);
    o.paused = true;
    session_run(f->engine, &o, see, &stopped, &r);
    assert_int_equal(stopped.stops, n);
    assert_int_equal(stopped.said, n);
    assert_memory_equal(stopped.stop, expected, n * sizeof *expected);
    session_rig_free(&r);
    scope_close(plain.scope);
    scope_close(stopped.scope);
    live_close(s);
    return n;
}

TEST(a_session_stops_at_a_rejection)
{
    assert_greater(stops_where_the_scope_finds_it(*state, "reject", 0), 0);
}

TEST(a_session_stops_at_a_confidence)
{
    const uint32_t some = stops_where_the_scope_finds_it(*state, "confidence 0.4", 0),
                   all = stops_where_the_scope_finds_it(*state, "confidence 1", 0);
    assert_less(some, all);
    assert_greater(all, 0);
    assert_int_equal(stops_where_the_scope_finds_it(*state, "confidence 0", 0), 0);
}

TEST(a_session_stops_at_a_spurious_cell)
{
    const uint32_t n = stops_where_the_scope_finds_it(*state, "spurious", 0);
    print_message("%u rounds with spurious cells\n", (unsigned)n);
    assert_greater(n, 0);
}

TEST(a_session_stops_at_a_text)
{
    assert_greater(stops_where_the_scope_finds_it(*state, "text e", 0), 0);
    stops_where_the_scope_finds_it(*state, "text er", 0);
    assert_int_equal(stops_where_the_scope_finds_it(*state, "text no such words", 0), 0);
}

/* ---- several sequences ---- */

struct met {
    struct scope *scope; /* searches a run without stops; NULL: the session searches */
    const char *words;
    struct until until;
    uint32_t n, round[ROUNDS], seq[ROUNDS];
    bool in[3]; /* the sequences in which it was met */
};

static void
meet(void *user, struct live *s, const struct event *e)
{
    struct met *m = user;
    const bool told = m->scope == NULL && event_is_control(e, "until", m->words);
    if (m->scope != NULL)
        scope_event(m->scope, e);
    if (m->scope == NULL && event_is_control(e, "state", "paused"))
        session_control(s, CONTROL_UNTIL, NULL, m->words, 0);
    const bool found = m->scope != NULL && e->type == EVENT_ROUND && scope_has_come(m->scope, e->seq, &m->until) &&
                       (m->n == 0 || m->round[m->n - 1] != e->round);
    if ((!told && !found) || m->n == ROUNDS)
        return;
    assert_less(e->seq, 3);
    m->round[m->n] = e->round;
    m->seq[m->n++] = e->seq;
    m->in[e->seq] = true;
}

/* The session and the scope find the condition in the same sequence. */
TEST(any_sequence_of_a_batch_stops_the_session)
{
    struct fixture *f = *state;
    static const char *const words[] = {"reject", "confidence 0.3", "spurious", "text e"};
    struct session_options o = session_usual();
    struct prompt_text prompts[3];
    struct session_rig_result r;
    struct err err = {0};
    const struct knob_setting low = {"tau", "0.1"};
    for (int i = 0; i < 3; i++)
        prompts[i] = (struct prompt_text){session_prompts[i], strlen(session_prompts[i])};
    o.batch = 3;
    o.n_prompts = 3;
    o.prompts = prompts;
    o.probe = PROBE_ALL;
    o.set = &low;
    o.n_set = 1;
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        struct met plain = {.words = words[w]}, stopped = plain;
        struct live *s;
        assert_ok(until_parse(words[w], &plain.until, &err), err);
        o.paused = false;
        assert_ok(session_open(&s, f->engine, &o, &err), err); /* for its run_info */
        assert_ok(scope_open(&plain.scope, s->ops->info(s), &err), err);
        session_run(f->engine, &o, meet, &plain, &r);
        session_rig_free(&r);
        o.paused = true;
        session_run(f->engine, &o, meet, &stopped, &r);
        session_rig_free(&r);
        assert_greater(plain.n, 0);
        assert_true(plain.in[1] || plain.in[2]);
        assert_int_equal(plain.n, stopped.n);
        assert_memory_equal(plain.round, stopped.round, plain.n * sizeof *plain.round);
        assert_memory_equal(plain.seq, stopped.seq, plain.n * sizeof *plain.seq);
        scope_close(plain.scope);
        live_close(s);
    }
}

static void
pause_soon(void *user, struct live *s, const struct event *e)
{
    uint32_t *paused = user;
    if (e->type == EVENT_CONTROL && event_is_control(e, "state", "paused") && ++*paused == 1)
        session_control(s, CONTROL_UNTIL, NULL, "round 4", 0);
    if (event_is_control(e, "state", "paused"))
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    assert_true(*paused < 2 || !event_is_control(e, "break", NULL) || e->round == 4);
}

TEST(a_round_is_a_breakpoint)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct session_rig_result r;
    uint32_t paused = 0;
    o.paused = true;
    session_run(f->engine, &o, pause_soon, &paused, &r);
    assert_int_equal(paused, 2); /* at the start and where the condition is met */
    session_rig_free(&r);
}

TEST(a_condition_that_cannot_be_is_refused)
{
    struct fixture *f = *state;
    struct session_options o = session_usual();
    struct live *s;
    struct err err = {0};
    assert_ok(session_open(&s, f->engine, &o, &err), err);
    const struct control c = {.kind = CONTROL_UNTIL, .text = "whenever"};
    assert_false(s->ops->post(s, &c, &err));
    assert_contains(err.text, "whenever");
    live_close(s);
}

FIXTURE(session_fixture_open, session_fixture_close);
