#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "engine/context/context.h"
#include "tests/rigs/training_rig.h"

struct engine *
training_rig_engine(const struct tinymodel *shape)
{
    char path[64];
    struct err err = {0};
    struct engine *e = NULL;
    assert_true(tinymodel_write_temp(path, sizeof path, shape, &err));
    const struct engine_options options = {
        .model_path = path, .backend = "cpu", .heads = "none", .backend_options = {.threads = 1, .exact = true}};
    if (!engine_open(&e, &options, NULL, NULL, &err))
        fail_msg("%s", err.text);
    unlink(path);
    return e;
}

void
training_rig_read(const struct engine *e, uint32_t layer, const token_t *text, size_t n, float *logits, float *hidden)
{
    struct context *c;
    struct err err = {0};
    const struct context_options options = {.ctx = 64};
    const uint32_t at = layer > 0 ? layer : e->model->desc.n_layers;
    assert_true(context_open(&c, e->ops, e->backend, e->weights, &e->model->desc, &options, &err));
    const seq_t seq = context_sequence(c);
    assert_true(context_prefill(c, seq, text, n, NULL, NULL));
    const slot_t last = context_at(c, seq, (uint32_t)n - 1);
    assert_true(logits == NULL || context_read_logits(c, last, at, logits));
    assert_true(hidden == NULL || context_read_hidden(c, last, at, hidden));
    context_close(c);
}
