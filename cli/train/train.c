/* specscope train heads: per-layer heads for a model, from any text. The model stays as it is; its own final
 * distribution is what the heads learn to guess. */
#include "cli/train/train.h"

#include "cli/base/commands.h"
#include "cli/generation/generation.h"
#include "engine/base/clock.h"

static bool
check(const struct options *o, struct err *err)
{
    if (o->train.text == NULL)
        return err_set(err, ERR_USAGE, "train heads: --text FILE is missing: what to train on");
    return train_can_write("heads", o->train.out, &exit_heads_file, err);
}

static bool
train_heads(const struct options *o, struct err *err)
{
    struct job j = {.options = o, .start_us = clock_us()};
    const struct engine_options engine = {.model_path = o->model != NULL ? o->model : bundled_model_path(),
                                          .backend = o->backend,
                                          .lora = o->lora.at,
                                          .n_lora = o->lora.n,
                                          .backend_options = o->backend_options};
    const bool ok = engine_open(&j.engine, &engine, NULL, NULL, err) && train_job_open(&j, err) && train_loop(&j, err);
    if (ok)
        train_report(&j);
    const bool whole = ok && j.place.done >= o->train.tokens;
    if (ok && !whole)
        fputs("specscope: interrupted; the best heads so far are in the file, the same command goes on\n", stderr);
    train_state_close(&j.state, whole);
    train_job_free(&j);
    return ok;
}

int
train_heads_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    int status;
    if (!options_begin(&o, COMMAND_TRAIN_HEADS, argc, argv, &status))
        return status;
    generation_catch_signals();
    const bool ok = check(&o, &err) && train_heads(&o, &err);
    options_free(&o);
    return ok ? 0 : command_failed(&err);
}

int
train_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    int status;
    if (!options_begin(&o, COMMAND_TRAIN, argc, argv, &status))
        return status;
    options_free(&o);
    err_set(&err, ERR_USAGE, "train what? specscope train heads, accept or profile; each has --help");
    return command_failed(&err);
}
