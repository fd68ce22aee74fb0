/* Little-endian numbers in files, without alignment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Reads an unsigned number of n <= 8 bytes. */
static inline uint64_t
little_endian(const unsigned char *at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

static inline void
put_little_endian(unsigned char *at, size_t n, uint64_t v)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(v >> (8 * i));
}
