/* A model too large for one file comes as NAME-00001-of-00003.gguf and so on. Each part is a GGUF file of its own;
 * metadata say which one it is (split.no, from 0), how many there are (split.count) and how many tensors all of them
 * hold together (split.tensors.count). Only the first part has the model's other metadata, and it may have no tensors. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/printable.h"
#include "engine/files/gguf.h"

#define MOST_PARTS  99999u /* what five digits can count */
#define ENDING_SIZE sizeof "-00001-of-00002.gguf"

struct split {
    uint32_t no, count;
    uint32_t tensors; /* of all parts; UINT32_MAX: it doesn't say */
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

/* The path of part `no`, made from a part's own; memory is the caller's, NULL on error. */
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
    ok = ok && gguf_open_part(out, path, err);
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

static int
compare_names(const void *a, const void *b)
{
    return slice_compare(((const struct gguf_tensor *)a)->name, ((const struct gguf_tensor *)b)->name);
}

/* Lists the parts' tensors after the first's own. */
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
    qsort(all, (size_t)n, sizeof *all, compare_names);
    for (uint64_t i = 1; i < n; i++)
        if (compare_names(&all[i - 1], &all[i]) == 0) {
            char name[80];
            return err_set(err, ERR_WORK, "%s: tensor '%s' is in two parts of the model; fetch all of them again",
                           g->path, printable_line(name, sizeof name, all[i].name.data, all[i].name.len));
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
    if (!gguf_open_part(&g, path, err))
        return false;
    bool ok = read_split(g, &s, err);
    if (ok && s.count > 1 && s.no != 0) { /* some other part was named */
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
