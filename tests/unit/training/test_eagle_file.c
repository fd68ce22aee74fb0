/* Files of EAGLE-3 heads: the head that a file contains drafts what the head in training predicts, at every place of a
 * text and in every step. Features and weights are rounded as in the files, so the predictions are equal. */
#include <unistd.h>

#include "engine/training/eagle_file.h"
#include "engine/training/eagle_training.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define TOKENS  40
#define OUTPUTS 200
#define STATES  4

static uint64_t seed;
TEST_SEED(seed, 3);

struct rig {
    char target[64];
    struct engine *engine;
    struct lens lens;
    struct eagle_head *head;
    struct eagle_training *training;
    token_t ids[OUTPUTS], text[TOKENS];
    uint16_t *states;
    float *features; /* the same as F32, (TOKENS, 3, width) */
    struct eagle_window window;
    token_t drafts[TOKENS * EAGLE_STEPS];
};

static bool
read_row(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    struct rig *rig = user;
    const uint32_t n = r->layers, layers[STATES] = {2, n / 2, n - 3, n};
    float *row = malloc(r->width * sizeof *row);
    for (size_t k = 0; k < STATES; k++) {
        assert_true(context_read_hidden(r->context, slot, layers[k], row));
        for (size_t i = 0; i < r->width; i++) {
            const uint16_t stored = f32_to_bf16(row[i]);
            rig->states[(at * STATES + k) * r->width + i] = stored;
            if (k + 1 < STATES)
                rig->features[(at * (STATES - 1) + k) * r->width + i] = bf16_to_f32(stored);
        }
    }
    free(row);
    return true;
}

/* Rounds matrices as in a GGUF file. */
static void
round_weights(struct eagle_head *h)
{
    unsigned char block[2 + MODEL_Q8_BLOCK];
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        float *values = eagle_part(h, part);
        eagle_part_shape(h, part, &rows, &cols);
        for (size_t i = 0; rows > 1 && i < (size_t)rows * cols; i += MODEL_Q8_BLOCK) {
            assert_true(model_quantize_block(values + i, block));
            tensor_blocks(WEIGHT_Q8_0, block, MODEL_Q8_BLOCK, values + i);
        }
    }
}

static int
prepare(void **state)
{
    static struct rig rig;
    struct err err = {0};
    struct reader reader;
    uint64_t random = seed;
    rig = (struct rig){.window = {.n = TOKENS, .first = 3, .tokens = rig.text}};
    assert_ok(tinymodel_write_temp(rig.target, sizeof rig.target,
                                   &(struct tinymodel){.seed = seed, .n_layers = 6, .sharpness = 8}, &err),
              err);
    rig.engine = exact_rig_open(rig.target, NULL, NULL);
    const struct model *m = rig.engine->model;
    for (size_t i = 0; i < OUTPUTS; i++)
        rig.ids[i] = (token_t)(i + i / 2);
    for (size_t i = 0; i < TOKENS; i++) /* tokens that the head can draft, so that every place has three steps */
        rig.text[i] = rig.ids[splitmix64(&random) % OUTPUTS];
    rig.states = calloc(TOKENS * STATES * m->desc.width, sizeof *rig.states);
    rig.features = calloc(TOKENS * (STATES - 1) * m->desc.width, sizeof *rig.features);
    rig.window.states = rig.states;
    assert_ok(reader_open(&reader, rig.engine, READS_TARGET, TOKENS, 1, NULL, &err), err);
    assert_true(
        reader_read(&reader, &(struct reader_text){.tokens = rig.text, .to = TOKENS, .user = &rig}, 1, read_row));
    reader_close(&reader);
    const struct eagle_options options = {.threads = 1, .rows = TOKENS, .window = TOKENS};
    assert_ok(lens_open(&rig.lens, &m->desc, rig.ids, OUTPUTS, &err), err);
    assert_ok(eagle_head_new(&rig.head, m, rig.ids, OUTPUTS, seed, &err), err);
    assert_ok(eagle_training_open(&rig.training, rig.head, &m->desc, &rig.lens, &options, &err), err);
    struct eagle_score score = {0};
    for (int i = 0; i < 12; i++)
        eagle_training_step(rig.training, &rig.window, 1, EAGLE_STEPS, 3e-3f, &score);
    round_weights(rig.head);
    eagle_loss(rig.training, &rig.window, 1, EAGLE_STEPS, NULL, rig.drafts, &score);
    *state = &rig;
    return 0;
}

static int
clean(void **state)
{
    struct rig *r = *state;
    eagle_training_close(r->training);
    eagle_head_free(r->head);
    lens_free(&r->lens);
    engine_close(r->engine);
    free(r->states);
    free(r->features);
    unlink(r->target);
    return 0;
}

FIXTURE(prepare, clean);

static token_t
predict(struct context *c, slot_t row)
{
    struct prediction p;
    const struct context_probe probe = {.slot = row, .layer = 1, .temperature = 1};
    assert_true(context_predict(c, &probe, 1, &p));
    return p.token;
}

/* Opens the head and drafts from every base as a session does: rows with features are committed, and drafted rows
 * continue them. */
static void
compare_drafts(struct rig *r, const char *path)
{
    struct err err = {0};
    struct engine *e = exact_rig_open(r->target, path, NULL);
    const struct aux_model *aux = &e->aux[AUX_EAGLE];
    const struct context_options options = {.ctx = TOKENS, .spare = 8, .ring = 64, .max_rows = 8, .seqs = 1};
    struct context *c;
    assert_non_null(aux->model);
    assert_ok(context_open(&c, e->ops, e->backend, aux->weights, &aux->model->desc, &options, &err), err);
    const seq_t seq = context_sequence(c);
    const size_t each = (STATES - 1) * (size_t)e->model->desc.width;
    for (uint32_t base = 0; base + 2 < TOKENS; base++) {
        slot_t row = context_append(c, seq, SLOT_NONE, r->text[base + 1]), first = row;
        assert_true(context_feed(c, &row, 1, r->features + base * each));
        for (uint32_t s = 0; s < EAGLE_STEPS; s++) {
            const token_t wanted = r->drafts[base * EAGLE_STEPS + s];
            assert_true(context_advance(c, &row, 1, 1, NULL));
            if (base + 2 + s >= TOKENS || base + 2 < r->window.first)
                assert_int_equal(wanted, TOKEN_NONE);
            else
                assert_int_equal(predict(c, row), wanted);
            if (base + 2 + s < TOKENS && s + 1 < EAGLE_STEPS)
                row = context_append(c, seq, row, r->text[base + 2 + s]);
        }
        assert_true(context_keep(c, seq, &first, 1));
    }
    context_close(c);
    engine_close(e);
}

TEST(a_gguf_file_drafts_what_the_trainer_predicts)
{
    char path[] = "/tmp/eagle-XXXXXX.gguf";
    struct rig *r = *state;
    struct err err = {0};
    assert_true(close(mkstemps(path, 5)) == 0);
    assert_ok(eagle_file_possible(path, &err), err);
    assert_ok(eagle_file_write(r->head, r->engine->model, path, &err), err);
    compare_drafts(r, path);
    unlink(path);
}

TEST(a_folder_drafts_what_the_trainer_predicts)
{
    char path[] = "/tmp/eagle-XXXXXX", file[64];
    struct rig *r = *state;
    struct err err = {0};
    assert_non_null(mkdtemp(path));
    assert_ok(eagle_file_possible(path, &err), err);
    assert_ok(eagle_file_write(r->head, r->engine->model, path, &err), err);
    assert_ok(eagle_file_possible(path, &err), err);
    compare_drafts(r, path);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    unlink(file);
    snprintf(file, sizeof file, "%s/config.json", path);
    unlink(file);
    rmdir(path);
}

TEST(the_trainer_has_predictions_that_differ)
{
    struct rig *r = *state;
    bool differs = false;
    for (size_t i = 9; i < 3 * 30; i++)
        differs = differs || r->drafts[i] != r->drafts[9];
    assert_true(differs);
}

TEST(a_model_is_not_replaced_by_a_head)
{
    struct rig *r = *state;
    struct err err = {0};
    char path[80];
    snprintf(path, sizeof path, "%s", r->target);
    assert_false(eagle_file_possible(path, &err));
    assert_true(err.text[0] != '\0');
}
