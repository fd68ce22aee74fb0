/* What the happens-before checker says. The first thing ends the grid; EMULATED_CUDA_RACES=all has all of them printed, and
 * the grid go on. */
#ifndef EMULATION_RACES_REPORT_H
#define EMULATION_RACES_REPORT_H

#include "../grid.h"
#include "shadow.h"

namespace emulation
{

/* Places of device code as numbers: an address of code, or a site. */
uint64_t where_of_code(const void *address);
uint64_t where_of_site(site);

void report_race(const record &old, access, const record &now, access);
/* The running grid writes what it also reads as constant. */
void report_constant(const record &now, bool writes);

} // namespace emulation

#endif
