/* Safetensors files: any bytes, and any bytes as a header of the right length before some data. Every tensor that is
 * reported must be inside the file and have the size that follows from its shape. */
#include "engine/model/files/safetensors.h"
#include "tests/fuzz/fuzz.h"

#define DATA_BYTES 256

static void
use_file(const unsigned char *bytes, size_t len)
{
    struct safetensors *f;
    struct err err = {0};
    volatile unsigned char touched = 0;
    if (!safetensors_parse(&f, "fuzz", bytes, len, &err)) {
        must_refuse(&err);
        return;
    }
    for (uint64_t i = 0; i < f->n_tensors; i++) {
        const struct safetensor *t = &f->tensors[i];
        const size_t at = (size_t)(t->data - bytes), size = t->type == WEIGHT_F32 ? 4 : 2;
        MUST(t->data >= bytes && at <= len && t->bytes <= len - at);
        MUST(t->type == WEIGHT_TYPES || t->n_dims > 2 || t->rows * t->cols * size == t->bytes);
        MUST(i == 0 || strcmp(f->tensors[i - 1].name, t->name) <= 0);
        if (t->bytes > 0)
            touched = (unsigned char)(touched ^ t->data[t->bytes - 1]);
    }
    safetensors_close(f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_as_safetensors(data, size, DATA_BYTES, use_file);
    return 0;
}

MUTATOR(mutate_json(data, size, max_size, seed));
