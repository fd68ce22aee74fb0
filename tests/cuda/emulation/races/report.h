/* What the happens-before checker says. The first thing ends the grid; EMULATED_CUDA_RACES=all has all of them printed, and
 * the grid go on. */
#ifndef EMULATION_RACES_REPORT_H
#define EMULATION_RACES_REPORT_H

#include "../grid.h"
#include "flow.h"
#include "shadow.h"

namespace emulation
{

/* Places of device code as numbers: an address of code, or a site. */
uint64_t where_of_code(const void *address);
uint64_t where_of_site(site);

void report_race(const record &old, access, const record &now, access);
/* Two operations of streams, or of the host's; `where` the one that is now is, 0 if that is where it was queued. */
void report_flow(const operation &old, access, const operation &now, access, uint64_t where);
/* The running grid writes what it also reads as constant. */
void report_constant(const record &now, bool writes);

} // namespace emulation

#endif
