/* specscope train accept: trains an acceptance head (SpecDec++) for a draft model on the target's own responses to any text. Both
 * models stay as they are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/generation/generation.h"
#include "cli/train/train.h"
#include "cli/train/train_accept.h"
#include "cli/train/train_prompts.h"
#include "engine/base/clock.h"
#include "engine/trained/accept_head.h"
#include "engine/training/accept_data.h"

#define HELD_EVERY 8 /* one prompt of so many is held out */

static bool
check(const struct options *o, struct err *err)
{
    if (o->train.text == NULL)
        return err_set(err, ERR_USAGE, "train accept: --text FILE is missing: what the target goes on from");
    return train_can_write("accept", o->train.out, &accept_head_file, err);
}

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

/* The prompts that are answered at once, and their candidates. */
struct batch {
    struct accept_prompt prompt[READER_LANES];
    token_t *tokens;
    float *x, *label;
};

static bool
open_batch(struct batch *b, const struct options *o, uint32_t width, struct err *err)
{
    const size_t n = o->answers.at_once, response = o->answers.response;
    b->tokens = malloc(n * o->answers.prompt * sizeof *b->tokens);
    b->x = malloc(n * response * width * sizeof *b->x);
    b->label = malloc(n * response * sizeof *b->label);
    for (size_t i = 0; i < n; i++)
        b->prompt[i] = (struct accept_prompt){.tokens = b->tokens + i * o->answers.prompt,
                                              .x = b->x + i * response * width,
                                              .label = b->label + i * response};
    return (b->tokens != NULL && b->x != NULL && b->label != NULL) ||
           err_set(err, ERR_WORK, "train accept: out of memory for answers; ask for fewer --at-once");
}

static void
close_batch(struct batch *b)
{
    free(b->tokens);
    free(b->x);
    free(b->label);
}

/* Adds the next prompt's candidates to those that are held out or trained on. */
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
        b->prompt[i].index = j->n_prompts + i;
        b->prompt[i].n = train_prompts_copy(p, j->n_prompts + i, b->tokens + i * j->options->answers.prompt);
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
    close_batch(&b);
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
                                                .lanes = o->answers.at_once};
    const size_t wanted = o->train.tokens / o->answers.response + 1, least = 2 * (size_t)HELD_EVERY;
    struct train_prompts prompts = {0};
    struct accept_data *data = NULL;
    const bool ok =
        train_engine(o, NEEDS(HELPER_DRAFT), &j->engine, err) && blas_callers(j->engine->threads, err) > 0 &&
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

int
train_accept_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    int status;
    if (!options_begin(&o, COMMAND_TRAIN_ACCEPT, argc, argv, &status))
        return status;
    generation_catch_signals();
    struct accept_job j = {.options = &o, .start_us = clock_us()};
    const bool ok = check(&o, &err) && run(&j, &err);
    free_job(&j);
    options_free(&o);
    return ok ? 0 : command_failed(&err);
}
