/* EMULATED_PTX_COMPARE=1: before a kernel runs as nvcc compiled it, it runs as g++ did, on the same memory; what either left there is
 * compared, word for word. At the program's end stderr has a line a kernel: launches, words that differ, by how many units of
 * an F32's last place at most. */
#ifndef PTX_BESIDE_H
#define PTX_BESIDE_H

#include <memory>

#include "cuda_runtime.h"

namespace ptx
{

struct beside; /* a launch's memory */

bool wants_comparison();
/* Queued in front of the launch and behind it. */
std::shared_ptr<beside> run_as_host(const char *call, std::function<void()> thread, dim3 grid, dim3 block,
                                    size_t shared, bool cooperative, cudaStream_t);
void compare_with_host(std::shared_ptr<beside>, cudaStream_t);

} // namespace ptx

#endif
