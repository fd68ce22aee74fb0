/* The CUDA backend comes in a plug-in, specscope-cuda.so, so that the program runs where there is no CUDA at all. */
#ifndef KERNELS_PLUGIN_H
#define KERNELS_PLUGIN_H

#include "kernels/backend.h"

#define PLUGIN_FILE   "specscope-cuda.so"
#define PLUGIN_SYMBOL "specscope_backend" /* const struct backend_ops *(void) */

enum plugin_state {
    PLUGIN_LOADED,
    PLUGIN_ABSENT, /* there is no such file */
    PLUGIN_BROKEN  /* there is one, and it can't be used: err says why */
};

/* Loads the plug-in, once for the process's life: from $SPECSCOPE_CUDA_PLUGIN if that is set (empty: there is none),
 * else from where plugin_find() finds it. A table that
 * speaks another ABI is never handed out. */
enum plugin_state plugin_load(const struct backend_ops **, struct err *);

/* A plug-in's file: in the folder of the program, ../lib/specscope beside that, the folder above, or where `make install` puts it.
 * False: in none of them. */
bool plugin_find(const char *file, char *path, size_t n);

/* Does the machine have a GPU of NVIDIA's, whether or not it can be used? */
bool plugin_gpu_in_sight(void);

#endif
