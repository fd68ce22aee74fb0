#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/base/files.h"
#include "cli/generation/generation.h"
#include "cli/train/train.h"
#include "cli/train/train_blas.h"
#include "engine/tokenizer/tokenizer.h"

#define BLOCK_BYTES (256u << 20) /* hidden states in memory at a time, about */

static bool
prepare_text(struct job *j, struct err *err)
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

/* Every HELD_EVERY-th window is held out, as many as memory takes; the others are for training. */
static bool
prepare_memory(struct job *j, struct err *err)
{
    const size_t windows = head_stream_windows(j->stream), bytes = j->row * sizeof(float);
    size_t most = BLOCK_BYTES / bytes / j->window;
    most = most > 0 ? most : 1;
    size_t n_held = (windows + HELD_EVERY - 1) / HELD_EVERY;
    n_held = n_held < most ? n_held : most;
    const size_t per_block = most < windows ? most : windows;
    j->block_rows = per_block * j->window;
    j->block = malloc(j->block_rows * bytes);
    j->batch = malloc(j->options->train.batch * bytes);
    j->held = malloc(n_held * j->window * bytes);
    j->order = malloc(j->block_rows * sizeof *j->order);
    j->turn = malloc(windows * sizeof *j->turn);
    j->begun = malloc(windows * sizeof *j->begun);
    j->lens_score = calloc((size_t)j->layers + 1, sizeof *j->lens_score);
    j->score = calloc((size_t)j->layers + 1, sizeof *j->score);
    j->best_score = calloc((size_t)j->layers + 1, sizeof *j->best_score);
    j->best = malloc(j->heads->n_values * sizeof *j->best);
    if (j->block == NULL || j->batch == NULL || j->held == NULL || j->order == NULL || j->turn == NULL ||
        j->begun == NULL || j->lens_score == NULL || j->score == NULL || j->best_score == NULL || j->best == NULL)
        return err_set(err, ERR_WORK, "train: out of memory for hidden states; use a smaller --window or --batch");
    for (size_t w = 0; w < windows; w++) {
        size_t rows;
        if (w % HELD_EVERY == 0 && w / HELD_EVERY < n_held) {
            if (generation_interrupted())
                return err_set(err, ERR_CANCELLED, "interrupted before training began");
            if (!head_stream_window(j->stream, w, j->held + j->held_rows * j->row, &rows, err))
                return false;
            j->held_rows += rows;
        } else if (w % HELD_EVERY != 0) {
            j->turn[j->n_turns++] = w;
        }
    }
    return true;
}

/* The model's own head, by which every product of training goes, is copied once. */
static bool
open_lens(struct job *j, struct err *err)
{
    if (!lens_open(&j->lens, &j->engine->model->desc, err))
        return false;
    j->lens.blas = j->blas;
    blas_keep(j->blas, j->lens.head, (size_t)j->lens.vocab * j->lens.width);
    return true;
}

bool
train_job_open(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct model *m = j->engine->model;
    j->layers = m->desc.n_layers;
    j->row = ((size_t)j->layers + 1) * m->desc.width;
    j->random = o->seed;
    const struct head_training_options options = {
        .threads = j->engine->threads, .batch = o->train.batch, .rate = (float)o->train.rate, .decay = 0.01f};
    if (blas_callers(options.threads) < options.threads)
        fprintf(stderr,
                "specscope: only one thread trains, for OpenBLAS's sequential build cannot be called by several; "
                "its OpenMP build is faster (libopenblas-openmp-dev)\n");
    j->blas = train_blas(j->engine);
    if (!prepare_text(j, err) || !train_going_on_open(j, err))
        return false;
    fprintf(stderr, "%s heads for %s: training takes about %.1f MB besides the model%s\n",
            head_kind_name(o->train.kind), m->name,
            (double)head_training_bytes(o->train.kind, j->layers, m->desc.width, m->desc.vocab, &options) * 1e-6,
            j->blas != NULL ? ", and multiplies on the GPU" : "");
    return open_lens(j, err) && exit_heads_new(&j->heads, o->train.kind, m, err) &&
           head_training_open(&j->training, j->heads, &j->lens, &options, err) &&
           head_stream_open(&j->stream, j->engine, j->tokens, j->n_tokens, j->window, tokenizer_bos(m->tokenizer), NULL,
                            err) &&
           prepare_memory(j, err);
}

void
train_job_free(struct job *j)
{
    head_training_close(j->training);
    head_stream_close(j->stream);
    exit_heads_free(j->heads);
    lens_free(&j->lens);
    blas_close(j->blas);
    engine_close(j->engine);
    free(j->tokens);
    free(j->block);
    free(j->batch);
    free(j->held);
    free(j->order);
    free(j->turn);
    free(j->begun);
    free(j->lens_score);
    free(j->score);
    free(j->best_score);
    free(j->best);
}
