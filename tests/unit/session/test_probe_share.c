/* The scope's own probes in a share of the time (`--probe 15%`): the share itself on a simulated clock, and what a
 * session then probes. */
#include <string.h>
#include <time.h>

#include "engine/session/session_internal.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

FIXTURE(session_fixture_open, session_fixture_close);

/* ---- the share, on a simulated clock ---- */

struct simulated {
    struct probe_share share;
    uint64_t now_us;
    double probed_us, all_us;
    uint32_t positions, bursts, run, shortest; /* consecutive positions: now, and in the shortest finished burst */
};

/* Generates tokens of `token_us`, and probes in calls of four positions. */
static void
generate_tokens(struct simulated *s, double share, uint32_t tokens, uint32_t token_us, uint32_t position_us)
{
    for (uint32_t i = 0, waiting = 0; i < tokens; i++) {
        s->now_us += token_us;
        s->all_us += token_us;
        if (!probe_share_earn(&s->share, share, s->now_us)) {
            if (s->run > 0) {
                s->shortest = s->bursts++ == 0 || s->run < s->shortest ? s->run : s->shortest;
                s->run = waiting = 0;
            }
            continue;
        }
        s->run++;
        if (++waiting < 4 && waiting < s->share.left)
            continue;
        const uint32_t us = waiting * position_us;
        s->now_us += us;
        s->all_us += us;
        s->probed_us += us;
        s->positions += waiting;
        probe_share_spend(&s->share, waiting, us);
        waiting = 0;
    }
}

TEST(probes_take_no_more_than_their_share_of_the_time)
{
    static const double shares[] = {0.02, 0.15, 0.5};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct simulated s = {.now_us = 1000};
        generate_tokens(&s, shares[i], 50000, 5000,
                        6000); /* about the costs of a model with 30 layers, 50,000 tokens */
        const double burst_us = SHARE_BURST * 6000;
        assert_at_most(s.probed_us, shares[i] * s.all_us + burst_us);
        assert_at_least(s.probed_us, shares[i] * s.all_us - 3 * burst_us);
    }
}

TEST(the_first_positions_are_probed_and_then_bursts_of_consecutive_ones)
{
    struct simulated s = {.now_us = 1000};
    generate_tokens(&s, 0.15, SHARE_FIRST, 5000, 6000);
    assert_int_equal(s.positions, SHARE_FIRST);
    generate_tokens(&s, 0.15, 20000, 5000, 6000);
    assert_greater(s.bursts, 10);
    assert_at_least(s.shortest, SHARE_BURST);
}

TEST(every_position_is_probed_if_that_takes_less_than_the_share)
{
    struct simulated s = {.now_us = 1000};
    generate_tokens(&s, 0.15, 2000, 40000, 400); /* the bundled model at 25 tokens per second */
    assert_int_equal(s.positions, 2000);
}

TEST(a_long_pause_earns_no_more_than_two_bursts)
{
    struct simulated s = {.now_us = 1000};
    generate_tokens(&s, 0.15, 1000, 5000, 6000);
    s.now_us += 3600ULL * 1000000;
    const uint32_t before = s.positions;
    generate_tokens(&s, 0.15, 1000, 5000, 6000);
    assert_at_most(s.positions - before, 2 * SHARE_BURST + 1000 * 0.15 * 5000 / 6000 / 0.85 + SHARE_BURST);
}

/* ---- a session ---- */

struct seen {
    bool layer[257][7]; /* probed by the scope, or the last layer by the verification */
    uint32_t prompt, length, rounds, pause_at;
    bool again; /* resume after the pause */
};

static void
see(void *user, struct live *s, const struct event *e)
{
    struct seen *w = user;
    if (e->type == EVENT_LAYER && e->layer.model == MODEL_TARGET && e->layer.probed_by != PROBED_POLICY)
        w->layer[e->layer.pos][e->layer.layer] = true;
    if (e->type == EVENT_TOKEN && e->token.committed > 0) {
        w->prompt += e->token.source == SOURCE_PROMPT;
        w->length = e->token.pos + 1;
    }
    w->rounds += e->type == EVENT_ROUND;
    if (!event_is_control(e, "state", "paused"))
        return;
    if (w->rounds == 0) {
        session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, w->pause_at);
    } else {
        const struct timespec moment = {0, 1000000};
        while (!s->ops->resting(s))
            nanosleep(&moment, NULL);
        w->again = true;
        session_control(s, CONTROL_PROBE, NULL, "policy", 0); /* so that later rows are not probed */
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    }
}

static uint32_t
layers_at(const struct seen *w, uint32_t pos)
{
    uint32_t n = 0;
    for (uint32_t l = 1; l <= 6; l++)
        n += w->layer[pos][l];
    return n;
}

static struct session_options
watched(uint32_t percent)
{
    struct session_options o = session_usual();
    o.policy = "ar";
    o.tokens = 120;
    o.ignore_eos = true;
    o.probe = PROBE_SHARE;
    o.probe_percent = percent;
    return o;
}

TEST(the_text_begins_with_probed_positions_and_every_position_has_the_last_layer)
{
    struct fixture *f = *state;
    struct seen *w = calloc(1, sizeof *w);
    struct session_rig_result r, plain;
    struct session_options o = watched(1);
    assert_non_null(w);
    session_run(f->engine, &o, see, w, &r);
    for (uint32_t pos = w->prompt; pos < w->length; pos++)
        assert_true(w->layer[pos][6]);
    for (uint32_t pos = w->prompt + 1; pos < w->prompt + 60; pos++)
        assert_int_equal(layers_at(w, pos), 6);
    o.probe = PROBE_OFF;
    session_run(f->engine, &o, NULL, NULL, &plain);
    assert_int_equal(r.n, plain.n);
    assert_memory_equal(r.tokens, plain.tokens, r.n * sizeof *r.tokens);
    session_rig_free(&plain);
    session_rig_free(&r);
    free(w);
}

TEST(a_pause_probes_the_latest_positions)
{
    struct fixture *f = *state;
    struct seen *w = calloc(1, sizeof *w);
    struct session_rig_result r;
    assert_non_null(w);
    w->pause_at = 110; /* the first positions are long past */
    struct session_options o = watched(1);
    o.paused = true;
    session_run(f->engine, &o, see, w, &r);
    assert_true(w->again);
    for (uint32_t pos = w->prompt + 81; pos < w->prompt + 110; pos++)
        assert_int_equal(layers_at(w, pos), 6);
    assert_int_equal(layers_at(w, w->length - 1), 1);
    session_rig_free(&r);
    free(w);
}
