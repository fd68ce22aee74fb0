#include "engine/model/model_hash.h"

#include <string.h>

#define PLACES      256u /* opening a large file must not read all of it */
#define PLACE_BYTES 64u

uint64_t
hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

uint64_t
hash_map(uint64_t hash, const unsigned char *map, uint64_t bytes, uint64_t data_start)
{
    const uint64_t data = bytes - data_start;
    hash = hash_bytes(hash, map, (size_t)data_start);
    if (data <= PLACES * PLACE_BYTES)
        return hash_bytes(hash, map + data_start, (size_t)data);
    for (uint64_t i = 0; i < PLACES; i++) { /* the last one ends where the file does */
        uint64_t at = data_start + (data - PLACE_BYTES) / (PLACES - 1) * i;
        if (i == PLACES - 1)
            at = bytes - PLACE_BYTES;
        hash = hash_bytes(hash, map + at, PLACE_BYTES);
    }
    unsigned char size[8];
    memcpy(size, &bytes, sizeof size);
    return hash_bytes(hash, size, sizeof size);
}
