#ifndef PTX_LIBRARY_H
#define PTX_LIBRARY_H

#include "thread.h"

namespace ptx
{

void call_vprintf(const thread &, const where &, unsigned char *result, unsigned char *format,
                  unsigned char *arguments);
void call_assertfail(const thread &, const where &, unsigned char *what, unsigned char *file, unsigned char *line,
                     unsigned char *function, unsigned char *size);

} // namespace ptx

#endif
