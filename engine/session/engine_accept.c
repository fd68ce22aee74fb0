/* The acceptance head of an engine's draft model. */
#include <stdlib.h>
#include <string.h>

#include "engine/session/engine_helpers.h"

const struct model *
engine_draft_model(const struct engine *e)
{
    const struct helper_model *h = &e->helpers[HELPER_DRAFT];
    return h->model != NULL ? h->model : h->exit_layer > 0 ? e->model : NULL;
}

bool
engine_accept_open(struct engine *e, const char *given, struct err *err)
{
    const struct model *draft = engine_draft_model(e);
    if (draft == NULL || (given != NULL && strcmp(given, "none") == 0))
        return true;
    char *found = given == NULL && draft != e->model ? engine_beside(draft, ".accept.safetensors") : NULL;
    const char *path = given != NULL ? given : found;
    struct err why = {.kind = ERR_NONE};
    bool ok = path == NULL || accept_head_read(&e->accept, path, draft, &why);
    if (!ok && given != NULL)
        *err = why;
    else if (!ok && e->note[0] == '\0')
        snprintf(e->note, sizeof e->note, "without the acceptance head beside the draft model: %.140s", why.text);
    const struct accept_head *h = e->accept;
    if (h != NULL && h->target_hash != 0 && h->target_hash != e->model->hash && e->note[0] == '\0')
        snprintf(e->note, sizeof e->note, "the acceptance head learned what another target accepts: %s", h->target);
    free(found);
    return ok || given == NULL;
}
