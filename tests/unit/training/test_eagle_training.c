/* Gradients of an EAGLE-3 head's training-time test against numeric differences. */
#include <math.h>

#include "engine/training/eagle_training.h"
#include "kernels/half.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define WIDTH   8
#define VOCAB   13
#define OUTPUTS 9
#define WINDOWS 3

static uint64_t seed, random_state;
TEST_SEED(seed, 1);

static float
draw(void)
{
    return (float)((double)(splitmix64(&random_state) >> 11) * 0x1p-52 - 1);
}

static float embedding[VOCAB * WIDTH], head_rows[VOCAB * WIDTH], final_norm[WIDTH];
static token_t tokens[WINDOWS][12];
static uint16_t states[WINDOWS][12 * 4 * WIDTH];
static const uint32_t lengths[WINDOWS] = {12, 7, 10}, firsts[WINDOWS] = {2, 4, 5};

struct rig {
    struct model target;
    struct lens lens;
    struct eagle_head *head;
    struct eagle_training *training;
    struct eagle_window windows[WINDOWS];
};

static struct tensor
tensor_of(const float *data, uint32_t rows)
{
    return (struct tensor){.data = data, .type = WEIGHT_F32, .rows = rows, .cols = WIDTH};
}

static int
prepare(void **state)
{
    static struct rig rig;
    static const token_t outputs[OUTPUTS] = {0, 1, 3, 4, 6, 7, 8, 11, 12};
    struct err err = {0};
    random_state = seed;
    for (size_t i = 0; i < VOCAB * WIDTH; i++) {
        embedding[i] = draw();
        head_rows[i] = draw();
    }
    for (size_t i = 0; i < WIDTH; i++)
        final_norm[i] = 1 + 0.2f * draw();
    rig = (struct rig){.target = {.name = "a tiny model",
                                  .desc = {.n_layers = 6,
                                           .width = WIDTH,
                                           .heads = 4,
                                           .kv_heads = 2,
                                           .head_dim = 4,
                                           .ffn = 10,
                                           .vocab = VOCAB,
                                           .rope_base = 100,
                                           .rms_eps = 1e-5f,
                                           .embedding = tensor_of(embedding, VOCAB),
                                           .head = tensor_of(head_rows, VOCAB),
                                           .final_norm = tensor_of(final_norm, 1)}}};
    for (size_t w = 0; w < WINDOWS; w++) {
        for (size_t i = 0; i < lengths[w]; i++)
            tokens[w][i] = (token_t)(splitmix64(&random_state) % VOCAB);
        for (size_t i = 0; i < lengths[w] * 4 * WIDTH; i++)
            states[w][i] = f32_to_bf16(draw());
        rig.windows[w] =
            (struct eagle_window){.n = lengths[w], .first = firsts[w], .tokens = tokens[w], .states = states[w]};
    }
    const struct eagle_options options = {.threads = 2, .rows = 29, .window = 12};
    assert_ok(lens_open(&rig.lens, &rig.target.desc, outputs, OUTPUTS, &err), err);
    assert_ok(eagle_head_new(&rig.head, &rig.target, outputs, OUTPUTS, random_state, &err), err);
    assert_ok(eagle_training_open(&rig.training, rig.head, &rig.target.desc, &rig.lens, &options, &err), err);
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
    return 0;
}

static double
loss_of(struct rig *r, uint32_t steps)
{
    struct eagle_score s = {0};
    double sum = 0;
    eagle_loss(r->training, r->windows, WINDOWS, steps, NULL, NULL, &s);
    for (uint32_t i = 0; i < steps; i++)
        sum += pow(0.8, i) * s.loss[i] / s.bases[i];
    return sum;
}

static void
check_gradient(struct rig *r, uint32_t steps)
{
    static const char *const names[EAGLE_PARTS] = {
        [EAGLE_FC] = "fc",     [EAGLE_Q] = "q",   [EAGLE_K] = "k",       [EAGLE_V] = "v",      [EAGLE_O] = "o",
        [EAGLE_GATE] = "gate", [EAGLE_UP] = "up", [EAGLE_DOWN] = "down", [EAGLE_HEAD] = "head"};
    struct eagle_head *h = r->head;
    struct eagle_score s = {0};
    float *gradient = calloc(h->n_values, sizeof *gradient);
    eagle_loss(r->training, r->windows, WINDOWS, steps, gradient, NULL, &s);
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        double difference = 0, size = 0;
        eagle_part_shape(h, part, &rows, &cols);
        for (size_t i = 0; names[part] != NULL && i < (size_t)rows * cols; i++) {
            float *value = eagle_part(h, part) + i;
            const float kept = *value, step = 2e-3f;
            *value = kept + step;
            const double above = loss_of(r, steps);
            *value = kept - step;
            const double numeric = (above - loss_of(r, steps)) / (2 * (double)step);
            *value = kept;
            difference += pow(numeric - (double)gradient[h->at[part] + i], 2);
            size += pow(numeric, 2);
        }
        if (difference > 1e-4 * size + 1e-12)
            fail_msg("the gradient by %s differs by %g of %g with %u steps", names[part], sqrt(difference), sqrt(size),
                     (unsigned)steps);
    }
    free(gradient);
}

TEST_WITH(gradients_of_one_step_are_numeric_differences, prepare, clean)
{
    check_gradient(*state, 1);
}

TEST_WITH(gradients_of_a_chain_of_steps_are_numeric_differences, prepare, clean)
{
    check_gradient(*state, EAGLE_STEPS);
}
