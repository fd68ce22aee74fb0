/* Prints what the happens-before checker finds. The first finding ends the grid; with EMULATED_CUDA_RACES=all all of them are printed, and
 * the grid continues. */
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
/* Two operations of streams or of the host; `where` is the place of the present one, or 0 for the place where it was queued. */
void report_flow(const operation &old, access, const operation &now, access, uint64_t where);
/* The running grid writes memory that it also reads as constant. */
void report_constant(const record &now, bool writes);

} // namespace emulation

#endif
