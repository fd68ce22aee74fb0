/* The smoke test compares risky paths of the kernels with definitions on the host, without the engine. The same sources
 * are built for a GPU (build/gpu_smoke) and for the emulator (build/tests/test_cuda_smoke).
 *
 * A check is a function that returns true, or false with the error in `what`; it also stores measurements there. A
 * runtime call that fails ends the program, because the device is lost. */
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define SUCCEEDS(call) smoke_must(call, #call, __FILE__, __LINE__)

enum smoke_size {
    SMOKE_TINY, /* the emulator, in make test */
    SMOKE_REAL, /* the emulator, in make test-long: real widths, few rows and strips */
    SMOKE_WHOLE /* a GPU: real widths, all multiprocessors, at least two strips for each block */
};

struct smoke {
    enum smoke_size size;
    int device;
    unsigned blocks; /* of cooperative launches: SPECSCOPE_CUDA_BLOCKS or as many as fit */
    char what[512];
};

struct smoke_check {
    const char *sentence;
    bool (*run)(struct smoke *);
};

/* Ends the program if the call failed. */
void smoke_must(cudaError_t, const char *call, const char *file, int line);

/* Prints to s->what. Returns `ok`. */
bool smoke_says(struct smoke *s, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline const char *
type_name(int type)
{
    static const char *const names[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0",
                                        "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "MXFP4"};
    return names[type];
}

/* ---- the checks ---- */

bool smoke_halves(struct smoke *); /* instructions.cu */
bool smoke_bytes(struct smoke *);
bool smoke_loads(struct smoke *);
bool smoke_timer(struct smoke *);
bool smoke_matrices(struct smoke *); /* matrices.cu */
bool smoke_columns(struct smoke *);
bool smoke_subnormals(struct smoke *);
bool smoke_barriers(struct smoke *);  /* barriers.cu */
bool smoke_products(struct smoke *);  /* products.cu */
bool smoke_attention(struct smoke *); /* attention.cu */
bool smoke_logits(struct smoke *);    /* head.cu */
bool smoke_predictions(struct smoke *);
bool smoke_distributions(struct smoke *);

/* facts.cu: prints properties of the machine. Returns false if the backend cannot run on it. */
bool smoke_facts(int device);
/* matrices.cu: describes how matrix instructions sum. */
void smoke_matrix_sums(char *text, size_t room);
/* instructions.cu: returns the smallest step of the global timer in nanoseconds. */
unsigned smoke_tick();
