#include "traces/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t
number_write_whole(char out[NUMBER_ROOM], uint64_t value)
{
    char digits[NUMBER_ROOM];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

__extension__ typedef unsigned __int128 uint128;

#define DIGITS    9          /* significant ones */
#define TOO_LARGE 1000000000 /* the first number with more */

/* mantissa * 2^exponent * 10^decimal, rounded to the nearest whole number, ties to even; `below` when that was less than
 * 10^8 before it was rounded. The product is exact, so the rounding is: 2^24 * 10^27, from 1e-18 on, fits 128 bits. */
static uint64_t
scaled(uint32_t mantissa, int exponent, int decimal, bool *below)
{
    uint128 product = mantissa;
    for (int i = 0; i < decimal; i++)
        product *= 10;
    const uint128 least = TOO_LARGE / 10;
    if (exponent >= 0) {
        product <<= exponent;
        *below = product < least;
        return (uint64_t)product;
    }
    const uint128 whole = product >> -exponent, rest = product - (whole << -exponent),
                  half = (uint128)1 << (-exponent - 1);
    *below = whole < least;
    return (uint64_t)whole + (rest > half || (rest == half && (whole & 1) == 1));
}

/* Nine digits times 10^(power - 8), in the shape that %g chooses. */
static size_t
shape(char *out, uint64_t nine, int power)
{
    char digits[NUMBER_ROOM];
    size_t n = number_write_whole(digits, nine), at = 0;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (power < -4 || power >= DIGITS) {
        out[at++] = digits[0];
        if (n > 1) {
            out[at++] = '.';
            memcpy(out + at, digits + 1, n - 1);
            at += n - 1;
        }
        out[at++] = 'e';
        out[at++] = power < 0 ? '-' : '+';
        const unsigned size = (unsigned)(power < 0 ? -power : power);
        out[at++] = (char)('0' + size / 10); /* at least two digits, and a float has no more */
        out[at++] = (char)('0' + size % 10);
        return at;
    }
    if (power < 0) {
        memcpy(out, "0.000", 5);
        at = (size_t)(1 - power);
        memcpy(out + at, digits, n);
        return at + n;
    }
    const size_t whole = (size_t)power + 1;
    for (size_t i = 0; i < whole; i++)
        out[at++] = i < n ? digits[i] : '0';
    if (n > whole) {
        out[at++] = '.';
        memcpy(out + at, digits + whole, n - whole);
        at += n - whole;
    }
    return at;
}

size_t
number_write_real(char out[NUMBER_ROOM], float value)
{
    const float size = fabsf(value);
    size_t at = 0;
    if (signbit(value))
        out[at++] = '-';
    if (size == 0) {
        out[at++] = '0';
        return at;
    }
    if (!(size >= 1e-18f && size < 1e9f)) /* rare, so that printf may do it */
        return (size_t)snprintf(out, NUMBER_ROOM, "%.9g", (double)value);
    int exponent;
    uint32_t mantissa = (uint32_t)ldexpf(frexpf(size, &exponent), 24);
    exponent -= 24;
    /* The leading digit's power of ten, at most one too low: 2^e <= size < 2^(e + 1), and 1233 / 4096 is about log10 2. */
    int power = ((exponent + 23) * 1233 - (exponent + 23 < 0 ? 4095 : 0)) / 4096;
    bool below = false;
    uint64_t nine = scaled(mantissa, exponent, DIGITS - 1 - power, &below);
    if (nine >= TOO_LARGE) {
        power++;
        nine = scaled(mantissa, exponent, DIGITS - 1 - power, &below);
    } else if (below) {
        power--;
        nine = scaled(mantissa, exponent, DIGITS - 1 - power, &below);
    }
    if (nine == TOO_LARGE) { /* rounded up to one digit more */
        power++;
        nine /= 10;
    }
    return at + shape(out + at, nine, power);
}
