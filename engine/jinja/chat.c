/* Opens chat templates and renders dialogues: builds the template's variables, guards control tokens in messages with
 * marks, and converts the rendering's error. */
#include "engine/jinja/chat.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "engine/jinja/template.h"

const struct chat_bounds chat_bounds = {
    .steps = 20000000, .memory = (size_t)256 << 20, .output = (size_t)64 << 20, .depth = 1000};

struct chat {
    struct arena arena; /* contains the tree */
    struct node *first;
};

static struct render
begin(const struct chat_bounds *b)
{
    return (struct render){
        .arena = {.most = b->memory}, .most_depth = b->depth, .steps = b->steps, .output = b->output, .line = 1};
}

static bool
failed(const struct render *r, struct err *err)
{
    return err_set(err, ERR_WORK, "the chat template, line %u: %s", r->failed_line, r->failed);
}

/* ---- reading ---- */

bool
chat_open(struct chat **out, struct slice template, struct err *err)
{
    struct render r = begin(&chat_bounds);
    struct chat *c = *out = calloc(1, sizeof *c);
    if (c == NULL)
        return err_set(err, ERR_WORK, "out of memory for the chat template");
    if (!utf8_valid(template.data, template.len))
        render_fail(&r, "it is not UTF-8");
    else
        c->first = parse_template(&r, template);
    c->arena = r.arena;
    if (r.failed == NULL)
        return true;
    failed(&r, err);
    chat_close(c);
    *out = NULL;
    return false;
}

void
chat_close(struct chat *c)
{
    if (c == NULL)
        return;
    arena_free(&c->arena);
    free(c);
}

/* ---- control tokens in messages ---- */

static bool
guard_text(struct render *r, const struct chat_guard *g, struct slice text, struct slice *out)
{
    struct buffer b = {0};
    size_t done = 0;
    *out = text;
    if (g == NULL || !render_step(r, text.len / 4))
        return g == NULL;
    for (size_t at; (at = g->next(g->of, text, done)) != SIZE_MAX;) {
        const size_t end = at + text_character((struct slice){text.data + at, text.len - at}, NULL);
        if (!buffer_add(r, &b, (struct slice){text.data + done, at - done}) || !buffer_add_words(r, &b, MARK) ||
            !buffer_add(r, &b, (struct slice){text.data + at, end - at}))
            return false;
        done = end;
    }
    if (done > 0 && !buffer_add(r, &b, (struct slice){text.data + done, text.len - done}))
        return false;
    *out = done > 0 ? buffer_text(&b) : text;
    return true;
}

/* Adds marks to all texts in a JSON value, in place. */
static bool
guard_value(struct render *r, const struct chat_guard *g, struct value *v)
{
    if (v->kind == VALUE_TEXT)
        return guard_text(r, g, v->text, &v->text);
    bool ok = render_enter(r);
    for (size_t i = 0; ok && v->kind == VALUE_LIST && i < v->list->n; i++)
        ok = guard_value(r, g, &v->list->at[i]);
    for (size_t i = 0; ok && v->kind == VALUE_DICT && i < v->dict->n; i++)
        ok = guard_value(r, g, &v->dict->at[i].value);
    r->depth--;
    return ok;
}

/* Removes the marks from the output and stores their positions in g->at. */
static bool
take_marks(struct buffer *b, struct chat_guard *g)
{
    const struct slice mark = slice_of(MARK);
    size_t n = 0, from = 0, to = 0, found;
    for (size_t at = 0; (at = text_find(buffer_text(b), mark, at)) != SIZE_MAX; at += mark.len)
        n++;
    if (n > 0 && (g->at = malloc(n * sizeof *g->at)) == NULL)
        return false;
    for (g->n = 0; (found = text_find(buffer_text(b), mark, from)) != SIZE_MAX; from = found + mark.len) {
        memmove(b->at + to, b->at + from, found - from);
        g->at[g->n++] = to += found - from;
    }
    if (n > 0)
        memmove(b->at + to, b->at + from, b->len - from);
    b->len -= from - to;
    return true;
}

/* ---- the variables of a template ---- */

static bool
put(struct render *r, struct dict *d, const char *name, struct value v)
{
    return dict_put(r, d, value_words(name), v);
}

static bool
add_message(struct render *r, struct list *messages, const char *role, struct slice content)
{
    struct dict *m = render_dict(r);
    return m != NULL && put(r, m, "role", value_words(role)) && put(r, m, "content", value_text(content)) &&
           list_add(r, messages, value_dict(m));
}

static bool
put_variable(struct render *r, struct dict *d, const struct chat_variable *variable)
{
    struct value v = value_text(variable->value);
    if (!variable->text && !value_read_json(r, variable->value, &v)) {
        if (r->stopped)
            return false;
        r->failed = NULL;
        r->depth = 0;
        v = value_text(variable->value);
    }
    return dict_put(r, d, value_text(variable->name), v);
}

/* Reads JSON from the caller; fails with ERR_USAGE if it is not a value of that kind. */
static bool
read_outside(struct render *r, const char *what, struct slice json, enum value_kind kind, struct value *v,
             struct err *err)
{
    if (!value_read_json(r, json, v))
        return err_set(err, ERR_USAGE, "%s: %s", what, r->failed);
    return v->kind == kind ||
           err_set(err, ERR_USAGE, "%s: a JSON %s is needed", what, kind == VALUE_LIST ? "list" : "object");
}

/* Returns the last variable `messages`, which contains the earlier messages; NULL if there is none or no user
 * message. */
static const struct chat_variable *
said_before(const struct chat_dialogue *dialogue)
{
    const struct chat_variable *found = NULL;
    for (size_t i = 0; dialogue->user.data != NULL && i < dialogue->n_variables; i++)
        if (slice_is(dialogue->variables[i].name, "messages"))
            found = &dialogue->variables[i];
    return found;
}

/* Reads a JSON list of messages; NULL: none. */
static bool
read_messages(struct render *r, const struct chat_guard *guard, const char *what, struct slice json, struct value *out,
              struct err *err)
{
    *out = value_list(render_list(r, LIST_LIST, 0));
    if (json.data == NULL)
        return out->list != NULL || failed(r, err);
    return read_outside(r, what, json, VALUE_LIST, out, err) &&
           (guard == NULL || guard_value(r, guard, out) || failed(r, err));
}

static bool
is_system(struct render *r, const struct value *message)
{
    const struct value *role = message->kind == VALUE_DICT ? dict_find_name(r, message->dict, slice_of("role")) : NULL;
    return role != NULL && role->kind == VALUE_TEXT && slice_is(role->text, "system");
}

static bool
put_messages(struct render *r, struct dict *d, const struct chat_dialogue *dialogue, struct err *err)
{
    const struct chat_variable *variable = said_before(dialogue);
    const struct slice given = variable != NULL ? variable->value : (struct slice){0},
                       turns = dialogue->before != NULL ? slice_of(dialogue->before) : (struct slice){0};
    struct value read, before;
    struct list *messages = render_list(r, LIST_LIST, 0);
    struct slice system = {0}, user;
    if (!read_messages(r, dialogue->guard, "messages", given, &read, err) ||
        !read_messages(r, dialogue->guard, "the messages before a prompt", turns, &before, err))
        return false;
    if ((dialogue->system != NULL && !guard_text(r, dialogue->guard, slice_of(dialogue->system), &system)) ||
        !guard_text(r, dialogue->guard, dialogue->user, &user))
        return failed(r, err);
    const bool own = before.list->n > 0 && is_system(r, &before.list->at[0]);
    bool ok = messages != NULL && (own || dialogue->system == NULL || add_message(r, messages, "system", system));
    ok = ok && (!own || list_add(r, messages, before.list->at[0]));
    for (size_t i = 0; ok && i < read.list->n; i++)
        ok = list_add(r, messages, read.list->at[i]);
    for (size_t i = own; ok && i < before.list->n; i++)
        ok = list_add(r, messages, before.list->at[i]);
    return (ok && add_message(r, messages, "user", user) && put(r, d, "messages", value_list(messages)) &&
            put(r, d, "add_generation_prompt", value_bool(true))) ||
           failed(r, err);
}

static bool
set_scene(struct render *r, struct dict *d, const struct chat_dialogue *dialogue, struct err *err)
{
    struct value tools = value_none(), context;
    if (dialogue->tools != NULL && !read_outside(r, "tools", slice_of(dialogue->tools), VALUE_LIST, &tools, err))
        return false;
    if (dialogue->user.data != NULL && !put_messages(r, d, dialogue, err))
        return false;
    bool ok = put(r, d, "tools", tools) && put(r, d, "documents", value_none());
    if (dialogue->context.data != NULL) {
        if (!ok || !read_outside(r, "the context", dialogue->context, VALUE_DICT, &context, err))
            return ok ? false : failed(r, err);
        for (size_t i = 0; i < context.dict->n && ok; i++)
            ok = dict_put(r, d, context.dict->at[i].key, context.dict->at[i].value);
    }
    for (size_t i = 0; i < dialogue->n_variables && ok; i++)
        ok = (dialogue->user.data != NULL && slice_is(dialogue->variables[i].name, "messages")) ||
             put_variable(r, d, &dialogue->variables[i]);
    return ok || failed(r, err);
}

bool
chat_render(const struct chat *c, const struct chat_dialogue *dialogue, char **text, size_t *len, struct err *err)
{
    struct render r = begin(dialogue->bounds != NULL ? dialogue->bounds : &chat_bounds);
    struct dict *given = render_dict(&r);
    struct buffer out = {0};
    r.now = dialogue->now;
    r.cancelled = dialogue->cancelled;
    r.guarded = dialogue->guard != NULL;
    r.scope = render_scope(&r, NULL);
    *text = NULL;
    bool ok = given != NULL && r.scope != NULL ? set_scene(&r, given, dialogue, err) : failed(&r, err);
    if (ok) {
        r.given = given;
        ok = execute(&r, c->first, &out) == ENDS_NORMALLY || failed(&r, err);
    }
    if (ok && dialogue->guard != NULL && !take_marks(&out, dialogue->guard))
        ok = err_set(err, ERR_WORK, "out of memory for a prompt of %zu bytes", out.len);
    if (ok && (*text = malloc(out.len + 1)) == NULL)
        ok = err_set(err, ERR_WORK, "out of memory for a prompt of %zu bytes", out.len);
    if (ok) {
        if (out.len > 0)
            memcpy(*text, out.at, out.len);
        (*text)[out.len] = '\0';
        *len = out.len;
    }
    arena_free(&r.arena);
    return ok;
}
