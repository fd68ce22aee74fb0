#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/memory.h"

static const struct backend_ops *
find_backend(const char *name, struct err *err)
{
    if (name == NULL || strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0)
        return &cpu_backend;
    if (strcmp(name, "check") == 0)
        return &check_backend;
    if (strcmp(name, "cuda") == 0)
        err_set(err, ERR_WORK, "backend cuda: this build has no CUDA plug-in; use --backend cpu");
    else
        err_set(err, ERR_USAGE, "backend '%.32s' is not known; there are auto, cpu, check and cuda", name);
    return NULL;
}

bool
engine_open(struct engine **out, const struct engine_options *options, progress_fn progress, void *user,
            struct err *err)
{
    *out = NULL;
    const struct backend_ops *ops = find_backend(options->backend, err);
    if (ops == NULL)
        return false;
    if (ops->abi != BACKEND_ABI)
        return err_set(err, ERR_WORK, "backend %s speaks ABI %u, this program %u; rebuild both", ops->name,
                       (unsigned)ops->abi, (unsigned)BACKEND_ABI);
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return err_set(err, ERR_WORK, "out of memory opening %s", options->model_path);
    e->ops = ops;
    struct backend_options backend = options->backend_options;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (backend.threads == 0)
        backend.threads = cores > 0 ? (uint32_t)cores : 1;
    e->threads = backend.threads;
    e->exact = options->backend_options.exact;
    const struct model_options model = {
        .quantize = options->quantize, .exact = backend.exact, .ctx = options->ctx, .available = memory_available()};
    if (!model_open_with(&e->model, options->model_path, &model, err) || !ops->open(&e->backend, &backend, err) ||
        !ops->load(e->backend, &e->model->desc, progress, user, &e->weights, err)) {
        engine_close(e);
        return false;
    }
    *out = e;
    return true;
}

void
engine_close(struct engine *e)
{
    if (e == NULL)
        return;
    if (e->weights != NULL)
        e->ops->unload(e->weights);
    if (e->backend != NULL)
        e->ops->close(e->backend);
    model_close(e->model);
    free(e);
}
