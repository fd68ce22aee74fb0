#include "tests/rigs/synthetic_gguf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_replace.h"
#include "engine/model/files/gguf.h"
#include "kernels/openmp.h"
#include "kernels/synthetic.h"
#include "tests/rigs/gguf_bytes.h"

#define ALIGNMENT   32u
#define FIRST_BYTE  2u /* ids: <unk>, <s>, bytes, then */
#define FIRST_PIECE (FIRST_BYTE + 256u)
#define CHUNK_BYTES ((size_t)8 << 20)
#define SPACE       "\xe2\x96\x81" /* ▁, which is a space in a piece */

/* ---- the header ---- */

/* Writes word i: ▁, then i in syllables, "ba" to "zu". Words of one syllable come first, then those of two, then of
 * three; i is below 105 + 105^2 + 105^3. */
static void
put_word(struct gguf_bytes *b, uint32_t i)
{
    char text[16] = SPACE;
    uint32_t syllables = 1, count = 105;
    for (; i >= count && syllables < 3; syllables++, count *= 105)
        i -= count;
    for (size_t at = sizeof SPACE - 1; syllables > 0; syllables--, i /= 105) {
        text[at++] = "bcdfghjklmnpqrstvwxyz"[i % 105 / 5];
        text[at++] = "aeiou"[i % 5];
    }
    put_text(b, text, strlen(text));
}

static void
put_vocabulary(struct gguf_bytes *b, uint32_t vocab)
{
    enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE }; /* as in the file */
    put_key_text(b, "tokenizer.ggml.model", "llama");
    put_key_array(b, "tokenizer.ggml.tokens", GGUF_STRING, vocab);
    put_text(b, "<unk>", 5);
    put_text(b, "<s>", 3);
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        put_text(b, name, strlen(name));
    }
    put_text(b, SPACE, sizeof SPACE - 1);
    for (uint32_t id = FIRST_PIECE + 1; id < vocab; id++)
        put_word(b, id - FIRST_PIECE - 1);
    put_key_array(b, "tokenizer.ggml.scores", GGUF_F32, vocab);
    for (uint32_t id = 0; id < vocab; id++) {
        const float score = id < FIRST_PIECE ? 0 : -(float)(id - FIRST_PIECE);
        put_f32(b, score);
    }
    put_key_array(b, "tokenizer.ggml.token_type", GGUF_I32, vocab);
    for (uint32_t id = 0; id < vocab; id++)
        put_u32(b, id == 0 ? UNKNOWN : id == 1 ? CONTROL : id < FIRST_PIECE ? BYTE : NORMAL);
    put_key_u32(b, "tokenizer.ggml.unknown_token_id", 0);
    put_key_u32(b, "tokenizer.ggml.bos_token_id", 1);
    put_key_u32(b, "tokenizer.ggml.eos_token_id", UINT32_MAX); /* none */
    put_key_bool(b, "tokenizer.ggml.add_bos_token", true);
    put_key_bool(b, "tokenizer.ggml.add_eos_token", false);
    put_key_bool(b, "tokenizer.ggml.add_space_prefix", true);
}

static void
put_sizes(struct gguf_bytes *b, const struct synthetic_weights *w)
{
    const struct model_desc *d = &w->desc;
    char name[64];
    if (w->spec.exit > 0)
        snprintf(name, sizeof name, "%s synthetic %" PRIu32 ", %g", w->spec.shape->name, w->spec.exit,
                 w->spec.acceptance);
    else
        snprintf(name, sizeof name, "%s random", w->spec.shape->name);
    put_key_text(b, "general.architecture", "llama");
    put_key_text(b, "general.name", name);
    put_key_u32(b, "llama.block_count", d->n_layers);
    put_key_u32(b, "llama.context_length", w->spec.shape->ctx);
    put_key_u32(b, "llama.embedding_length", d->width);
    put_key_u32(b, "llama.feed_forward_length", d->ffn);
    put_key_u32(b, "llama.vocab_size", d->vocab);
    put_key_u32(b, "llama.attention.head_count", d->heads);
    put_key_u32(b, "llama.attention.head_count_kv", d->kv_heads);
    put_key_u32(b, "llama.attention.key_length", d->head_dim);
    put_key_u32(b, "llama.attention.value_length", d->head_dim);
    put_key_f32(b, "llama.attention.layer_norm_rms_epsilon", d->rms_eps);
    put_key_u32(b, "llama.rope.dimension_count", d->rope_dims);
    put_key_f32(b, "llama.rope.freq_base", d->rope_base);
    if (d->form.experts.n == 0)
        return;
    put_key_u32(b, "llama.expert_count", d->form.experts.n);
    put_key_u32(b, "llama.expert_used_count", d->form.experts.used);
}

static size_t
row_bytes(const struct tensor *t)
{
    return t->synthetic != NULL ? synthetic_row_bytes(t->type, t->cols) : t->cols * sizeof(float);
}

static uint64_t
padding(uint64_t bytes)
{
    return (ALIGNMENT - bytes % ALIGNMENT) % ALIGNMENT;
}

static void
put_tensors(struct gguf_bytes *b, const struct synthetic_weights *w)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct tensor *t = &w->all[i].tensor;
        const uint32_t planes = w->all[i].planes;
        put_stack(b, w->all[i].name, t->cols, t->synthetic == NULL ? 0 : t->rows, planes, gguf_type_of(t->type),
                  offset);
        offset += row_bytes(t) * (uint64_t)t->rows * planes;
        offset += padding(offset);
    }
    put_padding(b, ALIGNMENT);
}

static unsigned char *
header_of(const struct synthetic_weights *w, size_t *len)
{
    struct gguf_bytes b = {0};
    put_header(&b, 3, w->n, 0);
    put_sizes(&b, w);
    put_vocabulary(&b, w->desc.vocab);
    put_tensors(&b, w);
    if (b.failed) {
        free(b.data);
        return NULL;
    }
    put_little_endian(b.data + GGUF_N_KEYS_AT, 8, b.n_keys);
    *len = b.len;
    return b.data;
}

/* ---- the file ---- */

static bool
write_matrix(struct file_replace *f, const struct tensor *t, unsigned char *chunk, struct err *err)
{
    const size_t bytes = row_bytes(t);
    const uint32_t most = CHUNK_BYTES / bytes > t->rows ? t->rows : (uint32_t)(CHUNK_BYTES / bytes);
    for (uint32_t row = 0; row < t->rows; row += most) {
        const uint32_t n = t->rows - row < most ? t->rows - row : most;
        PARALLEL(omp parallel for schedule(static))
        for (uint32_t i = 0; i < n; i++)
            synthetic_row(t, row + i, chunk + i * bytes);
        if (!file_replace_put(f, chunk, n * bytes, err))
            return false;
    }
    return true;
}

static bool
write_tensor(struct file_replace *f, const struct synthetic_tensor *t, unsigned char *chunk, struct err *err)
{
    static const unsigned char zeros[ALIGNMENT];
    const uint64_t bytes = row_bytes(&t->tensor) * (uint64_t)t->tensor.rows * t->planes;
    bool ok = t->tensor.synthetic != NULL || file_replace_put(f, t->tensor.data, bytes, err);
    for (uint32_t i = 0; t->tensor.synthetic != NULL && i < t->planes && ok; i++) {
        const struct tensor plane = synthetic_plane(t, i);
        ok = write_matrix(f, &plane, chunk, err);
    }
    return ok && file_replace_put(f, zeros, padding(bytes), err);
}

static bool
write_tensors(struct file_replace *f, const struct synthetic_weights *w, progress_fn progress, void *user,
              struct err *err)
{
    size_t len;
    unsigned char *header = header_of(w, &len), *chunk = malloc(CHUNK_BYTES);
    bool ok = header != NULL && chunk != NULL;
    if (!ok)
        err_set(err, ERR_WORK, "%s: out of memory for its header", f->name);
    ok = ok && file_replace_put(f, header, len, err);
    for (size_t i = 0; i < w->n && ok; i++) {
        if (progress != NULL && !progress(user, (double)i / (double)w->n))
            ok = err_set(err, ERR_CANCELLED, "%s: writing it was cancelled", f->name);
        ok = ok && write_tensor(f, &w->all[i], chunk, err);
    }
    free(header);
    free(chunk);
    return ok;
}

bool
synthetic_gguf_write(const struct synthetic_weights *w, const char *path, progress_fn progress, void *user,
                     struct err *err)
{
    struct file_replace f;
    return file_replace_begin(&f, AT_FDCWD, path, 0666, err) &&
           file_replace_end(&f, write_tensors(&f, w, progress, user, err), err);
}
