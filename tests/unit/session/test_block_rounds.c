/* Rounds of a block drafter: the events of a block, where its drafts end, and that they do not depend on k. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

enum { TOKENS = 40, POSITIONS = 400, MOST = 6 };

static uint64_t seed;
static struct engine *engine;

static int
open_model(void **state)
{
    const struct tinymodel tiny = {
        .seed = 7 + seed % 6, .n_layers = 4, .calm_after = 2, .calm = 0.15f, .mixed = true, .sharpness = 8};
    (void)state;
    if (!session_fixture_engine(&engine, &tiny))
        return 1;
    assert_int_equal(engine_missing(engine, NEEDS(AUX_BLOCK) | NEEDS_MARKOV), 0);
    return 0;
}

static int
close_model(void **state)
{
    (void)state;
    engine_close(engine);
    return 0;
}

/* A round's drafts, and the events of its block by position after the pending token. */
struct block {
    uint32_t first; /* position of its first draft */
    token_t draft[MOST + 1];
    uint32_t n, plain, biased; /* drafts, and events of both heads */
    struct layer_event of[2][MOST + 1];
    char reason[16];
};

struct seen {
    struct block block[POSITIONS]; /* by the position of its first draft; n and events are 0 if no block begins there */
    struct block now;
    uint32_t rounds, layer;
};

static void
note(void *user, struct live *s, const struct event *e)
{
    struct seen *seen = user;
    struct block *b = &seen->now;
    (void)s;
    if (e->type == EVENT_LAYER && e->layer.model == MODEL_BLOCK) {
        const bool head = e->layer.head == 1;
        uint32_t *n = head ? &b->biased : &b->plain;
        if (b->plain == 0)
            b->first = e->layer.pos;
        assert_int_equal(e->layer.pos, b->first + *n);
        assert_in_range(e->layer.head, 0, 1);
        assert_int_equal(e->layer.layer, seen->layer);
        assert_int_equal(e->layer.probed_by, PROBED_POLICY);
        assert_less(*n, MOST);
        b->of[head][(*n)++] = e->layer;
    } else if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
        b->draft[b->n++] = e->token.token;
    } else if (e->type == EVENT_ROUND) {
        memcpy(b->reason, e->round_end.stop_reason, sizeof b->reason);
        assert_less(b->first, POSITIONS);
        seen->block[b->first] = *b;
        seen->rounds++;
        *b = (struct block){0};
    }
}

/* Generates greedy text; ends when the context is full if there are many tokens. */
static struct seen *
run(const char *policy, const char *k, const char *conf_min, uint32_t tokens)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct session_rig_result result;
    struct err err = {0};
    struct knob_setting set[2] = {{.name = "k"}, {.name = "conf_min"}};
    const struct session_options o = {.policies = policy_registry,
                                      .policy = policy,
                                      .prompt = "a fox",
                                      .prompt_len = 5,
                                      .sampling = {.top_p = 1},
                                      .tokens = tokens,
                                      .ctx = 200,
                                      .set = set,
                                      .n_set = 2,
                                      .ignore_eos = true,
                                      .probe = PROBE_ALL};
    assert_non_null(seen);
    snprintf(set[0].text, sizeof set[0].text, "%s", k);
    snprintf(set[1].text, sizeof set[1].text, "%s", conf_min);
    seen->layer = engine->aux[AUX_BLOCK].model->desc.n_layers;
    if (!session_rig_generate(engine, &o, note, seen, &result, &err))
        fail_msg("%s", err.text);
    assert_string_equal(result.wrong, "");
    session_rig_free(&result);
    assert_at_least(seen->rounds, 5);
    return seen;
}

TEST(dspark_emits_both_predictions_of_each_position_and_drafts_the_one_with_the_bias)
{
    struct seen *s = run("dspark", "6", "0", TOKENS);
    uint32_t moved = 0;
    for (uint32_t at = 0; at < POSITIONS; at++) {
        const struct block *b = &s->block[at];
        assert_int_equal(b->plain, b->n);
        assert_int_equal(b->biased, b->n);
        for (uint32_t i = 0; i < b->n; i++) {
            assert_int_equal(b->draft[i], b->of[1][i].token);
            assert_true(isnan(b->of[0][i].acceptance));
            assert_true(b->of[1][i].acceptance > 0 && b->of[1][i].acceptance < 1);
            moved += b->of[0][i].token != b->of[1][i].token;
        }
    }
    assert_greater(moved, 0);
    free(s);
}

TEST(dflash_emits_one_prediction_of_each_position_with_its_confidence)
{
    struct seen *s = run("dflash", "6", "0", TOKENS);
    for (uint32_t at = 0; at < POSITIONS; at++) {
        const struct block *b = &s->block[at];
        assert_int_equal(b->plain, b->n);
        assert_int_equal(b->biased, 0);
        for (uint32_t i = 0; i < b->n; i++) {
            assert_int_equal(b->draft[i], b->of[0][i].token);
            assert_true(b->of[0][i].acceptance > 0 && b->of[0][i].acceptance < 1);
        }
    }
    free(s);
}

TEST(a_smaller_k_drafts_the_first_of_the_same_drafts)
{
    struct seen *all = run("dspark", "6", "0", TOKENS), *few = run("dspark", "2", "0", TOKENS);
    uint32_t compared = 0;
    for (uint32_t at = 0; at < POSITIONS; at++)
        if (all->block[at].n > 0 && few->block[at].n > 0) {
            const uint32_t n = few->block[at].n < all->block[at].n ? few->block[at].n : all->block[at].n;
            assert_at_most(few->block[at].n, 2);
            assert_memory_equal(few->block[at].draft, all->block[at].draft, n * sizeof(token_t));
            compared++;
        }
    assert_greater(compared, 3);
    free(all);
    free(few);
}

/* The position that ends a block has its events, and no draft. */
TEST(a_block_ends_at_the_first_confidence_below_conf_min)
{
    struct seen *s = run("dspark", "6", "0.5", TOKENS);
    uint32_t ended = 0;
    for (uint32_t at = 0; at < POSITIONS; at++) {
        const struct block *b = &s->block[at];
        for (uint32_t i = 0; i < b->n; i++)
            assert_true(b->of[1][i].acceptance >= 0.5f);
        if (strcmp(b->reason, "confidence") != 0)
            continue;
        ended++;
        assert_int_equal(b->biased, b->n + 1);
        assert_true(b->of[1][b->n].acceptance < 0.5f);
    }
    assert_greater(ended, 0);
    free(s);
}

/* The block's last rows are then after the end of the context. */
TEST(blocks_at_the_end_of_the_context_have_fewer_drafts)
{
    struct seen *s = run("dspark", "6", "0", 1000);
    const struct block *last = NULL;
    for (uint32_t at = 0; at < POSITIONS; at++)
        last = s->block[at].n > 0 ? &s->block[at] : last;
    assert_non_null(last);
    assert_at_most(last->first + last->n, 201);
    assert_at_least(last->first, 190);
    free(s);
}

FIXTURE(open_model, close_model);
TEST_SEED(seed, 1);
