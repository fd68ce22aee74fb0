#include "engine/session/engine_kept.h"

#include <stdlib.h>
#include <string.h>

struct engine_kept {
    struct engine_kept *next;
    char policy[16];
    uint32_t sequences;
    size_t size;
    unsigned char shared[]; /* (size) */
};

static struct engine_kept *
find(const struct engine *e, const struct policy *p, uint32_t sequences)
{
    struct engine_kept *k = e->kept;
    while (k != NULL &&
           (strcmp(k->policy, p->info.name) != 0 || k->sequences != sequences || k->size != p->ops->shared_size))
        k = k->next;
    return k;
}

void
engine_recall(const struct engine *e, struct policy *first, uint32_t sequences)
{
    const struct engine_kept *k = find(e, first, sequences);
    if (k != NULL)
        memcpy(first->shared, k->shared, k->size);
}

void
engine_keep(struct engine *e, const struct policy *first, uint32_t sequences)
{
    const size_t size = first->shared != NULL ? first->ops->shared_size : 0;
    struct engine_kept *k = size > 0 ? find(e, first, sequences) : NULL;
    if (size > 0 && k == NULL && (k = malloc(sizeof *k + size)) != NULL) {
        *k = (struct engine_kept){.next = e->kept, .sequences = sequences, .size = size};
        memcpy(k->policy, first->info.name, sizeof k->policy);
        e->kept = k;
    }
    if (k != NULL)
        memcpy(k->shared, first->shared, size);
}

void
engine_forget(struct engine *e)
{
    for (struct engine_kept *k = e->kept, *next; k != NULL; k = next) {
        next = k->next;
        free(k);
    }
    e->kept = NULL;
}
