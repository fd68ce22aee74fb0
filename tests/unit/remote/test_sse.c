/* Server-sent events: their form by the standard, pieces of any size, and the limit. */
#include "engine/remote/sse.h"
#include "tests/rigs/test.h"

#define MOST 60

struct seen {
    char text[256]; /* events, each in brackets */
    int most;       /* the event that ends the stream; 0: none */
    int n;
};

static bool
collect(void *user, char *data, size_t n)
{
    struct seen *seen = user;
    const size_t have = strlen(seen->text);
    assert_int_equal(data[n], '\0');
    snprintf(seen->text + have, sizeof seen->text - have, "[%s]", data);
    return ++seen->n != seen->most;
}

/* Feeds the text in pieces of `piece` bytes; MOST is the limit. */
static enum sse_result
feed(struct seen *seen, const char *text, size_t len, size_t piece)
{
    struct sse s = {.most = MOST};
    enum sse_result result = SSE_MORE;
    for (size_t at = 0; at < len && result == SSE_MORE; at += piece)
        result = sse_feed(&s, text + at, len - at < piece ? len - at : piece, collect, seen);
    sse_close(&s);
    return result;
}

static void
gives(const char *text, const char *events)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct seen seen = {.most = 0};
        assert_int_equal(feed(&seen, text, strlen(text), piece), SSE_MORE);
        assert_string_equal(seen.text, events);
    }
}

TEST(an_empty_line_ends_an_event)
{
    gives("data: a\n\ndata: b\n\n", "[a][b]");
}

TEST(all_three_line_ends_are_read)
{
    gives("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "[a][b][c]");
    gives("data: a\r\n\ndata: b\n\r\n", "[a][b]");
}

TEST(lines_of_an_event_are_joined_with_newlines)
{
    gives("data: a\ndata:b\ndata\ndata:  c\n\n", "[a\nb\n\n c]");
}

TEST(comments_and_other_fields_are_skipped)
{
    gives(": note\nevent: x\nid: 1\ndatas: no\ndata: a\nretry\n\n", "[a]");
    gives("event: x\n\n:\n\ndata: a\n\n", "[a]");
}

TEST(an_event_without_text_is_an_event)
{
    gives("data\n\ndata:\n\n", "[][]");
}

TEST(an_event_that_the_end_cuts_is_none)
{
    gives("data: a\n\ndata: b\n", "[a]");
}

TEST(the_caller_ends_the_stream)
{
    struct seen seen = {.most = 1};
    const char *text = "data: a\n\ndata: b\n\n";
    assert_int_equal(feed(&seen, text, strlen(text), 100), SSE_ENDED);
    assert_string_equal(seen.text, "[a]");
}

TEST(a_line_without_an_end_is_refused)
{
    char text[100];
    memset(text, 'x', sizeof text);
    for (size_t piece = 1; piece <= 100; piece += 33) {
        struct seen seen = {.most = 0};
        assert_int_equal(feed(&seen, text, MOST, piece), SSE_MORE);
        assert_int_equal(feed(&seen, text, MOST + 1, piece), SSE_TOO_LONG);
    }
}

TEST(bytes_without_an_event_are_refused)
{
    struct seen seen = {.most = 0};
    char text[] =
        ":\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n";
    assert_int_equal(feed(&seen, text, sizeof text - 1, 7), SSE_TOO_LONG);
    assert_int_equal(seen.n, 0);
}

TEST(an_event_begins_the_limit_again)
{
    struct seen seen = {.most = 0};
    const char *text = "data: 0123456789\n\ndata: 0123456789\n\ndata: 0123456789\n\ndata: 0123456789\n\n";
    assert_int_equal(feed(&seen, text, strlen(text), 9), SSE_MORE);
    assert_int_equal(seen.n, 4);
}
