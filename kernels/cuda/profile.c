#include "kernels/cuda/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device/layout.h"

const char *const profiled_names[PROFILED] = {
    [START] = "start",
    [NORM_ATTENTION] = "norm",
    [QKV] = "qkv",
    [FEED] = "fed kv",
    [NORM_HEADS] = "norm of heads",
    [ATTEND] = "attention",
    [OUT] = "out",
    [POST_ATTENTION] = "norm of out",
    [NORM_MLP] = "norm of mlp",
    [ROUTE] = "route",
    [GATE_UP] = "gate·up",
    [DOWN] = "down",
    [POST_MLP] = "norm of down",
    [CARRY] = "skipped",
    [SHIFT_PROBE] = "shift",
    [NORM_PROBE] = "norm of probe",
    [PROBE] = "probe",
    [PROFILED_EMBED] = "embedding",
    [PROFILED_HEAD] = "head",
    [PROFILED_DISTS] = "distributions",
    [PROFILED_DRAW] = "draws",
    [PROFILED_OVERLAP] = "overlap",
    [PROFILED_VERIFY] = "verdicts",
    [PROFILED_PREDICTIONS] = "predictions",
};

struct profile {
    FILE *file;
    uint64_t calls, zero;            /* zero: time of the first stamp */
    uint64_t from, to;               /* first and last stamp since describe_time() */
    double ns[PROFILED], waiting_ns; /* waiting: part of the steps after the mean arrival */
};

bool
profile_open(struct profile **out, struct err *err)
{
    const char *const path = getenv("SPECSCOPE_CUDA_PROFILE");
    *out = NULL;
    if (path == NULL || path[0] == '\0')
        return true;
    struct profile *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the profile of the GPU");
    t->file = fopen(path, "we");
    if (t->file == NULL) {
        free(t);
        return err_set(err, ERR_WORK, "SPECSCOPE_CUDA_PROFILE: %.160s can't be written: %s", path, strerror(errno));
    }
    fputs("call,what,rows,layer,phase,start_us,us,first_us,mean_us,last_us\n", t->file);
    *out = t;
    return true;
}

void
profile_close(struct profile *t)
{
    if (t == NULL)
        return;
    fclose(t->file);
    free(t);
}

/* ---- what is stamped ---- */

static uint64_t *
take_stamps(struct kv_cache *s, uint32_t what, uint32_t rows, size_t words)
{
    uint64_t *there = NULL;
    const struct delivery d = {.kind = DELIVER_STAMPS, .bytes = words * sizeof *there, .what = what, .rows = rows};
    if (s->backend->profile != NULL)
        there = cuda_kv_cache_result(s, d);
    if (there != NULL)
        (void)cuda_kv_cache_did(s, cudaMemsetAsync(there, 0, STAMPS_HEAD * sizeof *there, s->stream),
                                "stamping phases");
    return there;
}

uint64_t *
profile_forward(struct kv_cache *s, uint32_t rows, uint32_t layers)
{
    return take_stamps(s, START, rows, stamps_room(layers, s->blocks));
}

void
profile_begin(struct kv_cache *s, enum profiled what, uint32_t rows)
{
    s->span = take_stamps(s, what, rows, STAMPS_HEAD);
    if (s->span != NULL)
        (void)cuda_kv_cache_did(s, launch_stamp(s->span, s->stream), "stamping phases");
}

bool
profile_end(struct kv_cache *s, bool queued)
{
    return queued && (s->span == NULL || cuda_kv_cache_did(s, launch_stamp(s->span + 1, s->stream), "stamping phases"));
}

/* ---- the file ---- */

static double
since(const struct profile *t, uint64_t stamp)
{
    return (double)(int64_t)(stamp - t->zero) * 1e-3;
}

static void
note_span(struct profile *t, uint64_t from, uint64_t to)
{
    if (t->zero == 0)
        t->zero = from;
    t->from = t->from == 0 || from < t->from ? from : t->from;
    t->to = to > t->to ? to : t->to;
}

/* Computes the first, mean and last arrival at a barrier, in nanoseconds from the start of the phase. */
static void
arrivals(const uint64_t *came, uint32_t blocks, uint64_t begin, double out[3])
{
    double sum = 0;
    out[0] = INFINITY;
    out[2] = 0;
    for (uint32_t b = 0; b < blocks; b++) {
        const double ns = (double)(int64_t)(came[b] - begin);
        out[0] = ns < out[0] ? ns : out[0];
        out[2] = ns > out[2] ? ns : out[2];
        sum += ns;
    }
    out[1] = sum / blocks;
}

static void
deliver_phases(struct profile *t, const struct delivery *d, uint32_t blocks)
{
    const uint64_t *const words = d->from;
    uint64_t begin = words[STAMPED_BEGIN];
    for (uint32_t i = 0; i < words[STAMPED_PHASES]; i++) {
        const uint64_t *const phase = words + stamps_at(i, blocks);
        const uint32_t layer = (uint32_t)phase[STAMP_PLACE] / STEPS, step = (uint32_t)phase[STAMP_PLACE] % STEPS;
        const uint64_t left = phase[STAMP_LEFT];
        const double ns = (double)(int64_t)(left - begin);
        double came[3];
        arrivals(phase + STAMP_CAME, blocks, begin, came);
        note_span(t, begin, left);
        fprintf(t->file, "%" PRIu64 ",forward,%" PRIu32 ",%" PRIu32 ",%s,%.3f,%.3f,%.3f,%.3f,%.3f\n", t->calls, d->rows,
                layer, profiled_names[step], since(t, begin), ns * 1e-3, came[0] * 1e-3, came[1] * 1e-3,
                came[2] * 1e-3);
        t->ns[step] += ns;
        t->waiting_ns += ns > came[1] ? ns - came[1] : 0;
        begin = left;
    }
}

void
profile_deliver(struct kv_cache *s, const struct delivery *d)
{
    struct profile *const t = s->backend->profile;
    const uint64_t *const span = d->from;
    t->calls++;
    if (d->what == START) {
        deliver_phases(t, d, s->blocks);
        return;
    }
    note_span(t, span[0], span[1]);
    fprintf(t->file, "%" PRIu64 ",%s,%" PRIu32 ",,,%.3f,%.3f,,,\n", t->calls, profiled_names[d->what], d->rows,
            since(t, span[0]), (double)(int64_t)(span[1] - span[0]) * 1e-3);
    t->ns[d->what] += (double)(int64_t)(span[1] - span[0]);
}

/* ---- in a line ---- */

enum { NAMED = 7 }; /* number of entries listed by name; the others are summed */

bool
cuda_describe_time(struct kv_cache *s, char *text, size_t room)
{
    struct profile *const t = s->backend->profile;
    text[0] = '\0';
    if (t == NULL || t->to <= t->from)
        return false;
    double busy = 0, left;
    for (int i = 0; i < PROFILED; i++)
        busy += t->ns[i];
    const double window = (double)(t->to - t->from);
    size_t n = (size_t)snprintf(text, room, "busy %.0f%%, of it waiting %.0f%%:", 100 * busy / window,
                                100 * t->waiting_ns / busy);
    left = busy;
    for (int k = 0; k < NAMED && n < room; k++) { /* the largest of the remaining entries */
        int most = 0;
        for (int i = 1; i < PROFILED; i++)
            most = t->ns[i] > t->ns[most] ? i : most;
        if (t->ns[most] < 0.005 * busy)
            break;
        n += (size_t)snprintf(text + n, room - n, " %s %.0f%%", profiled_names[most], 100 * t->ns[most] / busy);
        left -= t->ns[most];
        t->ns[most] = 0;
    }
    if (left >= 0.005 * busy && n < room)
        snprintf(text + n, room - n, " other %.0f%%", 100 * left / busy);
    memset(t->ns, 0, sizeof t->ns);
    t->waiting_ns = 0;
    t->from = t->to = 0;
    return true;
}
