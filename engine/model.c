#include "engine/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf.h"
#include "engine/llama.h"
#include "engine/tokenizer.h"
#include "engine/utf8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weights are used as they lie in the file: little-endian");

#define WEIGHT_ALIGNMENT 32u  /* what backends may count on */
#define HASH_PLACES      256u /* of the tensor data, evenly spaced: opening a large file must not read all of it */
#define HASH_PLACE_BYTES 64u

/* How an architecture lays out RoPE's pairs in GGUF: converters permute Llama's rows so that pairs are adjacent. */
static const struct architecture {
    const char *name;
    enum rope_layout rope;
    bool (*read)(struct model *, const struct gguf *, enum rope_layout, struct err *);
} architectures[] = {
    {"llama", ROPE_ADJACENT, llama_read},
};

#define N_ARCHITECTURES (sizeof architectures / sizeof architectures[0])

static bool
read_architecture(struct model *m, struct err *err)
{
    struct gguf_string arch;
    if (!gguf_get_string(m->file, "general.architecture", &arch, err))
        return false;
    if (arch.len == 0)
        return err_set(err, ERR_WORK,
                       "%s: does not say what it is (metadata 'general.architecture'); convert the model again",
                       m->path);
    utf8_printable(m->arch, sizeof m->arch, arch.data, arch.len);
    const struct architecture *known = NULL;
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (strlen(architectures[i].name) == arch.len && memcmp(architectures[i].name, arch.data, arch.len) == 0)
            known = &architectures[i];
    if (known == NULL)
        return err_set(err, ERR_WORK, "%s: architecture '%s' is not supported; only 'llama' is", m->path, m->arch);
    if (m->file->alignment % WEIGHT_ALIGNMENT != 0)
        return err_set(err, ERR_WORK,
                       "%s: its tensors are aligned to %" PRIu64 " bytes; %u are needed, convert the model again",
                       m->path, m->file->alignment, WEIGHT_ALIGNMENT);
    if (!tokenizer_open(&m->tokenizer, m->file, err))
        return false;
    m->desc.vocab = tokenizer_size(m->tokenizer);
    return known->read(m, m->file, known->rope, err);
}

/* general.name, or the file's name without folder and ending. */
static bool
read_name(struct model *m, struct err *err)
{
    struct gguf_string name;
    if (!gguf_get_string(m->file, "general.name", &name, err))
        return false;
    if (name.len == 0) {
        const char *slash = strrchr(m->path, '/');
        name.data = slash != NULL ? slash + 1 : m->path;
        name.len = strlen(name.data);
        if (name.len > 5 && strcmp(name.data + name.len - 5, ".gguf") == 0)
            name.len -= 5;
    }
    utf8_printable(m->name, sizeof m->name, name.data, name.len);
    return true;
}

/* "Q8_0, F32": the type of most parameters first. */
static void
name_types(struct model *m)
{
    static const char *const names[WEIGHT_TYPES] = {
        [WEIGHT_F32] = "F32", [WEIGHT_F16] = "F16", [WEIGHT_BF16] = "BF16", [WEIGHT_Q8_0] = "Q8_0"};
    uint64_t left[WEIGHT_TYPES];
    memcpy(left, m->parameters_of, sizeof left);
    size_t used = 0;
    for (int i = 0; i < WEIGHT_TYPES; i++) {
        int most = 0;
        for (int t = 1; t < WEIGHT_TYPES; t++)
            if (left[t] > left[most])
                most = t;
        if (left[most] == 0)
            break;
        left[most] = 0;
        used += (size_t)snprintf(m->types + used, sizeof m->types - used, "%s%s", used > 0 ? ", " : "", names[most]);
    }
}

static uint64_t
fnv1a(uint64_t h, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

static uint64_t
hash_file(const struct gguf *g)
{
    uint64_t start = g->file_bytes; /* of the tensor data */
    for (uint64_t i = 0; i < g->n_tensors; i++)
        if ((uint64_t)(g->tensors[i].data - g->map) < start)
            start = (uint64_t)(g->tensors[i].data - g->map);
    uint64_t h = fnv1a(0xcbf29ce484222325u, g->map, (size_t)start);
    const uint64_t data = g->file_bytes - start;
    if (data <= HASH_PLACES * HASH_PLACE_BYTES)
        return fnv1a(h, g->map + start, (size_t)data);
    for (uint64_t i = 0; i < HASH_PLACES; i++) { /* the last one ends where the file does */
        uint64_t at = start + (data - HASH_PLACE_BYTES) / (HASH_PLACES - 1) * i;
        if (i == HASH_PLACES - 1)
            at = g->file_bytes - HASH_PLACE_BYTES;
        h = fnv1a(h, g->map + at, HASH_PLACE_BYTES);
    }
    unsigned char size[8];
    memcpy(size, &g->file_bytes, sizeof size);
    return fnv1a(h, size, sizeof size);
}

bool
model_read(struct model **out, struct gguf *file, struct err *err)
{
    *out = NULL;
    struct model *m = calloc(1, sizeof *m);
    if (m == NULL) {
        err_set(err, ERR_WORK, "%s: out of memory", file->path);
        gguf_close(file);
        return false;
    }
    m->file = file;
    m->path = strdup(file->path);
    m->file_bytes = file->file_bytes;
    bool ok = m->path != NULL;
    if (!ok)
        err_set(err, ERR_WORK, "%s: out of memory", file->path);
    if (!ok || !read_architecture(m, err) || !read_name(m, err)) {
        model_close(m);
        return false;
    }
    name_types(m);
    m->hash = hash_file(file);
    *out = m;
    return true;
}

bool
model_open(struct model **out, const char *path, struct err *err)
{
    *out = NULL;
    struct gguf *file;
    return gguf_open(&file, path, err) && model_read(out, file, err);
}

void
model_close(struct model *m)
{
    if (m == NULL)
        return;
    tokenizer_close(m->tokenizer);
    free((void *)m->desc.layers);
    gguf_close(m->file);
    free(m->path);
    free(m);
}

uint64_t
model_kv_bytes(const struct model *m, uint32_t ctx, bool exact)
{
    const struct model_desc *d = &m->desc;
    return 2 * (uint64_t)d->n_layers * d->kv_heads * d->head_dim * ctx * (exact ? sizeof(float) : sizeof(uint16_t));
}
