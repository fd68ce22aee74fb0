/* Which translated kernel takes the place of which of the host's, by its address: as CUDA's runtime does it. */
#ifndef PTX_REGISTRY_H
#define PTX_REGISTRY_H

#include "thread.h"

namespace ptx
{

struct registered {
    registered(const void *host, const kernel &);
    const void *host;
    const kernel *is;
    const registered *next;
};

/* NULL, and a line: nobody translated it, or its parameters have another size than here. */
const kernel *kernel_of(const void *host, size_t params, const char *call);

} // namespace ptx

#endif
