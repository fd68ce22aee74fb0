/* A trace is read while it is written: in whatever pieces its bytes arrive, the events are a prefix of it, and finally
 * all of it. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"
#include "traces/replay.h"
#include "traces/schema.h"

#define LONG_US 2000000 /* longer than the time after which a quiet run counts as ended */

/* A trace that is assembled from the files of another, closed trace. */
struct half {
    char from[256], to[256];
    char *text[TABLES], *run_json, *open_run_json;
    size_t at[TABLES], len[TABLES]; /* available bytes */
    struct stream stream;
};

static const enum table_id order[TABLES] = {TABLE_TOKENS, TABLE_LAYERS,   TABLE_EXPERTS, TABLE_SERIES,
                                            TABLE_VOCAB,  TABLE_CONTROLS, TABLE_ROUNDS};

static void
append(struct half *h, enum table_id id, size_t n)
{
    char name[300];
    snprintf(name, sizeof name, "%s/%s", h->to, trace_tables[id].file);
    FILE *f = fopen(name, "a");
    assert_non_null(f);
    assert_int_equal(fwrite(h->text[id] + h->at[id], 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    h->at[id] += n;
}

static size_t
line_length(const char *text)
{
    bool quoted = false;
    size_t n = 0;
    for (; text[n] != '\0' && (text[n] != '\n' || quoted); n++)
        quoted ^= text[n] == '"';
    return n + (text[n] == '\n');
}

static void
half_begin(struct half *h, const char *folder, uint64_t seed, uint32_t rounds)
{
    memset(h, 0, sizeof *h);
    stream_begin(&h->stream, seed);
    if (rounds == 0) {
        stream_fill(&h->stream);
    } else {
        stream_start_run(&h->stream);
        while (rounds-- > 0)
            stream_round(&h->stream);
        stream_control(&h->stream, "end", "tokens");
    }
    write_trace(folder, &h->stream, true, h->from);
    snprintf(h->to, sizeof h->to, "%s/growing", folder);
    assert_int_equal(mkdir(h->to, 0777), 0);
    for (unsigned i = 0; i < TABLES; i++) {
        h->text[i] = read_text(h->from, trace_tables[i].file);
        h->len[i] = strlen(h->text[i]);
        append(h, (enum table_id)i, line_length(h->text[i]));
    }
    h->run_json = read_text(h->from, "run.json");
    char *sequences = strstr(h->run_json, "\"sequences\":\t3");
    assert_non_null(sequences);
    if (rounds > 0) /* in a batch a round ends when the next one begins: other sequences may have lines of it */
        sequences[strlen("\"sequences\":\t")] = '1';
    h->open_run_json = strdup(h->run_json);
    char *closed = strstr(h->open_run_json, ",\n\t\"closed_event\"");
    assert_non_null(closed);
    strcpy(closed, "\n}\n");
    write_text(h->to, "run.json", h->open_run_json);
}

static void
half_end(struct half *h)
{
    for (unsigned i = 0; i < TABLES; i++)
        free(h->text[i]);
    free(h->run_json);
    free(h->open_run_json);
    stream_free(&h->stream);
}

struct taken {
    struct trace_reader *reader;
    const struct stream *stream;
    size_t at;
    uint64_t now, rounds;
};

/* Checks that the new events are the next ones of the stream. */
static void
take(struct taken *t)
{
    struct event e;
    struct err err = {0};
    assert_ok(trace_reader_look(t->reader, t->now += 1000, &err), err);
    while (trace_reader_next(t->reader, &e, &err)) {
        while (t->at < t->stream->n && !stream_is_traced(&t->stream->events[t->at]))
            t->at++;
        assert_less(t->at, t->stream->n);
        assert_same_event(&t->stream->events[t->at++], &e);
        t->rounds += e.type == EVENT_ROUND;
    }
    if (err.kind != ERR_NONE)
        fail_msg("%s", err.text);
}

/* Appends all lines of a table with numbers up to `last`, in two pieces, and sometimes a part of the next line. */
static void
write_up_to(struct half *h, enum table_id id, uint64_t last, struct taken *t)
{
    size_t n = 0;
    while (h->at[id] + n < h->len[id] && strtoull(h->text[id] + h->at[id] + n, NULL, 10) <= last)
        n += line_length(h->text[id] + h->at[id] + n);
    const size_t first = n > 0 ? stream_below(&h->stream, (uint32_t)n) : 0;
    append(h, id, first);
    take(t);
    append(h, id, n - first);
    take(t);
}

TEST_WITH(a_trace_is_followed_however_its_bytes_arrive, folder_set_up, folder_tear_down)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        print_message("seed %d\n", (int)seed);
        char folder[280];
        snprintf(folder, sizeof folder, "%s/%d", (const char *)*state, (int)seed);
        assert_int_equal(mkdir(folder, 0777), 0);
        struct half h;
        half_begin(&h, folder, seed, 0);
        struct taken t = {.stream = &h.stream};
        struct err err;
        assert_ok(trace_reader_open(&t.reader, h.to, true, &err), err);
        const uint64_t all = h.stream.n;
        uint64_t done = 0;
        while (done < all) {
            /* a writer stops only between rounds, or at a run's end */
            done += 1 + stream_below(&h.stream, 40);
            while (done < all && h.stream.events[done - 1].type != EVENT_ROUND)
                done++;
            done = done < all ? done : all;
            for (unsigned i = 0; i < TABLES; i++)
                write_up_to(&h, order[i], done, &t);
        }
        write_text(h.to, "run.json", h.run_json);
        take(&t);
        assert_true(trace_reader_state(t.reader).closed);
        while (t.at < h.stream.n && !stream_is_traced(&h.stream.events[t.at]))
            t.at++;
        assert_int_equal(t.at, h.stream.n);
        trace_reader_close(t.reader);
        half_end(&h);
    }
}

TEST_WITH(a_round_is_there_with_its_line_and_not_before, folder_set_up, folder_tear_down)
{
    struct half h;
    half_begin(&h, *state, 7, 5);
    struct taken t = {.stream = &h.stream};
    struct err err;
    assert_ok(trace_reader_open(&t.reader, h.to, true, &err), err);
    for (unsigned i = 0; i < TABLES - 1; i++)
        write_up_to(&h, order[i], h.stream.n, &t);
    assert_int_equal(t.at, 0);
    for (uint64_t round = 1; round <= 5; round++) {
        const size_t n = line_length(h.text[TABLE_ROUNDS] + h.at[TABLE_ROUNDS]);
        append(&h, TABLE_ROUNDS, n - 1);
        take(&t);
        assert_int_equal(t.rounds, round - 1);
        append(&h, TABLE_ROUNDS, 1);
        take(&t);
        assert_int_equal(t.rounds, round);
        assert_int_equal(trace_reader_state(t.reader).rounds, round);
    }
    trace_reader_close(t.reader);
    half_end(&h);
}

/* A run that was not closed counts as ended after a quiet time. */
TEST_WITH(the_end_of_a_run_counts_when_it_is_quiet, folder_set_up, folder_tear_down)
{
    struct half h;
    half_begin(&h, *state, 8, 3);
    struct taken t = {.stream = &h.stream};
    struct err err;
    assert_ok(trace_reader_open(&t.reader, h.to, true, &err), err);
    for (unsigned i = 0; i < TABLES; i++)
        write_up_to(&h, order[i], h.stream.n, &t);
    assert_int_equal(t.rounds, 3);
    const size_t without = t.at;
    t.now += LONG_US;
    take(&t);
    assert_int_equal(without, h.stream.n - 1);
    assert_int_equal(t.at, h.stream.n);
    assert_false(trace_reader_state(t.reader).closed);
    trace_reader_close(t.reader);
    half_end(&h);
}

TEST_WITH(what_was_cut_replaced_or_deleted_is_said, folder_set_up, folder_tear_down)
{
    static const char *const says[] = {"or cut", "replaced", "deleted", "another run"};
    for (int i = 0; i < 4; i++) {
        char folder[280], name[320], other[330];
        snprintf(folder, sizeof folder, "%s/%d", (const char *)*state, i);
        assert_int_equal(mkdir(folder, 0777), 0);
        struct half h;
        half_begin(&h, folder, 9, 3);
        struct taken t = {.stream = &h.stream};
        struct err err;
        assert_ok(trace_reader_open(&t.reader, h.to, true, &err), err);
        for (unsigned k = 0; k < TABLES; k++)
            write_up_to(&h, order[k], h.stream.n, &t);
        snprintf(name, sizeof name, "%s/rounds.csv", h.to);
        snprintf(other, sizeof other, "%s/other", h.to);
        if (i == 0)
            assert_int_equal(truncate(name, 40), 0);
        if (i == 1) {
            write_text(h.to, "other", h.text[TABLE_ROUNDS]);
            assert_int_equal(rename(other, name), 0);
        }
        if (i == 2)
            assert_int_equal(unlink(name), 0);
        if (i == 3) {
            char *layers = strstr(h.open_run_json, "\"started\":\t\"");
            assert_non_null(layers);
            layers[strlen("\"started\":\t\"")] = 'X';
            write_text(h.to, "other", h.open_run_json);
            snprintf(name, sizeof name, "%s/run.json", h.to);
            assert_int_equal(rename(other, name), 0);
        }
        assert_false(trace_reader_look(t.reader, t.now + 1, &err));
        if (strstr(err.text, says[i]) == NULL)
            fail_msg("%d: %s", i, err.text);
        assert_int_equal(err.kind, ERR_WORK);
        struct event e;
        assert_false(trace_reader_next(t.reader, &e, &err));
        assert_int_equal(err.kind, ERR_WORK);
        trace_reader_close(t.reader);
        half_end(&h);
    }
}

/* ---- playing ---- */

static uint64_t
play(struct replay *r, uint64_t *now)
{
    const struct event *e = NULL;
    struct err err = {0};
    uint64_t n = 0;
    *now += 200000;
    for (;;) {
        assert_ok(replay_next(r, *now, &e, &err), err);
        if (e == NULL)
            return n;
        n++;
    }
}

TEST_WITH(a_replay_follows_goes_back_and_catches_up, folder_set_up, folder_tear_down)
{
    struct half h;
    half_begin(&h, *state, 10, 4);
    struct taken t = {.stream = &h.stream};
    struct err err;
    assert_ok(trace_reader_open(&t.reader, h.to, true, &err), err);
    struct replay *r;
    uint64_t now = 1000000;
    assert_ok(replay_open(&r, h.to, true, &err), err);
    replay_play(r, true);
    assert_int_equal(play(r, &now), 0);
    assert_true(replay_status(r).playing && replay_status(r).follows && !replay_status(r).at_end);
    for (unsigned i = 0; i < TABLES; i++)
        write_up_to(&h, order[i], h.stream.n, &t);
    const uint64_t all = play(r, &now);
    assert_greater(all, 4); /* at once, regardless of their times */
    assert_int_equal(replay_status(r).round, 4);
    assert_int_equal(replay_status(r).t_us, replay_status(r).duration_us);

    replay_goto(r, 1);
    assert_true(replay_rewound(r));
    play(r, &now);
    assert_int_equal(replay_status(r).round, 1);
    assert_false(replay_status(r).playing);
    replay_goto_fraction(r, 1);
    play(r, &now);
    assert_int_equal(replay_status(r).round, 4);
    assert_false(replay_status(r).at_end);

    write_text(h.to, "run.json", h.run_json);
    replay_play(r, true);
    assert_int_equal(play(r, &now), 1); /* the event of the run's end */
    assert_true(replay_status(r).at_end && !replay_status(r).follows);
    replay_close(r);
    trace_reader_close(t.reader);
    half_end(&h);
}
