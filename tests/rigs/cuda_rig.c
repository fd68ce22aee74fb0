#include "tests/rigs/cuda_rig.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/plugin.h"

#define EMULATED "specscope-cuda-emulated.so"

const struct backend_ops *
cuda_for_tests(void)
{
    const struct backend_ops *ops;
    struct err err = {.kind = ERR_NONE};
    if (getenv("SPECSCOPE_CUDA_PLUGIN") == NULL) {
        char path[PATH_MAX];
        const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof EMULATED);
        assert_true(n > 0);
        path[n] = '\0';
        memcpy(strrchr(path, '/') + 1, EMULATED, sizeof EMULATED);
        setenv("SPECSCOPE_CUDA_PLUGIN", path, 1);
    }
    const enum plugin_state state = plugin_load(&ops, &err);
    if (state == PLUGIN_BROKEN)
        fail_msg("%s", err.text);
    if (state == PLUGIN_ABSENT)
        print_message("skipped: %s\n", err.text);
    return ops;
}

bool
cuda_is_emulated(void)
{
    const char *path = getenv("SPECSCOPE_CUDA_PLUGIN");
    return path != NULL && strstr(path, EMULATED) != NULL;
}

/* The one of Q4_K and Q6_K mixes them as files of Q4_K_M do. */
const struct naive_shape cuda_shapes[CUDA_SHAPES] = {
    RIG_SHAPE(3, 37, 3, 1, 22, 41, 130, .rope = ROPE_HALVES),
    RIG_SHAPE(2, 64, 4, 2, 16, 90, 75, .type = WEIGHT_F16),
    RIG_SHAPE(3, 48, 6, 1, 6, 130, 70, .rope = ROPE_HALVES, .type = WEIGHT_BF16),
    RIG_SHAPE(2, 96, 4, 4, 24, 64, 90, .type = WEIGHT_Q8_0),
    RIG_SHAPE(2, 64, 4, 2, 24, 64, 60, .rope = ROPE_HALVES, .type = WEIGHT_Q5_1,
              .optional = LAYER_QKV_BIAS | LAYER_QK_NORM),
    RIG_SHAPE(2, 40, 2, 1, 16, 48, 50, .type = WEIGHT_F16, .window = 4),
    RIG_SHAPE(2, 96, 3, 1, 32, 160, 70, .type = WEIGHT_Q4_0),
    RIG_SHAPE(2, 256, 4, 2, 64, 512, 90, .rope = ROPE_HALVES, .type = WEIGHT_Q4_K, .second = WEIGHT_Q6_K,
              .optional = LAYER_QKV_BIAS),
    RIG_SHAPE(1, 256, 4, 4, 64, 256, 50, .type = WEIGHT_Q6_K),
};

void
cuda_rig_open(struct rig *r, size_t shape, bool exact, uint64_t seed)
{
    rig_open(r, cuda_for_tests(), &cuda_shapes[shape], seed + shape,
             &(struct backend_options){.threads = 2, .exact = exact, .gpu = -1});
    if (!exact)
        naive_model_in_halves(r->model);
}

/* The definition rounds to F16 where the device does. Where the sums before it differ in their last bits a number may round
 * the other way, by 2^-11 of its size: some of a row do, and the next layers make more or less of it. */
void
cuda_rig_assert_near_naive(struct rig *r, int node, bool exact)
{
    rig_assert_near_naive(r, node, 1e-7, exact ? 1e-5 : 2e-3);
}
