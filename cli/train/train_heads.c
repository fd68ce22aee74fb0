/* specscope train heads: trains heads for layers before the last, from any text or from the model's own answers to
 * prompts. The model is not changed; the heads learn to predict its final distribution. At any time the file contains
 * the best heads so far. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/blocks.h"
#include "base/clock.h"
#include "base/rng.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/train/train.h"
#include "engine/model/memory.h"
#include "engine/model/token_rank.h"
#include "engine/training/head_training.h"
#include "engine/training/reader.h"

#define HELD_EVERY  16         /* one of HELD_EVERY texts is held out */
#define HELD_ROWS   4096       /* at most */
#define BLOCK_BYTES (1u << 30) /* hidden states in memory at a time, at most */
#define EVALUATIONS 10         /* of the held-out texts */
#define SHOWN       6          /* layers in the progress bar */

/* Rows are the hidden states after the trained layers and the last one, of one position. */
struct job {
    const struct options *options;
    struct engine *engine;
    struct blocks blocks;    /* the memory of the following arrays */
    struct blas *blas;       /* NULL: the CPU multiplies */
    struct lens whole, lens; /* lens: of the draft vocabulary, if `set` is one */
    token_t *set;            /* (n_set) the draft vocabulary; NULL: all tokens */
    uint32_t n_set;
    struct exit_heads *heads;
    struct head_training *training;
    struct reader reader;
    struct train_texts texts;
    size_t most; /* rows of a text */
    size_t row;  /* floats of a row */
    struct head_rows block, batch, held;
    size_t block_rows, n_block, held_rows, n_held; /* room, rows, room, rows */
    size_t *order;                                 /* (block_rows) a shuffle of the block's rows */
    size_t *text_order;                            /* (n_train) the texts to train on, in the order of this pass */
    size_t n_train, next;
    bool whole_block;                                   /* the block has all rows to train on */
    bool written;                                       /* the file */
    struct head_score *lens_score, *score, *best_score; /* (n_trained) of held-out rows: sums */
    struct head_score *step_score;                      /* (n_trained) */
    float *best;                                        /* the values of each layer's best head so far */
    double loss, agreement;
    uint64_t random, start_us;
    uint64_t done, evaluated_at; /* tokens trained on, in all and before the last evaluation */
};

static bool
no_memory(struct err *err)
{
    return err_set(err, ERR_WORK, "train: out of memory for hidden states; use fewer --layers or a smaller --batch");
}

/* Returns the seconds that training will take, from the loss of one layer on some rows. */
static double
training_time(const struct job *j)
{
    enum { ROWS = 64 };
    struct lens view = j->whole;
    view.vocab = j->n_set > 0 ? j->n_set : view.vocab; /* which tokens makes no difference */
    const size_t width = view.width;
    struct blocks b = {0};
    struct head_work *work = head_work_open(&view, ROWS, &b);
    float *hidden = blocks_take(&b, ROWS * (width + 1), sizeof *hidden),
          *final = blocks_take(&b, ROWS * (size_t)view.vocab, sizeof *final);
    double *inside = blocks_take(&b, ROWS, sizeof *inside), seconds = NAN;
    struct head_target *target = blocks_take(&b, ROWS, sizeof *target);
    if (!b.starved) {
        uint64_t random = 1;
        for (size_t i = 0; i < ROWS * width; i++)
            hidden[i] = (float)((double)splitmix64(&random) * 0x1p-64);
        const struct head_batch batch = {.n = ROWS,
                                         .hidden = hidden,
                                         .stride = width,
                                         .final = final,
                                         .mass = hidden + ROWS * width,
                                         .inside = inside,
                                         .target = target};
        head_loss(&view, HEAD_LENS, NULL, &batch, work, NULL); /* the first one loads the library */
        const uint64_t start = clock_us();
        head_loss(&view, HEAD_LENS, NULL, &batch, work, NULL);
        /* a step's gradients take the product a second time or more, and the last layer is one more layer's loss */
        seconds = 1e-6 * (double)(clock_us() - start) / ROWS * (double)j->options->train.tokens *
                  (2.5 * (double)j->heads->n_trained + 1) / blas_callers(j->engine->threads, NULL);
    }
    blocks_free(&b);
    return seconds;
}

/* ---- rows ---- */

struct reading {
    const struct job *job;
    const struct train_text *text;
    float *hidden;
};

static bool
read_row(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct reading *w = user;
    const struct exit_heads *heads = w->job->heads;
    if (at < w->text->skip)
        return true;
    float *to = w->hidden + (at - w->text->skip) * w->job->row;
    for (size_t i = 0; i <= heads->n_trained; i++)
        if (!context_read_hidden(r->context, slot, i < heads->n_trained ? heads->trained[i] : r->layers,
                                 to + i * r->width))
            return false;
    return true;
}

static size_t
rows_of(const struct train_text *t)
{
    return t->n - t->skip;
}

/* Reads a text's rows to position *rows of `to`, and adds their number to *rows. */
static bool
read_rows(struct job *j, size_t index, const struct head_rows *to, size_t *rows, struct err *err)
{
    const struct train_text *t = &j->texts.at[index];
    struct head_rows part = {to->hidden + *rows * j->row, to->target + *rows};
    struct reading w = {.job = j, .text = t, .hidden = part.hidden};
    const struct reader_text text = {.tokens = j->texts.tokens + t->begin, .to = t->n, .user = &w};
    reader_forget(&j->reader, 0, 0);
    if (!reader_read(&j->reader, &text, 1, read_row))
        return err_copy(err, context_error(j->reader.context));
    head_training_targets(j->training, &part, rows_of(t));
    *rows += rows_of(t);
    return !blas_failed(j->blas, err);
}

static void
take_rows(struct job *j, struct head_rows *r, size_t n)
{
    r->hidden = blocks_take(&j->blocks, (n + 1) * j->row, sizeof *r->hidden);
    r->target = blocks_take(&j->blocks, n + 1, sizeof *r->target);
}

/* Holds out every HELD_EVERY-th text up to HELD_ROWS rows, and sizes the block of rows. */
static void
divide_texts(struct job *j)
{
    const size_t most = BLOCK_BYTES / (j->row * sizeof(float));
    size_t held = 0, rows = 0;
    for (size_t i = 0; i < j->texts.n; i++) {
        const size_t n = rows_of(&j->texts.at[i]);
        j->most = n > j->most ? n : j->most;
        if (i % HELD_EVERY == 0 && (held == 0 || held + n <= HELD_ROWS)) {
            held += n;
        } else if (i % HELD_EVERY != 0) {
            rows += n;
            j->text_order[j->n_train++] = i;
        }
    }
    j->block_rows = most < j->options->train.tokens ? most : (size_t)j->options->train.tokens;
    j->block_rows = j->block_rows > j->most ? j->block_rows : j->most;
    j->whole_block = rows <= j->block_rows;
    if (j->whole_block)
        j->block_rows = rows;
    j->held_rows = held;
}

/* Prints the memory that training takes; fails if so much is not available. */
static bool
memory_suffices(const struct job *j, const struct head_training_options *options, struct err *err)
{
    const struct model_desc *d = &j->engine->model->desc;
    const struct exit_heads *heads = j->heads;
    const uint64_t rows = j->block_rows + j->held_rows + options->batch;
    const uint64_t need =
        head_training_bytes(heads->kind, heads->n_trained, d->width, j->n_set > 0 ? j->n_set : d->vocab, d->vocab,
                            options) +
        sizeof(float) * (rows * j->row + heads->n_values + ((uint64_t)d->vocab + j->n_set) * d->width);
    const uint64_t available = memory_available();
    char takes[24], there[24], set[48] = "";
    memory_text(takes, need);
    if (need > available)
        return err_set(err, ERR_WORK,
                       "train: training takes %s besides the model, but %s of memory are available; use --kind affine, "
                       "fewer --layers, fewer --threads or a smaller --batch",
                       takes, memory_text(there, available));
    if (j->n_set > 0)
        snprintf(set, sizeof set, " on %" PRIu32 " of %" PRIu32 " tokens", j->n_set, d->vocab);
    fprintf(stderr, "%s heads for %s, %zu layers%s: training takes about %s besides the model%s\n",
            head_kind_name(heads->kind), j->engine->model->name, heads->n_trained, set, takes,
            j->blas != NULL ? ", and multiplies on the GPU" : "");
    return true;
}

/* ---- the job ---- */

/* Counts the tokens of the texts to train on, writes the counts beside the heads, and takes the draft vocabulary. */
static bool
choose_set(struct job *j, struct err *err)
{
    const struct model_desc *d = &j->engine->model->desc;
    uint64_t *counts = calloc(d->vocab, sizeof *counts);
    char path[PATH_MAX];
    j->set = blocks_take(&j->blocks, d->vocab, sizeof *j->set);
    bool ok = (counts != NULL && j->set != NULL) || no_memory(err);
    for (size_t i = 0; i < j->texts.n && ok; i++)
        for (size_t k = j->texts.at[i].begin; k < j->texts.at[i + 1].begin && i % HELD_EVERY != 0; k++)
            counts[j->texts.tokens[k]]++;
    snprintf(path, sizeof path, "%s.counts", j->options->train.out);
    ok = ok && token_counts_write(path, counts, d->vocab, err) &&
         token_rank(j->engine->model->tokenizer, d->vocab, counts, j->set, err);
    if (ok) {
        j->heads->draft_vocab = j->n_set;
        j->heads->counts_hash = hash_bytes(HASH_START, counts, d->vocab * sizeof *counts);
    }
    free(counts);
    return ok;
}

static bool
open_engine(struct job *j, struct err *err)
{
    if (!train_engine(j->options, 0, &j->engine, err))
        return false;
    const uint32_t wanted = j->engine->threads, callers = blas_callers(wanted, err);
    if (callers == 0)
        return false;
    if (callers < wanted)
        fprintf(stderr, "specscope: only one thread trains, for OpenBLAS's sequential build cannot be called by "
                        "several; its OpenMP build is faster (libopenblas-openmp-dev)\n");
    j->blas = train_blas(j->engine);
    return true;
}

#define DEEP    16 /* layers; without --layers, all of a model that is not deeper are trained, */
#define TRAINED 8  /* and of others about so many */

/* Reads "4:16:4,20", first:last:step or single layers, which ascend, into layers (n_layers). */
static bool
read_layers(const char *text, uint32_t n_layers, uint32_t *layers, size_t *n, struct err *err)
{
    *n = 0;
    for (const char *at = text; at != NULL;) {
        unsigned long range[3] = {0, 0, 1};
        char *end = NULL;
        int parts = 0;
        for (bool more = true; more && parts < 3 && *at >= '0' && *at <= '9'; at = more ? end + 1 : end) {
            range[parts++] = strtoul(at, &end, 10);
            more = *end == ':';
        }
        range[1] = parts < 2 ? range[0] : range[1];
        const bool ends = parts > 0 && end == at && (*at == ',' || *at == '\0');
        if (!ends || range[0] < 1 || range[2] < 1 || range[1] < range[0] || range[1] >= n_layers ||
            (*n > 0 && range[0] <= layers[*n - 1]))
            return err_set(err, ERR_USAGE,
                           "--layers %.60s: layers from 1 to %" PRIu32
                           " in ascending order are wanted, as first:last:step or with commas between them",
                           text, n_layers - 1);
        for (unsigned long l = range[0]; l <= range[1]; l += range[2])
            layers[(*n)++] = (uint32_t)l;
        at = *at == ',' ? at + 1 : NULL;
    }
    return true;
}

/* Makes heads for the layers of --layers, or for some, evenly spaced, of those before the last. */
static bool
new_heads(struct job *j, struct err *err)
{
    const uint32_t n_layers = j->engine->model->desc.n_layers,
                   step = n_layers <= DEEP ? 1 : (n_layers + TRAINED - 1) / TRAINED;
    const char *given = j->options->train.layers;
    size_t n = 0;
    uint32_t *layers = calloc(n_layers, sizeof *layers);
    bool ok = layers != NULL || no_memory(err);
    if (ok && given != NULL)
        ok = read_layers(given, n_layers, layers, &n, err);
    for (uint32_t l = step; ok && given == NULL && l < n_layers; l += step)
        layers[n++] = l;
    ok = ok && exit_heads_new(&j->heads, j->options->train.kind, j->engine->model, n > 0 ? layers : NULL, n, err);
    free(layers);
    return ok;
}

/* Reads or writes the texts, and opens the training and the memory for its rows. */
static bool
open_job(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    if (!open_engine(j, err))
        return false;
    const struct model_desc *d = &j->engine->model->desc;
    if (!new_heads(j, err) || !lens_open(&j->whole, d, NULL, 0, err))
        return false;
    const size_t n = j->heads->n_trained;
    j->whole.blas = j->blas;
    j->row = (n + 1) * d->width;
    j->random = o->seed;
    j->n_set = o->train.kind == HEAD_AFFINE && o->train.draft_vocab < d->vocab ? o->train.draft_vocab : 0;
    if (!train_texts_open(&j->texts, o, j->engine, o->prompts_file != NULL ? training_time(j) : 0, err) ||
        !choose_set(j, err))
        return false;
    const struct head_training_options options = {
        .threads = j->engine->threads, .batch = o->train.batch, .decay = 0.01f, .cancel = generation_interruption()};
    j->text_order = blocks_take(&j->blocks, j->texts.n, sizeof *j->text_order);
    if (j->text_order == NULL)
        return no_memory(err);
    divide_texts(j);
    if (!memory_suffices(j, &options, err) || (j->n_set > 0 && !lens_open(&j->lens, d, j->set, j->n_set, err)))
        return false;
    j->lens.blas = j->blas;
    const struct lens *lens = j->n_set > 0 ? &j->lens : &j->whole;
    blas_keep(j->blas, lens->head, (size_t)lens->vocab * lens->width); /* all products of training read it */
    if (!head_training_open(&j->training, j->heads, lens, &j->whole, &options, err) ||
        !reader_open(&j->reader, j->engine, READS_TARGET, j->texts.longest, 1, generation_interruption(), err))
        return false;
    struct head_score **const scores[] = {&j->lens_score, &j->score, &j->best_score, &j->step_score};
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
        *scores[i] = blocks_take(&j->blocks, n, sizeof **scores[i]);
    j->order = blocks_take(&j->blocks, j->block_rows + 1, sizeof *j->order);
    j->best = blocks_take(&j->blocks, j->heads->n_values, sizeof *j->best);
    take_rows(j, &j->block, j->block_rows);
    take_rows(j, &j->batch, o->train.batch);
    take_rows(j, &j->held, j->held_rows);
    return !j->blocks.starved || no_memory(err);
}

static void
close_job(struct job *j)
{
    head_training_close(j->training);
    reader_close(&j->reader);
    exit_heads_free(j->heads);
    lens_free(&j->lens);
    lens_free(&j->whole);
    blas_close(j->blas);
    engine_close(j->engine);
    train_texts_close(&j->texts);
    blocks_free(&j->blocks);
}

/* ---- the schedule ---- */

/* Computes mean KL and agreement over layers, from sums over the held-out rows. */
static void
mean_score(const struct job *j, const struct head_score *sums, double *loss, double *agreement)
{
    *loss = *agreement = 0;
    for (size_t i = 0; i < j->heads->n_trained; i++) {
        *loss += sums[i].loss / (double)j->n_held / (double)j->heads->n_trained;
        *agreement += sums[i].agreement / (double)j->n_held / (double)j->heads->n_trained;
    }
}

/* Keeps each layer's best head on held-out rows, and writes the file if one became better, or is the first. The first
 * heads equal the lens, so no head in the file is worse than the lens. */
static bool
keep_best(struct job *j, bool first, struct err *err)
{
    const size_t n = j->heads->per_layer;
    bool better = first;
    for (size_t i = 0; i < j->heads->n_trained; i++) {
        if (!first && !(j->score[i].loss < j->best_score[i].loss))
            continue;
        better = true;
        j->best_score[i] = j->score[i];
        memcpy(j->best + i * n, j->heads->values + i * n, n * sizeof *j->best);
    }
    j->evaluated_at = j->done;
    mean_score(j, j->best_score, &j->loss, &j->agreement);
    struct exit_heads best = *j->heads;
    best.values = j->best;
    j->written = j->written || better;
    return !better || exit_heads_write(&best, j->options->train.out, err);
}

static bool
evaluate(struct job *j, struct err *err)
{
    memset(j->score, 0, j->heads->n_trained * sizeof *j->score);
    head_training_score(j->training, false, &j->held, j->n_held, j->score);
    return !blas_failed(j->blas, err) && (generation_interrupted() || keep_best(j, false, err));
}

/* Prints the mean over layers of the loss, and the agreement of some layers. */
static void
print_progress(const struct job *j, bool line)
{
    const struct exit_heads *h = j->heads;
    const size_t n = h->n_trained, step = (n + SHOWN - 1) / SHOWN;
    char text[160];
    size_t at = (size_t)snprintf(text, sizeof text, "held out: KL %.3f  agreement %.1f%%", j->loss, j->agreement * 100);
    for (size_t i = step - 1; i < n && n > 1; i += step)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRIu32 ": %.0f%%", i == step - 1 ? "; layer " : "  ",
                               h->trained[i], j->best_score[i].agreement / (double)j->n_held * 100);
    train_bar("training", fmin(1, (double)j->done / (double)j->options->train.tokens), line, text, j->start_us);
}

/* Reads the next texts into the block, unless it has all of them, and shuffles its rows. */
static bool
fill_block(struct job *j, struct err *err)
{
    bool more = j->n_block == 0 || !j->whole_block;
    if (more)
        j->n_block = 0;
    for (size_t n = 1; more && !generation_interrupted(); n++) {
        if (j->next % j->n_train == 0) /* a new pass over the texts has another order */
            train_shuffle(j->text_order, j->n_train, &j->random);
        if (!read_rows(j, j->text_order[j->next++ % j->n_train], &j->block, &j->n_block, err))
            return false;
        more = j->whole_block ? n < j->n_train : j->n_block + j->most <= j->block_rows;
        train_bar("reading", (double)j->n_block / (double)j->block_rows, false, "hidden states", j->start_us);
    }
    for (size_t i = 0; i < j->n_block; i++)
        j->order[i] = i;
    train_shuffle(j->order, j->n_block, &j->random);
    return true;
}

/* Trains on n rows of the block from `at` in its order. The rate rises, then falls to 0. */
static bool
train_step(struct job *j, size_t at, size_t n, struct err *err)
{
    const struct options *o = j->options;
    const uint64_t warm_up = o->train.tokens / 50 + 1;
    for (size_t i = 0; i < n; i++) {
        memcpy(j->batch.hidden + i * j->row, j->block.hidden + j->order[at + i] * j->row,
               j->row * sizeof *j->batch.hidden);
        j->batch.target[i] = j->block.target[j->order[at + i]];
    }
    const double rate =
        o->train.rate * fmin((double)(j->done + n) / (double)warm_up, 1 - (double)j->done / (double)o->train.tokens);
    head_training_step(j->training, &j->batch, n, (float)rate, j->step_score);
    j->done += n;
    return !blas_failed(j->blas, err);
}

static bool
train_block(struct job *j, struct err *err)
{
    const uint64_t all = j->options->train.tokens, every = all / EVALUATIONS + 1;
    const bool first = j->next == 0;
    if (!fill_block(j, err))
        return false;
    if (first && !generation_interrupted() && j->heads->kind == HEAD_AFFINE &&
        (!head_training_start(j->training, &j->block, j->n_block, err) || !evaluate(j, err)))
        return false;
    for (size_t at = 0, n; at < j->n_block && j->done < all && !generation_interrupted(); at += n) {
        const size_t left = j->n_block - at, most = j->options->train.batch;
        n = left < most ? left : most;
        if (!train_step(j, at, n, err))
            return false;
        const bool due = j->done - j->evaluated_at >= every || j->done >= all;
        if (due && !evaluate(j, err))
            return false;
        print_progress(j, due);
    }
    return true;
}

/* Prints the best heads against the lens, layer by layer, on held-out rows. */
static void
report(const struct job *j)
{
    const struct exit_heads *h = j->heads;
    const double n = (double)j->n_held;
    printf("held out: %zu tokens          lens             %s\nlayer         agreement     KL  agreement     KL\n",
           j->n_held, head_kind_name(h->kind));
    for (size_t i = 0; i < h->n_trained; i++)
        printf("%5" PRIu32 "            %5.1f%%  %6.3f     %5.1f%%  %6.3f\n", h->trained[i],
               j->lens_score[i].agreement / n * 100, j->lens_score[i].loss / n, j->best_score[i].agreement / n * 100,
               j->best_score[i].loss / n);
    printf("%s heads of %s: %s, %.0f s\n", head_kind_name(h->kind), j->engine->model->name, j->options->train.out,
           (double)(clock_us() - j->start_us) * 1e-6);
}

/* Reads the held-out rows, and writes the first file: heads that equal the lens. */
static bool
begin(struct job *j, struct err *err)
{
    const size_t n = j->heads->n_trained;
    for (size_t i = 0; i < j->texts.n; i += HELD_EVERY)
        if (j->n_held + rows_of(&j->texts.at[i]) <= j->held_rows && !read_rows(j, i, &j->held, &j->n_held, err))
            return false;
    head_training_score(j->training, true, &j->held, j->n_held, j->lens_score);
    memcpy(j->score, j->lens_score, n * sizeof *j->score);
    return !blas_failed(j->blas, err) && (generation_interrupted() || keep_best(j, true, err));
}

static bool
train(struct job *j, struct err *err)
{
    const uint64_t all = j->options->train.tokens;
    bool ok = open_job(j, err) && begin(j, err);
    while (ok && j->done < all && !generation_interrupted())
        ok = train_block(j, err);
    if (isatty(STDERR_FILENO) && (!ok || j->done < all)) /* ends the line of an unfinished bar */
        fputc('\n', stderr);
    if (!ok && err->kind != ERR_CANCELLED)
        return false;
    if (!j->written)
        return err_set(err, ERR_CANCELLED, "interrupted before training began");
    report(j);
    return (ok && j->done >= all) || err_set(err, ERR_CANCELLED, "interrupted; the best heads so far are in the file");
}

bool
train_heads_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    generation_catch_signals();
    struct job j = {.options = o, .start_us = clock_us()};
    const bool ok = train_can_begin(o, "heads", "what to train on; or --prompts FILE, for the model to answer",
                                    &exit_heads_file, err) &&
                    train(&j, err);
    close_job(&j);
    return ok;
}
