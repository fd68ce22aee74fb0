/* Shared code of the emulator's tests: random numbers, memory, kernels in random orders of threads. */
#pragma once

#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#define SUCCEEDS(call) assert_int_equal(call, cudaSuccess)

#include "kernels/cuda/device/launch.cuh"
#include "tests/rigs/cuda_numbers.h"
#include "tests/rigs/seed.h"

enum { ORDERS = 5, LANES = 32 };

/* TEST(sentence) { … } defines a test, as in test.h; main() runs all tests of the program, or those that its argument
 * matches. */
static std::vector<CMUnitTest> listed_tests;

#define TEST(name)                                                                                                     \
    static void test_##name(void **);                                                                                  \
    static const bool is_listed_##name = (listed_tests.push_back(cmocka_unit_test(test_##name)), true);                \
    static void test_##name(void **)

int
main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : nullptr);
    state_of_random = seed_or((uint64_t)time(nullptr));
    return _cmocka_run_group_tests("tests", listed_tests.data(), listed_tests.size(), nullptr, nullptr);
}

/* Memory of the device that the test reads while no kernel runs. */
template <class T> struct array {
    T *p;
    explicit array(size_t n, bool zero = false)
    {
        SUCCEEDS(cudaMalloc(&p, n * sizeof *p));
        if (zero)
            memset((void *)p, 0, n * sizeof *p);
    }
    ~array()
    {
        SUCCEEDS(cudaFree(p));
    }
    array(const array &) = delete;
    T &
    operator[](size_t i)
    {
        return p[i];
    }
};

/* Runs a kernel in order, or if order > 0 in a random order of threads. */
#define RUN(order, ...)                                                                                                \
    do {                                                                                                               \
        emulated_cuda_seed((order) == 0 ? 0 : random64() | 1);                                                         \
        SUCCEEDS(__VA_ARGS__);                                                                                         \
        SUCCEEDS(cudaDeviceSynchronize());                                                                             \
    } while (0)
