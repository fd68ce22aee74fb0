#include "engine/session/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the template of a setting among the model's; len 0: the model has none, and none is named. Fails if none has
 * the name. */
static bool
find_template(const struct chat_setting *c, const struct tokenizer *t, struct slice *template, struct err *err)
{
    *template = c->template;
    if (template->data != NULL)
        return true;
    const char *name = c->name;
    if (name == NULL)
        name = c->tools != NULL && tokenizer_chat_template(t, "tool_use").len > 0 ? "tool_use" : "default";
    *template = tokenizer_chat_template(t, name);
    const bool any = tokenizer_chat_template_name(t, 0) != NULL;
    if (template->len > 0 || (!any && c->name == NULL))
        return true;
    if (!any)
        return err_set(err, ERR_USAGE,
                       "the model has no chat template '%s', and none of another name; give a Jinja file", name);
    char names[200] = "";
    for (size_t i = 0, n = 0; tokenizer_chat_template_name(t, i) != NULL && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "",
                              tokenizer_chat_template_name(t, i));
    return err_set(err, ERR_USAGE, "the model has no chat template '%s', but: %s", name, names);
}

/* Sets the model's bos_token and eos_token, and the user's variables, which override them. */
static bool
take_variables(struct prompt_format *f, const struct chat_setting *c)
{
    const struct {
        const char *name;
        token_t id;
    } ends[] = {{"bos_token", tokenizer_bos(f->tokenizer)}, {"eos_token", tokenizer_eos(f->tokenizer)}};
    size_t n = 0;
    if ((f->variables = calloc(2 + c->n_variables, sizeof *f->variables)) == NULL)
        return false;
    for (int i = 0; i < 2; i++)
        if (ends[i].id != TOKEN_NONE)
            f->variables[n++] = (struct chat_variable){
                .name = slice_of(ends[i].name), .value = tokenizer_bytes(f->tokenizer, ends[i].id, true), .text = true};
    if (c->n_variables > 0)
        memcpy(f->variables + n, c->variables, c->n_variables * sizeof *f->variables);
    f->dialogue.variables = f->variables;
    f->dialogue.n_variables = n + c->n_variables;
    return true;
}

bool
prompt_format_open(struct prompt_format *f, const struct tokenizer *t, const struct chat_setting *c, uint32_t ctx,
                   struct err *err)
{
    struct slice template;
    struct err why;
    *f = (struct prompt_format){.tokenizer = t,
                                .ctx = ctx,
                                .special = c->special,
                                .dialogue = {.system = c->system, .tools = c->tools, .cancelled = c->cancelled}};
    if (!c->on)
        return true;
    if (!find_template(c, t, &template, err))
        return false;
    if (template.len == 0)
        return true;
    const time_t now = time(NULL);
    if (c->day != NULL)
        f->dialogue.now = *c->day;
    else
        localtime_r(&now, &f->dialogue.now);
    if (!take_variables(f, c))
        return err_set(err, ERR_WORK, "out of memory for %zu variables", c->n_variables);
    return chat_open(&f->chat, template, &why) ||
           err_set(err, why.kind, "%s; without --chat prompts go to the model as they are", why.text);
}

void
prompt_format_close(struct prompt_format *f)
{
    chat_close(f->chat);
    free(f->variables);
    *f = (struct prompt_format){0};
}

/* Tokenises a text. The tokenizer adds the model's BOS if the template wrote none. */
static bool
tokenise(const struct prompt_format *f, const char *text, size_t len, const char *before, token_t **ids, size_t *n,
         struct err *err)
{
    struct tokenize_options options = {.bos = true, .special = true};
    *ids = NULL;
    if (f->chat == NULL)
        return tokenizer_encode(f->tokenizer, text, len, options, ids, n, err);
    struct chat_dialogue dialogue = f->dialogue;
    struct chat_guard guard = {.next = tokenizer_next_control, .of = f->tokenizer};
    dialogue.user = (struct slice){text, len};
    dialogue.before = before;
    dialogue.guard = f->special ? NULL : &guard;
    char *turn;
    size_t n_turn;
    if (!chat_render(f->chat, &dialogue, &turn, &n_turn, err)) {
        free(guard.at);
        return false;
    }
    options.plain = guard.at;
    options.n_plain = guard.n;
    const token_t bos_id = tokenizer_bos(f->tokenizer);
    const struct slice bos = bos_id == TOKEN_NONE ? (struct slice){0} : tokenizer_bytes(f->tokenizer, bos_id, true);
    const bool spelled = guard.n > 0 && guard.at[0] == 0; /* by a message */
    options.bos = bos.len == 0 || spelled || n_turn < bos.len || memcmp(turn, bos.data, bos.len) != 0;
    const bool ok = tokenizer_encode(f->tokenizer, turn, n_turn, options, ids, n, err);
    free(turn);
    free(guard.at);
    return ok;
}

bool
prompt_read(struct prompt *p, const struct prompt_format *f, const char *text, size_t len, const char *before,
            struct err *err)
{
    *p = (struct prompt){0};
    size_t n;
    if (!tokenise(f, text, len, before, &p->ids, &n, err))
        return false;
    p->text = strndup(text, len);
    p->before = before != NULL ? strdup(before) : NULL;
    p->n = (uint32_t)n;
    const bool memory = p->text != NULL && (before == NULL || p->before != NULL);
    if (memory && n > 0 && n < f->ctx)
        return true;
    prompt_free(p);
    if (!memory)
        return err_set(err, ERR_WORK, "out of memory for the prompt");
    if (n == 0)
        return err_set(err, ERR_USAGE, "the prompt is empty and this model has no token to begin with; give some text");
    if (before != NULL)
        return err_set(err, ERR_USAGE,
                       "the conversation has %zu tokens with this turn, the context holds %u; :new begins another one",
                       n, (unsigned)f->ctx);
    return err_set(err, ERR_USAGE, "the prompt has %zu tokens, the context holds %u; shorten it or raise --ctx", n,
                   (unsigned)f->ctx);
}

void
prompt_free(struct prompt *p)
{
    free(p->text);
    free(p->before);
    free(p->ids);
    *p = (struct prompt){0};
}
