/* Prints the findings of the race checker. The first finding ends the grid; with EMULATED_CUDA_RACES=all all findings
 * are printed, and the grid continues. */
#ifndef EMULATION_RACES_REPORT_H
#define EMULATION_RACES_REPORT_H

#include "tests/emulator/races/flow.h"
#include "tests/emulator/races/shadow.h"
#include "tests/emulator/threads/grid.h"

namespace emulation
{

/* Convert a place of device code, an address or a site, to a number. */
uint64_t where_of_code(const void *address);
uint64_t where_of_site(site);

void report_race(const record &old, access, const record &now, access);
/* Reports two operations of streams or of the host. `where` is the place of the present access; 0: the place where it
 * was queued. */
void report_flow(const operation &old, access, const operation &now, access, uint64_t where);
/* Reports that the running grid writes memory that it also reads by a read-only load. */
void report_constant(const record &now, bool writes);

} // namespace emulation

#endif
