/* The format of a GGUF file is
 *
 *   "GGUF", u32 version, u64 number of tensors, u64 number of metadata values
 *   metadata: string key, u32 type, value       (string: u64 length, bytes; array: u32 element type, u64 count, …)
 *   tensors:  string name, u32 n, u64 dims[n], u32 type, u64 offset into the data
 *   padding to general.alignment (32 if missing), then the tensors' data, each at a multiple of the alignment
 *
 * all little-endian. The parser reads the file once, front to back, with a cursor that cannot pass the end. It compares
 * each count with the number of bytes left before it allocates memory for that many entries. After parsing, every value
 * and every tensor is inside the file, so the look-ups need no checks. */
#include "engine/model/files/gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/little_endian.h"
#include "base/utf8.h"
#include "engine/model/files/safetensors.h"

#define DEFAULT_ALIGNMENT 32u
#define LARGEST_ALIGNMENT (1u << 20)
#define SMALLEST_VALUE    (8u + 4u + 1u)           /* empty key, type, a byte */
#define SMALLEST_TENSOR   (8u + 4u + 8u + 4u + 8u) /* empty name, one dimension, type, offset */
#define NAME_SHOWN        80                       /* bytes of a key or a name in an error message */

#define DAMAGED "; the file is damaged or was cut short, fetch it again"

struct cursor {
    const struct gguf *g;
    size_t at, len;
    struct err *err;
};

static const uint8_t value_size[GGUF_TYPES] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8, /* strings and arrays: 0 */
};

static const char *
shown(char out[NAME_SHOWN], struct slice name)
{
    return printable_line(out, NAME_SHOWN, name.data, name.len);
}

static bool
read_uint(struct cursor *c, size_t n, uint64_t *out, const char *what)
{
    if (c->len - c->at < n)
        return err_set(c->err, ERR_WORK, "%s: ends at byte %zu, in the middle of %s" DAMAGED, c->g->path, c->len, what);
    *out = little_endian(c->g->map + c->at, n);
    c->at += n;
    return true;
}

static bool
read_u32(struct cursor *c, uint32_t *out, const char *what)
{
    uint64_t v = 0;
    bool ok = read_uint(c, 4, &v, what);
    *out = (uint32_t)v;
    return ok;
}

static bool
read_string(struct cursor *c, struct slice *out, const char *what)
{
    size_t start = c->at;
    uint64_t n = 0;
    if (!read_uint(c, 8, &n, what))
        return false;
    if (n > c->len - c->at)
        return err_set(c->err, ERR_WORK,
                       "%s: %s at byte %zu claims %" PRIu64 " bytes, but the file has %zu more" DAMAGED, c->g->path,
                       what, start, n, c->len - c->at);
    *out = (struct slice){(const char *)c->g->map + c->at, (size_t)n};
    c->at += (size_t)n;
    return true;
}

/* ---- metadata ---- */

static bool
check_bools(const struct cursor *c, const struct gguf_value *v, uint64_t n)
{
    char key[NAME_SHOWN];
    for (uint64_t i = 0; i < n; i++)
        if (v->at[i] > 1)
            return err_set(c->err, ERR_WORK, "%s: metadata '%s' holds a truth value that is %u, not 0 or 1" DAMAGED,
                           c->g->path, shown(key, v->key), (unsigned)v->at[i]);
    return true;
}

static bool
skip_array(struct cursor *c, struct gguf_value *v)
{
    char key[NAME_SHOWN];
    uint32_t element = 0;
    if (!read_u32(c, &element, "an array's type") || !read_uint(c, 8, &v->count, "an array's length"))
        return false;
    if (element == GGUF_ARRAY)
        return err_set(c->err, ERR_WORK, "%s: metadata '%s' is an array of arrays, which no model needs", c->g->path,
                       shown(key, v->key));
    if (element >= GGUF_TYPES)
        return err_set(c->err, ERR_WORK, "%s: metadata '%s' is an array of the unknown type %" PRIu32 DAMAGED,
                       c->g->path, shown(key, v->key), element);
    v->element = (enum gguf_type)element;
    v->at = c->g->map + c->at;
    const size_t smallest = element == GGUF_STRING ? 8 : value_size[element];
    if (v->count > (c->len - c->at) / smallest)
        return err_set(c->err, ERR_WORK,
                       "%s: metadata '%s' claims %" PRIu64 " elements, more than the %zu bytes left can hold" DAMAGED,
                       c->g->path, shown(key, v->key), v->count, c->len - c->at);
    if (element == GGUF_STRING) {
        struct slice ignored;
        for (uint64_t i = 0; i < v->count; i++)
            if (!read_string(c, &ignored, "a string in an array"))
                return false;
        return true;
    }
    c->at += (size_t)v->count * value_size[element];
    return element != GGUF_BOOL || check_bools(c, v, v->count);
}

static bool
read_value(struct cursor *c, struct gguf_value *v)
{
    char key[NAME_SHOWN];
    uint32_t type = 0;
    uint64_t scalar;
    struct slice text;
    if (!read_string(c, &v->key, "a metadata key") || !read_u32(c, &type, "a metadata value's type"))
        return false;
    if (type >= GGUF_TYPES)
        return err_set(c->err, ERR_WORK, "%s: metadata '%s' has the unknown type %" PRIu32 DAMAGED, c->g->path,
                       shown(key, v->key), type);
    v->type = (enum gguf_type)type;
    v->at = c->g->map + c->at;
    if (type == GGUF_ARRAY)
        return skip_array(c, v);
    if (type == GGUF_STRING)
        return read_string(c, &text, "a metadata string");
    return read_uint(c, value_size[type], &scalar, "a metadata value") && (type != GGUF_BOOL || check_bools(c, v, 1));
}

static bool
read_values(struct cursor *c, struct gguf *g)
{
    if (g->n_values > (c->len - c->at) / SMALLEST_VALUE)
        return err_set(c->err, ERR_WORK,
                       "%s: claims %" PRIu64 " metadata values, more than its %zu bytes can hold" DAMAGED, g->path,
                       g->n_values, c->len);
    g->values = calloc((size_t)g->n_values + 1, sizeof *g->values);
    bool ok = g->values != NULL ||
              err_set(c->err, ERR_WORK, "%s: out of memory for %" PRIu64 " metadata values", g->path, g->n_values);
    for (uint64_t i = 0; ok && i < g->n_values; i++)
        ok = read_value(c, &g->values[i]);
    return ok;
}

/* ---- tensors ---- */

static bool
bad_tensor(const struct cursor *c, const struct gguf_tensor *t, const char *why)
{
    char name[NAME_SHOWN];
    return err_set(c->err, ERR_WORK, "%s: tensor '%s' %s" DAMAGED, c->g->path, shown(name, t->name), why);
}

static bool
read_tensor(struct cursor *c, struct gguf_tensor *t, uint64_t *offset)
{
    if (!read_string(c, &t->name, "a tensor's name") || !read_u32(c, &t->n_dims, "a tensor's shape"))
        return false;
    if (t->n_dims < 1 || t->n_dims > 4)
        return bad_tensor(c, t, "does not have 1 to 4 dimensions");
    uint64_t elements = 1;
    for (uint32_t i = 0; i < 4; i++) {
        t->dims[i] = 1;
        if (i < t->n_dims && !read_uint(c, 8, &t->dims[i], "a tensor's shape"))
            return false;
        if (t->dims[i] == 0 || t->dims[i] > (uint64_t)INT64_MAX / elements)
            return bad_tensor(c, t, "has an impossible dimension");
        elements *= t->dims[i];
    }
    if (!read_u32(c, &t->type, "a tensor's type") || !read_uint(c, 8, offset, "a tensor's offset"))
        return false;
    struct gguf_type_size size;
    if (!gguf_type_size(t->type, &size))
        return true; /* an unknown type is an error only if the tensor is used */
    if (t->dims[0] % size.block != 0)
        return bad_tensor(c, t, "has rows that are not whole blocks of its type");
    if (elements / size.block > UINT64_MAX / size.bytes)
        return bad_tensor(c, t, "is larger than any file");
    t->bytes = elements / size.block * size.bytes;
    return true;
}

/* Converts an offset from data_start to a pointer into the file. Fails if the tensor is misaligned or outside. */
static bool
place_tensor(const struct cursor *c, struct gguf_tensor *t, uint64_t offset, uint64_t data_start)
{
    const uint64_t room = data_start > c->len ? 0 : c->len - data_start;
    if ((offset & (c->g->alignment - 1)) != 0)
        return bad_tensor(c, t, "is not aligned");
    if (offset > room || t->bytes > room - offset)
        return bad_tensor(c, t, "is not in the file");
    t->data = c->g->map + data_start + offset;
    return true;
}

static bool
read_tensors(struct cursor *c, struct gguf *g)
{
    if (g->n_tensors > (c->len - c->at) / SMALLEST_TENSOR)
        return err_set(c->err, ERR_WORK, "%s: claims %" PRIu64 " tensors, more than its %zu bytes can hold" DAMAGED,
                       g->path, g->n_tensors, c->len);
    const size_t n = (size_t)g->n_tensors;
    g->tensors = calloc(n + 1, sizeof *g->tensors);
    uint64_t *offsets = calloc(n + 1, sizeof *offsets);
    bool ok = (g->tensors != NULL && offsets != NULL) ||
              err_set(c->err, ERR_WORK, "%s: out of memory for %zu tensors", g->path, n);
    for (size_t i = 0; i < n && ok; i++)
        ok = read_tensor(c, &g->tensors[i], &offsets[i]);
    const uint64_t data_start = (c->at + g->alignment - 1) & ~(g->alignment - 1); /* the alignment is a power of two */
    g->data_start = data_start < c->len ? data_start : c->len;
    for (size_t i = 0; i < n && ok; i++)
        ok = place_tensor(c, &g->tensors[i], offsets[i], data_start);
    free(offsets);
    return ok;
}

/* ---- the whole file ---- */

static bool
read_alignment(struct gguf *g, struct err *err)
{
    uint32_t alignment;
    if (!gguf_get_u32(g, "general.alignment", DEFAULT_ALIGNMENT, &alignment, err))
        return false;
    if (alignment < 8 || alignment > LARGEST_ALIGNMENT || (alignment & (alignment - 1)) != 0)
        return err_set(err, ERR_WORK, "%s: general.alignment is %" PRIu32 ", not a power of two from 8 to %u" DAMAGED,
                       g->path, alignment, LARGEST_ALIGNMENT);
    g->alignment = alignment;
    return true;
}

static bool
parse(struct gguf *g, struct err *err)
{
    struct cursor c = {.g = g, .len = (size_t)g->file_bytes, .err = err};
    if (c.len < 4 || memcmp(g->map, "GGUF", 4) != 0)
        return lfs_pointer(g->path, g->map, c.len, err)
                   ? false
                   : err_set(err, ERR_WORK, "%s: is not a GGUF file (it does not begin with \"GGUF\")", g->path);
    c.at = 4;
    if (!read_u32(&c, &g->version, "the header"))
        return false;
    if (g->version != 0 && (g->version & 0xffff) == 0)
        return err_set(err, ERR_WORK, "%s: is a big-endian GGUF file; convert it to little-endian", g->path);
    if (g->version != 2 && g->version != 3)
        return err_set(err, ERR_WORK, "%s: is GGUF version %" PRIu32 "; this program reads versions 2 and 3", g->path,
                       g->version);
    return read_uint(&c, 8, &g->n_tensors, "the header") && read_uint(&c, 8, &g->n_values, "the header") &&
           read_values(&c, g) && read_alignment(g, err) && read_tensors(&c, g);
}

bool
gguf_parse(struct gguf **out, const char *path, const void *bytes, size_t len, struct err *err)
{
    *out = NULL;
    char *copy;
    struct gguf *g = file_struct(sizeof *g, path, &copy, err);
    if (g == NULL)
        return false;
    g->path = copy;
    g->map = bytes;
    g->file_bytes = len;
    g->mapped = bytes == NULL && file_map(path, "give the path of a .gguf file", &g->map, &g->file_bytes, err);
    if ((bytes == NULL && !g->mapped) || !parse(g, err)) {
        gguf_close(g);
        return false;
    }
    *out = g;
    return true;
}

void
gguf_close(struct gguf *g)
{
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->n_parts; i++)
        gguf_close(g->parts[i]);
    free(g->parts);
    if (g->mapped)
        file_unmap(g->map, g->file_bytes);
    free(g->values);
    free(g->tensors);
    free(g->path);
    free(g);
}

/* A model too large for one file is split into NAME-00001-of-00003.gguf and so on. Each part is a complete GGUF file.
 * Its metadata contain the part's number (split.no, from 0), the number of parts (split.count) and the number of
 * tensors in all parts (split.tensors.count). Only the first part has the model's other metadata, and it may have no
 * tensors. */

#define MOST_PARTS  99999u /* the file name has five digits */
#define ENDING_SIZE sizeof "-00001-of-00002.gguf"

struct split {
    uint32_t no, count;
    uint32_t tensors; /* of all parts; UINT32_MAX if not in the metadata */
};

static bool
read_split(const struct gguf *g, struct split *s, struct err *err)
{
    if (!gguf_get_u32(g, "split.count", 1, &s->count, err) || !gguf_get_u32(g, "split.no", 0, &s->no, err) ||
        !gguf_get_u32(g, "split.tensors.count", UINT32_MAX, &s->tensors, err))
        return false;
    if (s->count > MOST_PARTS || (s->count > 1 && s->no >= s->count))
        return err_set(err, ERR_WORK,
                       "%s: says that it is part %" PRIu64 " of %" PRIu32 "; the file is damaged, fetch it again",
                       g->path, (uint64_t)s->no + 1, s->count);
    return true;
}

static void
write_ending(char out[ENDING_SIZE], uint32_t no, uint32_t count)
{
    snprintf(out, ENDING_SIZE, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", (no + 1) % (MOST_PARTS + 1),
             count % (MOST_PARTS + 1));
}

/* Derives the path of part `no` from the path of the open part. The caller frees it. NULL on error. */
static char *
part_path(const struct gguf *g, const struct split *s, uint32_t no, struct err *err)
{
    char ending[ENDING_SIZE];
    const size_t n = strlen(g->path), stem = n - (ENDING_SIZE - 1);
    write_ending(ending, s->no, s->count);
    if (n < ENDING_SIZE - 1 || strcmp(g->path + stem, ending) != 0) {
        err_set(err, ERR_WORK, "%s: is part %" PRIu32 " of %" PRIu32 ", so its name should end in %s; rename the parts",
                g->path, s->no + 1, s->count, ending);
        return NULL;
    }
    char *path = strdup(g->path);
    if (path == NULL) {
        err_set(err, ERR_WORK, "%s: out of memory", g->path);
        return NULL;
    }
    write_ending(path + stem, no, s->count);
    return path;
}

static bool
open_part(struct gguf **out, const struct gguf *g, const struct split *s, uint32_t no, struct err *err)
{
    struct split own = {0};
    char *path = part_path(g, s, no, err);
    if (path == NULL)
        return false;
    bool ok = access(path, F_OK) == 0 || errno != ENOENT;
    if (!ok)
        err_set(err, ERR_WORK, "%s: part %" PRIu32 " of %" PRIu32 " is missing; fetch it into the same folder", path,
                no + 1, s->count);
    ok = ok && gguf_parse(out, path, NULL, 0, err);
    ok = ok && read_split(*out, &own, err);
    if (ok && own.no == no && own.count == s->count) {
        free(path);
        return true;
    }
    if (ok)
        err_set(err, ERR_WORK, "%s: says that it is part %" PRIu32 " of %" PRIu32 ", not %" PRIu32 " of %" PRIu32, path,
                own.no + 1, own.count, no + 1, s->count);
    gguf_close(*out);
    *out = NULL;
    free(path);
    return false;
}

/* Adds the other parts' tensors to g->tensors. */
static bool
list_tensors(struct gguf *g, const struct split *s, struct err *err)
{
    uint64_t n = g->n_tensors;
    for (uint32_t i = 0; i < g->n_parts; i++)
        n += g->parts[i]->n_tensors;
    if (s->tensors != UINT32_MAX && n != s->tensors)
        return err_set(err, ERR_WORK,
                       "%s: its %" PRIu32 " parts should have %" PRIu32 " tensors, but have %" PRIu64
                       "; fetch all of them again",
                       g->path, s->count, s->tensors, n);
    struct gguf_tensor *all = realloc(g->tensors, ((size_t)n + 1) * sizeof *all);
    if (all == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for %" PRIu64 " tensors", g->path, n);
    g->tensors = all;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gguf *part = g->parts[i];
        memcpy(all + g->n_tensors, part->tensors, (size_t)part->n_tensors * sizeof *all);
        g->n_tensors += part->n_tensors;
        if (part->alignment < g->alignment)
            g->alignment = part->alignment;
    }
    return true;
}

static bool
join_parts(struct gguf *g, const struct split *s, struct err *err)
{
    g->parts = calloc(s->count, sizeof(struct gguf *));
    if (g->parts == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", g->path);
    for (uint32_t no = 1; no < s->count; no++) {
        if (!open_part(&g->parts[g->n_parts], g, s, no, err))
            return false;
        g->n_parts++;
    }
    return list_tensors(g, s, err);
}

bool
gguf_open(struct gguf **out, const char *path, struct err *err)
{
    struct split s = {0};
    struct gguf *g;
    *out = NULL;
    if (!gguf_parse(&g, path, NULL, 0, err))
        return false;
    bool ok = read_split(g, &s, err);
    if (ok && s.count > 1 && s.no != 0) { /* the path is not the first part's */
        struct gguf *first = NULL;
        ok = open_part(&first, g, &s, 0, err);
        gguf_close(g);
        g = first;
        ok = ok && read_split(g, &s, err);
    }
    ok = ok && (s.count <= 1 || join_parts(g, &s, err));
    if (!ok) {
        gguf_close(g);
        return false;
    }
    *out = g;
    return true;
}
