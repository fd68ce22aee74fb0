/* The experts of a mixture of experts, from a session's events. Only committed rows count, so the events are the same
 * under any policy and in any batch. */
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

#define MIXTURE "tests/golden/families/qwen3_moe-odd" /* its first layer has no experts */

#define LAYERS 2 /* layers with experts */

enum { POSITIONS = 64, DEPTH = 8, SEQUENCES = 3, TOKENS = 24 };

struct heard {
    struct experts_event told[SEQUENCES][POSITIONS][DEPTH + 1];
    uint32_t times[SEQUENCES][POSITIONS][DEPTH + 1], events;
    uint32_t rounds, known, more; /* rounds; those that report verification's experts; those with more than one row's */
    uint32_t used, experts;
};

static void
hear(void *user, struct live *s, const struct event *e)
{
    struct heard *h = user;
    (void)s;
    if (e->type == EVENT_ROUND) {
        h->rounds++;
        h->known += e->round_end.verify_experts >= (float)h->used && e->round_end.verify_experts <= (float)h->experts;
        h->more += e->round_end.verify_experts > (float)h->used;
    }
    if (e->type != EVENT_EXPERTS)
        return;
    assert_less(e->seq, SEQUENCES);
    assert_less(e->experts.pos, POSITIONS);
    assert_at_most(e->experts.layer, DEPTH);
    h->told[e->seq][e->experts.pos][e->experts.layer] = e->experts;
    h->times[e->seq][e->experts.pos][e->experts.layer]++;
    h->events++;
}

static struct heard *
run(struct engine *engine, const char *policy, const char *knob, const char *value, uint32_t batch,
    enum probe_mode probe)
{
    struct heard *h = calloc(1, sizeof *h);
    struct session_rig_result r;
    struct session_options o = session_usual();
    struct knob_setting set;
    static struct prompt_text prompts[SEQUENCES] = {{"ab", 2}, {"abc", 3}, {"zzzz", 4}};
    assert_non_null(h);
    h->used = 3;
    h->experts = 8;
    snprintf(set.name, sizeof set.name, "%s", knob != NULL ? knob : "");
    snprintf(set.text, sizeof set.text, "%s", value != NULL ? value : "");
    o.policy = policy;
    o.set = &set;
    o.n_set = knob != NULL;
    o.probe = probe;
    o.tokens = TOKENS;
    o.ctx = POSITIONS - 1;
    o.prompt = prompts[0].text;
    o.prompt_len = prompts[0].len;
    if (batch > 0) {
        o.batch = batch;
        o.prompts = prompts;
        o.n_prompts = SEQUENCES;
    }
    session_run(engine, &o, hear, h, &r);
    session_rig_free(&r);
    return h;
}

static void
assert_same(const struct heard *a, uint32_t of, const struct heard *b, uint32_t as)
{
    uint32_t n = 0;
    for (uint32_t pos = 0; pos < POSITIONS; pos++)
        for (int l = 0; l <= DEPTH; l++) {
            const struct experts_event *x = &a->told[of][pos][l], *y = &b->told[as][pos][l];
            assert_int_equal(a->times[of][pos][l], b->times[as][pos][l]);
            assert_in_range(a->times[of][pos][l], 0, 1);
            assert_int_equal(x->n, y->n);
            assert_memory_equal(x->expert, y->expert, sizeof x->expert);
            assert_memory_equal(x->weight, y->weight, sizeof x->weight); /* to the last bit */
            n += x->n > 0;
        }
    assert_at_least(n, TOKENS);
}

static struct engine *
open_engine(const char *backend)
{
    struct engine *engine;
    struct err err = {0};
    assert_ok(session_rig_engine(&engine, MIXTURE, backend, 2, &err), err);
    return engine;
}

TEST(a_rows_experts_are_emitted_once_under_every_policy)
{
    struct engine *engine = open_engine("cpu");
    struct heard *alone = run(engine, "ar", NULL, NULL, 0, PROBE_ALL);
    for (int l = 0; l <= DEPTH; l++) /* the row of the prompt's last token is committed by the first round */
        assert_int_equal(alone->times[0][POSITIONS - 1][l], 0);
    assert_int_equal(alone->known, alone->rounds);
    assert_int_equal(alone->more, 0);
    struct heard *drafted = run(engine, "layerskip", "exit_layer", "2", 0, PROBE_ALL);
    struct heard *bound = run(engine, "specbound", "tau", "0.1", 0, PROBE_ALL);
    assert_same(alone, 0, drafted, 0);
    assert_same(alone, 0, bound, 0);
    assert_int_equal(drafted->known, drafted->rounds);
    assert_greater(drafted->more, 0);
    free(alone);
    free(drafted);
    free(bound);
    engine_close(engine);
}

TEST(a_batchs_sequences_go_where_each_would_go_alone)
{
    struct engine *engine = open_engine("check");
    struct heard *alone = run(engine, "layerskip", "exit_layer", "1", 0, PROBE_ALL);
    struct heard *batch = run(engine, "layerskip", "exit_layer", "1", SEQUENCES, PROBE_ALL);
    assert_same(alone, 0, batch, 0);
    for (uint32_t seq = 1; seq < SEQUENCES; seq++) {
        uint32_t layers = 0;
        for (int l = 0; l <= DEPTH; l++)
            layers += batch->times[seq][8][l];
        assert_int_equal(layers, LAYERS);
    }
    free(alone);
    free(batch);
    engine_close(engine);
}

TEST(only_the_experts_of_verification_are_emitted_without_probes)
{
    struct engine *engine = open_engine("cpu");
    struct heard *h = run(engine, "layerskip", "exit_layer", "1", 0, PROBE_POLICY);
    assert_int_equal(h->events, 0);
    assert_int_equal(h->known, h->rounds);
    free(h);
    engine_close(engine);
}
