/* Several threads post requests to a session at once: each request is executed, or refused with a message, and the
 * events keep their guarantees. */
#include <time.h>

#include <pthread.h>
#include <stdatomic.h>

#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

static uint64_t seed = 13;

#define CROWD 4

struct crowd {
    struct live *session;
    pthread_t thread[CROWD];
    struct member {
        struct crowd *crowd;
        uint64_t random;
        uint32_t posts;
        bool silent; /* a control was refused without a message */
    } member[CROWD];
    atomic_uint at_it;
    bool started;
    atomic_uint rounds;
};

/* A random control. Some are refused, because other threads' controls change which ones are allowed. */
static void
post_anything(struct member *m)
{
    static const enum control_kind kinds[] = {CONTROL_PAUSE,      CONTROL_RESUME, CONTROL_RESUME, CONTROL_STEP_ROUNDS,
                                              CONTROL_STEP_TOKEN, CONTROL_BREAK,  CONTROL_UNTIL,  CONTROL_KNOB,
                                              CONTROL_KNOB,       CONTROL_KNOB,   CONTROL_POLICY, CONTROL_PROMPT,
                                              CONTROL_PROBE,      CONTROL_HEAD,   CONTROL_EXTEND, CONTROL_BASELINE,
                                              CONTROL_VERSUS,     CONTROL_NOTE,   CONTROL_RESTART};
    static const char *const texts[] = {
        "0.5",       "3",      "policy",          "all",   "off",     "lens", "layerskip", "reject",
        "specbound", "text e", "fsm gamma_min=2", "swift", "dynamic", "1"};
    const uint64_t r = splitmix64(&m->random);
    const struct run_info *info = m->crowd->session->ops->info(m->crowd->session);
    const struct policy_info *p = &info->policies[(r >> 8) % info->n_policies];
    struct control c = {.kind = kinds[r % (sizeof kinds / sizeof *kinds)],
                        .text = texts[(r >> 16) % (sizeof texts / sizeof *texts)],
                        .n = (uint32_t)(r >> 24) % 5,
                        .seq = (uint32_t)(r >> 32) % 2};
    struct err err = {0};
    const bool new_run = c.kind == CONTROL_PROMPT || c.kind == CONTROL_RESTART || c.kind == CONTROL_VERSUS;
    if (new_run && (r >> 48) % 32 != 0) /* otherwise no run makes progress */
        c.kind = CONTROL_RESUME;
    snprintf(c.name, sizeof c.name, "%s", p->n_knobs > 0 ? p->knobs[(r >> 40) % p->n_knobs].name : "temperature");
    if (!m->crowd->session->ops->post(m->crowd->session, &c, &err) && err.text[0] == '\0')
        m->silent = true;
}

static void *
be_one_of_a_crowd(void *user)
{
    struct member *m = user;
    for (uint32_t i = 0; i < m->posts; i++) {
        const struct timespec moment = {0, (long)(splitmix64(&m->random) % 100000)};
        const unsigned before = atomic_load(&m->crowd->rounds);
        post_anything(m);
        nanosleep(&moment, NULL);
        while (i % 4 == 0 && atomic_load(&m->crowd->rounds) == before &&
               !m->crowd->session->ops->resting(m->crowd->session))
            nanosleep(&moment, NULL); /* waits for a round, unless the session is idle */
    }
    if (atomic_fetch_sub(&m->crowd->at_it, 1) == 1) /* the last thread; no other thread requests this pace */
        m->crowd->session->ops->post(m->crowd->session, &(struct control){.kind = CONTROL_PACE, .text = "12345"}, NULL);
    return NULL;
}

static void
watch_crowd(void *user, struct live *s, const struct event *e)
{
    struct crowd *c = user;
    if (e->type == EVENT_ROUND)
        atomic_fetch_add(&c->rounds, 1);
    if (!c->started) {
        c->started = true;
        c->session = s;
        atomic_store(&c->at_it, CROWD);
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&c->thread[i], NULL, be_one_of_a_crowd, &c->member[i]), 0);
    }
    if (!event_is_control(e, "pace", "12345"))
        return;
    for (int i = 0; i < CROWD; i++)
        pthread_join(c->thread[i], NULL);
    session_control(s, CONTROL_QUIT, NULL, NULL, 0);
}

/* SPECSCOPE_LONG=1 makes this test long. */
TEST(a_crowd_of_threads_may_ask_for_anything_at_once)
{
    struct fixture *f = *state;
    uint64_t random = seed;
    struct crowd c = {.started = false};
    struct session_rig_result r;
    struct session_options o = session_usual();
    o.stay = true;
    o.tokens = 200;
    for (int i = 0; i < CROWD; i++)
        c.member[i] = (struct member){&c, splitmix64(&random), getenv("SPECSCOPE_LONG") != NULL ? 100000 : 500, false};
    session_run(f->engine, &o, watch_crowd, &c, &r);
    for (int i = 0; i < CROWD; i++)
        assert_false(c.member[i].silent);
    assert_greater(r.runs, 1);
    assert_greater(atomic_load(&c.rounds), 0);
    print_message("# %u rounds\n", atomic_load(&c.rounds));
    session_rig_free(&r);
}

TEST_SEED(seed, seed);

FIXTURE(session_fixture_open, session_fixture_close);
