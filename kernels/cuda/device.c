/* One GPU: its selection, requirements, memory and errors. */
#include "kernels/cuda/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/plural.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/switches.h"
#include "kernels/cuda/profile.h"

/* ---- errors ---- */

/* Failures of one request, after which the device still works. All other failures may leave it unusable for this
 * process (CUDA's "sticky" errors), and are treated as if they did. */
static bool
is_passing(cudaError_t code)
{
    static const cudaError_t passing[] = {
        cudaErrorMemoryAllocation,       cudaErrorInvalidValue,
        cudaErrorInvalidConfiguration,   cudaErrorInvalidDeviceFunction,
        cudaErrorInvalidDevice,          cudaErrorInvalidResourceHandle,
        cudaErrorLaunchOutOfResources,   cudaErrorCooperativeLaunchTooLarge,
        cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion,
        cudaErrorNotSupported,
    };
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (code == passing[i])
            return true;
    return false;
}

/* Describes where blocks wait and names one that did not arrive; false if none waits. */
static bool
waiting_blocks(const struct backend *b, char *where, size_t room)
{
    uint32_t place = 0, missing = 0, first = 0;
    for (uint32_t i = 0; b->notes != NULL && i < b->blocks; i++) {
        const uint32_t note = ((const volatile uint32_t *)b->notes)[i];
        place = note > place ? note : place;
        if (note == 0 && missing++ == 0)
            first = i;
    }
    if (place == 0)
        return false;
    char who[64] = "all blocks arrived, but none noticed it";
    if (missing > 0)
        snprintf(who, sizeof who, "block %" PRIu32 "%s never arrived", first, missing > 1 ? " and others" : "");
    snprintf(where, room, "after step %s of layer %" PRIu32 " (%s; %" PRIu32 " of %" PRIu32 " waited)",
             profiled_names[place % STEPS], place / STEPS, who, b->blocks - missing, b->blocks);
    return true;
}

bool
cuda_did(struct backend *b, cudaError_t code, const char *doing, struct err *err)
{
    if (code == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* clears the error, which the next launch would otherwise report again */
    if (b->lost)              /* each later request fails with the same line */
        return err_copy(err, &b->why);
    const bool passing = is_passing(code);
    const char *name = cudaGetErrorName(code);
    struct err why = {.kind = ERR_NONE};
    char where[160];
    if (code == cudaErrorMemoryAllocation)
        err_set(&why, ERR_WORK, "GPU %d (%s) has too little memory for %s; use a smaller --ctx, or --backend cpu",
                b->device, b->name, doing);
    else if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion)
        err_set(&why, ERR_WORK,
                "the CUDA plug-in has no code for GPU %d (%s) and this driver; rebuild it with `make cuda` here, or "
                "use --backend cpu",
                b->device, b->name);
    else if (passing)
        err_set(&why, ERR_WORK, "GPU %d (%s) refused a request while %s (%s); --backend cpu does without it", b->device,
                b->name, doing, name);
    else if (waiting_blocks(b, where, sizeof where))
        err_set(&why, ERR_WORK,
                "GPU %d (%s) hung while %s, %s, and accepts no more work; start again, and see nvidia-smi if it "
                "happens again",
                b->device, b->name, doing, where);
    else
        err_set(&why, ERR_WORK,
                "GPU %d (%s) failed while %s (%s) and accepts no more work; start again, and see nvidia-smi if it "
                "happens again",
                b->device, b->name, doing, name);
    if (!passing) {
        b->lost = true;
        b->why = why;
    }
    return err_copy(err, &why);
}

bool
device_here(struct backend *b, struct err *err)
{
    return b->lost ? err_copy(err, &b->why) : cuda_did(b, cudaSetDevice(b->device), "selecting it", err);
}

/* ---- choosing a GPU ---- */

#define CAPABILITY 80            /* 8.0, Ampere: mma of bf16, asynchronous barriers; the plug-in has code from this */
                                 /* version on */
#define MOST_WINDOW (128u << 10) /* per block: more than memory delivers while blocks wait */
#ifndef CUDA_CODE                /* the GPUs that the kernels were compiled for, from the Makefile */
#error "CUDA_CODE is not defined"
#endif

/* Counts the GPUs; fails with the reason if there is none. */
static bool
count_devices(int *n, struct err *err)
{
    int driver = 0, runtime = 0;
    *n = 0;
    const cudaError_t code = cudaGetDeviceCount(n);
    if (code == cudaSuccess && *n > 0)
        return true;
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        driver = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        runtime = CUDART_VERSION;
    if (driver == 0 && (code == cudaErrorInsufficientDriver || code == cudaErrorNoDevice))
        return err_set(err, ERR_WORK,
                       "backend cuda: no NVIDIA driver is installed here; install one, or use --backend cpu");
    if (code == cudaErrorInsufficientDriver)
        return err_set(err, ERR_WORK,
                       "backend cuda: the NVIDIA driver is for CUDA %d.%d, this plug-in needs %d.%d; update the "
                       "driver, or use --backend cpu",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (code == cudaSuccess || code == cudaErrorNoDevice)
        return err_set(err, ERR_WORK, "backend cuda: there is no NVIDIA GPU here; use --backend cpu");
    return err_set(err, ERR_WORK,
                   "backend cuda: the NVIDIA driver does not start (%s: %.120s); see nvidia-smi, or use --backend cpu",
                   cudaGetErrorName(code), cudaGetErrorString(code));
}

bool
device_has_code(const char *codes, int major, int minor)
{
    for (const char *at = codes; (at = strstr(at, "sm_")) != NULL;) {
        at += strlen("sm_");
        const long code = strtol(at, NULL, 10); /* what a build gave; else 0, which no GPU has */
        if (code / 10 == major && code % 10 <= minor)
            return true;
    }
    return false;
}

static bool
suits(struct backend *b, int device, struct err *err)
{
    struct cudaDeviceProp p;
    b->device = device;
    snprintf(b->name, sizeof b->name, "not yet looked at");
    if (!cuda_did(b, cudaGetDeviceProperties(&p, device), "asking what it can do", err))
        return false;
    snprintf(b->name, sizeof b->name, "%.60s", p.name);
    if (p.major * 10 + p.minor < CAPABILITY)
        return err_set(err, ERR_WORK,
                       "backend cuda: GPU %d (%s) has compute capability %d.%d, at least %d.%d is needed; choose "
                       "another with --gpu, or use --backend cpu",
                       device, b->name, p.major, p.minor, CAPABILITY / 10, CAPABILITY % 10);
    snprintf(b->text, sizeof b->text, "%s (sm_%d%d)%s", b->name, p.major, p.minor, b->exact ? ", exact" : "");
    if (!device_has_code(CUDA_CODE, p.major, p.minor))
        snprintf(b->note, sizeof b->note,
                 "the plug-in has no machine code for this GPU (sm_%d%d): the driver translates it, a minute once; "
                 "make cuda CUDA_CODE=sm_%d%d builds it in",
                 p.major, p.minor, p.major, p.minor);
    return true;
}

static bool
choose(struct backend *b, int wanted, int n, struct err *err)
{
    if (wanted >= n)
        return err_set(err, ERR_USAGE, "--gpu %d: there %s %d GPU%s here, numbered from 0", wanted,
                       n == 1 ? "is" : "are", n, plural((uint64_t)n));
    if (wanted >= 0)
        return suits(b, wanted, err);
    struct err first = {.kind = ERR_NONE};
    for (int i = 0; i < n && !b->lost; i++)
        if (suits(b, i, i == 0 ? &first : NULL))
            return true;
    return err_copy(err, &first);
}

bool
device_open(struct backend **out, const struct backend_options *options, struct err *err)
{
    int n;
    *out = NULL;
    if (!count_devices(&n, err))
        return false;
    struct backend *b = calloc(1, sizeof *b);
    if (b == NULL)
        return err_set(err, ERR_WORK, "not enough memory to start");
    b->exact = options->exact;
    b->threads = options->threads > 0 ? options->threads : 1;
    b->sync = switched_to_sync();
    if (!choose(b, options->gpu, n, err) || !profile_open(&b->profile, err)) {
        device_close(b);
        return false;
    }
    *out = b;
    return true;
}

bool
device_prepare(struct backend *b, struct err *err)
{
    static const char doing[] = "preparing its kernels";
    int l2 = 0;
    void *notes = NULL;
    if (b->notes != NULL)
        return true;
    if (!device_here(b, err) || !cuda_did(b, forward_prepare(b->device, &b->blocks), doing, err) ||
        !cuda_did(b, head_prepare(b->device), doing, err) ||
        !cuda_did(b, cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, b->device), "asking what it can do", err))
        return false;
    b->blocks = switched_blocks(b->blocks);
    /* The prefetch window: two windows of all blocks, and the data read between them, must fit into L2 at once. A small
     * L2, such as a 3090's 6 MB for 82 multiprocessors, needs a small window. */
    const uint32_t share = (uint32_t)(l2 > 0 ? l2 : 0) / 4 / b->blocks;
    b->window = !switched_to_prefetch() ? 0 : (share < MOST_WINDOW ? share : MOST_WINDOW) / 128 * 128;
    const size_t bytes = b->blocks * sizeof *b->notes;
    if (!cuda_did(b, cudaHostAlloc(&notes, bytes, cudaHostAllocDefault), "pinning memory", err))
        return false;
    b->notes = memset(notes, 0, bytes);
    return true;
}

void
device_close(struct backend *b)
{
    (void)cudaFreeHost(b->notes);
    profile_close(b->profile);
    free(b);
}

const char *
device_describe(const struct backend *b)
{
    return b->text;
}

const char *
device_note(const struct backend *b)
{
    return b->note;
}

/* ---- memory ---- */

bool
memory_take(struct memory *m, struct backend *b, size_t bytes, bool zeroed, const char *what, void **out,
            struct err *err)
{
    *out = NULL;
    if (!array_grow(&m->pieces, &m->room, m->n + 1, sizeof *m->pieces))
        return err_set(err, ERR_WORK, "not enough memory to keep track of the GPU's");
    void *p = NULL;
    const size_t some = bytes > 0 ? bytes : 1;
    const cudaError_t code = cudaMalloc(&p, some);
    if (code == cudaErrorMemoryAllocation && !b->lost) {
        size_t left = 0, total = 0;
        (void)cudaGetLastError();
        if (cudaMemGetInfo(&left, &total) != cudaSuccess)
            left = 0;
        return err_set(
            err, ERR_WORK,
            "GPU %d (%s) has no room for %s: %.1f MiB wanted, %.1f MiB free; use a smaller --ctx, or --backend cpu",
            b->device, b->name, what, (double)bytes / 0x1p20, (double)left / 0x1p20);
    }
    char doing[96];
    snprintf(doing, sizeof doing, "making room for %s", what);
    if (!cuda_did(b, code, doing, err))
        return false;
    m->pieces[m->n++] = p;
    *out = p;
    return !zeroed || cuda_did(b, cudaMemset(p, 0, some), doing, err);
}

void
memory_free(struct memory *m)
{
    for (size_t i = 0; i < m->n; i++)
        (void)cudaFree(m->pieces[i]); /* fails on a lost device, whose memory is freed when the process ends */
    free(m->pieces);
    *m = (struct memory){0};
}
