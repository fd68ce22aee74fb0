/* The scope on long, broken, random, traced and replayed streams. */
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"

SCOPE_TEST(history_is_bounded)
{
    struct fixture *f = *state;
    f->info.ctx = 1u << 20;
    const uint32_t n = SCOPE_POSITIONS + 500;
    for (uint32_t pos = 4; pos < n; pos++) {
        f->stream.round = pos - 3;
        say_token(&f->stream, SOURCE_BONUS, pos, (token_t)(pos % FAKE_VOCAB));
        say_layer(&f->stream, pos, 1, 9, 0.1f);
        say_round(&f->stream, 0, 0, 1);
    }
    seen(f);
    assert_int_equal(scope_now(f->scope)->length, n);
    assert_int_equal(scope_first(f->scope), 500);
    assert_null(scope_column(f->scope, 499));
    assert_int_equal(scope_column(f->scope, 500)->pos, 500);
    assert_null(scope_cells(f->scope, n - SCOPE_COLUMNS - 1));
    assert_non_null(scope_cells(f->scope, n - SCOPE_COLUMNS));
    assert_int_equal(scope_rounds(f->scope), SCOPE_ROUNDS);
    assert_int_equal(scope_round(f->scope, 0)->number, n - 4);
    assert_null(scope_round(f->scope, SCOPE_ROUNDS));
    /* An event about a dropped position changes nothing. */
    say_layer(&f->stream, 3, 1, 9, 0.1f);
    say_token(&f->stream, SOURCE_PROMPT, 3, 9);
    seen(f);
    assert_int_equal(scope_now(f->scope)->length, n);
    assert_null(scope_column(f->scope, 3));
}

/* Events whose every number is random: the scope must touch only its own memory. */
SCOPE_TEST(broken_events_do_no_harm)
{
    struct fixture *f = *state;
    struct stream *s = &f->stream;
    print_message("seed 1\n");
    static const int32_t odd[] = {-1, 0, 1, 63, 64, FAKE_LAYERS, FAKE_LAYERS + 1, FAKE_VOCAB, INT32_MAX, INT32_MIN};
    static const char *const names[] = {"run", "policy", "state", "probe", "end", "tau", "d_max", "mode", "nothing"};
    static const char *const texts[] = {"",       "forms", "judges", "ar",      "specbound",
                                        "paused", "0.5",   "1e999",  "dynamic", "\x1b[2J"};
    for (int i = 0; i < 60000; i++) {
        const enum event_type type = (enum event_type)stream_below(s, EVENT_TYPES);
        s->n = 0;
        struct event *e = stream_add(s, type);
        uint32_t *words = (uint32_t *)(void *)&e->token;
        const size_t n_words = (sizeof *e - offsetof(struct event, token)) / sizeof *words;
        for (size_t k = 0; k < n_words; k++)
            words[k] = stream_below(s, 3) == 0 ? stream_below(s, UINT32_MAX)
                                               : (uint32_t)odd[stream_below(s, sizeof odd / sizeof odd[0])];
        e->round = stream_below(s, 50);
        if (type == EVENT_TOKEN)
            e->token.source = (enum token_source)stream_below(s, TOKEN_SOURCES + 1);
        if (type == EVENT_TOKEN && stream_below(s, 2) == 0)
            e->token.pos = stream_below(s, 40);
        if (type == EVENT_VOCAB) {
            e->vocab.bytes = texts[stream_below(s, 9)];
            e->vocab.n_bytes = (uint32_t)strlen(e->vocab.bytes);
        }
        if (type == EVENT_CONTROL) {
            control_event_set_name(&e->control, names[stream_below(s, 9)]);
            e->control.old_text = "";
            e->control.new_text = texts[stream_below(s, 9)];
        }
        if (type == EVENT_SERIES && stream_below(s, 2) == 0)
            snprintf(e->series.key, sizeof e->series.key, "%s", stream_below(s, 2) == 0 ? "tau" : "mask");
        scope_event(f->scope, e);
        if (stream_below(s, 500) == 0)
            scope_lost(f->scope, 3);
        const uint32_t length = scope_now(f->scope)->length;
        assert_at_most(scope_now(f->scope)->committed, length);
        assert_at_most(length, FAKE_CTX + 1);
        const struct scope_column *c = scope_column(f->scope, stream_below(s, FAKE_CTX + 9));
        if (c != NULL) {
            assert_non_null(scope_text(f->scope, c->token));
            assert_between(c->exit_layer, -1, FAKE_LAYERS);
        }
    }
}

SCOPE_TEST(a_reset_scope_is_a_new_one)
{
    struct fixture *f = *state;
    struct scope *fresh;
    struct err err = {0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct stream s;
        struct decoder d = {
            .trees = seed % 2 == 0, .probe_all = seed % 3 == 0, .block = seed % 4 == 1, .draft_model = seed % 4 > 1};
        stream_begin(&s, seed);
        decode_begin(&d, &s, &f->info, 5);
        for (int i = 0; i < 30; i++)
            decode_round(&d);
        stream_control(&s, "policy", "forms");
        decode_begin(&d, &s, &f->info, 4);
        for (int i = 0; i < 20; i++)
            decode_round(&d);
        seen(f);
        scope_event(f->scope,
                    &(struct event){.type = EVENT_CONTROL,
                                    .control = {.kind = RECORDED_DEVICE, .old_text = "", .new_text = "heads 40%"}});
        assert_string_equal(scope_now(f->scope)->device, "heads 40%");
        scope_reset(f->scope);
        assert_string_equal(scope_now(f->scope)->device, "");
        feed(f->scope, &s, 0);
        assert_ok(scope_open(&fresh, &f->info, &err), err);
        feed(fresh, &s, 0);
        assert_int_equal(scope_now(fresh)->committed, d.length);
        assert_int_equal(scope_rounds(fresh), 20);
        assert_same_scope(fresh, f->scope);
        scope_close(fresh);
        stream_free(&s);
    }
}

/* DESIGN.md promises that all contents of the screen are in the trace, and that a trace can be shown on screen. */
TEST(a_replayed_trace_gives_the_same_scope)
{
    char folder[256], path[256];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct run_info info;
        struct scope *live, *again;
        struct stream s;
        struct err err = {0};
        print_message("seed %u\n", (unsigned)seed);
        fake_run(&info);
        make_temp_folder(folder);
        stream_begin(&s, seed);
        struct decoder d = {
            .trees = seed % 2 == 0, .probe_all = seed % 3 == 0, .block = seed % 4 == 1, .draft_model = seed % 4 > 1};
        decode_begin(&d, &s, &info, 5);
        for (int i = 0; i < 25; i++) {
            decode_round(&d);
            if (i % 7 == 3)
                stream_control(&s, "tau", i % 2 == 0 ? "0.4" : "0.7");
        }
        stream_control(&s, "end", "tokens");
        decode_begin(&d, &s, &info, 3);
        for (int i = 0; i < 25; i++)
            decode_round(&d);
        write_trace(folder, &s, true, path);

        assert_ok(scope_open(&live, &info, &err), err);
        feed(live, &s, 0);
        struct trace_reader *reader;
        assert_ok(trace_reader_open(&reader, path, false, &err), err);
        assert_ok(scope_open(&again, trace_reader_info(reader), &err), err);
        struct event e;
        while (trace_reader_next(reader, &e, &err))
            scope_event(again, &e);
        assert_int_equal(err.kind, ERR_NONE);
        assert_same_scope(live, again);
        scope_close(again);
        trace_reader_close(reader);
        scope_close(live);
        stream_free(&s);
        run_info_free(&info);
        remove_folder(folder);
    }
}

TEST(a_model_that_cannot_be_is_refused)
{
    struct run_info info;
    struct scope *scope;
    struct err err = {0};
    fake_run(&info);
    info.layers = 0;
    assert_false(scope_open(&scope, &info, &err));
    assert_int_equal(err.kind, ERR_WORK);
    assert_null(scope);
    info.layers = 5000;
    assert_false(scope_open(&scope, &info, &err));
    run_info_free(&info);
}
