/* Trained heads: gradients against finite differences, training on data that can be learned, and files. */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/model/files/safetensors.h"
#include "engine/model/model.h"
#include "engine/model/trained/exit_heads.h"
#include "engine/training/head_training.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define WIDTH  12
#define VOCAB  19
#define ROWS   7
#define LAYERS 4
#define DEPTHS LAYERS /* of a row: layers 1 to L */
#define LAST   (DEPTHS - 1)
#define SUBSET 7 /* tokens of a draft vocabulary */

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
    float norm[2 * WIDTH], head[VOCAB * WIDTH], hidden[ROWS * DEPTHS * WIDTH], final[ROWS * VOCAB], mass[ROWS];
    double inside[ROWS];
    struct head_target target[ROWS];
    struct lens whole, lens; /* lens: of the draft vocabulary */
    struct blocks blocks;
    struct head_work *work;
    float bias[VOCAB], subset[SUBSET * WIDTH];
    token_t ids[SUBSET];
};

static struct head_batch
batch_at(const struct scene *s, size_t i)
{
    return (struct head_batch){.n = ROWS,
                               .hidden = s->hidden + i * WIDTH,
                               .stride = DEPTHS * WIDTH,
                               .final = s->final,
                               .mass = s->mass,
                               .inside = s->inside,
                               .target = s->target};
}

/* Two heads: one like Llama's, and one with all other features: LayerNorm with a bias, a bias, a scale and a cap. With
 * `some`, heads have the logits of a few tokens only. */
static void
set_scene(struct scene *s, uint64_t *random_state, bool more, bool some)
{
    fill(random_state, s->norm, WIDTH, 0.5f);
    for (size_t i = 0; i < WIDTH; i++)
        s->norm[i] += 1;
    memset(s->norm + WIDTH, 0, WIDTH * sizeof *s->norm); /* no bias */
    fill(random_state, s->head, VOCAB * WIDTH, 1);
    fill(random_state, s->hidden, sizeof s->hidden / sizeof *s->hidden, 2);
    s->whole = (struct lens){
        .width = WIDTH, .vocab = VOCAB, .norm = {.width = WIDTH, .eps = 1e-5f, .weight = s->norm}, .head = s->head};
    if (more) {
        fill(random_state, s->norm + WIDTH, WIDTH, 0.3f);
        fill(random_state, s->bias, VOCAB, 0.5f);
        s->whole.norm.layer_norm = true;
        s->whole.bias = s->bias;
        s->whole.scale = 0.7f;
        s->whole.cap = 2;
    }
    s->lens = s->whole;
    if (some) {
        for (size_t i = 0; i < SUBSET; i++) {
            s->ids[i] = (token_t)((5 * i + 3) % VOCAB);
            memcpy(s->subset + i * WIDTH, s->head + (size_t)s->ids[i] * WIDTH, WIDTH * sizeof *s->subset);
        }
        s->lens.vocab = SUBSET;
        s->lens.head = s->subset;
        s->lens.ids = s->ids;
    }
    s->blocks = (struct blocks){0};
    struct head_work *work = head_work_open(&s->whole, ROWS, &s->blocks);
    s->work = head_work_open(&s->lens, ROWS, &s->blocks);
    assert_non_null(work);
    assert_non_null(s->work);
    const struct head_batch last = batch_at(s, LAST);
    head_targets(&s->whole, work, last.hidden, last.stride, ROWS, s->target);
    head_final(&s->lens, s->work, &last, s->final, s->mass, s->inside);
}

/* Central differences of the loss in every weight. The loss is computed in F32 with sums in double, so the step is
 * large, and the tolerance is that of its rounding. */
static void
check_gradient(enum head_kind kind, size_t n_values, bool more, bool some, uint64_t *random_state)
{
    struct scene s;
    set_scene(&s, random_state, more, some);
    float values[VOCAB * WIDTH + WIDTH], slopes[VOCAB * WIDTH + WIDTH];
    fill(random_state, values, n_values, 0.3f);
    struct head_weights w = {.a = values, .b = values + WIDTH * WIDTH, .weight = values};
    struct head_weights g = {.a = slopes, .b = slopes + WIDTH * WIDTH, .weight = slopes};
    const struct head_batch batch = batch_at(&s, 1);
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
    blocks_free(&s.blocks);
}

TEST(the_gradient_of_affine_heads_is_that_of_finite_differences)
{
    uint64_t random_state = seed;
    for (int i = 0; i < 6; i++)
        check_gradient(HEAD_AFFINE, WIDTH * WIDTH + WIDTH, i % 2 == 1, false, &random_state);
}

TEST(the_gradient_on_a_draft_vocabulary_is_that_of_finite_differences)
{
    uint64_t random_state = seed + 5;
    for (int i = 0; i < 6; i++)
        check_gradient(HEAD_AFFINE, WIDTH * WIDTH + WIDTH, i % 2 == 1, true, &random_state);
}

/* Σ_{v in S} p_v log(p_v / (p(S) q_v)), with p over all tokens, from logits in double precision. */
TEST(the_loss_on_a_draft_vocabulary_is_the_formula)
{
    uint64_t random_state = seed + 6;
    struct scene s;
    set_scene(&s, &random_state, true, true);
    struct head_work *whole = head_work_open(&s.whole, ROWS, &s.blocks);
    float p[ROWS * VOCAB], q[ROWS * VOCAB], mass[ROWS];
    double inside[ROWS], loss = 0, agreement = 0;
    const struct head_batch last = batch_at(&s, LAST);
    struct head_batch first = batch_at(&s, 0);
    head_final(&s.whole, whole, &last, p, mass, inside);
    struct head_target own[ROWS]; /* of layer 1 as if it were the last one */
    head_targets(&s.whole, whole, first.hidden, first.stride, ROWS, own);
    first.target = own;
    head_final(&s.whole, whole, &first, q, mass, inside);
    for (size_t i = 0; i < ROWS; i++) {
        double p_set = 0, q_set = 0;
        token_t best = s.ids[0];
        assert_near((double)mass[i], 1, 1e-5);
        for (size_t k = 0; k < SUBSET; k++) {
            p_set += (double)p[i * VOCAB + (size_t)s.ids[k]];
            q_set += (double)q[i * VOCAB + (size_t)s.ids[k]];
            best = q[i * VOCAB + (size_t)s.ids[k]] > q[i * VOCAB + (size_t)best] ? s.ids[k] : best;
        }
        for (size_t k = 0; k < SUBSET; k++) {
            const double pv = (double)p[i * VOCAB + (size_t)s.ids[k]], qv = (double)q[i * VOCAB + (size_t)s.ids[k]];
            loss += pv * log(pv / p_set / (qv / q_set)) / ROWS;
        }
        agreement += best == s.target[i].choice ? 1.0 / ROWS : 0;
        assert_near((double)s.mass[i], p_set, 1e-5);
    }
    const struct head_batch batch = batch_at(&s, 0);
    const struct head_score score = head_loss(&s.lens, HEAD_LENS, NULL, &batch, s.work, NULL);
    assert_greater(loss, 0);
    assert_near(score.loss, loss, 1e-5 * (1 + loss));
    assert_near(score.agreement, agreement, 1e-9);
    blocks_free(&s.blocks);
}

TEST(the_gradient_of_full_heads_is_that_of_finite_differences)
{
    uint64_t random_state = seed + 1;
    for (int i = 0; i < 6; i++)
        check_gradient(HEAD_FULL, VOCAB * WIDTH, i % 2 == 1, false, &random_state);
}

TEST(an_affine_head_of_zeros_and_a_full_head_of_the_lm_head_are_the_lens)
{
    uint64_t random_state = seed + 2;
    struct scene s;
    set_scene(&s, &random_state, false, false);
    float zeros[WIDTH * WIDTH + WIDTH] = {0};
    const struct head_batch batch = batch_at(&s, 0);
    const struct head_score lens = head_loss(&s.lens, HEAD_LENS, NULL, &batch, s.work, NULL);
    const struct head_score affine = head_loss(
        &s.lens, HEAD_AFFINE, &(struct head_weights){.a = zeros, .b = zeros + WIDTH * WIDTH}, &batch, s.work, NULL);
    const struct head_score full =
        head_loss(&s.lens, HEAD_FULL, &(struct head_weights){.weight = s.head}, &batch, s.work, NULL);
    assert_greater(lens.loss, 0);
    assert_near(lens.loss, affine.loss, 1e-6);
    assert_near(lens.loss, full.loss, 1e-6);
    const struct head_batch last = batch_at(&s, LAST);
    const struct head_score itself = head_loss(&s.lens, HEAD_LENS, NULL, &last, s.work, NULL);
    assert_less(itself.loss, 1e-6);
    assert_greater(itself.agreement, 0.999);
    blocks_free(&s.blocks);
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
twist(uint64_t *random_state, float *hidden, size_t n, const float *mix, const float *shift)
{
    for (size_t i = 0; i < n; i++) {
        float *row = hidden + i * DEPTHS * WIDTH, *last = row + LAST * WIDTH;
        fill(random_state, last, WIDTH, 2);
        for (size_t l = 0; l < LAST; l++)
            for (size_t j = 0; j < WIDTH; j++) {
                float y = shift[j];
                for (size_t k = 0; k < WIDTH; k++)
                    y += mix[j * WIDTH + k] * last[k];
                row[l * WIDTH + j] = y;
            }
    }
}

enum { HELD = 200, BATCH = 64, STEPS = 600 };

struct lesson {
    struct scene scene;
    float mix[WIDTH * WIDTH], shift[WIDTH], held_hidden[HELD * DEPTHS * WIDTH], hidden[BATCH * DEPTHS * WIDTH];
    struct head_target held_target[HELD], target[BATCH];
    struct head_rows held, rows;
    struct exit_heads *heads;
    struct head_training *training;
    uint64_t random_state;
    atomic_bool cancel;
};

static void
begin(struct lesson *s, enum head_kind kind, bool some, uint32_t threads)
{
    struct err err;
    s->random_state = seed + 3;
    set_scene(&s->scene, &s->random_state, false, some);
    fill(&s->random_state, s->mix, WIDTH * WIDTH, 0.25f);
    fill(&s->random_state, s->shift, WIDTH, 0.5f);
    for (size_t i = 0; i < WIDTH; i++)
        s->mix[i * WIDTH + i] += 1;
    s->held = (struct head_rows){s->held_hidden, s->held_target};
    s->rows = (struct head_rows){s->hidden, s->target};
    assert_ok(exit_heads_new(&s->heads, kind, model_of(1), NULL, 0, &err), err);
    const struct head_training_options options = {.threads = threads, .batch = BATCH, .cancel = &s->cancel};
    assert_ok(head_training_open(&s->training, s->heads, &s->scene.lens, &s->scene.whole, &options, &err), err);
    twist(&s->random_state, s->held_hidden, HELD, s->mix, s->shift);
    head_training_targets(s->training, &s->held, HELD);
}

static void
next_rows(struct lesson *s)
{
    twist(&s->random_state, s->hidden, BATCH, s->mix, s->shift);
    head_training_targets(s->training, &s->rows, BATCH);
}

static void
end(struct lesson *s)
{
    head_training_close(s->training);
    exit_heads_free(s->heads);
    blocks_free(&s->scene.blocks);
}

/* The mean over layers of the agreement with the last one. */
static double
agreement(struct lesson *s, bool lens, double *loss)
{
    struct head_score sums[LAST] = {{0, 0}};
    double mean = 0;
    head_training_score(s->training, lens, &s->held, HELD, sums);
    *loss = 0;
    for (size_t i = 0; i < LAST; i++) {
        mean += sums[i].agreement / HELD / LAST;
        *loss += sums[i].loss / HELD / LAST;
    }
    return mean;
}

static void
train(enum head_kind kind, bool some, double *before, double *after, uint32_t threads)
{
    static struct lesson s;
    struct head_score each[LAST];
    double loss[2];
    begin(&s, kind, some, threads);
    *before = agreement(&s, true, &loss[0]);
    for (int i = 0; i < STEPS; i++) {
        next_rows(&s);
        head_training_step(s.training, &s.rows, BATCH, 3e-3f * (float)(STEPS - i) / STEPS, each);
    }
    *after = agreement(&s, false, &loss[1]);
    assert_less(loss[1], loss[0]);
    end(&s);
}

TEST(affine_heads_learn_to_undo_a_rotation)
{
    double before, after;
    train(HEAD_AFFINE, false, &before, &after, 2);
    printf("# agreement %.3f -> %.3f\n", before, after);
    assert_greater(after, 0.9);
    assert_greater(after, before + 0.1);
}

TEST(affine_heads_learn_on_a_draft_vocabulary)
{
    double before, after;
    train(HEAD_AFFINE, true, &before, &after, 1);
    printf("# agreement %.3f -> %.3f\n", before, after); /* at most the share of rows whose token is in the set */
    assert_greater(after, before + 0.05);
}

TEST(the_first_affine_heads_undo_a_rotation_without_a_step)
{
    static struct lesson s;
    struct err err;
    double loss[2];
    begin(&s, HEAD_AFFINE, false, 1);
    const double before = agreement(&s, true, &loss[0]);
    next_rows(&s);
    assert_ok(head_training_start(s.training, &s.rows, BATCH, &err), err);
    const double after = agreement(&s, false, &loss[1]);
    printf("# agreement %.3f -> %.3f\n", before, after);
    assert_greater(after, 0.9);
    assert_less(loss[1], loss[0]);
    end(&s);
}

TEST(a_cancelled_training_changes_no_head)
{
    static struct lesson s;
    struct err err;
    struct head_score each[LAST], sums[LAST] = {{0, 0}};
    begin(&s, HEAD_AFFINE, false, 2);
    next_rows(&s);
    atomic_store(&s.cancel, true);
    assert_ok(head_training_start(s.training, &s.rows, BATCH, &err), err);
    head_training_step(s.training, &s.rows, BATCH, 1e-2f, each);
    head_training_score(s.training, false, &s.held, HELD, sums);
    for (size_t i = 0; i < s.heads->n_values; i++)
        assert_number_equal(s.heads->values[i], 0);
    assert_number_equal(sums[0].loss, 0);
    end(&s);
    atomic_store(&s.cancel, false);
}

/* Each thread has its own layers, so results do not depend on other threads, unless the BLAS does not allow sharing. */
TEST(training_on_several_threads_is_repeatable)
{
    double before[2], after[2];
    for (int i = 0; i < 4; i++) {
        train(HEAD_AFFINE, false, &before[i > 0], &after[i > 0], 2);
        assert_true(i == 0 || (before[1] == before[0] && after[1] == after[0]));
    }
}

TEST(full_heads_learn_too)
{
    double before, after;
    train(HEAD_FULL, false, &before, &after, 1);
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
some_heads(enum head_kind kind, uint64_t hash, const uint32_t *layers, size_t n)
{
    struct exit_heads *h;
    struct err err;
    uint64_t random_state = seed + 4;
    assert_ok(exit_heads_new(&h, kind, model_of(hash), layers, n, &err), err);
    fill(&random_state, h->values, h->n_values, 1);
    return h;
}

TEST(heads_come_back_from_a_file_as_they_were)
{
    for (int k = HEAD_AFFINE; k <= HEAD_FULL; k++) {
        struct exit_heads *h = some_heads((enum head_kind)k, 77, NULL, 0), *back;
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

TEST(heads_of_some_layers_come_back_with_their_draft_vocabulary)
{
    const uint32_t layers[] = {1, 3};
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77, layers, 2), *back;
    struct err err = {0};
    h->draft_vocab = 5;
    h->counts_hash = 0xfedcba9876543210u;
    assert_ok(exit_heads_write(h, file("heads.safetensors"), &err), err);
    assert_ok(exit_heads_read(&back, file("heads.safetensors"), model_of(77), &err), err);
    assert_int_equal(back->n_trained, 2);
    assert_memory_equal(back->trained, layers, sizeof layers);
    assert_memory_equal(back->values, h->values, h->n_values * sizeof *h->values);
    assert_int_equal(back->draft_vocab, 5);
    assert_true(back->counts_hash == h->counts_hash);
    for (uint32_t l = 1; l < LAYERS; l++) {
        assert_int_equal(back->layers[l].a != NULL, l != 2);
        assert_int_equal(back->layers[l].b != NULL, l != 2);
    }
    exit_heads_free(h);
    exit_heads_free(back);
}

/* The metadata of files from before --layers and --draft-vocab. */
TEST(an_older_file_has_heads_for_all_layers_and_tokens)
{
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77, NULL, 0), *back;
    struct err err = {0};
    struct safetensors_part parts[2 * LAST];
    const struct safetensors_note notes[] = {{"format", "specscope exit heads 1"},
                                             {"kind", "affine"},
                                             {"model", "tiny"},
                                             {"model_hash", "000000000000004d"},
                                             {"n_layers", "4"}};
    for (uint32_t i = 0; i < LAST; i++) {
        struct safetensors_part *a = &parts[2 * i], *b = a + 1;
        *a = (struct safetensors_part){.rows = WIDTH, .cols = WIDTH, .values = h->layers[i + 1].a};
        *b = (struct safetensors_part){.cols = WIDTH, .values = h->layers[i + 1].b};
        snprintf(a->name, sizeof a->name, "layers.%u.A", i + 1);
        snprintf(b->name, sizeof b->name, "layers.%u.b", i + 1);
    }
    assert_ok(safetensors_write(file("heads.safetensors"), notes, 5, parts, 2 * LAST, &err), err);
    assert_ok(exit_heads_read(&back, file("heads.safetensors"), model_of(77), &err), err);
    assert_int_equal(back->n_trained, LAST);
    assert_int_equal(back->draft_vocab, 0);
    assert_memory_equal(back->values, h->values, h->n_values * sizeof *h->values);
    exit_heads_free(h);
    exit_heads_free(back);
}

TEST(heads_of_another_model_are_refused_by_name)
{
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77, NULL, 0), *back;
    struct err err = {0};
    assert_ok(exit_heads_write(h, file("other.safetensors"), &err), err);
    assert_false(exit_heads_read(&back, file("other.safetensors"), model_of(78), &err));
    assert_contains(err.text, "with other weights");
    assert_null(back);
    exit_heads_free(h);
}

TEST(a_file_cut_anywhere_is_refused_in_one_line)
{
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77, NULL, 0), *back;
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
    struct exit_heads *h = some_heads(HEAD_AFFINE, 77, NULL, 0), *back;
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
