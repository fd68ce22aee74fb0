/* Contexts of block drafters, on the CPU backend with its requests checked: rows that are fed and kept, and blocks that
 * are discarded. */
#include "base/rng.h"
#include "engine/context/context.h"
#include "tests/rigs/block_rig.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { CTX = 120, SEQS = 4, LAYERS = 2, BLOCK = 6, FEATURES = 3 * BLOCK_WIDTH };

static const struct block_form forms[] = {
    {"usual", LAYERS, BLOCK, .type = WEIGHT_Q8_0, .markov = true},
    {"window", LAYERS, BLOCK, .window = 9, .type = WEIGHT_F16, .markov = true},
    {"causal", LAYERS, BLOCK, .type = WEIGHT_Q8_0, .causal = true, .markov = true},
};

static uint64_t seed;
static float features[SEQS][CTX][FEATURES];

struct opened {
    struct block_model model;
    struct backend *backend;
    struct weights *weights;
    struct context *c;
};

static struct context *
open_context(const struct opened *o)
{
    struct err err = {0};
    struct context *c;
    const struct context_options options = {.ctx = CTX, .seqs = SEQS, .ring = 96, .max_rows = 24, .feed_load = 0.25};
    assert_ok(context_open(&c, &check_backend, o->backend, o->weights, &o->model.desc, &options, &err), err);
    return c;
}

static void
open_form(struct opened *o, size_t form)
{
    struct err err = {0};
    block_model_open(&o->model, &forms[form], seed + form);
    for (uint64_t s = 0; s < SEQS; s++)
        block_features(&o->model, seed + s, CTX, features[s][0]);
    assert_ok(check_backend.open(&o->backend, &(struct backend_options){.threads = 2, .gpu = -1}, &err), err);
    assert_ok(check_backend.load(o->backend, &o->model.desc, NULL, NULL, &o->weights, &err), err);
    o->c = open_context(o);
}

static void
close_form(struct opened *o)
{
    context_close(o->c);
    check_backend.unload(o->weights);
    check_backend.close(o->backend);
    block_model_close(&o->model);
}

static void
check(const struct context *c, bool ok)
{
    if (!ok)
        fail_msg("%s", context_error(c)->text);
}

/* Feeds and keeps n <= 24 rows at the end of a sequence, with the features `of` a sequence. */
static void
feed(struct context *c, seq_t s, int of, uint32_t n)
{
    slot_t slots[24];
    const uint32_t first = context_length(c, s);
    for (uint32_t i = 0; i < n; i++)
        slots[i] = context_append(c, s, i > 0 ? slots[i - 1] : SLOT_NONE, 1);
    check(c, context_feed(c, slots, n, features[of][first]) && context_keep(c, s, slots, n));
}

static void
append_block(struct context *c, seq_t s, token_t pending, slot_t *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = context_append(c, s, i > 0 ? slots[i - 1] : SLOT_NONE, i == 0 ? pending : (token_t)BLOCK_VOCAB - 1);
        assert_int_not_equal(slots[i], SLOT_NONE);
    }
}

struct seen {
    struct prediction plain[BLOCK], biased[BLOCK];
    float hidden[BLOCK][BLOCK_WIDTH], dist[BLOCK][BLOCK_VOCAB];
};

/* Predicts the rows of n blocks, with and without a bias. */
static void
see(struct context *c, slot_t (*slots)[BLOCK], size_t n, struct seen *out)
{
    struct context_probe probes[SEQS * BLOCK];
    struct prediction got[SEQS * BLOCK];
    token_t before[BLOCK];
    dist_t dists[BLOCK];
    for (int biased = 0; biased < 2; biased++) {
        for (size_t i = 0; i < n * BLOCK; i++)
            probes[i] = (struct context_probe){.slot = slots[i / BLOCK][i % BLOCK],
                                               .layer = LAYERS,
                                               .temperature = 1,
                                               .kept = biased,
                                               .before = (token_t)(7 * (i % BLOCK))};
        check(c, context_predict(c, probes, n * BLOCK, got));
        for (size_t i = 0; i < n; i++)
            memcpy(biased ? out[i].biased : out[i].plain, got + i * BLOCK, sizeof out->plain);
    }
    for (size_t i = 0; i < n; i++) {
        const struct sampling sampling = {.temperature = 0.7f, .top_p = 1};
        for (size_t r = 0; r < BLOCK; r++) {
            before[r] = (token_t)(7 * r);
            check(c, context_read_hidden(c, slots[i][r], LAYERS, out[i].hidden[r]));
        }
        check(c, context_block_dists(c, slots[i], BLOCK, before, &sampling, dists));
        for (size_t r = 0; r < BLOCK; r++)
            check(c, context_read_dist(c, dists[r], out[i].dist[r]));
        dist_pool_release(context_limits(c)->dists);
    }
}

/* Runs a block after the sequence's rows and discards it. */
static void
run_block(struct context *c, seq_t s, token_t pending, struct seen *out)
{
    slot_t slots[1][BLOCK];
    append_block(c, s, pending, slots[0], BLOCK);
    check(c, context_advance(c, slots[0], BLOCK, LAYERS, NULL));
    see(c, slots, 1, out);
    context_discard(c, slots[0][0]);
}

/* Runs a block in a fresh context in which n rows were fed. */
static void
run_fresh(const struct opened *o, int of, uint32_t n, token_t pending, struct seen *out)
{
    struct context *c = open_context(o);
    const seq_t s = context_sequence(c);
    for (uint32_t at = 0; at < n; at += 24)
        feed(c, s, of, n - at < 24 ? n - at : 24);
    run_block(c, s, pending, out);
    context_close(c);
}

static void
assert_seen(const struct seen *got, const struct seen *want)
{
    assert_memory_equal(got->hidden, want->hidden, sizeof got->hidden);
    assert_memory_equal(got->plain, want->plain, sizeof got->plain);
    assert_memory_equal(got->biased, want->biased, sizeof got->biased);
    assert_memory_equal(got->dist, want->dist, sizeof got->dist);
}

TEST(rounds_of_blocks_give_the_bits_of_a_fresh_context)
{
    static struct opened o;
    static struct seen got[2], want;
    uint64_t random = seed;
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        open_form(&o, form);
        const seq_t s[2] = {context_sequence(o.c), context_sequence(o.c)};
        for (int round = 0; round < 12; round++) {
            slot_t slots[2][BLOCK];
            for (int i = 0; i < 2; i++) {
                feed(o.c, s[i], i, 1 + (uint32_t)(splitmix64(&random) % 7));
                append_block(o.c, s[i], (token_t)round, slots[i], BLOCK);
            }
            check(o.c, context_advance(o.c, slots[0], sizeof slots / sizeof **slots, LAYERS, NULL));
            see(o.c, slots, 2, got);
            for (int i = 0; i < 2; i++) {
                run_fresh(&o, i, context_length(o.c, s[i]), (token_t)round, &want);
                assert_seen(&got[i], &want);
                context_discard(o.c, slots[i][0]);
            }
        }
        close_form(&o);
    }
}

TEST(a_block_after_a_cut_trunk_is_that_of_a_fresh_context)
{
    static struct opened o;
    static struct seen got, want;
    open_form(&o, 0);
    const seq_t s = context_sequence(o.c);
    feed(o.c, s, 0, 20);
    run_block(o.c, s, 3, &got);
    context_truncate(o.c, s, 11);
    feed(o.c, s, 0, 2);
    run_block(o.c, s, 4, &got);
    run_fresh(&o, 0, 13, 4, &want);
    assert_seen(&got, &want);
    close_form(&o);
}

TEST(a_block_of_a_fork_attends_to_the_shared_rows)
{
    static struct opened o;
    static struct seen got, want;
    open_form(&o, 0);
    const seq_t s = context_sequence(o.c);
    feed(o.c, s, 1, 20);
    const seq_t fork = context_fork(o.c, s, 15);
    check(o.c, fork != SEQ_NONE);
    context_drop(o.c, s);
    feed(o.c, fork, 1, 1);
    run_block(o.c, fork, 5, &got);
    run_fresh(&o, 1, 16, 5, &want);
    assert_seen(&got, &want);
    close_form(&o);
}

/* Returns whether the first row of a block of n rows is that of a block of n + 1. */
static bool
first_rows_are_equal(size_t form)
{
    static struct opened o;
    float hidden[2][BLOCK_WIDTH];
    open_form(&o, form);
    const seq_t s = context_sequence(o.c);
    feed(o.c, s, 0, 5);
    for (uint32_t i = 0; i < 2; i++) {
        slot_t slots[BLOCK];
        append_block(o.c, s, 2, slots, BLOCK - i);
        check(o.c, context_advance(o.c, slots, BLOCK - i, LAYERS, NULL));
        check(o.c, context_read_hidden(o.c, slots[0], LAYERS, hidden[i]));
        context_discard(o.c, slots[0]);
    }
    close_form(&o);
    return memcmp(hidden[0], hidden[1], sizeof hidden[0]) == 0;
}

TEST(rows_of_a_block_attend_to_later_ones)
{
    assert_false(first_rows_are_equal(0));
}

TEST(rows_of_a_causal_drafter_attend_to_no_later_ones)
{
    assert_true(first_rows_are_equal(2));
}

TEST(a_block_counts_the_layers_once_and_a_bias_its_share_of_the_head)
{
    static struct opened o;
    slot_t slots[BLOCK];
    struct context_probe probes[BLOCK];
    struct prediction out[BLOCK];
    open_form(&o, 0);
    const seq_t s = context_sequence(o.c);
    feed(o.c, s, 0, 9);
    assert_number_equal(context_loads(o.c).layers, 0.25);
    append_block(o.c, s, 2, slots, BLOCK);
    check(o.c, context_advance(o.c, slots, BLOCK, LAYERS, NULL));
    assert_number_equal(context_loads(o.c).layers, 0.25 + LAYERS);
    for (int i = 0; i < BLOCK; i++)
        probes[i] = (struct context_probe){.slot = slots[i], .layer = LAYERS, .temperature = 1};
    check(o.c, context_predict(o.c, probes, BLOCK, out));
    assert_number_equal(context_loads(o.c).heads, 1);
    for (int i = 0; i < BLOCK; i++)
        probes[i].kept = true;
    probes[0].before = TOKEN_NONE;
    check(o.c, context_predict(o.c, probes, 1, out));
    assert_number_equal(context_loads(o.c).heads, 1);
    check(o.c, context_predict(o.c, probes, BLOCK, out));
    assert_number_equal(context_loads(o.c).heads, 1 + (double)BLOCK_RANK / BLOCK_WIDTH);
    close_form(&o);
}

static void
assert_error(const struct context *c, const char *part)
{
    assert_int_equal(context_error(c)->kind, ERR_WORK);
    assert_contains(context_error(c)->text, part);
}

TEST(a_row_that_was_fed_has_no_hidden_states)
{
    static struct opened o;
    float hidden[BLOCK_WIDTH];
    open_form(&o, 0);
    const seq_t s = context_sequence(o.c);
    feed(o.c, s, 0, 2);
    assert_false(context_read_hidden(o.c, context_at(o.c, s, 1), LAYERS, hidden));
    assert_error(o.c, "no hidden states");
    close_form(&o);
}

TEST(a_row_after_an_incomplete_one_is_not_fed)
{
    static struct opened o;
    slot_t slots[2];
    open_form(&o, 0);
    append_block(o.c, context_sequence(o.c), 1, slots, 2);
    assert_false(context_feed(o.c, slots + 1, 1, features[0][0]));
    assert_error(o.c, "is not complete");
    check(o.c, context_feed(o.c, slots, 2, features[0][0]));
    close_form(&o);
}

TEST(a_row_is_not_fed_twice)
{
    static struct opened o;
    slot_t slots[2];
    open_form(&o, 0);
    append_block(o.c, context_sequence(o.c), 1, slots, 1);
    slots[1] = slots[0];
    assert_false(context_feed(o.c, slots, 2, features[0][0]));
    check(o.c, context_feed(o.c, slots, 1, features[0][0]));
    assert_false(context_feed(o.c, slots, 1, features[0][0]));
    assert_error(o.c, "it has run already");
    close_form(&o);
}

TEST(logits_of_a_row_that_ran_again_are_not_kept)
{
    static struct opened o;
    static struct seen seen;
    slot_t slots[BLOCK];
    struct prediction out;
    open_form(&o, 0);
    const seq_t s = context_sequence(o.c);
    run_block(o.c, s, 1, &seen);
    append_block(o.c, s, 1, slots, BLOCK); /* in the same places of the ring */
    check(o.c, context_advance(o.c, slots, BLOCK, LAYERS, NULL));
    const struct context_probe probe = {.slot = slots[0], .layer = LAYERS, .temperature = 1, .kept = true};
    assert_false(context_predict(o.c, &probe, 1, &out));
    close_form(&o);
}

TEST_SEED(seed, 1);
