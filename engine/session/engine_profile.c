#include "engine/session/engine_profile.h"

#include <stdlib.h>
#include <string.h>

#include "engine/session/engine_helpers.h"

/* The file names target, draft and companion; roles that nobody plays can't be compared. */
static bool
is_of(const struct engine *e, const struct sv_whose *whose, const char *path, struct err *err)
{
    char other[MODEL_NOT];
    if (whose->hash[0] != e->model->hash)
        return err_set(err, ERR_USAGE, "%.150s is the profile of %s", path,
                       model_not(e->model, whose->name[0], other, sizeof other));
    for (enum helper_role role = 0; role < HELPERS; role++) {
        const struct helper_model *h = &e->helpers[role];
        if (engine_has(e, role) &&
            (whose->hash[1 + role] != engine_helper_hash(e, role) || whose->layers[1 + role] != h->exit_layer))
            return err_set(err, ERR_USAGE, "%.150s is the profile of another %s model, %.60s", path, helper_names[role],
                           whose->name[1 + role]);
    }
    return true;
}

static bool
take(struct engine *e, const char *path, struct err *err)
{
    e->profile = malloc(sizeof *e->profile);
    if (e->profile == NULL)
        return err_set(err, ERR_WORK, "out of memory for %.200s", path);
    if (sv_profile_read(e->profile, path, err) && is_of(e, &e->profile->whose, path, err))
        return true;
    free(e->profile);
    e->profile = NULL;
    return false;
}

bool
engine_profile_find(struct engine *e, const struct engine_options *o, struct err *err)
{
    if (o->profile != NULL)
        return strcmp(o->profile, "none") == 0 || take(e, o->profile, err);
    char *path = (o->wanted & NEEDS_PROFILE) != 0 && !o->synth ? engine_beside(e->model, ".profile.json") : NULL;
    struct err why = {.kind = ERR_NONE};
    if (path != NULL && !take(e, path, &why)) {
        snprintf(e->profile_refused, sizeof e->profile_refused, "%s", why.text);
        if (e->note[0] == '\0')
            snprintf(e->note, sizeof e->note, "without the profile beside the model: %s", why.text);
    }
    free(path);
    return true;
}
