#include "engine/synthetic/model_look.h"

#include <string.h>

#include "engine/base/printable.h"
#include "engine/model/memory.h"
#include "engine/synthetic/model_open.h"
#include "engine/tokenizer/tokenizer.h"

#define SHORTEST 512u /* tokens that a context should have */

static void
say_why(struct model_look *look, const char *path, const struct err *err)
{
    const size_t n = strlen(path);
    const char *why = strncmp(err->text, path, n) == 0 ? err->text + n + strspn(err->text + n, ":/ ") : err->text;
    printable_line(look->why, sizeof look->why, why, strlen(why));
}

static void
fit_context(struct model_look *look, const struct model *m, uint64_t available, struct err *err)
{
    for (uint32_t ctx = m->ctx_train; ctx > 0; ctx = ctx > SHORTEST ? ctx / 2 : 0)
        if (memory_fits(m, ctx, false, false, available, 0, err)) {
            look->ctx = ctx;
            return;
        }
    say_why(look, m->path, err);
}

void
model_look(struct model_look *look, const char *path, uint64_t available)
{
    struct model *m;
    struct err err = {0};
    *look = (struct model_look){0};
    if (!model_open_with(&m, path, &(struct model_options){.glance = true}, &err)) {
        say_why(look, path, &err);
        return;
    }
    look->runs = true;
    memcpy(look->name, m->name, sizeof look->name);
    memcpy(look->arch, m->arch, sizeof look->arch);
    memcpy(look->types, m->types, sizeof look->types);
    snprintf(look->tokenizer, sizeof look->tokenizer, "%s", tokenizer_description(m->tokenizer));
    look->layers = m->desc.n_layers;
    look->vocab = m->desc.vocab;
    look->ctx_train = m->ctx_train;
    look->bytes = m->file_bytes;
    look->parameters = m->parameters;
    fit_context(look, m, available, &err);
    look->chats = tokenizer_chat_template_name(m->tokenizer, 0) != NULL;
    model_close(m);
}
