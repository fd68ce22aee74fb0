/* The acceptance head of an engine's draft model. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/memory.h"
#include "engine/session/engine_helpers.h"

const struct model *
engine_draft_model(const struct engine *e)
{
    const struct helper_model *h = &e->helpers[HELPER_DRAFT];
    return h->model != NULL ? h->model : h->exit_layer > 0 ? e->model : NULL;
}

static bool
take(struct engine *e, const char *path, uint64_t room, struct err *err)
{
    const struct model *draft = engine_draft_model(e);
    uint32_t n_blocks;
    uint64_t bytes;
    char need[24], there[24];
    if (!accept_head_measure(path, draft, &n_blocks, &bytes, err))
        return false;
    if (bytes > room)
        return err_set(err, ERR_WORK,
                       "%s: needs %s, but of the memory that is available models leave %s; take a smaller "
                       "acceptance head",
                       path, memory_text(need, bytes), memory_text(there, room));
    const struct accept_whose whose = {draft, e->helpers[HELPER_DRAFT].exit_layer};
    return accept_head_read(&e->accept, path, &whose, err);
}

uint64_t
engine_accept_bytes(const struct engine *e)
{
    const struct accept_head *h = e->accept;
    return h != NULL ? accept_head_bytes(h->width, h->n_blocks, h->shared) : 0;
}

bool
engine_accept_open(struct engine *e, const char *given, uint64_t room, struct err *err)
{
    const struct model *draft = engine_draft_model(e);
    if (draft == NULL || (given != NULL && strcmp(given, "none") == 0))
        return true;
    char *found = given == NULL && draft != e->model ? engine_beside(draft, ".accept.safetensors") : NULL;
    const char *path = given != NULL ? given : found;
    struct err why = {.kind = ERR_NONE};
    bool ok = path == NULL || take(e, path, room, &why);
    if (!ok && given != NULL)
        *err = why;
    else if (!ok && e->note[0] == '\0')
        snprintf(e->note, sizeof e->note, "without the acceptance head beside the draft model: %s", why.text);
    const struct accept_head *h = e->accept;
    if (h != NULL && h->target_hash != 0 && h->target_hash != e->model->hash && e->note[0] == '\0')
        snprintf(e->note, sizeof e->note, "the acceptance head learned what another target accepts: %s", h->target);
    free(found);
    return ok || given == NULL;
}
