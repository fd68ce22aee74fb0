#include "tests/rigs/context_fixture.h"

#include "tests/rigs/test.h"

void
open_with(struct fixture *f, struct context_options o)
{
    struct err e = {.kind = ERR_NONE};
    f->desc = (struct model_desc){.n_layers = L, .width = SYMBOLIC_WIDTH, .vocab = VOCAB};
    atomic_init(&f->cancel, false);
    o.cancel = &f->cancel;
    assert_true(symbolic_backend.open(&f->backend, &(struct backend_options){0}, &e));
    assert_true(symbolic_backend.load(f->backend, &f->desc, NULL, NULL, &f->weights, &e));
    assert_true(context_open(&f->c, &symbolic_backend, f->backend, f->weights, &f->desc, &o, &e));
    f->s = context_sequence(f->c);
    assert_int_not_equal(f->s, SEQ_NONE);
}

void
close_fixture(struct fixture *f)
{
    context_close(f->c);
    symbolic_backend.unload(f->weights);
    symbolic_backend.close(f->backend);
}

void
assert_error(const struct context *c, enum err_kind kind, const char *part)
{
    if (context_error(c)->kind != kind || strstr(context_error(c)->text, part) == NULL)
        fail_msg("error %d \"%s\" instead of %d \"…%s…\"", context_error(c)->kind, context_error(c)->text, kind, part);
}

void
assert_loads(struct fixture *f, struct loads *since, double layers, double heads)
{
    const struct loads now = context_loads(f->c);
    assert_number_equal(now.layers - since->layers, layers);
    assert_number_equal(now.heads - since->heads, heads);
    *since = now;
}

void
append_chain(struct fixture *f, slot_t parent, token_t first, slot_t *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        slots[i] = context_append(f->c, f->s, i > 0 ? slots[i - 1] : parent, first + (token_t)i);
        assert_int_not_equal(slots[i], SLOT_NONE);
    }
}

void
prefill(struct fixture *f, size_t n)
{
    token_t tokens[64];
    for (size_t i = 0; i < n; i++)
        tokens[i] = (token_t)(i % VOCAB);
    assert_true(context_prefill(f->c, f->s, tokens, n, NULL, NULL));
}

void
assert_saw(struct fixture *f, slot_t s, const token_t *tokens, size_t n)
{
    struct naive_token path[64];
    double expected[(L + 1) * SYMBOLIC_WIDTH];
    float got[SYMBOLIC_WIDTH];
    for (size_t i = 0; i < n; i++)
        path[i] = (struct naive_token){.token = tokens[i]};
    const uint32_t depth = context_depth(f->c, s);
    symbolic_hidden(path, n, depth, expected);
    assert_true(context_read_hidden(f->c, s, depth, got));
    for (int i = 0; i < SYMBOLIC_WIDTH; i++)
        assert_number_equal((double)got[i], expected[depth * SYMBOLIC_WIDTH + (uint32_t)i]);
}
