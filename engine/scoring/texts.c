#include "engine/scoring/texts.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/file_read.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/utf8.h"

#define FILE_MOST   ((size_t)64 << 20)
#define BEFORE_MOST ((size_t)256 << 20) /* bytes of all `before`, which repeat the messages of a dialogue */
#define BLOCK       400                 /* least bytes of a conversation of plain text, if as many follow */
#define BLOCK_ASKS  64                  /* most bytes of its prompt */

/* Members of a line; a number is an index of a list. The first that is text or a list is used. */
#define MESSAGES "messages conversations conversation request.messages request.body.messages body.messages"
#define PROMPTS  "prompt question request.prompt request.body.prompt body.prompt"
#define ANSWERS                                                                                                        \
    "choices.0.message.content choices.0.text response.choices.0.message.content response.choices.0.text "             \
    "response.body.choices.0.message.content response.body.choices.0.text response.message.content "                   \
    "completion.0.content completion response output answer"

#define FORMS "none of: \"messages\", \"conversations\", \"prompt\" and \"completion\", or \"text\""

struct parser {
    struct texts *t;
    struct blocks *b; /* of t; `starved` is checked at the end */
    const char *name;
    struct conversation c; /* the one that is read */
    size_t before;         /* bytes of all `before` */
};

void
texts_add(struct texts *t, const struct conversation *c)
{
    t->skipped += c->n == 0;
    if (c->n == 0 || t->blocks.starved)
        return;
    t->blocks.starved = !array_grow(&t->at, &t->room, t->n + 1, sizeof *t->at);
    if (!t->blocks.starved)
        t->at[t->n++] = *c;
}

static void *
copy(struct parser *p, const void *bytes, size_t n)
{
    void *made = blocks_take(p->b, n + 1, 1);
    return made != NULL ? memcpy(made, bytes, n) : NULL;
}

/* Returns the first member of these paths that is text or a list; NULL: there is none. */
static cJSON *
find(const cJSON *line, const char *paths)
{
    char key[16];
    const cJSON *from = line;
    for (const char *at = paths;; at++) {
        const int n = (int)strcspn(at, ". ");
        snprintf(key, sizeof key, "%.*s", n, at);
        cJSON *item = *at != '0'            ? cJSON_GetObjectItemCaseSensitive(from, key)
                      : cJSON_IsArray(from) ? from->child
                                            : NULL;
        at += n;
        if (*at != '.' && (cJSON_IsString(item) || cJSON_IsArray(item)))
            return item;
        if (*at == '\0')
            return NULL;
        from = *at == ' ' ? line : item;
    }
}

static const char *
text_in(const cJSON *item)
{
    const char *text = cJSON_GetStringValue(cJSON_IsString(item) ? item : find(item, "text"));
    return text != NULL ? text : "";
}

/* Returns a copy of a text, or of the text parts of a list, joined; "" if there is none. */
static char *
text_of(struct parser *p, const cJSON *content)
{
    const bool list = cJSON_IsArray(content);
    const cJSON *first = list ? content->child : content;
    size_t n = 0;
    for (const cJSON *part = first; part != NULL; part = list ? part->next : NULL)
        n += strlen(text_in(part));
    char *text = blocks_take(p->b, n + 1, 1), *at = text;
    for (const cJSON *part = first; part != NULL && text != NULL; part = list ? part->next : NULL)
        at = stpcpy(at, text_in(part));
    return text;
}

/* Adds a conversation, of those exchanges that have a prompt and an answer. all: NULL if memory ran out. */
static void
add_conversation(struct parser *p, struct exchange *all, uint32_t n)
{
    struct conversation c = p->c;
    c.exchange = all;
    for (const struct exchange *e = all; e < all + n && !p->b->starved; e++)
        if (e->prompt != NULL && e->prompt[0] != '\0' && e->answer[0] != '\0')
            all[c.n++] = *e;
    texts_add(p->t, &c);
}

static void
add_single(struct parser *p, struct exchange e)
{
    add_conversation(p, copy(p, &e, sizeof e), 1);
}

/* ---- JSON ---- */

/* Returns the exchange of a message of the list. */
static struct exchange
exchange_of(struct parser *p, const cJSON *list, cJSON *user, char *prompt, char *answer)
{
    struct exchange e = {.prompt = prompt, .answer = answer};
    if (user == list->child)
        return e;
    user->prev->next = NULL; /* the messages up to the one before it */
    char *before = p->before < BEFORE_MOST ? cJSON_PrintUnformatted(list) : NULL;
    user->prev->next = user;
    const size_t n = before != NULL ? strlen(before) : 0;
    p->before += before != NULL ? n : BEFORE_MOST;
    e.before = copy(p, before != NULL ? before : "", n);
    cJSON_free(before);
    return e;
}

/* Adds the answers in a list of messages. All get the usual names, role and content, and keep other members, such as
 * calls of tools. last: the answer after the list; or NULL. */
static void
add_messages(struct parser *p, const cJSON *list, const cJSON *last)
{
    static const char *const old[] = {"role", "from", "content", "value"};
    static const char *const other[] = {"human", "prompter", "gpt", "chatgpt", "bing", "bard", "model"};
    struct exchange *all = blocks_take(p->b, (size_t)cJSON_GetArraySize(list) + 1, sizeof *all);
    uint32_t n = 0;
    cJSON *user = NULL;
    char *prompt = NULL;
    for (cJSON *m = list->child; m != NULL && !p->b->starved; m = m->next) {
        char role[24] = "", *text = text_of(p, find(m, "content value"));
        const char *named = cJSON_GetStringValue(find(m, "role from"));
        snprintf(role, sizeof role, "%s", named != NULL ? named : "");
        for (size_t i = 0; i < sizeof other / sizeof *other; i++)
            if (strcmp(role, other[i]) == 0)
                snprintf(role, sizeof role, "%s", i < 2 ? "user" : "assistant");
        for (int i = 0; i < 4; i++)
            cJSON_DeleteItemFromObjectCaseSensitive(m, old[i]);
        if (text == NULL || cJSON_AddStringToObject(m, "role", role) == NULL ||
            cJSON_AddStringToObject(m, "content", text) == NULL)
            p->b->starved = true;
        else if (user != NULL && strcmp(role, "assistant") == 0)
            all[n++] = exchange_of(p, list, user, prompt, text);
        user = strcmp(role, "user") == 0 ? m : NULL;
        prompt = text;
    }
    if (user != NULL && !p->b->starved)
        all[n++] = exchange_of(p, list, user, prompt, text_of(p, last));
    add_conversation(p, all, n);
}

static const char *
after_spaces(const char *at, const char *stop)
{
    while (at < stop && isspace((unsigned char)*at))
        at++;
    return at;
}

/* Adds text without messages. Its prompt is the first line, or its beginning up to a space. */
static void
add_text(struct parser *p, const char *at, size_t len)
{
    const char *stop = at + len;
    at = after_spaces(at, stop);
    const size_t n = stop - at < BLOCK_ASKS ? (size_t)(stop - at) : BLOCK_ASKS;
    const char *split = memchr(at, '\n', n);
    split = split != NULL ? split : memrchr(at, ' ', n);
    split = split != NULL ? split : at + n - text_incomplete(at, n);
    add_single(p, (struct exchange){.prompt = copy(p, at, (size_t)(split - at)),
                                    .answer = copy(p, split, (size_t)(stop - split))});
}

/* Adds the conversation of an object or of a list of messages, or those of a list. */
static bool
add_value(struct parser *p, const cJSON *value, struct err *err)
{
    bool ok = true;
    if (cJSON_IsArray(value) && find(value->child, "role from") == NULL) {
        for (const cJSON *item = value->child; item != NULL && ok && !p->b->starved; item = item->next)
            ok = add_value(p, item, err);
        return ok;
    }
    const cJSON *list = cJSON_IsArray(value) ? value : find(value, MESSAGES), *prompt = find(value, PROMPTS),
                *answer = find(value, ANSWERS), *text = find(value, "text"), *category = find(value, "category");
    if (list == NULL && cJSON_IsArray(prompt) && cJSON_IsObject(prompt->child))
        list = prompt;
    p->c = (struct conversation){.messages = list != NULL};
    if (cJSON_IsString(category))
        printable_text(category->valuestring, strlen(category->valuestring), p->c.category, sizeof p->c.category);
    if (list != NULL)
        add_messages(p, list, answer);
    else if (prompt != NULL)
        add_single(p, (struct exchange){.prompt = text_of(p, prompt), .answer = text_of(p, answer)});
    else if (cJSON_IsString(text))
        add_text(p, text->valuestring, strlen(text->valuestring));
    else
        p->t->skipped++;
    if (list == NULL && prompt == NULL && answer == NULL && text == NULL)
        return err_set(err, ERR_USAGE, "%s: conversation %zu has " FORMS, p->name, p->t->n + p->t->skipped);
    return p->before < BEFORE_MOST ||
           err_set(err, ERR_USAGE, "%s: too long dialogues to be read at once; split the file", p->name);
}

/* Reads JSON lines, or one JSON value if the first line is not one. */
static bool
parse_json(struct parser *p, const char *at, const char *stop, struct err *err)
{
    bool ok = true;
    size_t line = 1, wrong;
    for (const char *next; at < stop && ok && !p->b->starved; at = next + 1, line++) {
        cJSON *root = NULL;
        next = memchr(at, '\n', (size_t)(stop - at));
        next = next != NULL ? next : stop;
        if (after_spaces(at, next) == next)
            continue;
        p->b->starved = !json_read_typed(&root, at, (size_t)(next - at), &wrong);
        if (root == NULL && p->t->n + p->t->skipped == 0 && !p->b->starved) {
            next = stop;
            p->b->starved = !json_read_typed(&root, at, (size_t)(stop - at), &wrong);
        }
        if (root != NULL)
            ok = add_value(p, root, err);
        else if (!p->b->starved)
            ok = err_set(err, ERR_USAGE, "%s:%zu: not JSON; each line has to be an object", p->name, line + wrong - 1);
        cJSON_Delete(root);
    }
    return ok;
}

/* ---- plain text ---- */

static bool
parse_plain(struct parser *p, const char *at, const char *stop, struct err *err)
{
    if (memchr(at, '\0', (size_t)(stop - at)) != NULL)
        return err_set(err, ERR_USAGE, "%s: neither JSON nor text", p->name);
    for (const char *next; at < stop && !p->b->starved; at = next) {
        next = stop - at > 2 * BLOCK ? memmem(at + BLOCK, (size_t)(stop - at - 2 * BLOCK), "\n\n", 2) : NULL;
        next = next != NULL ? next : stop;
        add_text(p, at, (size_t)(next - at));
    }
    return true;
}

bool
texts_finish(struct texts *t, bool ok, const char *name, struct err *err)
{
    if (t->blocks.starved)
        ok = err_set(err, ERR_WORK, "%s: cannot be read: out of memory", name);
    else if (ok && t->n == 0)
        ok = err_set(err, ERR_USAGE, "%s: no answer in it: a conversation is a prompt and what followed it", name);
    if (!ok)
        texts_free(t);
    return ok;
}

bool
texts_parse(struct texts *t, const char *bytes, size_t len, const char *name, struct err *err)
{
    struct parser p = {.t = t, .b = &t->blocks, .name = name};
    const char *stop = bytes + len, *at = bytes + (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    const char *first = after_spaces(at, stop);
    const bool json = first < stop && (*first == '{' || *first == '[');
    *t = (struct texts){0};
    return texts_finish(t, json ? parse_json(&p, at, stop, err) : parse_plain(&p, at, stop, err), name, err);
}

void
texts_free(struct texts *t)
{
    free(t->at);
    blocks_free(&t->blocks);
    *t = (struct texts){0};
}

bool
texts_read(struct texts *t, const char *path, struct err *err)
{
    char *bytes;
    size_t len;
    const bool input = strcmp(path, "-") == 0;
    *t = (struct texts){0};
    if (!(input ? file_text_from(STDIN_FILENO, path, FILE_MOST, &bytes, &len, err)
                : file_text_or_pipe(path, FILE_MOST, &bytes, &len, err)))
        return false;
    const bool ok = texts_parse(t, bytes, len, path, err);
    free(bytes);
    return ok;
}
