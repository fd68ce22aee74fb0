#include "cli/base/json_memory.h"

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool ran_out; /* the library's allocator is not told whose tree it is for */

static void *
take(size_t n)
{
    void *at = malloc(n);
    if (at == NULL)
        atomic_store(&ran_out, true);
    return at;
}

void
json_memory_watch(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = take, .free_fn = free});
}

bool
json_memory_ran_out(void)
{
    return atomic_load(&ran_out);
}
