/* specscope train accept: trains an acceptance head (SpecDec++) for a draft model on the target's own responses to any
 * text. Neither model is changed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/clock.h"
#include "base/plural.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/train/train.h"
#include "engine/model/trained/accept_head.h"
#include "engine/training/accept_training.h"

struct accept_rows { /* candidates */
    size_t n, room;
    float *x, *label; /* (room, width), (room) */
};

struct accept_job {
    const struct options *options;
    struct engine *engine; /* with the draft model */
    struct accept_rows train, held;
    size_t n_prompts; /* prompts of the collected candidates */
    uint64_t start_us;
};

#define EVALUATIONS 4 /* of the held-out candidates, in a pass */

struct result { /* of a head with this number of blocks, on held-out candidates */
    uint32_t blocks;
    double loss, kl; /* weighted; binary KL in nats, per candidate */
};

struct trainer {
    const struct accept_job *job;
    struct blas *blas;        /* NULL: the CPU multiplies */
    struct accept_head *best; /* the head in the file; NULL: no file was written */
    double best_loss;
    struct result results[OPTIONS_MOST]; /* (n_results) */
    size_t n_results;
    bool whole; /* all heads were trained to the end */
    /* the head in training */
    struct accept_head *head;
    struct accept_training *training;
    struct blocks blocks; /* the memory of the following */
    size_t *order;        /* (train.n) candidates in the order of this pass over them */
    float *x, *label;     /* (batch, width), (batch) */
};

/* Makes a head for the engine's models, with their names. */
static bool
new_head(struct accept_head **head, const struct engine *e, uint32_t blocks, struct err *err)
{
    if (!accept_head_new(head, engine_draft_model(e)->desc.width, blocks, false, err))
        return false;
    struct accept_head *h = *head;
    h->draft_hash = engine_aux_hash(e, AUX_DRAFT);
    h->draft_layers = e->aux[AUX_DRAFT].exit_layer;
    h->target_hash = e->model->hash;
    engine_aux_name(e, AUX_DRAFT, h->draft, sizeof h->draft);
    snprintf(h->target, sizeof h->target, "%s", e->model->name);
    return true;
}

static bool
open_head(struct trainer *t, uint32_t blocks, struct err *err)
{
    const struct accept_job *j = t->job;
    const struct options *o = j->options;
    const struct accept_training_options options = {
        .threads = j->engine->threads, .batch = o->train.batch, .w_reject = o->accept.w_reject, .blas = t->blas};
    if (!new_head(&t->head, j->engine, blocks, err) ||
        !accept_training_open(&t->training, t->head, o->seed, &options, err))
        return false;
    t->order = blocks_take(&t->blocks, j->train.n, sizeof *t->order);
    t->x = blocks_take(&t->blocks, o->train.batch * t->head->width, sizeof *t->x);
    t->label = blocks_take(&t->blocks, o->train.batch, sizeof *t->label);
    for (size_t i = 0; i < j->train.n && t->order != NULL; i++)
        t->order[i] = i;
    return !t->blocks.starved || err_set(err, ERR_WORK, "train accept: out of memory; use a smaller --batch");
}

static void
close_head(struct trainer *t)
{
    accept_training_close(t->training);
    accept_head_free(t->head);
    blocks_free(&t->blocks);
    t->training = NULL;
    t->head = NULL;
}

/* Scores the head on held-out candidates; writes it to the file if no head was better there. */
static bool
evaluate(struct trainer *t, struct result *result, struct err *err)
{
    const struct accept_job *j = t->job;
    const struct accept_batch held = {.n = j->held.n, .x = j->held.x, .label = j->held.label};
    const struct accept_score s = accept_training_score(t->training, &held);
    const double loss = s.loss / s.weight;
    if (loss < result->loss) {
        result->loss = loss;
        result->kl = s.kl / (double)s.n;
    }
    if (t->best != NULL && !(loss < t->best_loss))
        return true;
    if (t->best == NULL || t->best->n_blocks != t->head->n_blocks) {
        accept_head_free(t->best);
        t->best = NULL;
        if (!new_head(&t->best, j->engine, t->head->n_blocks, err))
            return false;
    }
    memcpy(t->best->values, t->head->values, t->head->n_values * sizeof *t->head->values);
    t->best_loss = loss;
    return accept_head_write(t->best, j->options->train.out, err);
}

static struct accept_batch
batch_at(struct trainer *t, size_t at)
{
    const struct accept_rows *train = &t->job->train;
    const size_t width = t->head->width, left = train->n - at, most = t->job->options->train.batch,
                 n = left < most ? left : most;
    for (size_t i = 0; i < n; i++) {
        memcpy(t->x + i * width, train->x + t->order[at + i] * width, width * sizeof *t->x);
        t->label[i] = train->label[t->order[at + i]];
    }
    return (struct accept_batch){.n = n, .x = t->x, .label = t->label};
}

/* Each pass has a random order of its own; the rate falls along a cosine to 0. */
static bool
train_head(struct trainer *t, struct result *result, struct err *err)
{
    const struct options *o = t->job->options;
    const size_t n = t->job->train.n, all = (size_t)o->accept.passes * n;
    uint64_t random = o->seed;
    size_t evaluated_at = 0;
    if (!evaluate(t, result, err))
        return false;
    size_t done = 0;
    while (done < all && !generation_interrupted()) {
        if (done % n == 0)
            train_shuffle(t->order, n, &random);
        const struct accept_batch batch = batch_at(t, done % n);
        const double share = (double)done / (double)all;
        accept_training_step(t->training, &batch, o->train.rate * 0.5 * (1 + cos(share * acos(-1))));
        done += batch.n;
        if (blas_failed(t->blas, err))
            return false;
        const bool due = done - evaluated_at >= n / EVALUATIONS || done >= all;
        if (due && !evaluate(t, result, err))
            return false;
        evaluated_at = due ? done : evaluated_at;
        char text[96];
        snprintf(text, sizeof text, "%u block%s  held out: loss %.4f  KL %.4f", (unsigned)result->blocks,
                 plural(result->blocks), result->loss, result->kl);
        train_bar("training", (double)done / (double)all, due, text, t->job->start_us);
    }
    t->whole = done >= all && t->n_results == o->accept.n_blocks;
    return true;
}

/* ---- the report ---- */

/* Returns the KL of a head that predicts the mean label for every candidate. */
static double
constant_kl(const struct accept_rows *r)
{
    double mean = 0, kl = 0;
    for (size_t i = 0; i < r->n; i++)
        mean += (double)r->label[i] / (double)r->n;
    for (size_t i = 0; i < r->n; i++) {
        const double a = (double)r->label[i];
        kl += (a > 0 ? a * log(a / mean) : 0) + (a < 1 ? (1 - a) * log((1 - a) / (1 - mean)) : 0);
    }
    return kl / (double)r->n;
}

/* Prints held-out loss and KL by blocks. */
static void
report(const struct trainer *t)
{
    const struct accept_job *j = t->job;
    printf("held out: %zu candidates, %zu to learn from\nblocks          loss       KL\n", j->held.n, j->train.n);
    printf("one number for all    %7.4f\n", constant_kl(&j->held));
    for (size_t i = 0; i < t->n_results; i++)
        printf("%6u       %7.4f  %7.4f\n", (unsigned)t->results[i].blocks, t->results[i].loss, t->results[i].kl);
    printf("acceptance head of %s for %s, %u block%s: %s, %.0f s\n", t->best->draft, t->best->target,
           (unsigned)t->best->n_blocks, plural(t->best->n_blocks), j->options->train.out,
           (double)(clock_us() - j->start_us) * 1e-6);
}

/* Trains a head for each number of blocks in options->accept.blocks and prints the results. At any time the file
 * contains the best head so far. After Ctrl-C it prints the results of the heads trained so far and fails with
 * ERR_CANCELLED. */
static bool
train_accept_loop(const struct accept_job *j, struct err *err)
{
    const struct options *o = j->options;
    struct trainer t = {.job = j, .blas = train_blas(j->engine)};
    bool ok = true;
    while (ok && t.n_results < o->accept.n_blocks && (t.best == NULL || !generation_interrupted())) {
        struct result *result = &t.results[t.n_results];
        *result = (struct result){.blocks = o->accept.blocks[t.n_results], .loss = INFINITY, .kl = INFINITY};
        t.n_results++;
        ok = open_head(&t, result->blocks, err) && train_head(&t, result, err);
        close_head(&t);
    }
    if (ok)
        report(&t);
    if (ok && !t.whole)
        ok = err_set(err, ERR_CANCELLED, "interrupted; the best head so far is in the file");
    accept_head_free(t.best);
    blas_close(t.blas);
    return ok;
}

#define HELD_EVERY 8 /* one of HELD_EVERY prompts is held out */

static bool
make_room(struct accept_rows *r, size_t more, uint32_t width, struct err *err)
{
    if (r->n + more <= r->room)
        return true;
    const size_t room = 2 * (r->n + more);
    float *x = realloc(r->x, room * width * sizeof *x), *label = realloc(r->label, room * sizeof *label);
    r->x = x != NULL ? x : r->x;
    r->label = label != NULL ? label : r->label;
    if (x == NULL || label == NULL)
        return err_set(err, ERR_WORK, "train accept: out of memory for %zu candidates; ask for fewer --tokens", room);
    r->room = room;
    return true;
}

static double
accepted(const struct accept_rows *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n; i++)
        sum += (double)r->label[i];
    return r->n > 0 ? sum / (double)r->n : 0;
}

/* The prompts answered together, and their candidates. */
struct batch {
    struct blocks blocks; /* the memory of the following */
    struct accept_prompt prompt[READER_SEQUENCES];
    float *x, *label;
};

static bool
open_batch(struct batch *b, const struct options *o, uint32_t width, struct err *err)
{
    const size_t n = o->answers.at_once, response = o->answers.response;
    b->x = blocks_take(&b->blocks, n * response * width, sizeof *b->x);
    b->label = blocks_take(&b->blocks, n * response, sizeof *b->label);
    for (size_t i = 0; i < n && !b->blocks.starved; i++)
        b->prompt[i] = (struct accept_prompt){.x = b->x + i * response * width, .label = b->label + i * response};
    return !b->blocks.starved ||
           err_set(err, ERR_WORK, "train accept: out of memory for answers; ask for fewer --at-once");
}

/* Adds the next prompt's candidates to the held-out ones or to those for training. */
static bool
keep(struct accept_job *j, const struct accept_prompt *p, uint32_t width, struct err *err)
{
    struct accept_rows *r = j->n_prompts % HELD_EVERY == 0 ? &j->held : &j->train;
    if (!make_room(r, p->rows, width, err))
        return false;
    memcpy(r->x + r->n * width, p->x, p->rows * width * sizeof *p->x);
    memcpy(r->label + r->n, p->label, p->rows * sizeof *p->label);
    r->n += p->rows;
    j->n_prompts++;
    return true;
}

static bool
collect_batch(struct accept_job *j, const struct train_prompts *p, struct accept_data *data, struct batch *b,
              uint32_t width, struct err *err)
{
    const size_t left = p->n - j->n_prompts, most = j->options->answers.at_once, n = left < most ? left : most;
    for (size_t i = 0; i < n; i++) {
        const size_t *begin = &p->begin[j->n_prompts + i];
        b->prompt[i].index = j->n_prompts + i;
        b->prompt[i].tokens = p->tokens + begin[0];
        b->prompt[i].n = begin[1] - begin[0];
    }
    if (!accept_data_prompts(data, b->prompt, n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!keep(j, &b->prompt[i], width, err))
            return false;
    return true;
}

static bool
collect(struct accept_job *j, const struct train_prompts *p, struct accept_data *data, struct err *err)
{
    const uint32_t width = engine_draft_model(j->engine)->desc.width;
    struct batch b = {0};
    bool ok = open_batch(&b, j->options, width, err);
    while (ok && j->n_prompts < p->n) {
        char text[64];
        ok = collect_batch(j, p, data, &b, width, err);
        snprintf(text, sizeof text, "%zu candidates, %.1f%% accepted", j->train.n + j->held.n,
                 accepted(&j->train) * 100);
        if (ok)
            train_bar("responses", (double)j->n_prompts / (double)p->n, j->n_prompts == p->n, text, j->start_us);
    }
    blocks_free(&b.blocks);
    if (!ok && err->kind == ERR_CANCELLED)
        return err_set(err, ERR_CANCELLED, "interrupted before training began");
    return ok &&
           ((j->train.n > 0 && j->held.n > 0) ||
            err_set(err, ERR_WORK, "train accept: there is nothing to learn from; lower --mixing or raise --tokens"));
}

static bool
run(struct accept_job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct accept_data_options options = {.prompt = o->answers.prompt,
                                                .response = o->answers.response,
                                                .mixing = o->accept.mixing,
                                                .sampling = o->answers.sampling,
                                                .seed = o->seed,
                                                .sequences = o->answers.at_once};
    const size_t wanted = o->train.tokens / o->answers.response + 1, least = 2 * (size_t)HELD_EVERY;
    struct train_prompts prompts = {0};
    struct accept_data *data = NULL;
    const bool ok =
        train_engine(o, NEEDS(AUX_DRAFT), &j->engine, err) && blas_callers(j->engine->threads, err) > 0 &&
        train_prompts_open(&prompts, o, j->engine->model->tokenizer, wanted > least ? wanted : least, err) &&
        accept_data_open(&data, j->engine, &options, generation_interruption(), err) && collect(j, &prompts, data, err);
    accept_data_close(data);
    train_prompts_close(&prompts);
    return ok && train_accept_loop(j, err);
}

static void
free_job(struct accept_job *j)
{
    engine_close(j->engine);
    free(j->train.x);
    free(j->train.label);
    free(j->held.x);
    free(j->held.label);
}

bool
train_accept_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    generation_catch_signals();
    struct accept_job j = {.options = o, .start_us = clock_us()};
    const bool ok =
        train_can_begin(o, "accept", "the text that the target continues", &accept_head_file, err) && run(&j, err);
    free_job(&j);
    return ok;
}
