/* specscope train eagle: trains an EAGLE-3 head for a model on the model's own answers to prompts, or on a text. The
 * model is not changed. At any time the file contains the best head so far. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/blocks.h"
#include "base/clock.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/train/train.h"
#include "engine/model/memory.h"
#include "engine/model/token_rank.h"
#include "engine/training/eagle_file.h"
#include "engine/training/eagle_training.h"
#include "kernels/half.h"

#define HELD_EVERY    16                   /* one of HELD_EVERY windows is held out, */
#define HELD_TOKENS   8192                 /* up to so many tokens */
#define EVALUATIONS   12                   /* of the held-out windows */
#define ANSWERS_SHARE 0.5                  /* of the time: a token of an answer costs as much as some passes over it */
#define PASSES        5                    /* over the answers, where --tokens sets the length of training */
#define PLAIN_SHARE   0.5                  /* of training, at the beginning, that has one step instead of EAGLE_STEPS */
#define WARM_UP       30                   /* steps of the optimizer in which the rate rises */
#define STATES        (EAGLE_FEATURES + 1) /* of a token: features, and the state after the last layer */

/* Windows are answers with their prompts, or parts of a text. */
struct job {
    const struct options *options;
    struct engine *engine;
    struct blocks blocks; /* the memory of the following arrays */
    struct blas *blas;    /* NULL: the CPU multiplies */
    struct answers answers;
    uint32_t most;     /* tokens of a window at most */
    uint16_t **states; /* (answers.n) of each window's tokens: struct eagle_window */
    bool out_of_memory;
    uint32_t layers[STATES];
    float *row;   /* (width) */
    token_t *ids; /* (vocab) the draft vocabulary first */
    struct lens lens;
    struct eagle_head *head;
    struct eagle_training *training;
    struct eagle_window *windows; /* (n_train + n_held) */
    size_t n_train, n_held;
    size_t *order, next;        /* (n_train) of this pass over the windows */
    struct eagle_window *batch; /* those of a step */
    float *best;                /* the values of the best head so far */
    struct eagle_score held;    /* its scores; none: no head was evaluated */
    double best_loss, evaluated;
    uint64_t done, steps, random, start_us, training_us;
};

static double
seconds_since(uint64_t start_us)
{
    return (double)(clock_us() - start_us) * 1e-6;
}

/* The whole time; infinite if --tokens sets the length of training. */
static double
limit_s(const struct job *j)
{
    return j->options->train.tokens > 0 ? INFINITY : 60 * j->options->train.minutes;
}

/* ---- the target's states ---- */

static size_t
token_states(const struct job *j)
{
    return STATES * (size_t)j->engine->model->desc.width;
}

static bool
read_states(void *job, struct reader *r, const struct answer *a, uint32_t at, slot_t slot)
{
    struct job *j = job;
    const size_t which = (size_t)(a - j->answers.at);
    if (j->states == NULL)
        j->states = blocks_take(&j->blocks, j->answers.n, sizeof *j->states);
    if (j->states != NULL && j->states[which] == NULL)
        j->states[which] = blocks_take(&j->blocks, j->most, token_states(j) * sizeof **j->states);
    j->out_of_memory = j->blocks.starved;
    for (size_t k = 0; k < STATES && !j->out_of_memory; k++) {
        uint16_t *to = j->states[which] + at * token_states(j) + k * r->width;
        if (!context_read_hidden(r->context, slot, j->layers[k], j->row))
            return false;
        for (uint32_t i = 0; i < r->width; i++)
            to[i] = f32_to_bf16(j->row[i]);
    }
    return !j->out_of_memory;
}

/* The tokens whose states are collected, at most: half of the free memory has room for them. */
static uint64_t
tokens_wanted(const struct job *j)
{
    const uint64_t room = memory_available() / 2 / (token_states(j) * sizeof(uint16_t)),
                   wanted = j->options->train.tokens / PASSES + 1;
    return j->options->train.tokens > 0 && wanted < room ? wanted : room;
}

struct text_row {
    struct job *job;
    const struct answer *window;
};

static bool
read_text_row(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct text_row *of = user;
    return read_states(of->job, r, of->window, at, slot);
}

/* Makes the windows of the text, which the texts own no longer, take the place of answers, in random order. */
static bool
take_windows(struct job *j, struct train_texts *t, size_t *order, struct err *err)
{
    struct answers *a = &j->answers;
    a->at = calloc(t->n, sizeof *a->at);
    if (a->at == NULL || order == NULL)
        return err_set(err, ERR_WORK, "train: out of memory for the text");
    a->tokens = t->tokens;
    t->tokens = NULL;
    j->most = t->longest;
    for (; a->n < t->n; a->n++) {
        a->at[a->n] = (struct answer){.text = a->tokens + t->at[a->n].begin, .prompt = 1};
        order[a->n] = a->n;
    }
    train_shuffle(order, a->n, &j->random);
    return true;
}

/* Reads windows in this order, as many as the time allows. */
static bool
read_windows(struct job *j, const struct train_texts *t, const size_t *order, struct err *err)
{
    struct reader r;
    struct answers *a = &j->answers;
    const uint64_t wanted = tokens_wanted(j);
    bool ok = reader_open(&r, j->engine, READS_TARGET, j->most, 1, generation_interruption(), err);
    for (size_t i = 0; i < a->n && ok && a->written < wanted; i++) {
        struct answer *window = &a->at[order[i]];
        struct text_row of = {j, window};
        const struct reader_text text = {.tokens = window->text, .to = t->at[order[i]].n, .user = &of};
        if (seconds_since(j->start_us) > ANSWERS_SHARE * limit_s(j))
            break;
        reader_forget(&r, 0, 0);
        ok = reader_read(&r, &text, 1, read_text_row) || err_copy(err, context_error(r.context));
        window->n = text.to;
        a->written += text.to;
        train_bar("reading", (double)(i + 1) / (double)a->n, false, "", j->start_us);
    }
    reader_close(&r);
    return ok;
}

static bool
read_text(struct job *j, struct err *err)
{
    struct train_texts t;
    if (!train_texts_open(&t, j->options, j->engine, 0, err))
        return false;
    size_t *order = calloc(t.n, sizeof *order);
    const bool ok = take_windows(j, &t, order, err) && read_windows(j, &t, order, err);
    free(order);
    train_texts_close(&t);
    return ok;
}

static bool
collect(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    j->most = o->answers.prompt + o->answers.response;
    const struct train_answering how = {.tokens = tokens_wanted(j),
                                        .training_s = (1 - ANSWERS_SHARE) * limit_s(j),
                                        .seconds = ANSWERS_SHARE * limit_s(j),
                                        .row = read_states,
                                        .user = j};
    const bool ok = o->prompts_file != NULL ? train_answers(&j->answers, o, j->engine, &how, err) : read_text(j, err);
    return ok || (j->out_of_memory && err_set(err, ERR_WORK, "train: out of memory for the features of answers"));
}

/* ---- the job ---- */

static int
by_id(const void *a, const void *b)
{
    const token_t x = *(const token_t *)a, y = *(const token_t *)b;
    return (x > y) - (x < y);
}

/* Chooses the draft vocabulary by the counts of the collected tokens, and prints how many of them it contains. */
static bool
choose_vocabulary(struct job *j, uint32_t *n, struct err *err)
{
    const struct model *m = j->engine->model;
    uint64_t *counts = calloc(m->desc.vocab, sizeof *counts), all = 0, inside = 0;
    j->ids = blocks_take(&j->blocks, m->desc.vocab, sizeof *j->ids);
    bool ok = (counts != NULL && j->ids != NULL) || err_set(err, ERR_WORK, "train: out of memory for a vocabulary");
    for (size_t i = 0; i < j->answers.n && ok; i++)
        for (uint32_t k = j->answers.at[i].prompt; k < j->answers.at[i].n; k++, all++)
            counts[j->answers.at[i].text[k]]++;
    ok = ok && token_rank(m->tokenizer, m->desc.vocab, counts, j->ids, err);
    *n = j->options->train.draft_vocab > 0 && j->options->train.draft_vocab < m->desc.vocab
             ? j->options->train.draft_vocab
             : m->desc.vocab;
    for (uint32_t i = 0; i < *n && ok; i++)
        inside += counts[j->ids[i]];
    free(counts);
    if (ok)
        qsort(j->ids, *n, sizeof *j->ids, by_id);
    if (ok && all > 0)
        fprintf(stderr, "%" PRIu64 " tokens to train on; %.1f%% of them are in the draft vocabulary of %" PRIu32 "\n",
                all, 100 * (double)inside / (double)all, *n);
    return ok;
}

/* Sorts windows into those to train on and, after them, those that are held out. */
static bool
choose_windows(struct job *j, struct err *err)
{
    const size_t n = j->answers.n;
    uint64_t held_tokens = 0, seen = 0;
    j->windows = blocks_take(&j->blocks, n + 1, sizeof *j->windows);
    j->order = blocks_take(&j->blocks, n + 1, sizeof *j->order);
    j->batch = blocks_take(&j->blocks, n + 1, sizeof *j->batch);
    if (j->blocks.starved)
        return err_set(err, ERR_WORK, "train: out of memory for windows");
    for (size_t i = 0; i < n; i++) {
        const struct answer *a = &j->answers.at[i];
        if (a->n < a->prompt + EAGLE_STEPS || a->n < EAGLE_STEPS + 2)
            continue;
        const struct eagle_window w = {.n = a->n, .first = a->prompt, .tokens = a->text, .states = j->states[i]};
        const bool held = seen++ % HELD_EVERY == 0 && held_tokens < HELD_TOKENS;
        held_tokens += held ? a->n : 0;
        j->windows[held ? n - ++j->n_held : j->n_train++] = w;
    }
    memmove(j->windows + j->n_train, j->windows + n - j->n_held, j->n_held * sizeof *j->windows);
    for (size_t i = 0; i < j->n_train; i++)
        j->order[i] = i;
    j->next = j->n_train;
    return j->n_train > 0 || err_set(err, ERR_WORK,
                                     "train: too little text: two answers, or two windows of %" PRIu32
                                     " tokens, are the least; give more",
                                     j->most);
}

static bool
open_training(struct job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct model *m = j->engine->model;
    const struct eagle_options options = {.threads = j->engine->threads,
                                          .rows = o->train.batch > j->most ? o->train.batch : j->most,
                                          .window = j->most,
                                          .cancel = generation_interruption()};
    uint32_t vocab;
    if (!choose_vocabulary(j, &vocab, err) || !choose_windows(j, err) ||
        !lens_open(&j->lens, &m->desc, j->ids, vocab, err) || !eagle_head_new(&j->head, m, j->ids, vocab, o->seed, err))
        return false;
    const uint64_t need = eagle_training_bytes(j->head, &options), available = memory_available();
    char takes[24], there[24];
    memory_text(takes, need);
    if (need > available)
        return err_set(err, ERR_WORK,
                       "train: training takes %s, but %s of memory are available; use a smaller --batch or "
                       "--draft-vocab",
                       takes, memory_text(there, available));
    j->blas = train_blas(j->engine);
    j->lens.blas = j->blas;
    j->best = blocks_take(&j->blocks, j->head->n_values, sizeof *j->best);
    return (j->best != NULL || err_set(err, ERR_WORK, "train: out of memory for the best head")) &&
           eagle_training_open(&j->training, j->head, &m->desc, &j->lens, &options, err);
}

static bool
open_job(struct job *j, struct err *err)
{
    if (!train_engine(j->options, 0, &j->engine, err))
        return false;
    const struct model_desc *d = &j->engine->model->desc;
    j->random = j->options->seed;
    j->row = blocks_take(&j->blocks, d->width, sizeof *j->row);
    j->layers[EAGLE_FEATURES] = d->n_layers;
    if (j->row == NULL)
        return err_set(err, ERR_WORK, "train: out of memory");
    return eagle_target_layers(j->engine->model, j->layers, err) && collect(j, err) && open_training(j, err);
}

static void
close_job(struct job *j)
{
    eagle_training_close(j->training);
    eagle_head_free(j->head);
    lens_free(&j->lens);
    blas_close(j->blas);
    answers_free(&j->answers);
    engine_close(j->engine);
    blocks_free(&j->blocks);
}

/* ---- the schedule ---- */

/* The completed share of the training. */
static double
share(const struct job *j)
{
    const double rest = limit_s(j) - (double)(j->training_us - j->start_us) * 1e-6;
    return j->options->train.tokens > 0 ? (double)j->done / (double)j->options->train.tokens
                                        : seconds_since(j->training_us) / fmax(rest, 1);
}

/* Tokens that a round of EAGLE_STEPS drafts has, where every token of the held-out windows begins one. */
static double
tokens_a_round(const struct eagle_score *s)
{
    double sum = 1;
    for (uint32_t i = 0; i < EAGLE_STEPS && s->reached[0] > 0; i++)
        sum += s->accepted[i] / s->reached[0];
    return sum;
}

static double
accepted(const struct eagle_score *s, uint32_t step)
{
    return s->reached[step] > 0 ? 100 * s->accepted[step] / s->reached[step] : 0;
}

/* Scores the head on held-out windows; writes it if no head was better. */
static bool
evaluate(struct job *j, struct err *err)
{
    struct eagle_score s = {0};
    const struct eagle_window *held = j->windows + j->n_train;
    double loss = 0;
    for (size_t i = 0; i < j->n_held; i++)
        eagle_loss(j->training, held + i, 1, EAGLE_STEPS, NULL, NULL, &s);
    if (generation_interrupted())
        return true;
    for (uint32_t i = 0; i < EAGLE_STEPS && s.bases[i] > 0; i++)
        loss += pow(EAGLE_FADE, i) * s.loss[i] / s.bases[i];
    j->evaluated = share(j);
    if (j->held.reached[0] > 0 && !(loss < j->best_loss))
        return true;
    j->held = s;
    j->best_loss = loss;
    memcpy(j->best, j->head->values, j->head->n_values * sizeof *j->best);
    return eagle_file_write(j->head, j->engine->model, j->options->train.out, err);
}

static void
print_progress(const struct job *j, bool line)
{
    char text[128];
    snprintf(text, sizeof text, "held out: accepted %.1f%% %.1f%% %.1f%%, %.2f tokens a round", accepted(&j->held, 0),
             accepted(&j->held, 1), accepted(&j->held, 2), tokens_a_round(&j->held));
    train_bar("training", fmin(1, share(j)), line, text, j->start_us);
}

/* Fills the batch with the next windows of this pass; a new pass has another order. */
static size_t
next_batch(struct job *j)
{
    size_t n = 0, rows = 0;
    for (;;) {
        if (j->next == j->n_train) {
            train_shuffle(j->order, j->n_train, &j->random);
            j->next = 0;
        }
        const struct eagle_window *w = &j->windows[j->order[j->next]];
        const uint32_t most = j->options->train.batch > j->most ? j->options->train.batch : j->most;
        if (rows + w->n > most || n == j->n_train)
            return n;
        rows += w->n;
        j->batch[n++] = *w;
        j->next++;
    }
}

/* Prints how long --tokens take, or how many --minutes suffice for, from the time of one step with n tokens. */
static void
print_estimate(const struct job *j, double seconds, double n)
{
    const double each = seconds / fmax(1, n) * (PLAIN_SHARE + EAGLE_STEPS * (1 - PLAIN_SHARE)),
                 rest = limit_s(j) - seconds_since(j->start_us);
    if (j->options->train.tokens > 0)
        fprintf(stderr, "training on %" PRIu64 " tokens takes about %.1f minutes\n", j->options->train.tokens,
                each * (double)j->options->train.tokens / 60);
    else
        fprintf(stderr, "training takes the other %.1f minutes, for about %.0f tokens\n", rest / 60, rest / each);
}

/* The rate rises, then falls to 0. */
static bool
train_step(struct job *j, struct err *err)
{
    const double at = share(j), rate = j->options->train.rate * fmin((double)(j->steps + 1) / WARM_UP, fmax(0, 1 - at));
    struct eagle_score s = {0};
    const size_t n = next_batch(j);
    const uint64_t before = clock_us();
    eagle_training_step(j->training, j->batch, n, at < PLAIN_SHARE ? 1 : EAGLE_STEPS, (float)rate, &s);
    j->done += s.bases[0] > 0 ? (uint64_t)s.bases[0] : 1;
    if (j->steps++ == 1) /* the first one is slower */
        print_estimate(j, seconds_since(before), s.bases[0]);
    return !blas_failed(j->blas, err);
}

static void
report(const struct job *j)
{
    printf("held out: %.0f tokens   accepted        KL\n", j->held.reached[0]);
    for (uint32_t i = 0; i < EAGLE_STEPS; i++)
        printf("draft %" PRIu32 "               %6.1f%%   %7.3f\n", i + 1, accepted(&j->held, i),
               j->held.loss[i] / fmax(1, j->held.bases[i]));
    printf("%.2f tokens a round of %d drafts\nEAGLE-3 head of %s: %s, %.0f s\n", tokens_a_round(&j->held), EAGLE_STEPS,
           j->engine->model->name, j->options->train.out, seconds_since(j->start_us));
}

static bool
train(struct job *j, struct err *err)
{
    if (!open_job(j, err))
        return false;
    j->training_us = clock_us();
    bool ok = true, whole = false;
    while (ok && !whole && !generation_interrupted()) {
        ok = train_step(j, err);
        whole = share(j) >= 1;
        const bool due = (whole || share(j) - j->evaluated >= 1.0 / EVALUATIONS) && !generation_interrupted();
        ok = ok && (!due || evaluate(j, err));
        if (ok && (due || j->held.reached[0] > 0))
            print_progress(j, due);
    }
    if (!whole && isatty(STDERR_FILENO)) /* ends the line of an unfinished bar */
        fputc('\n', stderr);
    if (!ok)
        return false;
    if (!(j->held.reached[0] > 0))
        return err_set(err, ERR_CANCELLED, "interrupted before a head was evaluated; no file was written");
    report(j);
    return whole || err_set(err, ERR_CANCELLED, "interrupted; the best head so far is in the file");
}

bool
train_eagle_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    generation_catch_signals();
    struct job j = {.options = o, .start_us = clock_us()};
    const bool ok = train_has_input(o, "eagle", "what to train on; or --prompts", err) &&
                    eagle_file_possible(o->train.out, err) && train(&j, err);
    close_job(&j);
    return ok;
}
