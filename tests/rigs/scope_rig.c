#include "tests/rigs/scope_rig.h"

int
scope_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    fake_forms_run(&f->info, FAKE_LAYERS);
    struct err err = {0};
    assert_ok(scope_open(&f->scope, &f->info, &err), err);
    stream_begin(&f->stream, 1);
    f->stream.run = 1;
    stream_control(&f->stream, "run", "start");
    for (uint32_t i = 0; i < 3; i++)
        say_token(&f->stream, SOURCE_PROMPT, i, (token_t)i);
    say_token(&f->stream, SOURCE_PREFILL, 3, 30);
    f->stream.round = 1;
    *state = f;
    return 0;
}

int
scope_tear_down(void **state)
{
    struct fixture *f = *state;
    scope_close(f->scope);
    run_info_free(&f->info);
    stream_free(&f->stream);
    free(f);
    return 0;
}

const struct scope *
seen(struct fixture *f)
{
    feed(f->scope, &f->stream, f->fed);
    f->fed = f->stream.n;
    return f->scope;
}
