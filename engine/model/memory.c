#include "engine/model/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "kernels/request.h"

#define PROGRAM_BYTES ((uint64_t)12 << 20) /* with its libraries */
#define TOKEN_BYTES   (uint64_t)96         /* of a vocabulary's tables, and logits of some rows */

#define STATES 5 /* of recurrent layers: a sequence's, and checkpoints */

#define PATH_SIZE 512
#define LINE_SIZE 512

#define NO_LIMIT ((uint64_t)1 << 60) /* larger values mean: no limit */

/* ---- files of the kernel ---- */

static FILE *
open_under(const char *root, const char *rest)
{
    char path[PATH_SIZE];
    const int n = snprintf(path, sizeof path, "%s%s", root, rest);
    return n < 0 || (size_t)n >= sizeof path ? NULL : fopen(path, "re");
}

static bool
parse_bytes(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && end != text && text[0] != '-';
}

/* Reads the number on the line that begins with `name` and a colon or a space; with name "", on the first line. */
static bool
read_field(const char *root, const char *rest, const char *name, uint64_t *out)
{
    char line[LINE_SIZE];
    const size_t n = strlen(name);
    FILE *f = open_under(root, rest);
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        if (n == 0 || (strncmp(line, name, n) == 0 && (line[n] == ':' || line[n] == ' ')))
            found = parse_bytes(line + n + (n > 0), out);
    if (f != NULL)
        fclose(f);
    return found;
}

/* ---- control groups ---- */

/* File names of both versions of control groups. The limit of a group without a bound is "max" in version 2 and a
 * number near 2^63 in version 1. */
static const struct cgroup_version {
    const char *mount, *limit, *usage, *cache;
} version1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
  version2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

/* Returns the bytes left in a group: its limit less the memory in use, without inactive file pages. */
static uint64_t
left_in_group(const char *root, const struct cgroup_version *v, const char *group)
{
    char rest[PATH_SIZE];
    uint64_t limit, usage, cache = 0;
    snprintf(rest, sizeof rest, "%s%s/%s", v->mount, group, v->limit);
    if (!read_field(root, rest, "", &limit) || limit >= NO_LIMIT)
        return UINT64_MAX;
    snprintf(rest, sizeof rest, "%s%s/%s", v->mount, group, v->usage);
    if (!read_field(root, rest, "", &usage))
        return UINT64_MAX;
    snprintf(rest, sizeof rest, "%s%s/memory.stat", v->mount, group);
    if (!read_field(root, rest, v->cache, &cache) || cache > usage)
        cache = 0;
    usage -= cache;
    return limit > usage ? limit - usage : 0;
}

/* Returns the least of a group and its parents. In a container the path may be valid only outside; the mount's root is
 * then the container's group. */
static uint64_t
left_in_groups(const char *root, const struct cgroup_version *v, const char *group)
{
    char path[PATH_SIZE / 2];
    uint64_t least = left_in_group(root, v, "");
    snprintf(path, sizeof path, "%s", group);
    for (char *slash; (slash = strrchr(path, '/')) != NULL; *slash = '\0') {
        if (slash[1] == '\0')
            continue;
        const uint64_t left = left_in_group(root, v, path);
        least = left < least ? left : least;
    }
    return least;
}

/* A line of /proc/self/cgroup is ID:CONTROLLERS:PATH; version 2 has the id 0 and no controllers. */
static uint64_t
left_in_all_groups(const char *root)
{
    char line[LINE_SIZE];
    uint64_t least = UINT64_MAX;
    FILE *f = open_under(root, "/proc/self/cgroup");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *controllers = strchr(line, ':'), *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
            continue;
        *controllers++ = '\0';
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        uint64_t left = UINT64_MAX;
        if (strcmp(line, "0") == 0 && controllers[0] == '\0')
            left = left_in_groups(root, &version2, path);
        else if (strcmp(controllers, "memory") == 0 || strncmp(controllers, "memory,", 7) == 0)
            left = left_in_groups(root, &version1, path);
        least = left < least ? left : least;
    }
    if (f != NULL)
        fclose(f);
    return least;
}

uint64_t
memory_available_under(const char *root)
{
    uint64_t kib, least = left_in_all_groups(root);
    if (read_field(root, "/proc/meminfo", "MemAvailable", &kib) && kib <= UINT64_MAX / 1024 && kib * 1024 < least)
        least = kib * 1024;
    return least;
}

uint64_t
memory_available(void)
{
    const uint64_t files = memory_available_under(""), call = platform_memory_available();
    return files < call ? files : call;
}

/* ---- a model's need ---- */

const char *
memory_text(char out[24], uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        u++;
    }
    snprintf(out, 24, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
    return out;
}

uint64_t
memory_need(const struct model *m, uint32_t ctx, bool exact, bool quantize)
{
    const uint64_t weights = model_weight_bytes(m, exact, quantize), kv = model_kv_bytes(m, ctx, exact);
    return kv <= UINT64_MAX - weights ? weights + kv : UINT64_MAX;
}

uint64_t
memory_of_run(const struct model *m, uint32_t ctx, bool exact)
{
    const struct model_desc *d = &m->desc;
    const uint64_t hidden = (uint64_t)kv_cache_defaults(ctx).ring * (d->n_layers + 1) * d->width * sizeof(float);
    const uint64_t states = model_state_bytes(m, STATES, kv_cache_defaults(ctx).ring);
    const uint64_t beside = PROGRAM_BYTES + d->vocab * TOKEN_BYTES + hidden + states;
    const uint64_t need = memory_need(m, ctx, exact, false);
    return need <= UINT64_MAX - beside ? need + beside : UINT64_MAX;
}

bool
memory_fits(const struct model *m, uint32_t ctx, bool exact, bool quantize, uint64_t available, uint64_t taken,
            struct err *err)
{
    char weights[24], kv[24], there[24], others[64] = "", size[24];
    const uint64_t weight_bytes = model_weight_bytes(m, exact, quantize), kv_bytes = model_kv_bytes(m, ctx, exact);
    const uint64_t left = available > taken ? available - taken : 0;
    if (weight_bytes <= left && kv_bytes <= left - weight_bytes)
        return true;
    if (taken > 0)
        snprintf(others, sizeof others, ", of which other models take %s", memory_text(size, taken));
    return err_set(err, ERR_WORK,
                   "%s: needs %s for its weights%s and %s for a context of %" PRIu32
                   ", but %s of memory are available%s; %s",
                   m->path, memory_text(weights, weight_bytes), exact ? " in F32" : "", memory_text(kv, kv_bytes), ctx,
                   memory_text(there, available), others,
                   weight_bytes < left ? "lower -c" : "take a smaller or more quantised model");
}
