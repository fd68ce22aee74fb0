/* The CUDA backend's own: one GPU, and what becomes of its errors.
 *
 * Every call of the CUDA runtime goes through cuda_did(), which turns a failure into one line that names the device and
 * what was being done. Some failures affect only their request (no memory). After all others the device is unusable: the
 * backend is `lost`, and each later request fails with the same line. */
#ifndef KERNELS_CUDA_DEVICE_H
#define KERNELS_CUDA_DEVICE_H

#include <cuda_runtime_api.h>

#include "kernels/backend.h"
#include "kernels/cuda/gemm.h"

struct backend {
    int device;
    char name[64];  /* "NVIDIA H200" */
    char text[160]; /* describe() */
    char note[160]; /* note() */
    bool exact;
    uint32_t threads; /* of the CPU, that pack weights */
    uint32_t blocks;  /* of a forward pass: one a multiprocessor */
    uint32_t window;  /* bytes that each of them fetches ahead at a barrier: forward_args */
    uint32_t *notes;  /* (blocks) pinned: where each waits for too long, else 0 (layout.h); NULL: not yet prepared */
    bool sync;        /* switches.h */
    uint32_t prompt_rows; /* of a chunk that a library multiplies; 0: it was not asked for, and these are NULL */
    const struct gemm_ops *gemm_ops;
    struct gemm *gemm;
    struct trace *trace; /* trace.h; NULL: none */
    bool lost;
    struct err why; /* when lost */
};

/* Chooses the GPU (--gpu N, or the first that is good enough) and checks driver and GPU. */
bool device_open(struct backend **, const struct backend_options *, struct err *);
void device_close(struct backend *);
const char *device_describe(const struct backend *);
const char *device_note(const struct backend *);
/* Has the plug-in machine code for a GPU, "sm_90"s of its major version and of no later minor one among `codes`? Else the
 * driver translates the PTX. */
bool device_has_code(const char *codes, int major, int minor);
/* Once, before weights are loaded: where the GPU has no machine code, its driver translates now, after note() could be read. */
bool device_prepare(struct backend *, struct err *);
/* Appends ", …" to the text of describe(), if there is room. */
void device_remark(struct backend *, const char *what);

/* Makes the device the calling thread's; false when it is lost. Every entry from outside begins with it. */
bool device_here(struct backend *, struct err *);

/* True if the call went well; `doing` completes "while …": "copying weights". */
bool cuda_did(struct backend *, cudaError_t, const char *doing, struct err *);

/* ---- memory of one owner: taken in pieces, freed all at once ---- */

struct memory {
    void **pieces;
    size_t n, room;
};

/* Device memory, aligned to 256 bytes, zeroed if asked; never NULL, also for 0 bytes. `what` completes "no room for …". */
bool memory_take(struct memory *, struct backend *, size_t bytes, bool zeroed, const char *what, void **out,
                 struct err *);
void memory_free(struct memory *);

#endif
