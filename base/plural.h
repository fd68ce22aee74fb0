/* Plural endings for printf: printf("%u layer%s", n, plural(n)) prints "1 layer", "2 layers". */
#pragma once

#include <stdint.h>

static inline const char *
plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
