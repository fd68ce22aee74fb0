/* The contract of backends: when a backend writes results, which requests it refuses, and the state after cancelling.
 * The check backend also reports errors that the CPU backend does not detect. */
#include <math.h>

#include "tests/rigs/backend_rig.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/test.h"

static const struct naive_shape shape = {
    .n_layers = 3, .width = 32, .heads = 2, .kv_heads = 1, .head_dim = 16, .ffn = 64, .vocab = 90, .type = WEIGHT_Q8_0};
static const struct backend_options options = {.threads = 2};
static const struct backend_ops *const both[] = {&cpu_backend, &check_backend};

TEST(results_are_written_by_wait_and_nothing_else)
{
    for (size_t b = 0; b < 2; b++) {
        struct rig r;
        rig_open(&r, both[b], &shape, 5, &options);
        rig_chain(&r, 6);
        rig_step_all(&r);
        struct probe probes[2] = {{.ring = 3, .layer = 2, .temperature = 1}, {.ring = 5, .layer = 3, .temperature = 1}};
        struct prediction predictions[2], was_predictions[2], probed[4], was_probed[4];
        struct exit_result out, was_out;
        struct verdict verdicts[2], was_verdicts[2];
        float logits[90], was_logits[90], threshold[4] = {2, 0, 2, 2}, temperature[4] = {1, 1, 1, 1};
        token_t token = -77;
        memset(predictions, 0x5a, sizeof predictions);
        memset(probed, 0x5a, sizeof probed);
        memset(&out, 0x5a, sizeof out);
        memset(verdicts, 0x5a, sizeof verdicts);
        memset(logits, 0x5a, sizeof logits);
        out.probed = probed;
        memcpy(was_predictions, predictions, sizeof predictions);
        memcpy(was_probed, probed, sizeof probed);
        memcpy(&was_out, &out, sizeof out);
        memcpy(was_verdicts, verdicts, sizeof verdicts);
        memcpy(was_logits, logits, sizeof logits);
        int node = rig_add(&r, 5, 11);
        struct exit_rule rule = {.temperature = temperature, .threshold = threshold};
        struct verify_node nodes[2] = {{.parent = -1, .ring = 4, .q = DIST_NONE},
                                       {.parent = 0, .token = 3, .ring = 5, .q = DIST_NONE}};
        struct dist_req dist = {.ring = 5, .layer = 3, .sampling = {.temperature = 1, .top_p = 1}, .out = 0};
        struct verify_req rounds[2] = {{.nodes = nodes + 1, .n = 1, .sampling = {.top_p = 1}, .out = &verdicts[1]},
                                       {.nodes = nodes, .n = 2, .sampling = {.top_p = 1}, .out = &verdicts[0]}};
        assert_true(r.ops->predict(r.kv_cache, probes, 2, predictions));
        assert_true(r.ops->until(r.kv_cache, rig_forward(&r, &node, 1, 3, 0), &rule, &out));
        assert_true(r.ops->dist(r.kv_cache, &dist, 1));
        assert_true(r.ops->draw(r.kv_cache, &(struct draw_req){.from = 0, .out = &token}, 1));
        assert_true(r.ops->verify(r.kv_cache, rounds, 2));
        assert_true(r.ops->read_logits(r.kv_cache, 5, 3, logits));
        memset(probes, 0xff, sizeof probes); /* the caller may reuse the arguments */
        memset(nodes, 0xff, sizeof nodes);
        memset(rounds, 0xff, sizeof rounds);
        memset(threshold, 0xff, sizeof threshold);
        assert_memory_equal(predictions, was_predictions, sizeof predictions);
        assert_memory_equal(probed, was_probed, sizeof probed);
        assert_memory_equal(&out, &was_out, sizeof out);
        assert_memory_equal(verdicts, was_verdicts, sizeof verdicts);
        assert_memory_equal(logits, was_logits, sizeof logits);
        assert_int_equal(token, -77);
        rig_wait(&r);
        assert_true(out.exited && out.depth == 1 && out.probes == 1);
        assert_ptr_equal(out.probed, probed);
        assert_int_equal(probed[1].token, out.prediction.token);
        assert_int_equal(probed[2].token, TOKEN_NONE);
        assert_between(predictions[1].token, 0, 89);
        assert_between(token, 0, 89);
        assert_int_equal(verdicts[0].judged[1].token, predictions[1].token);
        assert_memory_equal(&verdicts[1].judged[0], &verdicts[0].judged[1], sizeof(struct prediction));
        assert_at_least(logits[predictions[1].token], logits[0]);
        rig_close(&r);
    }
}

TEST(check_and_cpu_give_the_same_bits)
{
    float logits[2][90];
    for (size_t b = 0; b < 2; b++) {
        struct rig r;
        rig_open(&r, both[b], &shape, 6, &options);
        rig_tree(&r, 30);
        rig_step_all(&r);
        rig_logits(&r, 29, 3, logits[b]);
        rig_close(&r);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
}

TEST(malformed_requests_are_refused_at_once)
{
    for (size_t b = 0; b < 2; b++) {
        struct rig r;
        rig_open(&r, both[b], &shape, 7, &options);
        rig_chain(&r, 4);
        rig_step_all(&r);
        int node = rig_add(&r, 3, 1);
        struct forward_pass good = *rig_forward(&r, &node, 1, 3, 0), w = good;
        struct row row = good.rows[0];
        w.rows = &row;
        w.to = 4;
        assert_false(r.ops->step(r.kv_cache, &w)); /* no such layer */
        w.to = 3;
        row.slot = RIG_NODES;
        assert_false(r.ops->step(r.kv_cache, &w));
        row = good.rows[0];
        row.ring = RIG_NODES;
        assert_false(r.ops->step(r.kv_cache, &w));
        row = good.rows[0];
        row.n_tail++; /* the tail exceeds the array of tails */
        assert_false(r.ops->step(r.kv_cache, &w));
        row = good.rows[0];
        row.tail = 1; /* the shorter tail is well-formed, but does not end with the row itself */
        row.n_tail--;
        row.slot = 0;
        assert_false(r.ops->step(r.kv_cache, &w));
        struct prediction prediction;
        assert_false(
            r.ops->predict(r.kv_cache, &(struct probe){.ring = 0, .layer = 4, .temperature = 1}, 1, &prediction));
        assert_false(
            r.ops->predict(r.kv_cache, &(struct probe){.ring = 0, .layer = 1, .temperature = 0}, 1, &prediction));
        assert_false(r.ops->predict(
            r.kv_cache, &(struct probe){.ring = 0, .layer = 1, .temperature = 1, .head = (enum head_choice)2}, 1,
            &prediction));
        assert_false(r.ops->embed(r.kv_cache, &(struct row){.token = 90}, 1));
        assert_false(r.ops->embed(r.kv_cache, &(struct row){.token = TOKEN_NONE}, 1));
        assert_false(r.ops->trunk(r.kv_cache, 3, 0, &(slot_t){0}, 1));
        assert_false(r.ops->trunk(r.kv_cache, 0, RIG_NODES, &(slot_t){0}, 1));
        assert_false(r.ops->dist(r.kv_cache, &(struct dist_req){.out = 70}, 1));
        struct verify_node nodes[2] = {{.parent = -1, .ring = 3, .q = DIST_NONE},
                                       {.parent = 1, .ring = RING_NONE, .q = DIST_NONE}};
        struct verdict verdict;
        const struct verify_req rounds[2] = {{.nodes = nodes, .n = 1, .out = &verdict},
                                             {.nodes = nodes, .n = 2, .out = &verdict}};
        assert_false(r.ops->verify(r.kv_cache, &rounds[1], 1));
        assert_false(r.ops->verify(r.kv_cache, rounds, 2)); /* one wrong round refuses both */
        rig_wait(&r);                                       /* a refused request has no effect */
        rig_step(&r, &node, 1, 3, 0);
        rig_close(&r);
    }
}

TEST(cancelling_drops_the_queue_and_rows_keep_their_depth)
{
    float want[90], got[90];
    for (size_t b = 0; b < 2; b++) {
        struct rig r;
        rig_open(&r, both[b], &shape, 8, &options);
        rig_chain(&r, 6);
        rig_step_all(&r);
        int node = rig_add(&r, 5, 33);
        rig_wait(&r);
        struct err err = {.kind = ERR_NONE};
        struct prediction prediction = {.token = -9};
        atomic_store(&r.cancel, true);
        assert_true(r.ops->step(r.kv_cache, rig_forward(&r, &node, 1, 3, 0)));
        assert_true(
            r.ops->predict(r.kv_cache, &(struct probe){.ring = 5, .layer = 3, .temperature = 1}, 1, &prediction));
        assert_false(r.ops->wait(r.kv_cache, &err));
        assert_int_equal(err.kind, ERR_CANCELLED);
        assert_int_equal(prediction.token, -9);
        atomic_store(&r.cancel, false);
        rig_step(&r, &node, 1, 3, 0); /* runs the row again from depth 0 */
        rig_logits(&r, node, 3, got);
        if (b == 0)
            memcpy(want, got, sizeof want);
        assert_memory_equal(got, want, sizeof want);
        rig_close(&r);
    }
}

TEST(values_that_are_not_numbers_are_an_error)
{
    for (size_t b = 0; b < 2; b++) {
        struct rig r;
        rig_open(&r, both[b], &shape, 9, &options);
        r.ops->drop(r.kv_cache);
        r.ops->unload(r.weights);
        struct model_desc d = *r.desc;
        struct err err = {.kind = ERR_NONE};
        float norm[32];
        for (int i = 0; i < 32; i++)
            norm[i] = i == 3 ? NAN : 1;
        d.final_norm.data = norm;
        assert_ok(r.ops->load(r.backend, &d, NULL, NULL, &r.weights, &err), err);
        assert_true(r.ops->kv_cache(
            r.weights,
            &(struct kv_cache_desc){.slots = 8, .ring = 8, .seqs = 1, .trunk = 8, .max_rows = 8, .max_probes = 8},
            &r.kv_cache, &err));
        r.n = 0;
        rig_chain(&r, 2);
        rig_step_all(&r);
        struct prediction prediction;
        assert_true(
            r.ops->predict(r.kv_cache, &(struct probe){.ring = 1, .layer = 3, .temperature = 1}, 1, &prediction));
        assert_false(r.ops->wait(r.kv_cache, &err));
        assert_int_equal(err.kind, ERR_WORK);
        assert_contains(err.text, "not numbers");
        rig_wait(&r); /* an error is reported once */
        rig_close(&r);
    }
}

/* ---- loading ---- */

static bool
stop_half_way(void *user, double done)
{
    double *last = user;
    assert_between(done, *last, 1);
    *last = done;
    return done < 0.5;
}

TEST(loading_can_be_cancelled_and_checks_shapes)
{
    struct naive_model *model = naive_model_random(&shape, 1);
    struct model_desc d = *naive_model_desc(model);
    struct backend *b;
    struct weights *w;
    struct err err = {.kind = ERR_NONE};
    double done = 0;
    assert_ok(cpu_backend.open(&b, &options, &err), err);
    assert_false(cpu_backend.load(b, &d, stop_half_way, &done, &w, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_at_least(done, 0.5);
    struct layer_desc layers[3] = {d.layers[0], d.layers[1], d.layers[2]};
    d.layers = layers;
    layers[1].up.cols = 31;
    assert_false(cpu_backend.load(b, &d, NULL, NULL, &w, &err));
    assert_contains(err.text, "ffn_up of layer 2");
    layers[1].up.cols = 32;
    d.kv_heads = 0;
    assert_false(cpu_backend.load(b, &d, NULL, NULL, &w, &err));
    assert_int_equal(err.kind, ERR_WORK);
    cpu_backend.close(b);
    naive_model_free(model);
}

/* ---- errors that only the ledger detects ---- */

static void
assert_noticed(struct rig *r, bool queued, const char *part)
{
    struct err err = {.kind = ERR_NONE};
    assert_true(queued);
    assert_false(r->ops->wait(r->kv_cache, &err));
    if (err.kind != ERR_WORK || strstr(err.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

TEST(the_ledger_detects_events_that_were_never_computed)
{
    struct rig r;
    struct prediction prediction;
    token_t token;
    rig_open(&r, &check_backend, &shape, 10, &options);
    rig_chain(&r, 6);
    int chain[6] = {0, 1, 2, 3, 4, 5};
    rig_step(&r, chain, 3, 3, 0);
    rig_step(&r, chain + 3, 1, 1, 0);

    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, chain + 4, 1, 3, 0)), "never computed");
    assert_noticed(&r,
                   r.ops->predict(r.kv_cache, &(struct probe){.ring = 3, .layer = 2, .temperature = 1}, 1, &prediction),
                   "no hidden state of layer 2");
    assert_noticed(&r,
                   r.ops->predict(r.kv_cache,
                                  &(struct probe){.ring = 3, .layer = 1, .temperature = 1, .versus_final = true}, 1,
                                  &prediction),
                   "no hidden state of layer 3");
    assert_noticed(
        &r, r.ops->predict(r.kv_cache, &(struct probe){.ring = 60, .layer = 0, .temperature = 1}, 1, &prediction),
        "ring entry 60");
    assert_noticed(&r, r.ops->draw(r.kv_cache, &(struct draw_req){.from = 4, .out = &token}, 1),
                   "before it was computed");
    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, (int[]){4, 3}, 2, 3, 0)), "before its ancestor");
    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, (int[]){3, 3}, 2, 3, 0)), "twice");
    r.nodes[3].depth = 2; /* the depth is wrong */
    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, chain + 3, 1, 3, 0)), "does not hold its hidden state");
    r.nodes[3].depth = 1;
    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, chain + 3, 1, 3, 2)), "trunk table does not name");
    assert_true(r.ops->trunk(r.kv_cache, 0, 0, (slot_t[]){1, 0, 2}, 3)); /* positions swapped */
    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, chain + 3, 1, 3, 3)), "its keys are for position");
    rig_trunk(&r, 0, 2);
    rig_step(&r, chain + 3, 3, 3, 3); /* a correct request works */
    rig_close(&r);
}

TEST(the_ledger_knows_that_skipped_attention_leaves_no_keys)
{
    struct rig r;
    rig_open(&r, &check_backend, &shape, 11, &options);
    rig_chain(&r, 3);
    int chain[3] = {0, 1, 2};
    const bool skip[4] = {false, false, true, false};
    struct forward_pass w = *rig_forward(&r, chain, 2, 3, 0);
    w.skip_attention = skip;
    assert_true(r.ops->step(r.kv_cache, &w));
    rig_wait(&r);
    r.nodes[0].depth = r.nodes[1].depth = 3;
    assert_noticed(&r, r.ops->step(r.kv_cache, rig_forward(&r, chain + 2, 1, 3, 0)), "at layer 2");
    w = *rig_forward(&r, chain + 2, 1, 3, 0);
    w.skip_attention = skip; /* the same plan does not read the missing keys */
    assert_true(r.ops->step(r.kv_cache, &w));
    rig_wait(&r);
    rig_close(&r);
}
