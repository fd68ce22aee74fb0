#include "tests/rigs/context_inside.h"

#include "engine/context/context_internal.h"

uint32_t
context_free_slots(const struct context *c)
{
    return c->n_free;
}

uint32_t
context_features_kept(const struct context *c)
{
    return c->features.n_chunks * FEATURES_CHUNK - c->features.n_free;
}

void
context_release_dists(struct context *c)
{
    dist_pool_release(c->pool);
}
