#include "registry.h"

#include <cstdio>

namespace ptx
{

static const registered *all;

registered::registered(const void *host_, const kernel &k) : host(host_), is(&k), next(all)
{
    all = this;
}

const kernel *
kernel_of(const void *host, size_t params, const char *call)
{
    const registered *r = all;
    while (r != nullptr && r->host != host)
        r = r->next;
    if (r == nullptr)
        fprintf(stderr, "emulated GPU: there is no PTX of the kernel in %s\n", call);
    else if (r->is->params != params)
        fprintf(stderr, "emulated GPU: %s takes %zu bytes of parameters, nvcc says %zu\n", call, params, r->is->params);
    return r != nullptr && r->is->params == params ? r->is : nullptr;
}

} // namespace ptx
