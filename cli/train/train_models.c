#include "cli/train/train_models.h"

#include <inttypes.h>

#include "cli/base/commands.h"
#include "cli/options/option_table.h"

bool
train_engine(const struct options *o, unsigned needs, struct engine **engine, struct err *err)
{
    static const char *const what[HELPERS] = {"which model drafts", "which model is asked about drafts"};
    const struct engine_options options = {.model_path = o->model != NULL ? o->model : bundled_model_path(),
                                           .backend = o->backend,
                                           .lora = o->lora.at,
                                           .n_lora = o->lora.n,
                                           .backend_options = o->backend_options,
                                           .heads = "none",
                                           .helpers = {o->helpers[HELPER_DRAFT], o->helpers[HELPER_COMPANION]},
                                           .wanted = needs,
                                           .accept = "none",
                                           .profile = "none",
                                           .reads_apart = true,
                                           .ctx = o->answers.at_once * (o->answers.prompt + o->answers.response)};
    if (!engine_open(engine, &options, NULL, NULL, err))
        return false;
    const unsigned missing = engine_missing(*engine, needs);
    const char *note = (*engine)->note; /* a file that was found and is of no use, perhaps */
    for (enum helper_role role = 0; role < HELPERS; role++)
        if ((missing & NEEDS(role)) != 0)
            return err_set(err, ERR_USAGE, "%s: --%s MODEL is missing: %s%s%s", command_row(o->command)->name,
                           helper_names[role], what[role], note[0] != '\0' ? "; " : "", note);
    return true;
}

void
train_settings_models(struct train_settings *s, const struct engine *e, unsigned needs)
{
    train_settings_add(s, "target %s %016" PRIx64, e->model->name, e->model->hash);
    for (enum helper_role role = 0; role < HELPERS; role++) {
        char name[64];
        if ((needs & NEEDS(role)) != 0)
            train_settings_add(s, "%s %s %016" PRIx64, helper_names[role],
                               engine_helper_name(e, role, name, sizeof name), engine_helper_hash(e, role));
    }
}

void
train_settings_answers(struct train_settings *s, const struct options *o, const struct train_prompts *prompts)
{
    const struct sampling *how = &o->answers.sampling;
    train_settings_add(s, "temperature %.6g, top-k %" PRIu32 ", top-p %.6g", (double)how->temperature, how->top_k,
                       (double)how->top_p);
    train_settings_add(s, "answers of %" PRIu32 " tokens, seed %" PRIu64, o->answers.response, o->seed);
    train_settings_add(s, "%zu prompts of %" PRIu32 " tokens, %016" PRIx64, prompts->n, prompts->length,
                       train_prompts_hash(prompts));
}
