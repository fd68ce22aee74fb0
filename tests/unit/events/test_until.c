/* Conditions until which a run continues: parsing, printing, and texts that end a run. */
#include "engine/events/until.h"
#include "tests/rigs/test.h"

#include <strings.h>

TEST(printed_conditions_parse_back)
{
    static const char *const words[] = {"reject", "text the king", "confidence 0.25", "spurious", "round 40"};
    for (int i = 0; i < 5; i++) {
        struct until u, again;
        struct err err = {0};
        char text[UNTIL_TEXT_MOST + 16];
        assert_ok(until_parse(words[i], &u, &err), err);
        assert_int_equal(u.kind, UNTIL_REJECT + i);
        until_print(&u, text, sizeof text);
        assert_string_equal(text, words[i]);
        assert_ok(until_parse(text, &again, &err), err);
        assert_memory_equal(&u, &again, sizeof u);
    }
}

TEST(empty_files_are_refused_in_one_line)
{
    static const char *const words[] = {"",        "rejected",   "reject now",   "text",
                                        "text   ", "confidence", "confidence 2", "confidence 0.3x",
                                        "round 0", "round 1.5",  "round -1",     "rej"};
    char long_text[UNTIL_TEXT_MOST + 8] = "text ";
    memset(long_text + 5, 'a', UNTIL_TEXT_MOST);
    long_text[5 + UNTIL_TEXT_MOST] = '\0';
    for (size_t i = 0; i <= sizeof words / sizeof *words; i++) {
        struct until u;
        struct err err = {0};
        assert_false(until_parse(i < sizeof words / sizeof *words ? words[i] : long_text, &u, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_contains(err.text, "until");
        assert_null(strchr(err.text, '\n'));
    }
}

/* Compares with a search at every position in every short text of two letters. */
TEST(a_text_ends_within_the_fresh_bytes)
{
    for (unsigned bits = 0; bits < 1U << 10; bits++)
        for (size_t length = 1; length <= 4; length++)
            for (size_t fresh = 0; fresh <= 10; fresh++) {
                char bytes[11] = "";
                struct until u = {.kind = UNTIL_TEXT};
                for (size_t i = 0; i < 10; i++)
                    bytes[i] = (bits >> i & 1) != 0 ? 'a' : 'B';
                memcpy(u.text, "abba", length);
                bool slow = false;
                for (size_t end = length; end <= 10; end++)
                    slow = slow || (end > 10 - fresh && strncasecmp(bytes + end - length, u.text, length) == 0);
                assert_int_equal(until_ends_text(&u, bytes, 10, fresh), slow);
            }
}
