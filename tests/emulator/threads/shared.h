/* Shared memory of blocks. */
#ifndef EMULATION_SHARED_H
#define EMULATION_SHARED_H

#include <cstddef>

namespace emulation
{

/* Dynamic shared memory of a block, which is poisoned before each block. Its allocation ends with it, so that the
 * address sanitizer finds accesses after its end. */
class block_memory
{
  public:
    block_memory() = default;
    block_memory(const block_memory &) = delete;
    block_memory(block_memory &&) noexcept;
    ~block_memory();
    bool fresh(size_t bytes); /* returns false if there is no memory */
    void *
    start() const
    {
        return p;
    }

  private:
    void give_back();
    void *p = nullptr;
    size_t size = 0;
};

/* __shared__ variables. They are static and thread_local, so those of a library are contiguous in memory of one host
 * thread. They are poisoned before each block; on a GPU their contents are undefined. Blocks that run at the same time
 * would share them, so a cooperative kernel must not have any. */
struct piece {
    unsigned char *start;
    size_t size;
};
piece thread_locals(); /* returns the variables of the calling thread */
void poison_static_shared();
bool static_shared_is_poison();

} // namespace emulation

#endif
