/* Controls posted from a thread of their own at random moments, long prefills, full contexts.
 * Every run's events are checked by the rig. */
#include <time.h>

#include <pthread.h>
#include <semaphore.h>

#include "engine/model/tokenizer/tokenizer.h"
#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

#define KNOB_CHANGES 200

static uint64_t seed = 11;

/* ---- another thread ---- */

struct poster {
    struct live *session;
    pthread_t thread;
    uint64_t random;
    bool started;
    uint32_t posted, taken;            /* numbers of changes of tau */
    char value[KNOB_CHANGES + 1][16];  /* in the order of posting */
    bool out_of_order, refused, ended; /* ended: the last value was received */
};

static void
post_quietly(struct poster *p, enum control_kind kind, const char *name, const char *text, uint32_t n)
{
    struct control c = {.kind = kind, .text = text, .n = n};
    snprintf(c.name, sizeof c.name, "%s", name != NULL ? name : "");
    if (!p->session->ops->post(p->session, &c, NULL) && kind != CONTROL_BREAK) /* the round may be over */
        p->refused = true;
}

static void *
post_at_random(void *user)
{
    struct poster *p = user;
    static const char *const probes[] = {"off", "policy", "30%", "all"};
    for (p->posted = 0; p->posted < KNOB_CHANGES;) {
        const struct timespec moment = {0, (long)(splitmix64(&p->random) % 200000)};
        nanosleep(&moment, NULL);
        uint64_t r = splitmix64(&p->random);
        switch (r % 16) {
        case 0: post_quietly(p, CONTROL_PAUSE, NULL, NULL, 0); break;
        case 1: post_quietly(p, CONTROL_STEP_ROUNDS, NULL, NULL, (uint32_t)(r >> 8) % 3); break;
        case 2: post_quietly(p, CONTROL_STEP_TOKEN, NULL, NULL, 0); break;
        case 3: post_quietly(p, CONTROL_BREAK, NULL, NULL, (uint32_t)(r >> 8) % 9); break;
        case 4: post_quietly(p, CONTROL_PROBE, NULL, probes[(r >> 8) % 4], 0); break;
        case 5: post_quietly(p, CONTROL_BASELINE, NULL, NULL, 0); break;
        case 6: post_quietly(p, CONTROL_RESTART, NULL, NULL, 0); break;
        case 7: post_quietly(p, CONTROL_PROMPT, NULL, session_prompts[(r >> 8) % SESSION_PROMPTS], 0); break;
        case 8: post_quietly(p, CONTROL_EXTEND, NULL, NULL, 1 + (uint32_t)(r >> 8) % 9); break;
        case 9: post_quietly(p, CONTROL_PACE, NULL, (r >> 8) % 2 != 0 ? "3000" : "0", 0); break;
        case 10: post_quietly(p, CONTROL_RESUME, NULL, NULL, 0); break;
        default: /* a value that differs from the last one, on the knob's grid */
            snprintf(p->value[p->posted], sizeof p->value[0], "0.%02u", 10 + p->posted % 80);
            post_quietly(p, CONTROL_KNOB, "tau", p->value[p->posted++], 0);
            break;
        }
    }
    post_quietly(p, CONTROL_BREAK, NULL, NULL, 0);
    post_quietly(p, CONTROL_RESUME, NULL, NULL, 0);
    post_quietly(p, CONTROL_KNOB, "tau", "1", 0); /* the last value */
    return NULL;
}

static void
watch(void *user, struct live *s, const struct event *e)
{
    struct poster *p = user;
    if (!p->started) {
        p->session = s;
        p->started = pthread_create(&p->thread, NULL, post_at_random, p) == 0;
        assert_true(p->started);
    }
    if (!event_is_control(e, "tau", NULL))
        return;
    if (strcmp(e->control.new_text, "1") == 0) {
        p->ended = true;
        pthread_join(p->thread, NULL);
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
        return;
    }
    double said = strtod(e->control.new_text, NULL), meant = strtod(p->value[p->taken], NULL);
    p->out_of_order = p->out_of_order || said < meant || said > meant;
    p->taken++;
}

TEST(another_threads_controls_are_all_taken_in_order)
{
    struct fixture *f = *state;
    uint64_t random = seed;
    for (int i = 0; i < 4; i++) {
        struct session_options o = session_usual();
        struct session_rig_result r;
        struct poster p = {.random = splitmix64(&random)};
        o.stay = true;
        o.tokens = 200;
        session_run(f->engine, &o, watch, &p, &r);
        assert_true(p.ended);
        assert_false(p.refused);
        assert_int_equal(p.taken, p.posted);
        assert_false(p.out_of_order);
        assert_greater(r.runs, 1);
        session_rig_free(&r);
    }
}

/* ---- stepping where nothing is drafted ---- */

struct steps {
    uint32_t tokens, at[8], n;
};

static void
step_by_token(void *user, struct live *s, const struct event *e)
{
    struct steps *st = user;
    st->tokens += e->type == EVENT_TOKEN && e->token.source != SOURCE_PROMPT;
    if (!event_is_control(e, "state", "paused"))
        return;
    if (st->n < 8)
        st->at[st->n++] = st->tokens;
    session_control(s, st->n < 8 ? CONTROL_STEP_TOKEN : CONTROL_RESUME, NULL, NULL, 0);
}

TEST(a_step_by_token_stops_after_each_token_also_without_drafts)
{
    struct fixture *f = *state;
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct session_options o = session_usual();
        o.policy = policy_registry[i]->name;
        o.paused = true;
        struct steps st = {0};
        struct session_rig_result r;
        session_run(f->engine, &o, step_by_token, &st, &r);
        assert_int_equal(st.n, 8);
        for (uint32_t k = 1; k < 8; k++) {
            assert_greater(st.at[k], st.at[k - 1]);
            assert_at_most(st.at[k], st.at[k - 1] + 2); /* the last draft and verification's tokens end the same step */
        }
        assert_int_equal(r.n, 60);
        session_rig_free(&r);
    }
}

/* ---- the end of a run, and after it ---- */

struct extension {
    uint32_t ends, eos;
};

static void
extend_twice(void *user, struct live *s, const struct event *e)
{
    struct extension *x = user;
    if (!event_is_control(e, "end", "tokens"))
        return;
    x->ends++;
    if (x->ends <= 2)
        session_control(s, CONTROL_EXTEND, NULL, NULL, 20);
    else
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
}

TEST(an_extended_run_has_the_text_of_a_longer_one)
{
    struct fixture *f = *state;
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct session_options o = session_usual();
        struct session_rig_result longer, r;
        struct extension x = {0};
        o.policy = policy_registry[i]->name;
        o.tokens = 60;
        session_run(f->engine, &o, NULL, NULL, &longer);
        o.tokens = 20;
        o.stay = true;
        session_run(f->engine, &o, extend_twice, &x, &r);
        assert_int_equal(x.ends, 3);
        assert_int_equal(r.n, 60);
        assert_memory_equal(r.tokens, longer.tokens, r.n * sizeof *r.tokens);
        session_rig_free(&longer);
        session_rig_free(&r);
    }
}

static void
go_on_after_the_end(void *user, struct live *s, const struct event *e)
{
    struct extension *x = user;
    if (!event_is_control(e, "end", NULL))
        return;
    x->eos += event_is_control(e, "end", "eos");
    x->ends++;
    if (x->ends == 1)
        session_control(s, CONTROL_EXTEND, NULL, NULL, 25);
    else
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
}

/* Greedy text that ignores ends of sequence is the text without an end. */
TEST(a_run_can_resume_after_an_end_of_sequence)
{
    struct fixture *f = *state;
    unsigned ended = 0;
    for (unsigned k = 0; k < SESSION_PROMPTS; k++) {
        struct session_options o = session_usual();
        struct session_rig_result endless, first, r;
        struct extension x = {0};
        o.prompt = session_prompts[k];
        o.prompt_len = strlen(o.prompt);
        o.tokens = 120;
        session_run(f->engine, &o, NULL, NULL, &endless);
        o.ignore_eos = false;
        session_run(f->engine, &o, NULL, NULL, &first);
        o.stay = true;
        session_run(f->engine, &o, go_on_after_the_end, &x, &r);
        assert_int_equal(x.ends, 2);
        if (x.eos > 0 && strcmp(first.end, "eos") == 0) {
            ended++;
            assert_greater(r.n, first.n);
            assert_at_most(r.n, 145);
            assert_memory_equal(r.tokens, endless.tokens, (r.n < endless.n ? r.n : endless.n) * sizeof *r.tokens);
        } else {
            assert_int_equal(r.n, 145);
        }
        session_rig_free(&endless);
        session_rig_free(&first);
        session_rig_free(&r);
    }
    print_message("# %u of %d prompts ended with eos\n", ended, SESSION_PROMPTS);
    assert_greater(ended, 0);
}

static uint32_t
prompt_tokens(struct engine *engine, const char *prompt)
{
    token_t *ids;
    size_t n;
    struct err err;
    const struct tokenize_options options = {.bos = true, .special = true};
    assert_ok(tokenizer_encode(engine->model->tokenizer, prompt, strlen(prompt), options, &ids, &n, &err), err);
    free(ids);
    return (uint32_t)n;
}

TEST(a_prompt_that_leaves_one_place_gives_two_tokens)
{
    struct fixture *f = *state;
    for (size_t i = 0; policy_registry[i] != NULL; i++)
        for (uint32_t room = 1; room < 6; room++) {
            struct session_options o = session_usual();
            struct session_rig_result r;
            o.policy = policy_registry[i]->name;
            o.tokens = 0;
            o.ctx = prompt_tokens(f->engine, o.prompt) + room;
            session_run(f->engine, &o, NULL, NULL, &r);
            assert_string_equal(r.end, "context");
            assert_int_equal(r.n, room + 1); /* the last token needs no row */
            session_rig_free(&r);
        }
}

/* ---- long prefills ---- */

struct impatience {
    enum control_kind kind;
    uint32_t prompt_tokens; /* of the first run */
    bool posted, prefilled; /* prefilled: the first run's prefill ended nevertheless */
};

/* The engine stops before the second chunk of the prompt until the control is posted. The control is posted after the
 * engine has stopped. */
static struct {
    struct backend_ops ops;
    const struct backend_ops *real;
    uint32_t steps;
    sem_t reached, posted;
} door;

static bool
held_step(struct kv_cache *s, const struct forward_pass *w)
{
    if (++door.steps == 2) {
        sem_post(&door.reached);
        sem_wait(&door.posted);
    }
    return door.real->step(s, w);
}

static void
interrupt_prefill(void *user, struct live *s, const struct event *e)
{
    struct impatience *w = user;
    w->prefilled = w->prefilled || (e->run == 1 && e->type == EVENT_TOKEN && e->token.source == SOURCE_PREFILL);
    if (!w->posted && e->type == EVENT_TOKEN && e->token.pos + 1 == w->prompt_tokens) {
        w->posted = true;
        sem_wait(&door.reached);
        session_control(s, w->kind, NULL, w->kind == CONTROL_PROMPT ? session_prompts[2] : NULL, 0);
        sem_post(&door.posted);
    }
}

TEST(a_long_prefill_is_cancelled_by_a_prompt_and_by_quitting)
{
    struct fixture *f = *state;
    size_t len = 2000;
    char *text = malloc(len + 1);
    assert_non_null(text);
    uint64_t random = seed;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(' ' + splitmix64(&random) % 90);
    text[len] = '\0';
    struct session_options o = session_usual();
    struct session_rig_result plain, r;
    o.prompt = session_prompts[2];
    o.prompt_len = strlen(o.prompt);
    session_run(f->engine, &o, NULL, NULL, &plain);
    o.prompt = text;
    o.prompt_len = len;
    o.ctx = 1u << 12;
    door.real = f->engine->ops;
    door.ops = *f->engine->ops;
    door.ops.step = held_step;
    f->engine->ops = &door.ops;
    sem_init(&door.reached, 0, 0);
    sem_init(&door.posted, 0, 0);
    struct impatience w = {.kind = CONTROL_PROMPT, .prompt_tokens = prompt_tokens(f->engine, text)};
    door.steps = 0;
    session_run(f->engine, &o, interrupt_prefill, &w, &r);
    assert_true(w.posted && !w.prefilled);
    assert_int_equal(r.runs, 2);
    assert_int_equal(r.n, plain.n);
    assert_memory_equal(r.tokens, plain.tokens, r.n * sizeof *r.tokens);
    session_rig_free(&r);
    w = (struct impatience){.kind = CONTROL_QUIT, .prompt_tokens = w.prompt_tokens};
    door.steps = 0;
    session_run(f->engine, &o, interrupt_prefill, &w, &r);
    assert_true(w.posted && !w.prefilled);
    assert_int_equal(r.runs, 1);
    assert_int_equal(r.n, 0);
    assert_at_least(door.steps, 2);
    f->engine->ops = door.real;
    sem_destroy(&door.reached);
    sem_destroy(&door.posted);
    session_rig_free(&r);
    session_rig_free(&plain);
    free(text);
}

TEST_SEED(seed, seed);

FIXTURE(session_fixture_open, session_fixture_close);
