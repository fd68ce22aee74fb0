/* GGUF files: parses them, opens them as a model, tokenizes and detokenizes with it. Input that begins with "GGUF" is a
 * whole file. Any other is a list of edits of a small valid model, which reach more code than random bytes: 4 bytes
 * each, an offset in the metadata (24 bits, little-endian) and a value. The remaining bytes are text for the
 * tokenizer. */

#include "engine/model/files/gguf.h"
#include "engine/model/model_open.h"
#include "tests/fuzz/fuzz.h"
#include "tests/golden/tinymodel.h"

#define MOST_EDITS 8
#define TEXT_MOST  600
#define METADATA   9000 /* approximate size of that model's header and metadata */

static void
use_file(const void *bytes, size_t len, const char *text, size_t text_len)
{
    struct gguf *file;
    struct model *m;
    struct err err = {0};
    if (!gguf_parse(&file, "fuzz", bytes, len, &err)) {
        must_refuse(&err);
        return;
    }
    for (uint64_t i = 0; i < file->n_tensors; i++)
        MUST((size_t)(file->tensors[i].data - (const unsigned char *)bytes) + file->tensors[i].bytes <= len);
    for (uint64_t i = 0; i < file->n_values; i++)
        MUST((size_t)(file->values[i].at - (const unsigned char *)bytes) <= len);
    struct tokenizer *t;
    if (tokenizer_open(&t, file, &err)) {
        use_tokenizer(t, text, text_len);
        tokenizer_close(t);
    }
    if (!model_read(&m, file, &err)) { /* model_read() has closed the file */
        must_refuse(&err);
        return;
    }
    MUST(m->desc.heads % m->desc.kv_heads == 0 && m->desc.rope_dims <= m->desc.head_dim);
    const struct tensor *last = &m->desc.layers[m->desc.n_layers - 1].down;
    volatile unsigned char touched = *(const unsigned char *)last->data;
    (void)touched;
    use_tokenizer(m->tokenizer, text, text_len);
    model_close(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0) {
        use_file(data, size, "some text <s>\xff", 14);
        return 0;
    }
    const struct tinymodel options = {.n_layers = 1, .width = 32, .ffn = 32, .vocab = 320, .tied = true, .nasty = true};
    static unsigned char *small; /* made once */
    static size_t len;
    if (small == NULL)
        MUST(tinymodel_build(&options, &small, &len, NULL));
    unsigned char *bytes = malloc(len);
    MUST(bytes != NULL);
    memcpy(bytes, small, len);
    size_t used = 0;
    for (int i = 0; i < MOST_EDITS && size - used >= 4; i++, used += 4) {
        const size_t at = data[used] | (size_t)data[used + 1] << 8 | (size_t)data[used + 2] << 16;
        bytes[at % METADATA] = data[used + 3];
    }
    use_file(bytes, len, (const char *)data + used, size - used < TEXT_MOST ? size - used : TEXT_MOST);
    free(bytes);
    return 0;
}

MUTATOR(mutate_gguf(data, size, max_size, seed));
