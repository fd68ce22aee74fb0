/* Safetensors files: any bytes, and any bytes as a header of the right length with some data behind it. Every tensor that
 * is reported has to lie inside the file, have the size that its shape says, and no other on top of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/safetensors.h"
#include "tests/fuzz/header_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define DATA_BYTES 256

static void
use_file(const unsigned char *bytes, size_t len)
{
    struct safetensors *f;
    struct err err = {0};
    volatile unsigned char touched = 0;
    if (!safetensors_parse(&f, "fuzz", bytes, len, &err)) {
        MUST(err.kind != ERR_NONE && err.text[0] != '\0');
        return;
    }
    for (uint64_t i = 0; i < f->n_tensors; i++) {
        const struct safetensor *t = &f->tensors[i];
        const size_t at = (size_t)(t->data - bytes), size = t->type == WEIGHT_F32 ? 4 : 2;
        MUST(t->data >= bytes && at <= len && t->bytes <= len - at);
        MUST(t->type == WEIGHT_TYPES || t->n_dims > 2 || t->rows * t->cols * size == t->bytes);
        MUST(i == 0 || strcmp(f->tensors[i - 1].name, t->name) < 0);
        if (t->bytes > 0)
            touched = (unsigned char)(touched ^ t->data[t->bytes - 1]);
    }
    safetensors_close(f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_as_file(data, size, DATA_BYTES, use_file);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return mutate_json(data, size, max_size, seed);
}
