/* Loads plug-ins. The CUDA backend is in a plug-in, specscope-cuda.so, so that the program also runs on machines
 * without CUDA. */
#pragma once

#include "kernels/backend.h"

#define PLUGIN_FILE   "specscope-cuda.so"
#define PLUGIN_SYMBOL "specscope_backend" /* const struct backend_ops *(void) */

enum plugin_state {
    PLUGIN_LOADED,
    PLUGIN_ABSENT, /* the file does not exist */
    PLUGIN_BROKEN  /* the file exists but cannot be used: err contains the reason */
};

/* Loads the plug-in, once per process, from $SPECSCOPE_CUDA_PLUGIN if set (empty: no plug-in), else from the path that
 * plugin_find() returns. Fails with PLUGIN_BROKEN if the plug-in's ABI version differs. */
enum plugin_state plugin_load(const struct backend_ops **, struct err *);

/* Finds a plug-in's file: in the folder of the program, ../lib/specscope relative to it, its parent folder, or the
 * folder that `make install` uses. Returns false if none of them contains it. */
bool plugin_find(const char *file, char *path, size_t n);

/* Returns whether the machine has an NVIDIA GPU, usable or not. */
bool plugin_gpu_in_sight(void);
