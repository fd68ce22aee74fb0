/* A scope that reads several sequences at a time: the sequence in focus is shown as if it were alone. */
#include <malloc.h>

#include "engine/scope/scope.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define MOST 6

/* Streams that were emitted one by one are interleaved into one scope. Each stream also has a scope of its own. */
struct weave {
    struct run_info info;
    uint32_t n;
    struct stream streams[MOST];
    size_t at[MOST]; /* events emitted */
    struct scope *alone[MOST], *all;
};

static void
begin_weave(struct weave *w, uint32_t n, uint64_t seed)
{
    struct err err = {0};
    memset(w, 0, sizeof *w);
    fake_forms_run(&w->info, FAKE_LAYERS);
    w->n = w->info.sequences = w->info.prompts = n;
    assert_ok(scope_open(&w->all, &w->info, &err), err);
    for (uint32_t i = 0; i < n; i++) {
        struct decoder d = {.trees = (seed + i) % 2 == 0, .probe_all = (seed + i) % 3 == 0, .draft_model = i % 2 == 0};
        assert_ok(scope_open(&w->alone[i], &w->info, &err), err);
        stream_begin(&w->streams[i], seed * MOST + i);
        decode_begin(&d, &w->streams[i], &w->info, 2 + i);
        for (uint32_t k = 0; k < 12; k++)
            decode_round(&d);
    }
}

static void
end_weave(struct weave *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        scope_close(w->alone[i]);
        stream_free(&w->streams[i]);
    }
    scope_close(w->all);
    run_info_free(&w->info);
}

/* Emits the next event of a stream. An event about all sequences is emitted once, by stream 0, which is first. */
static void
tell(struct weave *w, uint32_t i)
{
    struct event e = w->streams[i].events[w->at[i]++];
    scope_event(w->alone[i], &e);
    if (i > 0 && (e.type == EVENT_CONTROL || e.type == EVENT_VOCAB))
        return;
    e.seq = e.type == EVENT_CONTROL || e.type == EVENT_VOCAB ? 0 : i;
    scope_event(w->all, &e);
}

static void
say_joined(struct scope *s, uint32_t seq, const char *name, const char *text)
{
    struct event e = {.type = EVENT_CONTROL, .run = 1, .seq = seq};
    control_event_set_name(&e.control, name);
    e.control.old_text = "";
    e.control.new_text = text;
    scope_event(s, &e);
}

static void
assert_each_is_as_if_alone(struct weave *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (scope_now(w->alone[i])->length == 0)
            continue; /* there is no event of it yet */
        assert_true(scope_set_focus(w->all, i));
        assert_int_equal(scope_focus(w->all), i);
        assert_same_sequence(w->alone[i], w->all);
    }
}

TEST(each_sequence_is_shown_as_if_it_were_alone)
{
    const uint64_t seed = seed_or(1);
    for (uint64_t round = 0; round < 12; round++) {
        struct weave w;
        struct stream random;
        stream_begin(&random, seed + round);
        begin_weave(&w, 2 + (uint32_t)round % (MOST - 1), seed + round);
        while (w.streams[0].events[w.at[0]].type == EVENT_CONTROL || w.streams[0].events[w.at[0]].type == EVENT_VOCAB)
            tell(&w, 0);
        for (uint32_t i = 0; i < w.n; i++) {
            if (round % 2 == 0)
                say_joined(w.all, i, "joined", "Once upon");
            tell(&w, i);
        }
        for (uint32_t left = w.n; left > 0;) {
            const uint32_t i = stream_below(&random, w.n);
            /* A few events of one stream, then of another: drafts alternate, and whole rounds do. */
            for (uint32_t k = 1 + stream_below(&random, 1u << stream_below(&random, 6)); k > 0; k--)
                if (w.at[i] < w.streams[i].n) {
                    tell(&w, i);
                    left -= w.at[i] == w.streams[i].n;
                }
            if (stream_below(&random, 8) == 0)
                assert_each_is_as_if_alone(&w);
        }
        for (uint32_t i = 0; i < w.n; i++)
            say_joined(w.all, i, "left", "tokens");
        assert_each_is_as_if_alone(&w);
        const struct tally *total = &scope_now(w.all)->metrics.total;
        uint64_t emitted = 0;
        for (uint32_t i = 0; i < w.n; i++)
            emitted += scope_now(w.alone[i])->metrics.total.emitted;
        assert_int_equal(total->rounds, 12 * w.n);
        assert_int_equal(total->emitted, emitted);
        end_weave(&w);
        stream_free(&random);
    }
}

TEST(lost_events_leave_no_sequence_half_way)
{
    struct weave w;
    begin_weave(&w, 3, 5);
    for (uint32_t i = 0; i < w.n; i++)
        while (w.at[i] < w.streams[i].n / 2)
            tell(&w, i);
    scope_lost(w.all, 4);
    for (uint32_t i = 0; i < w.n; i++)
        scope_lost(w.alone[i], 4);
    assert_each_is_as_if_alone(&w);
    end_weave(&w);
}

TEST(a_new_policy_is_every_sequences)
{
    struct weave w;
    begin_weave(&w, 2, 9);
    for (uint32_t i = 0; i < w.n; i++)
        while (w.at[i] < w.streams[i].n / 2)
            tell(&w, i);
    say_joined(w.all, 0, "policy", "forms");
    for (uint32_t i = 0; i < w.n; i++)
        say_joined(w.alone[i], 0, "policy", "forms");
    for (uint32_t i = 0; i < w.n; i++)
        while (w.at[i] < w.streams[i].n)
            tell(&w, i);
    assert_each_is_as_if_alone(&w);
    assert_greater(scope_series(w.all, 0)->count, 0);
    end_weave(&w);
}

/* ---- memory ---- */

static void
tell_much(struct scope *s, const struct run_info *info, uint32_t seq, uint32_t tokens)
{
    struct event e = {.run = 1, .seq = seq};
    for (uint32_t pos = 0; pos < tokens; pos++) {
        e.type = EVENT_TOKEN;
        e.token = (struct token_event){.pos = pos,
                                       .parent = -1,
                                       .candidate = -1,
                                       .token = (token_t)(pos % 7),
                                       .source = SOURCE_PREFILL,
                                       .exit_layer = (int32_t)info->layers,
                                       .accepted = -1,
                                       .committed = -1};
        scope_event(s, &e);
        for (uint32_t layer = 1; layer <= 2 * info->layers && pos < 2 * SCOPE_COLUMNS; layer++) {
            e.type = EVENT_LAYER;
            e.layer = (struct layer_event){.pos = pos,
                                           .layer = 1 + (int32_t)((layer - 1) % info->layers),
                                           .head = layer > info->layers,
                                           .probed_by = PROBED_SCOPE};
            scope_event(s, &e);
        }
        if (pos < 2 * SCOPE_ROUNDS) {
            e.type = EVENT_ROUND;
            e.round = pos + 1;
            e.round_end = (struct round_event){.emitted = 1, .verify_us = 10};
            scope_event(s, &e);
        }
    }
}

static size_t
heap(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

TEST(sixteen_long_sequences_of_a_large_model_stay_within_bounds)
{
    struct run_info info;
    struct scope *s;
    struct err err = {0};
    fake_forms_run(&info, 32);
    info.ctx = 40000;
    info.sequences = 16;
    const size_t before = heap();
    assert_ok(scope_open(&s, &info, &err), err);
    for (uint32_t seq = 0; seq < 16; seq++)
        tell_much(s, &info, seq, 36000);
    print_message("16 at a time: %zu MB\n", (heap() - before) >> 20);
    assert_less(heap() - before, (size_t)110 << 20);
    for (uint32_t seq = 0; seq < 16; seq++) {
        assert_true(scope_set_focus(s, seq));
        assert_non_null(scope_cells(s, 2 * SCOPE_COLUMNS - 1));
        assert_non_null(scope_column(s, 35999));
        assert_non_null(scope_round(s, 511));
    }
    /* The memory is also bounded when sequences leave and others join. */
    for (uint32_t seq = 0; seq < 16; seq++) {
        say_joined(s, seq, "left", "tokens");
        say_joined(s, 16 + seq, "joined", "again");
        tell_much(s, &info, 16 + seq, 2000);
    }
    assert_less(heap() - before, (size_t)110 << 20);
    assert_int_equal(scope_focus(s), 15);
    assert_int_equal(scope_now(s)->length, 36000); /* the sequence in focus is kept, */
    assert_false(scope_set_focus(s, 0));           /* the oldest ones are dropped, */
    struct scope_said said[2];
    assert_int_equal(scope_tile_tail(s, scope_tile(s, 0), said, 2), 2); /* except for their tiles */
    assert_int_equal(said[1].token, 35999 % 7);
    assert_int_equal(said[1].fate, FATE_PREFILL);
    assert_int_equal(scope_tile(s, 0)->total.emitted, 2 * SCOPE_ROUNDS);
    assert_true(scope_set_focus(s, 31));
    /* A dropped sequence that resumes is kept from there on. */
    tell_much(s, &info, 0, 100);
    assert_true(scope_tile(s, 0)->live && scope_tile(s, 0)->held);
    assert_true(scope_set_focus(s, 0));
    scope_close(s);
    run_info_free(&info);
}

/* The same holds for any number of sequences up to 64. */
TEST(more_sequences_have_smaller_shares)
{
    static const uint32_t at_a_time[] = {8, 33, 64};
    for (int i = 0; i < 3; i++) {
        const uint32_t n = at_a_time[i], share = i == 0 ? 1 : 8;
        struct run_info info;
        struct scope *s;
        struct err err = {0};
        fake_forms_run(&info, 32);
        info.ctx = 40000;
        info.sequences = n;
        const size_t before = heap();
        assert_ok(scope_open(&s, &info, &err), err);
        for (uint32_t seq = 0; seq < n; seq++)
            tell_much(s, &info, seq, SCOPE_POSITIONS / share + 10);
        print_message("%u at a time: %zu MB\n", (unsigned)n, (heap() - before) >> 20);
        assert_less(heap() - before, (size_t)110 << 20);
        assert_true(scope_set_focus(s, n - 1));
        assert_null(scope_column(s, 9));
        assert_non_null(scope_column(s, 10));
        assert_int_equal(scope_rounds(s), SCOPE_ROUNDS / share);
        scope_close(s);
        run_info_free(&info);
    }
}

TEST(nonsense_does_no_harm)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct run_info info;
        struct scope *s;
        struct err err = {0};
        struct stream stream;
        fake_forms_run(&info, FAKE_LAYERS);
        assert_ok(scope_open(&s, &info, &err), err);
        stream_begin(&stream, seed);
        for (int i = 0; i < 3; i++)
            stream_batch(&stream, 1 + (uint32_t)seed % 8, 12);
        struct scope_said said[SCOPE_TAIL];
        for (size_t i = 0; i < stream.n; i++) {
            scope_event(s, &stream.events[i]);
            if (i % 5 > 0)
                continue;
            scope_set_focus(s, stream_below(&stream, 14));
            const struct scope_batch b = scope_batch(s);
            assert_int_equal(b.live + b.left, b.tiles);
            for (uint32_t t = 0; t < b.tiles; t++)
                assert_at_most(scope_tile_tail(s, scope_tile(s, t), said, 1 + (uint32_t)i % SCOPE_TAIL), SCOPE_TAIL);
            if (i % 500 == 0)
                scope_lost(s, 1);
        }
        scope_reset(s);
        assert_int_equal(scope_batch(s).tiles, 0);
        scope_close(s);
        stream_free(&stream);
        run_info_free(&info);
    }
}
