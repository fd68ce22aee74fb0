/* What is remembered of accesses: for each four bytes of shared memory, of the device's and of pinned memory the last writes and
 * reads. */
#ifndef EMULATION_RACES_SHADOW_H
#define EMULATION_RACES_SHADOW_H

#include <cstddef>
#include <cstdint>

namespace emulation
{

/* An access. Where: an address of code, or a place that was told (report.h). */
struct record {
    uint32_t who, time; /* order.h */
    uint32_t grid;
    uint16_t bytes;  /* of the four: a bit each */
    uint16_t atomic; /* 0, 1; 2: for its block alone */
    uint64_t where;
};

/* Two writes: as of the halves of a word. Reads of several threads: of each block at least one stays, if there are no more
 * than READS blocks. */
struct cell {
    enum { WRITES = 2, READS = 4 };
    record writes[WRITES], reads[READS];
};

enum access { READ, WRITE };

void shadow_allocated(const void *p, size_t bytes);
void shadow_freed(const void *p, size_t bytes);
void shadow_grid_begins();
void shadow_blocks_begin();
/* The running thread accesses n bytes. What nothing orders is said (report.h). */
void shadow_access(const void *p, size_t n, access, uint16_t atomic, uint64_t where);
/* It reads them through what does not notice when they are written. */
void shadow_constant(const void *p, size_t n, uint64_t where);
/* An operation of a stream accesses n bytes, or a thread of the host's at `where`. */
void shadow_moves(uint32_t op, const void *p, size_t n, bool writes);
void shadow_host(const void *p, size_t n, access, uint64_t where);
void shadow_frees(const void *p, size_t n, uint64_t where);

} // namespace emulation

#endif
