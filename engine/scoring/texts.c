#include "engine/scoring/texts.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/file_read.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/utf8.h"
#include "traces/reader.h"

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
    const char *name;
    struct conversation c;  /* the one that is read; t->at has room for it if it has an exchange */
    size_t room, exchanges; /* of t->at and of c's exchanges */
    size_t before;          /* bytes of all `before` */
    bool starved;           /* memory ran out; checked at the end */
};

static bool
grow(struct parser *p, void *array, size_t *room, size_t n, size_t size)
{
    p->starved = p->starved || !array_grow(array, room, n + 1, size);
    return !p->starved;
}

static char *
copy(struct parser *p, const char *text, size_t n)
{
    char *made = strndup(text, n);
    p->starved = p->starved || made == NULL;
    return made;
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

/* Returns a copy of a text, or of the text parts of a list, joined; NULL: there is none. */
static char *
text_of(struct parser *p, const cJSON *content)
{
    char *text = cJSON_IsString(content) ? copy(p, content->valuestring, SIZE_MAX) : NULL;
    size_t n = 0, room = 0;
    for (const cJSON *part = cJSON_IsArray(content) ? content->child : NULL; part != NULL; part = part->next) {
        const char *add = cJSON_GetStringValue(cJSON_IsString(part) ? part : find(part, "text"));
        const size_t len = add != NULL ? strlen(add) : 0;
        if (len > 0 && grow(p, &text, &room, n + len, 1))
            memcpy(text + n, add, len + 1);
        n += len;
    }
    return text;
}

/* Takes over the texts. An exchange without a prompt or an answer is dropped. */
static void
add_exchange(struct parser *p, struct exchange e)
{
    const bool whole =
        e.ids != NULL || (e.prompt != NULL && *e.prompt != '\0' && e.answer != NULL && *e.answer != '\0');
    if (whole && grow(p, &p->t->at, &p->room, p->t->n, sizeof p->c) &&
        grow(p, &p->c.exchange, &p->exchanges, p->c.n, sizeof e)) {
        p->c.exchange[p->c.n++] = e;
        return;
    }
    free(e.before);
    free(e.prompt);
    free(e.answer);
    free(e.ids);
}

static void
end_conversation(struct parser *p)
{
    p->t->skipped += p->c.n == 0;
    if (p->c.n > 0)
        p->t->at[p->t->n++] = p->c;
    p->c = (struct conversation){0};
    p->exchanges = 0;
}

/* ---- JSON ---- */

/* Adds the answer to a message of the list. */
static void
add_answer(struct parser *p, const cJSON *list, cJSON *user, const cJSON *answer)
{
    char *before = NULL;
    if (p->before >= BEFORE_MOST)
        return;
    if (user != list->child) { /* the messages up to the one before it */
        user->prev->next = NULL;
        before = cJSON_PrintUnformatted(list);
        user->prev->next = user;
        p->starved = p->starved || before == NULL;
        p->before += before != NULL ? strlen(before) : 0;
    }
    add_exchange(p, (struct exchange){before, text_of(p, find(user, "content")), text_of(p, answer), NULL, 0, 0});
}

/* Adds the answers in a list of messages. All get the usual names, role and content, and keep other members, such as
 * calls of tools. last: the answer after the list; or NULL. */
static void
add_messages(struct parser *p, const cJSON *list, const cJSON *last)
{
    static const char *const old[] = {"role", "from", "content", "value"}, *const other[] = {
                                                                               "human", "prompter", "gpt",  "chatgpt",
                                                                               "bing",  "bard",     "model"};
    cJSON *user = NULL;
    for (cJSON *m = list->child; m != NULL; m = m->next) {
        char role[24] = "", *text = text_of(p, find(m, "content value"));
        snprintf(role, sizeof role, "%s",
                 cJSON_IsString(find(m, "role from")) ? find(m, "role from")->valuestring : "");
        for (size_t i = 0; i < sizeof other / sizeof *other; i++)
            if (strcmp(role, other[i]) == 0)
                strcpy(role, i < 2 ? "user" : "assistant");
        for (int i = 0; i < 4; i++)
            cJSON_DeleteItemFromObjectCaseSensitive(m, old[i]);
        cJSON_AddStringToObject(m, "role", role);
        p->starved = cJSON_AddStringToObject(m, "content", text != NULL ? text : "") == NULL || p->starved;
        if (user != NULL && strcmp(role, "assistant") == 0)
            add_answer(p, list, user, find(m, "content"));
        user = strcmp(role, "user") == 0 ? m : NULL;
        free(text);
    }
    if (user != NULL)
        add_answer(p, list, user, last);
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
    add_exchange(p, (struct exchange){.prompt = copy(p, at, (size_t)(split - at)),
                                      .answer = copy(p, split, (size_t)(stop - split))});
}

/* Adds the conversation of an object or of a list of messages, or those of a list. */
static bool
add_value(struct parser *p, const cJSON *value, struct err *err)
{
    bool ok = true;
    if (cJSON_IsArray(value) && find(value->child, "role from") == NULL) {
        for (const cJSON *item = value->child; item != NULL && ok && !p->starved; item = item->next)
            ok = add_value(p, item, err);
        return ok;
    }
    const cJSON *list = cJSON_IsArray(value) ? value : find(value, MESSAGES), *prompt = find(value, PROMPTS),
                *answer = find(value, ANSWERS), *text = find(value, "text"), *category = find(value, "category");
    if (list == NULL && cJSON_IsArray(prompt) && cJSON_IsObject(prompt->child))
        list = prompt;
    p->c.messages = list != NULL;
    if (cJSON_IsString(category))
        printable_text(category->valuestring, strlen(category->valuestring), p->c.category, sizeof p->c.category);
    if (list != NULL)
        add_messages(p, list, answer);
    else if (prompt != NULL)
        add_exchange(p, (struct exchange){.prompt = text_of(p, prompt), .answer = text_of(p, answer)});
    else if (cJSON_IsString(text))
        add_text(p, text->valuestring, strlen(text->valuestring));
    end_conversation(p);
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
    for (const char *next; at < stop && ok && !p->starved; at = next + 1, line++) {
        cJSON *root = NULL;
        next = memchr(at, '\n', (size_t)(stop - at));
        next = next != NULL ? next : stop;
        if (after_spaces(at, next) == next)
            continue;
        p->starved = !json_read_typed(&root, at, (size_t)(next - at), &wrong);
        if (root == NULL && p->t->n + p->t->skipped == 0 && !p->starved) {
            next = stop;
            p->starved = !json_read_typed(&root, at, (size_t)(stop - at), &wrong);
        }
        if (root != NULL)
            ok = add_value(p, root, err);
        else if (!p->starved)
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
    for (const char *next; at < stop && !p->starved; at = next) {
        next = stop - at > 2 * BLOCK ? memmem(at + BLOCK, (size_t)(stop - at - 2 * BLOCK), "\n\n", 2) : NULL;
        next = next != NULL ? next : stop;
        add_text(p, at, (size_t)(next - at));
        end_conversation(p);
    }
    return true;
}

static bool
finish(struct parser *p, bool ok, struct err *err)
{
    if (p->starved)
        ok = err_set(err, ERR_WORK, "%s: cannot be read: out of memory", p->name);
    else if (ok && p->t->n == 0)
        ok = err_set(err, ERR_USAGE, "%s: no answer in it: a conversation is a prompt and what followed it", p->name);
    if (!ok)
        texts_free(p->t);
    return ok;
}

bool
texts_parse(struct texts *t, const char *bytes, size_t len, const char *name, struct err *err)
{
    struct parser p = {.t = t, .name = name};
    const char *stop = bytes + len, *at = bytes + (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    const char *first = after_spaces(at, stop);
    const bool json = first < stop && (*first == '{' || *first == '[');
    *t = (struct texts){0};
    return finish(&p, json ? parse_json(&p, at, stop, err) : parse_plain(&p, at, stop, err), err);
}

void
texts_free(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++) {
        for (uint32_t k = 0; k < t->at[i].n; k++) {
            free(t->at[i].exchange[k].before);
            free(t->at[i].exchange[k].prompt);
            free(t->at[i].exchange[k].answer);
            free(t->at[i].exchange[k].ids);
        }
        free(t->at[i].exchange);
    }
    for (uint32_t i = 0; t->piece != NULL && i < t->vocab; i++)
        free(t->piece[i]);
    free(t->at);
    free(t->piece);
    *t = (struct texts){0};
}

/* ---- traces ---- */

struct traced { /* a sequence of a run */
    uint32_t run, seq;
    struct exchange of;
    size_t room; /* of its tokens */
    struct committed committed;
};

static void
take_token(struct parser *p, struct traced **all, size_t *n, size_t *room, const struct event *e)
{
    size_t i = 0; /* from the end */
    while (i < *n && ((*all)[*n - 1 - i].run != e->run || (*all)[*n - 1 - i].seq != e->seq))
        i++;
    if (i == *n) {
        if (!grow(p, all, room, *n, sizeof **all))
            return;
        (*all)[(*n)++] = (struct traced){.run = e->run, .seq = e->seq};
        i = 0;
    }
    struct traced *s = &(*all)[*n - 1 - i];
    const bool prompt = e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT;
    token_t token = e->token.token;
    enum token_source source;
    if ((prompt || committed_token(&s->committed, e, &token, &source)) &&
        grow(p, &s->of.ids, &s->room, s->of.n_ids, sizeof token)) {
        s->of.ids[s->of.n_ids++] = token;
        s->of.n_prompt += prompt;
    }
}

/* Takes over the tokens of a sequence. It is added if it has an answer and no other one has the same tokens. */
static void
add_sequence(struct parser *p, const struct exchange *e)
{
    bool other = e->n_prompt > 0 && e->n_ids > e->n_prompt;
    for (size_t i = 0; i < p->t->n && other; i++) {
        const struct exchange *o = p->t->at[i].exchange;
        other = o->n_ids != e->n_ids || memcmp(o->ids, e->ids, e->n_ids * sizeof *e->ids) != 0;
    }
    if (other)
        add_exchange(p, *e);
    else
        free(e->ids);
    end_conversation(p);
}

static bool
read_trace(struct parser *p, struct err *err)
{
    struct trace_reader *reader;
    struct traced *all = NULL;
    struct texts *t = p->t;
    struct event e;
    struct err why = {0};
    size_t n = 0, room = 0;
    if (!trace_reader_open(&reader, p->name, false, err))
        return false;
    t->vocab = trace_reader_info(reader)->vocab;
    p->starved = (t->piece = calloc(t->vocab, sizeof *t->piece)) == NULL;
    bool ok = !p->starved && trace_reader_rewind(reader, true, &why);
    while (ok && !p->starved && trace_reader_next(reader, &e, &why)) {
        if (e.type == EVENT_VOCAB && t->piece[e.vocab.token] == NULL)
            t->piece[e.vocab.token] = copy(p, e.vocab.bytes, e.vocab.n_bytes);
        if (e.type == EVENT_TOKEN || e.type == EVENT_VERDICT)
            take_token(p, &all, &n, &room, &e);
    }
    for (size_t i = 0; i < n; i++)
        add_sequence(p, &all[i].of);
    free(all);
    trace_reader_close(reader);
    return why.kind == ERR_NONE || err_copy(err, &why);
}

bool
texts_read(struct texts *t, const char *path, struct err *err)
{
    struct parser p = {.t = t, .name = path};
    struct stat about;
    char *bytes;
    size_t len;
    const bool input = strcmp(path, "-") == 0;
    *t = (struct texts){0};
    if (!input && stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return finish(&p, read_trace(&p, err), err);
    if (!(input ? file_text_from(STDIN_FILENO, path, FILE_MOST, &bytes, &len, err)
                : file_text_or_pipe(path, FILE_MOST, &bytes, &len, err)))
        return false;
    const bool ok = texts_parse(t, bytes, len, path, err);
    free(bytes);
    return ok;
}
