/* Numbers of a trace are the text that printf makes. */
#include <math.h>

#include "tests/rigs/test.h"
#include "traces/schema.h"

static void
same_as_printf(float value)
{
    char got[NUMBER_ROOM + 1], want[64];
    const size_t n = number_write_real(got, value);
    got[n] = '\0';
    snprintf(want, sizeof want, "%.9g", (double)value);
    if (strcmp(got, want) != 0)
        fail_msg("%a is written %s, printf writes %s", (double)value, got, want);
}

static float
of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(any_float_is_written_as_printf_does)
{
    const uint64_t seed = 20260711;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t x = seed;
    for (int i = 0; i < 400000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const float value = of_bits((uint32_t)(x >> 32));
        if (!isnan(value))
            same_as_printf(value);
    }
}

TEST(probabilities_and_times_are_written_as_printf_does)
{
    uint64_t x = 42;
    for (int i = 0; i < 400000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const float unit = (float)(x >> 40) * 0x1p-24f;
        same_as_printf(unit);
        same_as_printf(unit * unit * unit * unit * unit * unit);
        same_as_printf((float)(x >> 44));
        same_as_printf((float)(x >> 44) / 8);
    }
}

TEST(powers_of_ten_and_of_two_and_their_neighbours)
{
    for (int power = -45; power <= 38; power++)
        for (int step = -3; step <= 3; step++) {
            float value = (float)pow(10, power);
            for (int i = 0; i < (step < 0 ? -step : step); i++)
                value = nextafterf(value, step < 0 ? -INFINITY : INFINITY);
            same_as_printf(value);
            same_as_printf(-value);
        }
    for (int power = -149; power <= 127; power++)
        for (int odd = 1; odd < 4096; odd += 2)
            same_as_printf(ldexpf((float)odd, power - 11));
    same_as_printf(0);
    same_as_printf(-0.0f);
    same_as_printf(INFINITY);
    same_as_printf(-INFINITY);
}

TEST(ties_go_to_the_even_digit)
{
    /* Ten digits of which the last is a 5: n + 1/4 and n + 3/4 where n has eight digits, below 2^22 only quarters fit. */
    for (uint32_t n = 1u << 20; n < 1u << 22; n += 37)
        for (int quarter = 1; quarter < 4; quarter++)
            same_as_printf((float)n + (float)quarter / 4);
    for (int i = 1; i < 1 << 16; i++) /* 0.xxxxx5 exactly, from 10 digits on */
        for (int down = 10; down < 24; down++)
            same_as_printf(ldexpf((float)i, -down));
}

TEST(whole_numbers)
{
    const uint64_t values[] = {0, 1, 9, 10, 99, 100, 4294967295u, 9999999999999999999u, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char got[NUMBER_ROOM + 1], want[32];
        got[number_write_whole(got, values[i])] = '\0';
        snprintf(want, sizeof want, "%llu", (unsigned long long)values[i]);
        assert_string_equal(got, want);
    }
}
