/* One GPU, and its errors.
 *
 * Every call of the CUDA runtime is checked by cuda_did(), which converts a failure to one line that names the device
 * and the operation. Some failures affect only their request (no memory). After all others the device is unusable: the
 * backend is `lost`, and each later request fails with the same line. */
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/backend.h"

struct backend {
    int device;
    char name[64];  /* "NVIDIA H200" */
    char text[160]; /* describe() */
    char note[160]; /* note() */
    bool exact;
    uint32_t threads; /* CPU threads that pack weights */
    uint32_t blocks;  /* of a forward pass: one per multiprocessor */
    uint32_t window;  /* bytes that each block prefetches at a barrier: forward_args */
    uint32_t *notes;  /* (blocks) pinned: where each block waits for too long, else 0 (layout.h); NULL: not yet */
                      /* prepared */
    bool sync;        /* switches.h */
    struct profile *profile; /* profile.h; NULL: none */
    bool lost;
    struct err why; /* when lost */
};

/* Chooses the GPU (--gpu N, or the first suitable one) and checks driver and GPU. */
bool device_open(struct backend **, const struct backend_options *, struct err *);
void device_close(struct backend *);
const char *device_describe(const struct backend *);
const char *device_note(const struct backend *);
/* Returns whether the plug-in has machine code for a GPU: `codes` contains an "sm_90" of its major version and of no
 * later minor version. Otherwise the driver compiles the PTX. */
bool device_has_code(const char *codes, int major, int minor);
/* Call once, before weights are loaded and after note() can be read: if the plug-in has no machine code for the GPU,
 * the driver compiles the PTX now. */
bool device_prepare(struct backend *, struct err *);
/* Makes the device current in the calling thread; returns false if it is lost. Every public function calls it first. */
bool device_here(struct backend *, struct err *);

/* Returns true if the call succeeded; `doing` completes "while …", e.g. "copying weights". */
bool cuda_did(struct backend *, cudaError_t, const char *doing, struct err *);

/* ---- memory of one owner: taken in pieces, freed all at once ---- */

struct memory {
    void **pieces;
    size_t n, room;
};

/* Allocates device memory, aligned to 256 bytes, zeroed if requested; never NULL on success, even for 0 bytes. `what`
 * completes "no room for …". */
bool memory_take(struct memory *, struct backend *, size_t bytes, bool zeroed, const char *what, void **out,
                 struct err *);
void memory_free(struct memory *);
