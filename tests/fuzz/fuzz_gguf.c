/* GGUF files: parse, open as a model, tokenize and detokenize with it. Input that begins with "GGUF" is a whole file;
 * any other is a list of edits on a small valid model, which leads deeper than random bytes do: 4 bytes each, a
 * place in the metadata (24 bits, little-endian) and a value. What is left over is text for the tokenizer. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/files/gguf.h"
#include "engine/synthetic/model_open.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/golden/tinymodel.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define MOST_EDITS 8
#define TEXT_MOST  600
#define METADATA   9000 /* about what precedes the tensors' data in that model */

static void
use_tokenizer(const struct tokenizer *t, const char *text, size_t len)
{
    for (int special = 0; special < 2; special++) {
        token_t *ids;
        size_t n, n_back;
        char *back, out[16 + 3];
        struct err err = {0};
        if (!tokenizer_encode(t, text, len, (struct tokenize_options){.bos = true, .special = special != 0}, &ids, &n,
                              &err))
            return;
        struct utf8_stream stream = {0};
        for (size_t i = 0; i < n; i++) {
            MUST(ids[i] >= 0 && (uint32_t)ids[i] < tokenizer_size(t));
            struct slice piece = tokenizer_bytes(t, ids[i], true);
            utf8_stream_feed(&stream, piece.data, piece.len < 5 ? piece.len : 5, out);
        }
        if (tokenizer_decode(t, ids, n, &back, &n_back, &err))
            free(back);
        free(ids);
    }
    char shown[40];
    printable_line(shown, sizeof shown, text, len);
    MUST(strlen(shown) < sizeof shown);
}

static void
use_file(const void *bytes, size_t len, const char *text, size_t text_len)
{
    struct gguf *file;
    struct model *m;
    struct err err = {0};
    if (!gguf_parse(&file, "fuzz", bytes, len, &err)) {
        MUST(err.kind != ERR_NONE && err.text[0] != '\0');
        return;
    }
    struct tokenizer *t;
    if (tokenizer_open(&t, file, &err)) {
        use_tokenizer(t, text, text_len);
        tokenizer_close(t);
    }
    if (!model_read(&m, file, &err)) { /* the file is closed by now */
        MUST(err.kind != ERR_NONE && err.text[0] != '\0');
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

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return mutate_gguf(data, size, max_size, seed);
}
