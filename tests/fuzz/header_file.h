/* Bytes tried as a safetensors file twice: as they are, and as a header of the right length with some data behind it. */
#ifndef TESTS_FUZZ_HEADER_FILE_H
#define TESTS_FUZZ_HEADER_FILE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/little_endian.h"

static inline void
try_as_file(const uint8_t *data, size_t size, size_t behind, void (*use_file)(const unsigned char *, size_t))
{
    use_file(data, size);
    unsigned char *bytes = malloc(8 + size + behind);
    if (bytes == NULL)
        return;
    put_little_endian(bytes, 8, size);
    if (size > 0)
        memcpy(bytes + 8, data, size);
    memset(bytes + 8 + size, 0x3c, behind);
    use_file(bytes, 8 + size + behind);
    free(bytes);
}

#endif
