/* Who multiplies matrices where training does: a library that the system chooses among several of one name. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "engine/base/blas_library.h"
#include "engine/base/platform.h"

#define FASTER                                                                                                         \
    "install OpenBLAS for several threads (Debian: libopenblas0-openmp); update-alternatives --config "                \
    "libblas.so.3-$(uname -m)-linux-gnu chooses"

/* The file that a function came from, links followed; false: it is the program itself, or nobody says. */
static bool
file_of(void *at, char out[PATH_MAX])
{
    Dl_info about;
    char program[PATH_MAX];
    if (dladdr(at, &about) == 0 || about.dli_fname == NULL || realpath(about.dli_fname, out) == NULL)
        return false;
    return !platform_program(program, sizeof program) || strcmp(program, out) != 0;
}

void
doctor_blas(struct findings *f)
{
    char path[PATH_MAX] = "in the program itself";
    struct err err = {0};
    const struct blas_library *library = blas_library(1, &err);
    if (library == NULL) {
        doctor_say_message(f, FINDING_NOTE, "BLAS", err.text);
        return;
    }
    void *multiply = NULL;
    memcpy(&multiply, &library->multiply, sizeof multiply); /* ISO C has no cast for it */
    const bool shared = file_of(multiply, path);
    const char *config =
        library->config != NULL ? library->config() : NULL; /* "OpenBLAS 0.3.21 … Zen MAX_THREADS=64" */
    if (config != NULL && strstr(config, "SINGLE_THREADED") != NULL)
        doctor_say(f, FINDING_NOTE, "BLAS", FASTER, "%s (%s): of one thread, so training takes longer", config, path);
    else if (config != NULL)
        doctor_say(f, FINDING_OK, "BLAS", NULL, "%s (%s)", config, path);
    else if (shared &&
             (strstr(path, "openblas") != NULL || strstr(path, "mkl") != NULL || strstr(path, "blis") != NULL))
        doctor_say(f, FINDING_OK, "BLAS", NULL, "%s", path);
    else if (shared)
        doctor_say(
            f, FINDING_NOTE, "BLAS", FASTER,
            "%s is probably the reference one, with which `train` takes fifty times as long; all else is as fast",
            path);
    else
        doctor_say(f, FINDING_OK, "BLAS", NULL, "built into the program");
}
