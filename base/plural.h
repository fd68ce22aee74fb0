/* Plural endings for printf: printf("%u layer%s", n, plural(n)) prints "1 layer", "2 layers". */
#ifndef BASE_PLURAL_H
#define BASE_PLURAL_H

#include <stdint.h>

static inline const char *
plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
