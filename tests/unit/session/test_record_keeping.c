/* The record that a session keeps for what-if: the same from hidden states that are there and from rows run again, of the
 * latest positions, in nobody's way, and within its share of the time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/events/layer_record.h"
#include "engine/session/time_share.h"
#include "policies/policy.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"

enum { LAYERS = 6, MANY = 440 };

static struct session *
begin(struct engine *engine, const struct session_options *o)
{
    struct session *s;
    struct err err = {0};
    if (!session_open(&s, engine, o, &err) || !session_start(s, &err))
        fail_msg("%s", err.text);
    return s;
}

static struct session_options
options_of(const char *policy, uint32_t tokens)
{
    struct session_options o = session_usual();
    o.policy = policy;
    o.tokens = tokens;
    o.ctx = 512;
    o.ignore_eos = true;
    o.stay = true;
    o.what_if = 1;
    return o;
}

static void
open_record(struct layer_record *r)
{
    struct err err;
    assert_true(layer_record_open(r, LAYERS, &err));
}

static uint32_t
prompt_tokens(struct engine *engine)
{
    struct session_options o = options_of("ar", 1);
    o.what_if = 0;
    struct session *s = begin(engine, &o);
    const uint32_t n = session_rig_wait_end(s);
    session_close(s);
    return n;
}

static void
assert_same(const struct layer_record *a, const struct layer_record *b)
{
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->begin, b->begin);
    assert_memory_equal(a->cells, b->cells, (size_t)a->n * LAYERS * sizeof *a->cells);
}

/* One session looks at rows as they come, the other begins when all but the last few have lost their hidden states. */
static void
test_rows_run_again_say_what_they_said(void **state)
{
    struct fixture *f = *state;
    const uint32_t prompt = prompt_tokens(f->engine), last = prompt + MANY - 1;
    struct layer_record early, late;
    open_record(&early);
    open_record(&late);
    struct session_options o = options_of("specbound", MANY);
    struct session *s = begin(f->engine, &o);
    assert_true(session_rig_wait_record(s, &early, last) > 0);
    session_close(s);
    o.what_if = 0;
    s = begin(f->engine, &o);
    session_rig_wait_end(s);
    assert_int_equal(session_record(s, &late, 0), 0);
    session_control(s, CONTROL_WHAT_IF, NULL, "5%", 0);
    assert_true(session_rig_wait_record(s, &late, last) > 0);
    session_close(s);
    assert_int_equal(late.n, RECORD_ROWS);
    assert_int_equal(late.begin, RECORD_LEAD);
    assert_same(&early, &late);
    for (uint32_t i = 0; i < late.n; i++)
        assert_true(layer_word(&late, i, LAYERS)->agrees);
    layer_record_close(&early);
    layer_record_close(&late);
}

/* A short run's record begins with the prompt, which only teaches. */
static void
test_a_short_record_begins_with_the_prompt(void **state)
{
    struct fixture *f = *state;
    const uint32_t prompt = prompt_tokens(f->engine);
    struct layer_record r;
    open_record(&r);
    const struct session_options o = options_of("layerskip", 40);
    struct session *s = begin(f->engine, &o);
    assert_true(session_rig_wait_record(s, &r, prompt + 39) > 0);
    assert_int_equal(r.first + r.begin, prompt);
    assert_int_equal(r.n - r.begin, 39);
    session_close(s);
    layer_record_close(&r);
}

/* What is looked at: the sequence in focus, of a batch or of two settings; where that has gone, one that is there. */
static void
test_the_record_is_of_the_sequence_that_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct layer_record together, alone;
    struct prompt_text prompts[2];
    open_record(&together);
    open_record(&alone);
    for (int i = 0; i < 2; i++)
        prompts[i] = (struct prompt_text){session_prompts[i], strlen(session_prompts[i])};
    struct session_options o = options_of("layerskip", 40);
    o.batch = 2;
    o.n_prompts = 2;
    o.prompts = prompts;
    struct session *s = begin(f->engine, &o);
    session_post(s, &(struct control){.kind = CONTROL_WHAT_IF_OF, .seq = 1}, NULL);
    o.batch = 0;
    o.n_prompts = 0;
    o.prompts = NULL;
    o.prompt = prompts[1].text;
    o.prompt_len = prompts[1].len;
    struct session *one = begin(f->engine, &o);
    uint64_t seen = 0;
    session_rig_wait_end(one);
    for (int i = 0; i < 60000 && (alone.n == 0 || together.n != alone.n || together.sequence != 1); i++) {
        session_record(one, &alone, 0);
        seen = session_record(s, &together, seen);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(together.sequence, 1);
    assert_same(&together, &alone);
    session_post(s, &(struct control){.kind = CONTROL_WHAT_IF_OF, .seq = 7}, NULL);
    for (int i = 0; i < 60000 && together.sequence != 0; i++) {
        seen = session_record(s, &together, seen);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(together.sequence, 0);
    session_close(one);
    session_close(s);
    layer_record_close(&together);
    layer_record_close(&alone);
}

static void
test_rounds_are_the_same_whether_a_record_is_kept_or_not(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        if (policy_registry[i]->what_if == NULL)
            continue;
        struct session_rig_result with, without;
        struct session_options o = options_of(policy_registry[i]->name, 200);
        o.stay = false;
        session_run(f->engine, &o, NULL, NULL, &with);
        o.what_if = 0;
        session_run(f->engine, &o, NULL, NULL, &without);
        const struct tally *a = &with.metrics.total, *b = &without.metrics.total;
        assert_int_equal(a->rounds, b->rounds);
        assert_int_equal(a->drafted, b->drafted);
        assert_int_equal(a->accepted, b->accepted);
        assert_true(a->layers == b->layers && a->heads == b->heads);
        assert_int_equal(with.n, without.n);
        assert_memory_equal(with.tokens, without.tokens, with.n * sizeof *with.tokens);
        session_rig_free(&with);
        session_rig_free(&without);
    }
}

/* A record of a run that has ended is made while the session idles. */
static void
assert_no_record(struct engine *engine, const struct session_options *o)
{
    struct layer_record r;
    struct session *s = begin(engine, o);
    open_record(&r);
    session_rig_wait_end(s);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(session_record(s, &r, 0), 0);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    session_close(s);
    layer_record_close(&r);
}

static void
test_nothing_is_kept_where_nothing_can_be_told(void **state)
{
    struct fixture *f = *state;
    struct session_options o = options_of("swift", 30); /* has no what-if */
    assert_no_record(f->engine, &o);
    o = options_of("specbound", 30);
    o.sampling.temperature = 1;
    assert_no_record(f->engine, &o);
}

static void
test_a_share_is_a_percentage_or_off(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    const struct session_options o = options_of("specbound", 10);
    struct session *s = begin(f->engine, &o);
    static const char *const bad[] = {"", "much", "0", "-3%", "101%", "5%%", "5 %"}, *const good[] = {"5%", "0.5",
                                                                                                      "off"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(session_post(s, &(struct control){.kind = CONTROL_WHAT_IF, .text = bad[i]}, &err));
        assert_non_null(strstr(err.text, "as 5%, or off"));
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(session_post(s, &(struct control){.kind = CONTROL_WHAT_IF, .text = good[i]}, &err));
    session_close(s);
}

/* Slices of all lengths between work of all lengths, on a clock of the test's. */
static void
test_slices_stay_within_a_share_of_the_time(void **state)
{
    (void)state;
    uint64_t random = seed_or(9);
    for (double share = 0.001; share <= 1; share *= 3) {
        struct time_share t = {.share = share};
        uint64_t now = 1000000, spent = 0, longest = 0, slices = 0;
        const uint64_t from = now;
        time_share_left(&t, now);
        for (int i = 0; i < 20000; i++) {
            now += splitmix64(&random) % 3000;
            while (time_share_left(&t, now)) {
                const uint64_t slice = 1 + splitmix64(&random) % 9000;
                time_share_spend(&t, slice);
                now += slice;
                spent += slice;
                longest = slice > longest ? slice : longest;
                slices++;
            }
            assert_true((double)spent <= share * (double)(now - from) + (double)longest);
        }
        assert_true(slices > 3 && (double)spent > 0.9 * share * (double)(now - from) - TIME_SHARE_SAVED);
    }
    struct time_share idle = {.share = 0.5}; /* an hour without a slice is not worth half an hour */
    time_share_left(&idle, 1);
    assert_true(time_share_left(&idle, UINT64_C(3600000000)));
    time_share_spend(&idle, TIME_SHARE_SAVED);
    assert_false(time_share_left(&idle, UINT64_C(3600000000)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_run_again_say_what_they_said),
        cmocka_unit_test(test_a_short_record_begins_with_the_prompt),
        cmocka_unit_test(test_the_record_is_of_the_sequence_that_is_asked_for),
        cmocka_unit_test(test_rounds_are_the_same_whether_a_record_is_kept_or_not),
        cmocka_unit_test(test_nothing_is_kept_where_nothing_can_be_told),
        cmocka_unit_test(test_a_share_is_a_percentage_or_off),
        cmocka_unit_test(test_slices_stay_within_a_share_of_the_time),
    };
    return cmocka_run_group_tests(tests, session_fixture_open, session_fixture_close);
}
