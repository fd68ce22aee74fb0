/* UTF-8 decoding of a stream that arrives in pieces, and text that is made safe to display. */

#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

TEST(a_character_in_pieces_waits_for_its_rest)
{
    struct utf8_stream s = {0};
    char out[64];
    assert_int_equal(utf8_stream_feed(&s, "a\xf0\x9f", 3, out), 1);
    assert_int_equal(utf8_stream_feed(&s, "\x98", 1, out), 0);
    assert_int_equal(utf8_stream_feed(&s, "\x80z", 2, out), 5);
    assert_memory_equal(out, "\xf0\x9f\x98\x80z", 5);
    assert_int_equal(utf8_stream_end(&s, out), 0);
    assert_int_equal(utf8_stream_feed(&s, "\xe6\xbc", 2, out), 0);
    assert_int_equal(utf8_stream_end(&s, out), 3);
    assert_memory_equal(out, "\xef\xbf\xbd", 3);
    assert_int_equal(utf8_stream_end(&s, out), 0);
}

TEST(broken_bytes_become_replacement_characters)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"\xff", "\xef\xbf\xbd"},
        {"\xc3(", "\xef\xbf\xbd("},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* a surrogate */
        {"\xf0\x9f\x98\xe6\xbc\xa2", "\xef\xbf\xbd\xe6\xbc\xa2"},                 /* cut off by another character */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* above U+10FFFF */
        {"a\x80\x80z", "a\xef\xbf\xbd\xef\xbf\xbdz"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct utf8_stream s = {0};
        char out[64];
        size_t n = 0;
        for (const char *c = cases[i].in; *c != '\0'; c++)
            n += utf8_stream_feed(&s, c, 1, out + n);
        n += utf8_stream_end(&s, out + n);
        assert_int_equal(n, strlen(cases[i].out));
        assert_memory_equal(out, cases[i].out, n);
    }
}

/* Decodes the bytes as a stream, in parts of random sizes, some of them empty. */
static size_t
in_parts(const char *in, size_t len, size_t largest, uint64_t *random, char *out)
{
    struct utf8_stream s = {0};
    size_t written = 0;
    for (size_t at = 0; at < len;) {
        size_t part = (size_t)(next_random(random) % (largest + 1));
        part = part < len - at ? part : len - at;
        written += utf8_stream_feed(&s, in + at, part, out + written);
        at += part;
    }
    return written + utf8_stream_end(&s, out + written);
}

TEST(any_split_of_the_bytes_gives_the_same_text)
{
    uint64_t random = seed_or(1);
    static const char *const parts[] = {"a",        " ",    "\xc3\xa9", "\xe6\xbc\xa2", "\xf0\x9f\x98\x80",
                                        "\xe6\xbc", "\x80", "\xed\xa0", "\xf0\x9f\x98", "\xff"};
    for (int i = 0; i < 5000; i++) {
        char in[200], whole[3 * sizeof in + 3], split[3 * sizeof in + 3];
        size_t len = 0;
        bool broken = false;
        for (size_t k = next_random(&random) % 40; k > 0; k--) {
            const size_t which = (size_t)(next_random(&random) % (i % 2 == 0 ? 5 : 10)); /* every other text is valid */
            broken = broken || which >= 5;
            memcpy(in + len, parts[which], strlen(parts[which]));
            len += strlen(parts[which]);
        }
        struct utf8_stream s = {0};
        size_t n = utf8_stream_feed(&s, in, len, whole);
        n += utf8_stream_end(&s, whole + n);
        if (!broken) {
            assert_int_equal(n, len);
            assert_memory_equal(whole, in, n);
        }
        for (size_t largest = 1; largest < 8; largest++) {
            assert_int_equal(in_parts(in, len, largest, &random, split), n);
            assert_memory_equal(split, whole, n);
        }
    }
}

TEST(a_stream_writes_at_most_its_headers_bound)
{
    uint64_t random = seed_or(1);
    struct utf8_stream s = {0};
    for (int i = 0; i < 20000; i++) {
        char in[8], out[3 * 8 + 3];
        const size_t len = (size_t)(next_random(&random) % 9);
        for (size_t k = 0; k < len; k++)
            in[k] = "a\x80\xbf\xc3\xe2\xed\xf0\xf4\xff"[next_random(&random) % 9];
        const size_t n = utf8_stream_feed(&s, in, len, out);
        assert_at_most(n, 3 * len + 3);
        for (size_t at = 0, size; at < n; at += size) {
            size = utf8_character(out + at, n - at, NULL);
            assert_greater(size, 0);
        }
    }
}

TEST(printable_text_holds_nothing_that_a_terminal_acts_on)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"\x1b[2J", "\\x1b[2J"},
        {"\xc2\x9b"
         "1m",
         "\\xc2\\x9b1m"},
        {"\xe2\x80\xaex", "\\xe2\\x80\\xaex"},
        {"\xff\xe6\xbc\xa2", "\\xff\xe6\xbc\xa2"},
        {"a\nb\x7f", "a\\x0ab\\x7f"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(printable_line(out, sizeof out, cases[i].in, strlen(cases[i].in)), cases[i].out);
    assert_string_equal(printable_line(out, 8, "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 9), "\xe6\xbc\xa2...");
    assert_string_equal(printable_line(out, 4, "abc", 3), "abc");
    assert_string_equal(printable_line(out, 4, "abcd", 4), "...");
    assert_string_equal(printable_line(out, 1, "a", 1), "");
}
