/* Numbers of a trace are read back exactly. */
#include <math.h>

#include "tests/rigs/test.h"
#include "traces/schema.h"

static void
reads_back(float value)
{
    char text[NUMBER_ROOM + 1];
    const size_t n = number_write_real(text, value);
    assert_in_range(n, 1, NUMBER_ROOM);
    text[n] = '\0';
    const float got = strtof(text, NULL);
    if (memcmp(&got, &value, sizeof got) != 0)
        fail_msg("%a is written %s, which reads as %a", (double)value, text, (double)got);
}

static float
of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(any_float_reads_back)
{
    const uint64_t seed = 20260711;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t x = seed;
    for (int i = 0; i < 400000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const float value = of_bits((uint32_t)(x >> 32));
        if (!isnan(value))
            reads_back(value);
    }
}

TEST(probabilities_and_times_read_back)
{
    uint64_t x = 42;
    for (int i = 0; i < 400000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const float unit = (float)(x >> 40) * 0x1p-24f;
        reads_back(unit);
        reads_back(unit * unit * unit * unit * unit * unit);
        reads_back((float)(x >> 44));
        reads_back((float)(x >> 44) / 8);
    }
}

TEST(powers_of_ten_and_of_two_and_their_neighbours)
{
    for (int power = -45; power <= 38; power++)
        for (int step = -3; step <= 3; step++) {
            float value = (float)pow(10, power);
            for (int i = 0; i < (step < 0 ? -step : step); i++)
                value = nextafterf(value, step < 0 ? -INFINITY : INFINITY);
            reads_back(value);
            reads_back(-value);
        }
    for (int power = -149; power <= 127; power++)
        for (int odd = 1; odd < 4096; odd += 2)
            reads_back(ldexpf((float)odd, power - 11));
    reads_back(0);
    reads_back(-0.0f);
    reads_back(INFINITY);
    reads_back(-INFINITY);
}

TEST(short_decimals_are_written_in_few_digits)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = {{0.5f, "0.5"},       {-12, "-12"}, {1234.25f, "1234.25"}, {0.001f, "0.00100000005"},
                 {1e8f, "100000000"}, {0, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[NUMBER_ROOM + 1];
        got[number_write_real(got, cases[i].value)] = '\0';
        assert_string_equal(got, cases[i].text);
    }
}

TEST(whole_numbers_are_written_and_read_back)
{
    const uint64_t values[] = {0, 1, 9, 10, 99, 100, 4294967295u, 9999999999999999999u, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char got[NUMBER_ROOM + 1], want[32];
        got[number_write_whole(got, values[i])] = '\0';
        snprintf(want, sizeof want, "%llu", (unsigned long long)values[i]);
        assert_string_equal(got, want);
    }
}
