/* Requests of the CUDA backend through kernels/backend.h: delivery of results, cancelling, refusals, loading. The test
 * runs on the emulator and on a real GPU (make test-cuda). */
#include <unistd.h>

#include "kernels/experts.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

static uint64_t seed; /* printed by main */

/* ---- queue, wait, cancel ---- */

TEST(results_come_with_wait_and_not_before)
{
    NEEDS_CUDA;
    struct rig r;
    struct prediction prediction = {.token = 12345};
    float hidden[RIG_WIDTH] = {-77};
    cuda_rig_open(&r, 1, false, seed);
    rig_chain(&r, 3);
    rig_step_all(&r);
    assert_true(cuda->predict(r.kv_cache, &(struct probe){.ring = 1, .layer = 1, .temperature = 1}, 1, &prediction));
    assert_true(cuda->read_hidden(r.kv_cache, 1, 1, hidden));
    assert_int_equal(prediction.token, 12345);
    assert_number_equal(hidden[0], -77);
    rig_wait(&r);
    assert_at_least(prediction.token, 0);
    assert_less((uint32_t)prediction.token, r.desc->vocab);
    assert_true(hidden[0] != -77);
    rig_close(&r);
}

/* Queues far more requests than fit the arenas. All results arrive in order. */
TEST(a_queue_longer_than_its_memory_is_served)
{
    NEEDS_CUDA;
    static struct prediction predictions[12][300];
    static float hidden[12][RIG_WIDTH];
    struct probe probes[300];
    struct rig r;
    cuda_rig_open(&r, 2, false, seed);
    rig_chain(&r, 30);
    rig_step_all(&r);
    for (uint32_t i = 0; i < 300; i++)
        probes[i] = (struct probe){.ring = i % 30, .layer = i / 30 % 4, .temperature = 1};
    for (int i = 0; i < 12; i++) {
        assert_true(cuda->predict(r.kv_cache, probes, i == 11 ? 300 : 60, predictions[i]));
        assert_true(cuda->read_hidden(r.kv_cache, (uint32_t)i, 1, hidden[i]));
    }
    rig_wait(&r);
    for (int i = 1; i < 12; i++)
        assert_memory_equal(predictions[0], predictions[i], 60 * sizeof predictions[0][0]);
    for (int i = 0; i < 12; i++) {
        float alone[RIG_WIDTH];
        rig_hidden(&r, i, 1, alone);
        assert_memory_equal(alone, hidden[i], r.desc->width * sizeof *alone);
    }
    rig_close(&r);
}

/* Counts the head calls with so many rows in a profile. */
static int
head_calls(const char *path, uint32_t rows)
{
    char line[160], what[32];
    int n = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    snprintf(what, sizeof what, ",head,%u,", (unsigned)rows);
    while (fgets(line, sizeof line, file) != NULL)
        n += strstr(line, what) != NULL;
    (void)fclose(file);
    return n;
}

/* Predictions of all layers of some rows, and one more probe: as many rows of logits as one head call computes. The
 * final layer is then computed once. */
TEST(probes_that_fill_a_call_of_the_head_take_one)
{
    NEEDS_CUDA;
    enum { ROWS = 85, LAYERS = 3, CALL = 256 };
    static struct prediction predictions[ROWS * LAYERS + 1];
    struct probe probes[ROWS * LAYERS + 1];
    char path[] = "/tmp/specscope-phases-XXXXXX";
    struct rig r;
    const int file = mkstemp(path);
    assert_at_least(file, 0);
    (void)close(file);
    setenv("SPECSCOPE_CUDA_PROFILE", path, 1);
    cuda_rig_open(&r, 1, false, seed);
    assert_int_equal(r.desc->n_layers + 1, LAYERS);
    rig_chain(&r, ROWS + 1);
    rig_step_all(&r);
    for (uint32_t i = 0; i <= ROWS * LAYERS; i++)
        probes[i] = (struct probe){
            .ring = i / LAYERS, .layer = i % LAYERS, .temperature = 1, .versus_final = i < ROWS * LAYERS};
    assert_true(cuda->predict(r.kv_cache, probes, ROWS * LAYERS + 1, predictions));
    rig_wait(&r);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(predictions[i * LAYERS + LAYERS - 1].rank_final, 0);
    rig_close(&r);
    unsetenv("SPECSCOPE_CUDA_PROFILE");
    assert_int_equal(head_calls(path, CALL), 1);
    assert_int_equal(unlink(path), 0);
}

TEST(a_cancelled_forward_pass_is_dropped_and_the_next_one_runs)
{
    NEEDS_CUDA;
    struct rig r;
    struct err err = {.kind = ERR_NONE};
    const int nodes[] = {0, 1, 2};
    struct prediction prediction = {.token = 12345};
    cuda_rig_open(&r, 0, true, seed);
    rig_chain(&r, 3);
    atomic_store(&r.cancel, true);
    assert_true(cuda->step(r.kv_cache, rig_forward(&r, nodes, 3, r.desc->n_layers, 0)));
    assert_true(cuda->predict(r.kv_cache, &(struct probe){.ring = 1, .layer = 1, .temperature = 1}, 1, &prediction));
    assert_false(cuda->wait(r.kv_cache, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_int_equal(prediction.token, 12345);
    atomic_store(&r.cancel, false);
    assert_true(
        cuda->step(r.kv_cache, rig_forward(&r, nodes, 3, r.desc->n_layers, 0))); /* the flag is set after the call */
    atomic_store(&r.cancel, true);
    (void)cuda->wait(r.kv_cache, &err);
    atomic_store(&r.cancel, false);
    rig_step_all(&r);
    for (int i = 0; i < 3; i++)
        cuda_rig_assert_near_naive(&r, i, true);
    rig_close(&r);
}

/* The word that cancels is reset before the device is cancelled again. */
TEST(one_forward_pass_after_another_is_cancelled)
{
    NEEDS_CUDA;
    for (size_t shape = 0; shape <= CUDA_MOE; shape += CUDA_MOE) {
        struct rig r;
        struct err err = {.kind = ERR_NONE};
        const int nodes[] = {0, 1, 2};
        cuda_rig_open(&r, shape, true, seed);
        rig_chain(&r, 3);
        for (int turn = 0; turn < 4; turn++) {
            assert_true(cuda->step(r.kv_cache, rig_forward(&r, nodes, 3, r.desc->n_layers, 0)));
            atomic_store(&r.cancel, true);
            assert_false(cuda->wait(r.kv_cache, &err));
            assert_int_equal(err.kind, ERR_CANCELLED);
            atomic_store(&r.cancel, false);
        }
        rig_step_all(&r);
        cuda_rig_assert_near_naive(&r, 2, true);
        rig_close(&r);
    }
}

TEST(a_kv_cache_is_dropped_with_its_queued_requests)
{
    NEEDS_CUDA;
    struct rig r;
    const int nodes[] = {0, 1, 2};
    cuda_rig_open(&r, 1, false, seed);
    rig_chain(&r, 3);
    assert_true(cuda->step(r.kv_cache, rig_forward(&r, nodes, 3, r.desc->n_layers, 0)));
    rig_close(&r);
}

TEST(malformed_requests_are_refused)
{
    NEEDS_CUDA;
    struct rig r;
    struct prediction prediction;
    slot_t tails[RIG_NODES + 1] = {0};
    cuda_rig_open(&r, 0, false, seed);
    rig_chain(&r, 1);
    const struct row row = {.n_trunk = RIG_NODES, .tail = 0, .n_tail = 1}, bad = {.slot = RIG_NODES};
    struct forward_pass w = {.rows = &row, .n = 1, .tails = tails, .n_tails = 1, .to = 1};
    assert_false(cuda->step(r.kv_cache, &w)); /* more tokens than slots */
    w.rows = &bad;
    assert_false(cuda->step(r.kv_cache, &w));
    assert_false(cuda->embed(r.kv_cache, &bad, 1));
    assert_false(cuda->trunk(r.kv_cache, 3, 0, tails, 1));
    assert_false(
        cuda->predict(r.kv_cache, &(struct probe){.layer = r.desc->n_layers + 1, .temperature = 1}, 1, &prediction));
    assert_false(cuda->read_dist(r.kv_cache, 70, NULL));
    rig_wait(&r);
    rig_close(&r);
}

/* ---- weights ---- */

static bool
stop_at_once(void *user, double done)
{
    (void)user;
    (void)done;
    return false;
}

TEST(loading_stops_when_it_is_cancelled)
{
    NEEDS_CUDA;
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct naive_model *m = naive_model_random(&cuda_shapes[1], seed);
    assert_non_null(m);
    assert_ok(cuda->open(&b, &(struct backend_options){.threads = 1, .gpu = -1}, &err), err);
    assert_false(cuda->load(b, naive_model_desc(m), stop_at_once, NULL, &w, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    cuda->close(b);
    naive_model_free(m);
}

struct seen {
    double before, last;
    int whole; /* how often progress was complete */
};

static bool
see_progress(void *user, double done)
{
    struct seen *seen = user;
    seen->before = seen->last;
    seen->last = done;
    seen->whole += done >= 1;
    return true;
}

/* Progress counts the bytes that are loaded: it reaches 1 with the last matrix and not before. */
TEST(experts_are_counted_before_they_are_loaded)
{
    NEEDS_CUDA;
    for (size_t i = CUDA_MOE; i < CUDA_SHAPES; i++)
        for (int exact = 0; exact < 2; exact++) {
            struct err err = {.kind = ERR_NONE};
            struct seen seen = {0};
            struct backend *b;
            struct weights *w;
            struct naive_model *m = naive_model_random(&cuda_shapes[i], seed);
            assert_non_null(m);
            assert_ok(cuda->open(&b, &(struct backend_options){.threads = 1, .exact = exact, .gpu = -1}, &err), err);
            assert_ok(cuda->load(b, naive_model_desc(m), see_progress, &seen, &w, &err), err);
            assert_int_equal(seen.whole, 2);
            assert_at_least(seen.last, 1);
            assert_at_least(seen.before, 1);
            cuda->unload(w);
            cuda->close(b);
            naive_model_free(m);
        }
}

TEST(a_mixture_that_the_device_does_not_compute_is_refused_in_a_line)
{
    NEEDS_CUDA;
    static struct expert_desc many[513];
    const struct naive_shape shape =
        RIG_SHAPE(1, 8, 1, 1, 8, 8, 20, .type = WEIGHT_F16, .form = {.experts = {.n = 4, .used = 2, .ffn = 8}});
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct naive_model *m = naive_model_random(&shape, seed);
    assert_non_null(m);
    assert_ok(cuda->open(&b, &(struct backend_options){.threads = 1, .gpu = -1}, &err), err);
    struct model_desc d = *naive_model_desc(m);
    struct layer_desc layer = d.layers[0];
    d.form.experts = (struct experts_form){.n = 513, .used = 1, .ffn = 8};
    d.layers = &layer;
    for (size_t e = 0; e < 513; e++)
        many[e] = layer.experts[0];
    layer.experts = many;
    layer.router.rows = 513;
    assert_false(cuda->load(b, &d, NULL, NULL, &w, &err));
    assert_string_equal(err.text, "backend cuda: 513 experts are more than its 512; use --backend cpu");
    cuda->close(b);
    naive_model_free(m);
}

TEST(a_model_of_wrong_shapes_is_refused)
{
    NEEDS_CUDA;
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct naive_model *m = naive_model_random(&cuda_shapes[1], seed);
    assert_non_null(m);
    assert_ok(cuda->open(&b, &(struct backend_options){.threads = 1, .gpu = -1}, &err), err);
    const struct model_desc *d = naive_model_desc(m);
    for (int i = 0; i < 5; i++) {
        struct model_desc wrong = *d;
        struct layer_desc layers[2] = {d->layers[0], d->layers[1]};
        wrong.layers = layers;
        switch (i) {
        case 0: layers[1].up.rows--; break;
        case 1: layers[0].wq.type = WEIGHT_TYPES; break;
        case 2: wrong.head.data = NULL; break;
        case 3: wrong.kv_heads = 3; break;
        default: wrong.final_norm.cols++; break;
        }
        err.kind = ERR_NONE;
        assert_false(cuda->load(b, &wrong, NULL, NULL, &w, &err));
        assert_int_equal(err.kind, ERR_WORK);
    }
    cuda->close(b);
    naive_model_free(m);
}

TEST(types_that_the_device_does_not_hold_are_named)
{
    NEEDS_CUDA;
    static const struct {
        size_t shape;
        bool exact;
        const char *said;
    } cases[] = {{0, false, "F32 held as F16"},
                 {1, false, NULL},
                 {0, true, NULL},
                 {4, false, "Q5_1 held as F16"},
                 {CUDA_MOE - 1, false, "MXFP4 held as Q8_0, IQ2_S held as F16"},
                 {6, false, NULL},
                 {7, false, NULL},
                 {8, false, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig r;
        cuda_rig_open(&r, cases[i].shape, cases[i].exact, seed);
        const char *said = cuda->describe(r.backend);
        assert_true(cases[i].said != NULL ? strstr(said, cases[i].said) != NULL : strstr(said, "held as") == NULL);
        rig_close(&r);
    }
}

TEST_SEED(seed, 1);
