/* The event log with one appender and several readers. Run the test with SANITIZE=thread as well. */
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <time.h>

#include "tests/rigs/test.h"
#include "tests/rigs/trace_events.h"

static struct event_log *
open_log(size_t cap)
{
    struct event_log *log;
    struct err err;
    assert_ok(event_log_open(&log, cap, &err), err);
    return log;
}

static void
append_series(struct event_log *log, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct event e = {.type = EVENT_SERIES, .series = {.key = "x", .index = (int32_t)i}};
        event_log_append(log, &e);
    }
}

TEST(every_reader_sees_every_event_and_text)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct stream s;
        stream_begin(&s, seed);
        stream_fill(&s);
        struct event_log *log = open_log(0);
        struct event_reader *eager = event_reader_open(log), *late = event_reader_open(log);
        struct err err;
        const struct event *e;
        for (size_t i = 0; i < s.n; i++) {
            if (stream_below(&s, 3) == 0)
                assert_ok(event_log_reserve(log, stream_below(&s, 3000), stream_below(&s, 40000), &err), err);
            assert_int_equal(event_log_append(log, &s.events[i]), i + 1);
            e = event_reader_next(eager);
            assert_non_null(e);
            assert_same_event(&s.events[i], e);
            assert_null(event_reader_next(eager));
        }
        for (size_t i = 0; i < s.n; i++) {
            e = event_reader_next(late);
            assert_non_null(e);
            assert_same_event(&s.events[i], e);
        }
        assert_null(event_reader_next(late));
        assert_int_equal(event_reader_lost(late) + event_reader_lost(eager), 0);
        event_reader_close(eager);
        event_reader_close(late);
        event_log_close(log);
        stream_free(&s);
    }
}

TEST(numbers_count_from_one_unless_given)
{
    struct event_log *log = open_log(0);
    struct event e = {.type = EVENT_SERIES};
    assert_int_equal(event_log_last(log), 0);
    assert_int_equal(event_log_append(log, &e), 1);
    assert_int_equal(event_log_append(log, &e), 2);
    e.number = 17;
    assert_int_equal(event_log_append(log, &e), 17);
    e.number = 0;
    assert_int_equal(event_log_append(log, &e), 18);
    assert_int_equal(event_log_last(log), 18);
    event_log_close(log);
}

TEST(missing_texts_are_empty_ones)
{
    struct event_log *log = open_log(0);
    struct event_reader *r = event_reader_open(log);
    struct event e = {.type = EVENT_CONTROL, .control = {.knob = "tau", .new_text = "0.6"}};
    event_log_append(log, &e);
    const struct event *got = event_reader_next(r);
    assert_string_equal(got->control.old_text, "");
    assert_string_equal(got->control.new_text, "0.6");
    event_reader_close(r);
    event_log_close(log);
}

TEST(the_event_log_frees_its_chunks_without_readers)
{
    struct event_log *log = open_log(0);
    append_series(log, 1000000); /* more than 100 MB if all were kept */
    struct event_reader *r = event_reader_open(log);
    uint64_t kept = 0;
    while (event_reader_next(r) != NULL)
        kept++;
    assert_greater(kept, 0);
    assert_at_most(kept, 4096);
    event_reader_close(r);
    event_log_close(log);
}

TEST(over_the_cap_a_slow_reader_loses_the_oldest_and_knows_how_many)
{
    const size_t cap = 1 << 20;
    struct event_log *log = open_log(cap);
    struct event_reader *slow = event_reader_open(log), *quick = event_reader_open(log);
    append_series(log, 10);
    const struct event *held = event_reader_next(slow); /* the event stays valid when chunks are dropped */
    uint64_t quick_read = 0;
    for (int i = 0; i < 1000; i++) {
        append_series(log, 100);
        while (event_reader_next(quick) != NULL)
            quick_read++;
    }
    assert_int_equal(held->number, 1);
    assert_int_equal(quick_read, 100010);
    assert_int_equal(event_reader_lost(quick), 0);

    uint64_t read = 1, before = 1;
    const struct event *e;
    while ((e = event_reader_next(slow)) != NULL) {
        assert_greater(e->number, before);
        before = e->number;
        read++;
    }
    assert_int_equal(before, 100010);
    assert_int_equal(read + event_reader_lost(slow), 100010);
    assert_greater(event_reader_lost(slow), 0);
    assert_at_most((read - 2000) * sizeof(struct event), cap); /* 2000: the reader's current chunk, and the tail */
    event_reader_close(slow);
    event_reader_close(quick);
    event_log_close(log);
}

TEST(a_reader_that_lost_events_keeps_the_remaining_ones)
{
    struct event_log *log = open_log(256 << 10);
    struct event_reader *slow = event_reader_open(log), *quick = event_reader_open(log);
    append_series(log, 20000);
    const struct event *e;
    while (event_reader_next(quick) != NULL) /* must not free chunks that `slow` has not read yet */
        ;
    uint64_t read = 0;
    while ((e = event_reader_next(slow)) != NULL)
        read++;
    assert_at_least(read, 256);
    assert_int_equal(read + event_reader_lost(slow), 20000);
    event_reader_close(quick);
    event_reader_close(slow);
    event_log_close(log);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#endif
#endif

TEST(append_allocates_nothing_after_reserve)
{
#if defined(OWN_MALLOC) || !defined(__GLIBC__)
    skip(); /* the sanitizer's allocator does not count bytes */
#else
    struct event_log *log = open_log(0);
    struct event_reader *r = event_reader_open(log); /* reads nothing, so that no chunk is released */
    char text[100];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 50; i++) {
        size_t n = 1 + (size_t)(i * 37 % 1500);
        assert_true(event_log_reserve(log, n, n * sizeof text, NULL));
        struct mallinfo2 before = mallinfo2();
        for (size_t k = 0; k < n; k++) {
            struct event e = {.type = EVENT_VOCAB, .vocab = {.bytes = text, .n_bytes = sizeof text}};
            event_log_append(log, &e);
        }
        struct mallinfo2 after = mallinfo2();
        assert_int_equal(before.uordblks, after.uordblks);
        assert_int_equal(before.hblkhd, after.hblkhd);
    }
    event_reader_close(r);
    event_log_close(log);
#endif
}

/* ---- threads ---- */

#define EVENTS 200000

struct watcher {
    struct event_log *log;
    struct event_reader *reader;
    enum { POLLS, WAITS, DAWDLES } manner;
    uint64_t read, wrong;
};

static void *
watch(void *user)
{
    struct watcher *w = user;
    uint64_t before = 0;
    for (;;) {
        bool finished = event_log_finished(w->log); /* checked before reading: no event can follow an empty read */
        const struct event *e;
        while ((e = event_reader_next(w->reader)) != NULL) {
            char text[32];
            snprintf(text, sizeof text, "%llu", (unsigned long long)e->number);
            w->wrong += e->number <= before || e->type != EVENT_CONTROL || strcmp(e->control.new_text, text) != 0;
            before = e->number;
            w->read++;
            if (w->manner == DAWDLES && w->read % 512 == 0)
                nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        }
        if (finished)
            return NULL;
        if (w->manner == WAITS)
            event_reader_wait(w->reader, 1000);
    }
}

TEST(readers_on_threads_miss_only_reported_events)
{
    struct event_log *log = open_log(2 << 20);
    struct watcher w[3] = {{.manner = POLLS}, {.manner = WAITS}, {.manner = DAWDLES}};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) {
        w[i].log = log;
        w[i].reader = event_reader_open(log);
        assert_non_null(w[i].reader);
        assert_int_equal(pthread_create(&thread[i], NULL, watch, &w[i]), 0);
    }
    for (int i = 1; i <= EVENTS; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d", i);
        struct event e = {.type = EVENT_CONTROL, .control = {.knob = "n", .new_text = text}};
        if (i % 1000 == 0)
            assert_true(event_log_reserve(log, 1000, 8000, NULL));
        event_log_append(log, &e);
    }
    event_log_finish(log);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(w[i].wrong, 0);
        assert_int_equal(w[i].read + event_reader_lost(w[i].reader), EVENTS);
        event_reader_close(w[i].reader);
    }
    event_log_close(log);
}

struct sleeper {
    struct event_reader *reader;
    bool woken;
};

static void *
sleep_for_news(void *arg)
{
    struct sleeper *s = arg;
    s->woken = event_reader_wait(s->reader, INT_MAX);
    return NULL;
}

/* The thread ends whether the event or the wait comes first. */
TEST(a_round_and_a_control_wake_a_reader)
{
    const struct event woken_by[] = {
        {.type = EVENT_ROUND},
        {.type = EVENT_CONTROL, .control = {.kind = RECORDED_STATE, .old_text = "", .new_text = "x"}}};
    for (size_t i = 0; i < 2; i++) {
        struct event_log *log = open_log(0);
        struct sleeper s = {.reader = event_reader_open(log)};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleep_for_news, &s), 0);
        append_series(log, 1);
        event_log_append(log, &woken_by[i]);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(s.woken);
        event_reader_close(s.reader);
        event_log_close(log);
    }
}

TEST(wait_times_out_and_finish_wakes)
{
    struct event_log *log = open_log(0);
    struct event_reader *r = event_reader_open(log);
    assert_false(event_reader_wait(r, 10));
    append_series(log, 1);
    assert_true(event_reader_wait(r, 0));
    assert_non_null(event_reader_next(r));
    assert_false(event_reader_wait(r, 0));
    assert_false(event_log_finished(log));
    event_log_finish(log);
    assert_true(event_log_finished(log));
    assert_true(event_reader_wait(r, 60000));
    event_reader_close(r);
    event_log_close(log);
}
