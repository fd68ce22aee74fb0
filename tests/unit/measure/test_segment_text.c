/* The letters that name segments. */
#include "engine/measure/segments.h"
#include "tests/rigs/test.h"

TEST(letters_after_z_have_two_characters)
{
    static const struct {
        uint32_t number;
        const char *letter;
    } table[] = {{0, "A"}, {25, "Z"}, {26, "AA"}, {51, "AZ"}, {52, "BA"}, {701, "ZZ"}, {702, "AAA"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char letter[8];
        segment_letter(table[i].number, letter);
        assert_string_equal(letter, table[i].letter);
    }
    char longest[8];
    segment_letter(UINT32_MAX, longest);
}
