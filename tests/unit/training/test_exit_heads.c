/* Trained heads: gradients against finite differences, training on data that can be learned, and files. */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/model/model_open.h"
#include "engine/model/trained/exit_heads.h"
#include "engine/training/head_training.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define WIDTH  12
#define VOCAB  19
#define ROWS   7
#define LAYERS 4

static uint64_t seed;

static float
noise(uint64_t *random_state)
{
    *random_state = *random_state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*random_state >> 40) / (float)(1u << 23) - 1;
}

static void
fill(uint64_t *random_state, float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = noise(random_state) * scale;
}

struct scene {
    float norm[2 * WIDTH], head[VOCAB * WIDTH], hidden[ROWS * (LAYERS + 1) * WIDTH], final[ROWS * VOCAB];
    double entropy[ROWS];
    token_t choice[ROWS];
    struct lens lens;
    struct head_work *work;
    float bias[VOCAB];
};

/* Two heads: one like Llama's, and one with all other features: LayerNorm with a bias, a bias, a scale and a cap. */
static void
set_scene(struct scene *s, uint64_t *random_state, bool more)
{
    fill(random_state, s->norm, WIDTH, 0.5f);
    for (size_t i = 0; i < WIDTH; i++)
        s->norm[i] += 1;
    memset(s->norm + WIDTH, 0, WIDTH * sizeof *s->norm); /* no bias */
    fill(random_state, s->head, VOCAB * WIDTH, 1);
    fill(random_state, s->hidden, sizeof s->hidden / sizeof *s->hidden, 2);
    s->lens = (struct lens){
        .width = WIDTH, .vocab = VOCAB, .norm = {.width = WIDTH, .eps = 1e-5f, .weight = s->norm}, .head = s->head};
    if (more) {
        fill(random_state, s->norm + WIDTH, WIDTH, 0.3f);
        fill(random_state, s->bias, VOCAB, 0.5f);
        s->lens.norm.layer_norm = true;
        s->lens.bias = s->bias;
        s->lens.scale = 0.7f;
        s->lens.cap = 2;
    }
    s->work = head_work_open(&s->lens, ROWS);
    assert_non_null(s->work);
    head_final(&s->lens, s->work, s->hidden + LAYERS * WIDTH, (LAYERS + 1) * WIDTH, ROWS, s->final, s->entropy,
               s->choice);
}

static struct head_batch
batch_at(const struct scene *s, uint32_t l)
{
    return (struct head_batch){.n = ROWS,
                               .hidden = s->hidden + l * WIDTH,
                               .stride = (LAYERS + 1) * WIDTH,
                               .final = s->final,
                               .entropy = s->entropy,
                               .choice = s->choice};
}

/* Central differences of the loss in every weight. The loss is computed in F32 with sums in double, so the step is
 * large, and the tolerance is that of its rounding. */
static void
check_gradient(enum head_kind kind, size_t n_values, bool more, uint64_t *random_state)
{
    struct scene s;
    set_scene(&s, random_state, more);
    float values[VOCAB * WIDTH + WIDTH], slopes[VOCAB * WIDTH + WIDTH];
    fill(random_state, values, n_values, 0.3f);
    struct head_weights w = {.a = values, .b = values + WIDTH * WIDTH, .weight = values};
    struct head_weights g = {.a = slopes, .b = slopes + WIDTH * WIDTH, .weight = slopes};
    const struct head_batch batch = batch_at(&s, 2);
    head_loss(&s.lens, kind, &w, &batch, s.work, &g);
    double off = 0, size = 0;
    for (size_t i = 0; i < n_values; i++) {
        const float was = values[i], step = 1e-2f;
        values[i] = was + step;
        const double up = head_loss(&s.lens, kind, &w, &batch, s.work, NULL).loss;
        values[i] = was - step;
        const double down = head_loss(&s.lens, kind, &w, &batch, s.work, NULL).loss;
        values[i] = was;
        const double slope = (up - down) / (2 * (double)step);
        off += (slope - (double)slopes[i]) * (slope - (double)slopes[i]);
        size += slope * slope;
    }
    assert_greater(size, 0);
    assert_less(sqrt(off / size), 2e-3);
    head_work_close(s.work);
}

TEST(the_gradient_of_affine_heads_is_that_of_finite_differences)
{
    uint64_t random_state = seed;
    for (int i = 0; i < 6; i++)
        check_gradient(HEAD_AFFINE, WIDTH * WIDTH + WIDTH, i % 2 == 1, &random_state);
}

TEST(the_gradient_of_full_heads_is_that_of_finite_differences)
{
    uint64_t random_state = seed + 1;
    for (int i = 0; i < 6; i++)
        check_gradient(HEAD_FULL, VOCAB * WIDTH, i % 2 == 1, &random_state);
}

TEST(an_affine_head_of_zeros_and_a_full_head_of_the_lm_head_are_the_lens)
{
    uint64_t random_state = seed + 2;
    struct scene s;
    set_scene(&s, &random_state, false);
    float zeros[WIDTH * WIDTH + WIDTH] = {0};
    const struct head_batch batch = batch_at(&s, 1);
    const struct head_score lens = head_loss(&s.lens, HEAD_LENS, NULL, &batch, s.work, NULL);
    const struct head_score affine = head_loss(
        &s.lens, HEAD_AFFINE, &(struct head_weights){.a = zeros, .b = zeros + WIDTH * WIDTH}, &batch, s.work, NULL);
    const struct head_score full =
        head_loss(&s.lens, HEAD_FULL, &(struct head_weights){.weight = s.head}, &batch, s.work, NULL);
    assert_greater(lens.loss, 0);
    assert_near(lens.loss, affine.loss, 1e-6);
    assert_near(lens.loss, full.loss, 1e-6);
    const struct head_batch last = batch_at(&s, LAYERS);
    const struct head_score itself = head_loss(&s.lens, HEAD_LENS, NULL, &last, s.work, NULL);
    assert_less(itself.loss, 1e-6);
    assert_greater(itself.agreement, 0.999);
    head_work_close(s.work);
}

/* ---- training ---- */

static struct model *
model_of(uint64_t hash)
{
    static struct model m;
    m = (struct model){.hash = hash, .desc = {.n_layers = LAYERS, .width = WIDTH, .vocab = VOCAB}};
    snprintf(m.name, sizeof m.name, "tiny");
    return &m;
}

/* Rows whose layer l is a fixed rotation and shift of layer L. An affine head can undo it, the logit lens cannot. */
static void
twist(const struct scene *s, uint64_t *random_state, float *hidden, size_t n, const float *mix, const float *shift)
{
    (void)s;
    for (size_t i = 0; i < n; i++) {
        float *row = hidden + i * (LAYERS + 1) * WIDTH, *last = row + LAYERS * WIDTH;
        fill(random_state, last, WIDTH, 2);
        for (size_t l = 0; l < LAYERS; l++)
            for (size_t j = 0; j < WIDTH; j++) {
                float y = shift[j];
                for (size_t k = 0; k < WIDTH; k++)
                    y += mix[j * WIDTH + k] * last[k];
                row[l * WIDTH + j] = y;
            }
    }
}

static void
train(enum head_kind kind, double *before, double *after, uint32_t threads)
{
    uint64_t random_state = seed + 3;
    struct scene s;
    set_scene(&s, &random_state, false);
    float mix[WIDTH * WIDTH], shift[WIDTH];
    fill(&random_state, mix, WIDTH * WIDTH, 0.25f);
    fill(&random_state, shift, WIDTH, 0.5f);
    for (size_t i = 0; i < WIDTH; i++)
        mix[i * WIDTH + i] += 1;
    struct err err;
    struct exit_heads *heads;
    struct head_training *t;
    assert_ok(exit_heads_new(&heads, kind, model_of(1), &err), err);
    const struct head_training_options options = {.threads = threads, .batch = 64, .rate = 3e-3f};
    assert_ok(head_training_open(&t, heads, &s.lens, &options, &err), err);
    enum { HELD = 200 };
    static float held[HELD * (LAYERS + 1) * WIDTH], rows[64 * (LAYERS + 1) * WIDTH];
    twist(&s, &random_state, held, HELD, mix, shift);
    struct head_score scores[LAYERS + 1] = {{0, 0}}, lens[LAYERS + 1] = {{0, 0}}, each[LAYERS + 1];
    head_training_score(t, true, held, HELD, lens);
    for (int i = 0; i < 600; i++) {
        twist(&s, &random_state, rows, 64, mix, shift);
        head_training_step(t, rows, 64, options.rate * (float)(600 - i) / 600, each);
    }
    head_training_score(t, false, held, HELD, scores);
    *before = *after = 0;
    for (size_t l = 1; l < LAYERS; l++) {
        *before += lens[l].agreement / HELD / (LAYERS - 1);
        *after += scores[l].agreement / HELD / (LAYERS - 1);
        assert_less(scores[l].loss, lens[l].loss);
    }
    head_training_close(t);
    exit_heads_free(heads);
    head_work_close(s.work);
}

TEST(affine_heads_learn_to_undo_a_rotation)
{
    double before, after;
    train(HEAD_AFFINE, &before, &after, 2);
    printf("# agreement %.3f -> %.3f\n", before, after);
    assert_greater(after, 0.9);
    assert_greater(after, before + 0.1);
}

/* Each thread has its own layers, so results do not depend on other threads, unless the BLAS does not allow sharing. */
TEST(training_on_several_threads_is_repeatable)
{
    double before[2], after[2];
    for (int i = 0; i < 4; i++) {
        train(HEAD_AFFINE, &before[i > 0], &after[i > 0], 2);
        assert_true(i == 0 || (before[1] == before[0] && after[1] == after[0]));
    }
}

TEST(full_heads_learn_too)
{
    double before, after;
    train(HEAD_FULL, &before, &after, 1);
    printf("# agreement %.3f -> %.3f\n", before, after);
    assert_greater(after, before + 0.05);
}

/* ---- files ---- */

static char folder[] = "/tmp/specscope-heads-XXXXXX";

static const char *
file(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct exit_heads *
some_heads(enum head_kind kind, uint64_t hash)
{
    struct exit_heads *h;
    struct err err;
    uint64_t random_state = seed + 4;
    assert_ok(exit_heads_new(&h, kind, model_of(hash), &err), err);
    fill(&random_state, h->values, h->n_values, 1);
    return h;
}

TEST(heads_come_back_from_a_file_as_they_were)
{
    for (int k = HEAD_AFFINE; k <= HEAD_FULL; k++) {
        struct exit_heads *h = some_heads((enum head_kind)k, 77), *back;
        struct err err = {0};
        assert_ok(exit_heads_write(h, file("heads.safetensors"), &err), err);
        assert_ok(exit_heads_read(&back, file("heads.safetensors"), model_of(77), &err), err);
        assert_int_equal(back->kind, k);
        assert_int_equal(back->n_values, h->n_values);
        assert_memory_equal(back->values, h->values, h->n_values * sizeof *h->values);
        exit_heads_free(h);
        exit_heads_free(back);
    }
}

TEST(heads_of_another_model_are_refused_by_name)
{
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77), *back;
    struct err err = {0};
    assert_ok(exit_heads_write(h, file("other.safetensors"), &err), err);
    assert_false(exit_heads_read(&back, file("other.safetensors"), model_of(78), &err));
    assert_contains(err.text, "with other weights");
    assert_null(back);
    exit_heads_free(h);
}

TEST(a_file_cut_anywhere_is_refused_in_one_line)
{
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77), *back;
    struct err err = {0};
    assert_ok(exit_heads_write(h, file("whole.safetensors"), &err), err);
    FILE *f = fopen(file("whole.safetensors"), "rb");
    static unsigned char bytes[1 << 16];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t cut = 0; cut < n; cut += cut < 900 ? 1 : 97) {
        f = fopen(file("cut.safetensors"), "wb");
        assert_int_equal(fwrite(bytes, 1, cut, f), cut);
        fclose(f);
        err = (struct err){0};
        assert_false(exit_heads_read(&back, file("cut.safetensors"), model_of(77), &err));
        assert_int_not_equal(err.kind, ERR_NONE);
        assert_null(strchr(err.text, '\n'));
    }
    exit_heads_free(h);
}

TEST(a_full_disk_leaves_the_file_from_before)
{
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77), *back;
    struct err err = {0};
    assert_ok(exit_heads_write(h, file("kept.safetensors"), &err), err);
    h->values[0] += 1;
    struct rlimit was, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){.rlim_cur = 700, .rlim_max = was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const bool written = exit_heads_write(h, file("kept.safetensors"), &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_false(written);
    assert_ok(exit_heads_read(&back, file("kept.safetensors"), model_of(77), &err), err);
    assert_less(back->values[0], h->values[0]);
    assert_int_not_equal(access(file("kept.safetensors.part"), F_OK), 0);
    exit_heads_free(h);
    exit_heads_free(back);
}

int
main(void)
{
    seed = seed_or(20240611);
    if (mkdtemp(folder) == NULL)
        return 1;
    const int failed = run_listed_tests();
    const char *const names[] = {"heads", "other", "whole", "cut", "kept"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.safetensors", names[i]);
        remove(file(name));
    }
    rmdir(folder);
    return failed;
}
