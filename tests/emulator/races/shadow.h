/* Stores the last writes and reads of each four bytes of shared memory, device memory and pinned memory. */
#ifndef EMULATION_RACES_SHADOW_H
#define EMULATION_RACES_SHADOW_H

#include <cstddef>
#include <cstdint>

namespace emulation
{

/* An access. Its place is an address of code, or a site (report.h). */
struct record {
    uint32_t who, time; /* order.h */
    uint32_t grid;
    uint16_t bytes;  /* a bit for each of the four bytes */
    uint16_t atomic; /* 1: atomic; 2: atomic within its block */
    uint64_t where;
};

/* There may be two writes, for example to the two halves of a word. If no more than READS blocks read the word, a read
 * of each block is kept. */
struct cell {
    enum { WRITES = 2, READS = 4 };
    record writes[WRITES], reads[READS];
};

enum access { READ, WRITE };

void shadow_allocated(const void *p, size_t bytes);
void shadow_freed(const void *p, size_t bytes);
void shadow_grid_begins();
void shadow_blocks_begin();
/* Records that the running thread accesses n bytes, and reports races (report.h). */
void shadow_access(const void *p, size_t n, access, uint16_t atomic, uint64_t where);
/* Records a read-only load. */
void shadow_constant(const void *p, size_t n, uint64_t where);
/* Records that an operation of a stream, or a thread of the host at `where`, accesses n bytes. */
void shadow_moves(uint32_t op, const void *p, size_t n, bool writes);
void shadow_host(const void *p, size_t n, access, uint64_t where);
void shadow_frees(const void *p, size_t n, uint64_t where);

} // namespace emulation

#endif
