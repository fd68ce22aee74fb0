/* specscope train accept: an acceptance head (SpecDec++) for a draft model, from the target's own responses to any text. Both
 * models stay as they are. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/base/commands.h"
#include "cli/generation/generation.h"
#include "cli/train/train_accept.h"
#include "cli/train/train_models.h"
#include "cli/train/train_prompts.h"
#include "engine/base/clock.h"

static bool
check(const struct options *o, struct err *err)
{
    if (o->train.text == NULL)
        return err_set(err, ERR_USAGE, "train accept: --text FILE is missing: what the target goes on from");
    return o->train.out != NULL || err_set(err, ERR_USAGE, "train accept: --out FILE is missing: what to write");
}

/* ---- candidates ---- */

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

static bool
collect(struct accept_job *j, struct train_prompts *p, struct accept_data *data, struct err *err)
{
    const struct options *o = j->options;
    const uint32_t width = j->draft->model->desc.width;
    for (size_t i = 0; i < p->n; i++) {
        struct accept_rows *r = i % ACCEPT_HELD_EVERY == 0 ? &j->held : &j->train;
        size_t rows, n;
        char text[64];
        if (generation_interrupted())
            return err_set(err, ERR_CANCELLED, "interrupted before training began");
        const token_t *prompt = train_prompts_at(p, i, &n);
        if (!make_room(r, o->answers.response, width, err) ||
            !accept_data_prompt(data, i, prompt, n, r->x + r->n * width, r->label + r->n, &rows, err))
            return false;
        r->n += rows;
        snprintf(text, sizeof text, "%zu candidates, %.1f%% accepted", j->train.n + j->held.n,
                 accepted(&j->train) * 100);
        train_bar("responses", (double)(i + 1) / (double)p->n, i + 1 == p->n, text, j->start_us);
    }
    return (j->train.n > 0 && j->held.n > 0) ||
           err_set(err, ERR_WORK, "train accept: there is nothing to learn from; lower --mixing or raise --tokens");
}

static bool
open_models(struct accept_job *j, struct err *err)
{
    return train_helper(j->options, HELPER_DRAFT, "whose candidates to judge", &j->draft, err) &&
           train_target(j->options, &j->target, err);
}

static bool
run(struct accept_job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct accept_data_options options = {.prompt = o->answers.prompt,
                                                .response = o->answers.response,
                                                .mixing = o->accept.mixing,
                                                .temperature = o->answers.temperature,
                                                .seed = o->seed};
    const size_t wanted = o->train.tokens / o->answers.response + 1, least = 2 * (size_t)ACCEPT_HELD_EVERY;
    struct train_prompts prompts = {0};
    struct accept_data *data = NULL;
    const bool ok =
        open_models(j, err) &&
        train_prompts_open(&prompts, o, j->target->model->tokenizer, wanted > least ? wanted : least, err) &&
        accept_data_open(&data, j->target, j->draft, &options, NULL, err) && collect(j, &prompts, data, err);
    accept_data_close(data);
    train_prompts_close(&prompts);
    return ok && train_accept_loop(j, err) && train_accept_report(j, err);
}

static void
free_job(struct accept_job *j)
{
    accept_head_free(j->best);
    engine_close(j->draft);
    engine_close(j->target);
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
    if (ok && generation_interrupted())
        fputs("specscope: interrupted; the best head so far is in the file\n", stderr);
    free_job(&j);
    options_free(&o);
    return ok ? 0 : command_failed(&err);
}
