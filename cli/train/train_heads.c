/* specscope train heads: trains a head for each layer except the last, from any text. The model is not changed; the
 * heads learn to predict its final distribution. At any time the file contains the best heads so far. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "cli/train/train.h"
#include "engine/model/memory.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/training/head_training.h"
#include "engine/training/reader.h"

#define HELD_EVERY  16           /* one of HELD_EVERY windows is held out */
#define BLOCK_BYTES (256u << 20) /* hidden states in memory at a time, about */
#define EVALUATIONS 10           /* of the held-out text */

/* The text is read in windows, each with a context of its own. Hidden states are rows of the residual stream after
 * each depth 0..L. */
struct job {
    const struct options *options;
    struct engine *engine;
    struct blas *blas; /* NULL: the CPU multiplies */
    struct lens lens;
    struct exit_heads *heads;
    struct head_training *training;
    struct reader reader;
    token_t *tokens; /* (n_tokens) of the text */
    size_t n_tokens;
    uint32_t window, layers;
    token_t *input;              /* (1 + window) a window with BOS */
    size_t row;                  /* values of a row: (L + 1) * width */
    float *block, *batch, *held; /* (block_rows, row), (batch, row), (held_rows, row) */
    size_t block_rows, held_rows;
    size_t *order;        /* (block_rows) a shuffle of the block's rows */
    size_t *window_order; /* (n_windows) the training windows in the order of this pass over the text */
    size_t n_windows, next;
    struct head_score *scores;                          /* owns the following four, (L + 1) each */
    struct head_score *lens_score, *score, *best_score; /* of held-out text: sums over rows */
    struct head_score *step_score;
    float *best; /* the values of each layer's best head so far */
    double loss, agreement;
    bool evaluated;
    uint64_t random, start_us;
    uint64_t done, evaluated_at; /* tokens trained on, in all and before the last evaluation */
};

/* ---- the text ---- */

static bool
read_text(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    char *text;
    size_t len;
    if (!file_read(o->train.text, &text, &len, err))
        return false;
    const bool ok = tokenizer_encode(j->engine->model->tokenizer, text, len, (struct tokenize_options){.bos = true},
                                     &j->tokens, &j->n_tokens, err);
    free(text);
    if (!ok)
        return false;
    const uint32_t most = j->engine->model->ctx_train > 1 ? j->engine->model->ctx_train - 1 : 512;
    j->window = o->train.window > 0 ? o->train.window : most < 512 ? most : 512;
    if (j->window > most)
        return err_set(err, ERR_USAGE, "train: --window %" PRIu32 " is more than %s's context of %" PRIu32, j->window,
                       j->engine->model->name, most + 1);
    if (j->n_tokens < 2 * (size_t)j->window)
        return err_set(err, ERR_WORK,
                       "train: %s has %zu tokens; two windows of %" PRIu32
                       " are the least: give more text, or a smaller --window",
                       o->train.text, j->n_tokens, j->window);
    return true;
}

struct window {
    const struct job *job;
    uint32_t skip; /* rows of BOS, which are not part of the text */
    float *hidden;
};

static bool
read_row(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct window *w = user;
    if (at < w->skip)
        return true;
    float *to = w->hidden + (at - w->skip) * w->job->row;
    for (uint32_t l = 0; l <= r->layers; l++)
        if (!context_read_hidden(r->context, slot, l, to + (size_t)l * r->width))
            return false;
    return true;
}

/* Reads the hidden states of one window into `hidden`, which has room for `window` rows, and adds their number to
 * *rows. */
static bool
read_window(struct job *j, size_t index, float *hidden, size_t *rows, struct err *err)
{
    const token_t bos = tokenizer_bos(j->engine->model->tokenizer);
    const size_t begin = index * j->window, left = j->n_tokens - begin, n = left < j->window ? left : j->window;
    struct window w = {.job = j, .skip = index > 0 && bos != TOKEN_NONE, .hidden = hidden};
    j->input[0] = bos;
    memcpy(j->input + w.skip, j->tokens + begin, n * sizeof *j->input);
    reader_forget(&j->reader, 0, 0);
    const struct reader_text text = {.tokens = j->input, .to = w.skip + (uint32_t)n, .user = &w};
    *rows += n;
    return reader_read(&j->reader, &text, 1, read_row) || err_copy(err, context_error(j->reader.context));
}

static size_t
windows_of(const struct job *j)
{
    return (j->n_tokens + j->window - 1) / j->window;
}

/* Sizes a block, and returns the number of windows that are held out: as many as fit into a block. */
static size_t
size_block(struct job *j)
{
    const size_t windows = windows_of(j), most = BLOCK_BYTES / (j->row * sizeof(float)) / j->window;
    const size_t held = (windows + HELD_EVERY - 1) / HELD_EVERY, blocks = most > 0 ? most : 1;
    j->block_rows = (blocks < windows ? blocks : windows) * j->window;
    return held < blocks ? held : blocks;
}

/* Prints the memory that training takes; fails if so much is not available. */
static bool
memory_suffices(struct job *j, const struct head_training_options *options, struct err *err)
{
    const struct model_desc *d = &j->engine->model->desc;
    const enum head_kind kind = j->options->train.kind;
    const uint64_t held_rows = size_block(j) * j->window, rows = j->block_rows + held_rows + options->batch;
    const uint64_t best = (j->layers - 1) * (kind == HEAD_FULL ? d->vocab : d->width + 1) * (uint64_t)d->width;
    const uint64_t need = head_training_bytes(kind, j->layers, d->width, d->vocab, options) +
                          sizeof(float) * (rows * j->row + best + (uint64_t)d->vocab * d->width);
    const uint64_t available = memory_available();
    char takes[24], there[24];
    memory_text(takes, need);
    if (need > available)
        return err_set(err, ERR_WORK,
                       "train: training takes %s besides the model, but %s of memory are available; use --kind affine, "
                       "fewer --threads or a smaller --batch",
                       takes, memory_text(there, available));
    fprintf(stderr, "%s heads for %s: training takes about %s besides the model%s\n", head_kind_name(kind),
            j->engine->model->name, takes, j->blas != NULL ? ", and multiplies on the GPU" : "");
    return true;
}

/* Holds out every HELD_EVERY-th window; all others are for training. */
static bool
prepare_memory(struct job *j, struct err *err)
{
    const size_t windows = windows_of(j), n_held = size_block(j), bytes = j->row * sizeof(float),
                 depths = (size_t)j->layers + 1;
    j->block = malloc(j->block_rows * bytes);
    j->batch = malloc(j->options->train.batch * bytes);
    j->held = malloc(n_held * j->window * bytes);
    j->input = malloc(((size_t)j->window + 1) * sizeof *j->input);
    j->order = malloc(j->block_rows * sizeof *j->order);
    j->window_order = malloc(windows * sizeof *j->window_order);
    j->scores = calloc(4 * depths, sizeof *j->scores);
    j->best = malloc(j->heads->n_values * sizeof *j->best);
    if (j->block == NULL || j->batch == NULL || j->held == NULL || j->input == NULL || j->order == NULL ||
        j->window_order == NULL || j->scores == NULL || j->best == NULL)
        return err_set(err, ERR_WORK, "train: out of memory for hidden states; use a smaller --window or --batch");
    j->lens_score = j->scores;
    j->score = j->lens_score + depths;
    j->best_score = j->score + depths;
    j->step_score = j->best_score + depths;
    for (size_t w = 0; w < windows; w++) {
        if (w % HELD_EVERY != 0) {
            j->window_order[j->n_windows++] = w;
        } else if (w / HELD_EVERY < n_held) {
            if (generation_interrupted())
                return err_set(err, ERR_CANCELLED, "interrupted before training began");
            if (!read_window(j, w, j->held + j->held_rows * j->row, &j->held_rows, err))
                return false;
        }
    }
    return true;
}

/* ---- the job ---- */

static bool
open_job(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct engine_options engine = {.model_path = o->model != NULL ? o->model : bundled_model_path(),
                                          .backend = o->backend,
                                          .lora = o->lora.at,
                                          .n_lora = o->lora.n,
                                          .backend_options = o->backend_options};
    if (!engine_open(&j->engine, &engine, NULL, NULL, err))
        return false;
    const struct model *m = j->engine->model;
    j->layers = m->desc.n_layers;
    j->row = ((size_t)j->layers + 1) * m->desc.width;
    j->random = o->seed;
    const struct head_training_options options = {
        .threads = j->engine->threads, .batch = o->train.batch, .rate = (float)o->train.rate, .decay = 0.01f};
    const uint32_t callers = blas_callers(options.threads, err);
    if (callers == 0)
        return false;
    if (callers < options.threads)
        fprintf(stderr,
                "specscope: only one thread trains, for OpenBLAS's sequential build cannot be called by several; "
                "its OpenMP build is faster (libopenblas-openmp-dev)\n");
    j->blas = train_blas(j->engine);
    if (!read_text(j, err) || !memory_suffices(j, &options, err) || !lens_open(&j->lens, &m->desc, err))
        return false;
    j->lens.blas = j->blas;
    /* all products of training read the head */
    blas_keep(j->blas, j->lens.head, (size_t)j->lens.vocab * j->lens.width);
    return exit_heads_new(&j->heads, o->train.kind, m, err) &&
           head_training_open(&j->training, j->heads, &j->lens, &options, err) &&
           reader_open(&j->reader, j->engine, READS_TARGET, j->window + 1, 1, NULL, err) && prepare_memory(j, err);
}

static void
close_job(struct job *j)
{
    head_training_close(j->training);
    reader_close(&j->reader);
    exit_heads_free(j->heads);
    lens_free(&j->lens);
    blas_close(j->blas);
    engine_close(j->engine);
    free(j->tokens);
    free(j->block);
    free(j->batch);
    free(j->held);
    free(j->input);
    free(j->order);
    free(j->window_order);
    free(j->scores);
    free(j->best);
}

/* ---- the schedule ---- */

/* Computes mean KL and agreement over layers, from sums over the held-out rows. */
static void
mean_score(const struct job *j, const struct head_score *sums, double *loss, double *agreement)
{
    *loss = *agreement = 0;
    for (uint32_t l = 1; l < j->layers; l++) {
        *loss += sums[l].loss / (double)j->held_rows / (j->layers - 1);
        *agreement += sums[l].agreement / (double)j->held_rows / (j->layers - 1);
    }
}

/* Scores the heads on held-out text, keeps each layer's best head, and writes the file if one became better. The first
 * heads equal the lens, so no head in the file is worse than the lens. */
static bool
evaluate(struct job *j, struct err *err)
{
    const size_t n = j->heads->per_layer;
    bool better = false;
    memset(j->score, 0, ((size_t)j->layers + 1) * sizeof *j->score);
    head_training_score(j->training, false, j->held, j->held_rows, j->score);
    for (uint32_t l = 1; l < j->layers; l++) {
        if (j->evaluated && !(j->score[l].loss < j->best_score[l].loss))
            continue;
        better = true;
        j->best_score[l] = j->score[l];
        memcpy(j->best + (l - 1) * n, j->heads->values + (l - 1) * n, n * sizeof *j->best);
    }
    j->evaluated = true;
    j->evaluated_at = j->done;
    mean_score(j, j->best_score, &j->loss, &j->agreement);
    struct exit_heads best = *j->heads;
    best.values = j->best;
    return !better || exit_heads_write(&best, j->options->train.out, err);
}

static void
print_progress(const struct job *j, bool line)
{
    double lens_loss, lens_agreement;
    char text[128];
    mean_score(j, j->lens_score, &lens_loss, &lens_agreement);
    snprintf(text, sizeof text, "held out: KL %.3f (lens %.3f)  agreement %.1f%% (lens %.1f%%)", j->loss, lens_loss,
             j->agreement * 100, lens_agreement * 100);
    train_bar("training", fmin(1, (double)j->done / (double)j->options->train.tokens), line, text, j->start_us);
}

/* Reads the next windows into the block and shuffles their rows. */
static bool
fill_block(struct job *j, size_t *rows, struct err *err)
{
    *rows = 0;
    for (size_t w = 0; w < j->block_rows / j->window && !generation_interrupted(); w++) {
        if (j->next % j->n_windows == 0) /* a new pass over the text has another order */
            train_shuffle(j->window_order, j->n_windows, &j->random);
        if (!read_window(j, j->window_order[j->next++ % j->n_windows], j->block + *rows * j->row, rows, err))
            return false;
    }
    for (size_t i = 0; i < *rows; i++)
        j->order[i] = i;
    train_shuffle(j->order, *rows, &j->random);
    return true;
}

/* Trains on n rows of the block from `at` in its order. The rate rises, then falls to 0. */
static bool
train_step(struct job *j, size_t at, size_t n, struct err *err)
{
    const struct options *o = j->options;
    const uint64_t warm_up = o->train.tokens / 50 + 1;
    for (size_t i = 0; i < n; i++)
        memcpy(j->batch + i * j->row, j->block + j->order[at + i] * j->row, j->row * sizeof *j->batch);
    const double rate =
        o->train.rate * fmin((double)(j->done + n) / (double)warm_up, 1 - (double)j->done / (double)o->train.tokens);
    head_training_step(j->training, j->batch, n, (float)rate, j->step_score);
    j->done += n;
    return !blas_failed(j->blas, err);
}

static bool
train_block(struct job *j, struct err *err)
{
    const uint64_t all = j->options->train.tokens, every = all / EVALUATIONS + 1;
    size_t rows;
    if (!fill_block(j, &rows, err))
        return false;
    for (size_t at = 0, n; at < rows && j->done < all && !generation_interrupted(); at += n) {
        n = rows - at < j->options->train.batch ? rows - at : j->options->train.batch;
        if (!train_step(j, at, n, err))
            return false;
        const bool due = j->done - j->evaluated_at >= every || j->done >= all;
        if (due && !evaluate(j, err))
            return false;
        print_progress(j, due);
    }
    return true;
}

/* Prints the best heads against the lens, layer by layer, on held-out text. */
static void
report(const struct job *j)
{
    printf("held out: %zu tokens          lens             %s\nlayer         agreement     KL  agreement     KL\n",
           j->held_rows, head_kind_name(j->heads->kind));
    const double n = (double)j->held_rows;
    for (uint32_t l = 1; l < j->layers; l++)
        printf("%5" PRIu32 "            %5.1f%%  %6.3f     %5.1f%%  %6.3f\n", l, j->lens_score[l].agreement / n * 100,
               j->lens_score[l].loss / n, j->best_score[l].agreement / n * 100, j->best_score[l].loss / n);
    printf("%s heads of %s: %s, %.0f s\n", head_kind_name(j->heads->kind), j->engine->model->name,
           j->options->train.out, (double)(clock_us() - j->start_us) * 1e-6);
}

static bool
train(struct job *j, struct err *err)
{
    const uint64_t all = j->options->train.tokens;
    if (!open_job(j, err))
        return false;
    head_training_score(j->training, true, j->held, j->held_rows, j->lens_score);
    bool ok = evaluate(j, err);
    while (ok && j->done < all && !generation_interrupted())
        ok = train_block(j, err);
    if (j->done < all && isatty(STDERR_FILENO)) /* ends the line of an unfinished bar */
        fputc('\n', stderr);
    if (!ok)
        return false;
    report(j);
    return j->done >= all || err_set(err, ERR_CANCELLED, "interrupted; the best heads so far are in the file");
}

bool
train_heads_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    generation_catch_signals();
    struct job j = {.options = o, .start_us = clock_us()};
    const bool ok = train_can_begin(o, "heads", "what to train on", &exit_heads_file, err) && train(&j, err);
    close_job(&j);
    return ok;
}
