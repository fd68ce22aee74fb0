/* Finds the turns of a conversation in the tokens of its prompt. */
#include "tui/panels/text_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

void
turns_free(struct turns *t)
{
    free(t->turn);
    *t = (struct turns){0};
}

struct haystack {
    char *bytes; /* (n) of the prompt; owned */
    bool *edge;  /* (n + 1) a token begins or ends here; owned */
    size_t n;
};

static bool
read_prompt(struct haystack *h, const struct scope *s, uint32_t prompt)
{
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        for (uint32_t pos = 0; pos < prompt; pos++) {
            const struct scope_column *c = scope_column(s, pos);
            uint32_t length = 0;
            const char *token = c != NULL ? scope_bytes(s, c->token, &length) : NULL;
            if (pass > 0 && token != NULL)
                memcpy(h->bytes + n, token, length);
            n += length;
            if (pass > 0)
                h->edge[n] = true;
        }
        if (pass > 0)
            break;
        h->n = n;
        h->bytes = malloc(n + 1);
        h->edge = calloc(n + 1, sizeof *h->edge);
        if (h->bytes == NULL || h->edge == NULL)
            return false;
        h->edge[0] = true;
    }
    return true;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Finds the last place before `end` where the text fills whole tokens, apart from blanks at their edges. */
static bool
find_last(const struct haystack *h, size_t end, const char *text, size_t n, struct turn *out)
{
    for (size_t at = n > 0 && n <= end ? end - n + 1 : 0; at-- > 0;)
        if (h->bytes[at] == text[0] && (h->edge[at] || is_blank(h->bytes[at - 1])) &&
            (h->edge[at + n] || is_blank(h->bytes[at + n])) && memcmp(h->bytes + at, text, n) == 0) {
            out->from = at;
            out->to = at + n;
            return true;
        }
    return false;
}

/* Finds a message without its outer blanks. Of an answer, a template may omit the beginning (thoughts): then the text
 * from a later line on is searched. */
static bool
find_message(const struct haystack *h, size_t end, const char *role, const char *text, struct turn *out)
{
    const bool answer = strcmp(role, "assistant") == 0;
    size_t n = strlen(text);
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    out->label = answer ? "model ›" : strcmp(role, "system") == 0 ? "system ›" : "you ›";
    for (size_t from = 0; from < n; from++) {
        while (is_blank(text[from]))
            from++;
        if (find_last(h, end, text + from, n - from, out))
            return true;
        const char *line = answer ? memchr(text + from, '\n', n - from) : NULL;
        if (line == NULL)
            break;
        from = (size_t)(line - text);
    }
    return false;
}

/* Finds the messages from the last one to the first. */
static void
find_all(struct turns *t, const struct haystack *h, const cJSON *before, const char *prompt, const char *system)
{
    const int earlier = cJSON_GetArraySize(before);
    size_t end = h->n, at = t->n;
    bool found = find_message(h, end, "user", prompt, &t->turn[--at]);
    /* without markup after it, the prompt is continued and no turn */
    found = found && t->turn[at].to < h->n;
    for (int i = earlier - 1; i >= 0 && found; i--) {
        const cJSON *message = cJSON_GetArrayItem(before, i);
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItem(message, "role")),
                   *text = cJSON_GetStringValue(cJSON_GetObjectItem(message, "content"));
        end = t->turn[at].from;
        found = role != NULL && text != NULL && find_message(h, end, role, text, &t->turn[at - 1]);
        at -= found;
    }
    if (found && system != NULL && strcmp(t->turn[at].label, "system ›") != 0)
        at -= find_message(h, t->turn[at].from, "system", system, &t->turn[at - 1]);
    t->n = found ? t->n - at : 0;
    t->preface = found && strcmp(t->turn[at].label, "system ›") != 0;
    memmove(t->turn, t->turn + at, t->n * sizeof *t->turn);
}

bool
turns_find(struct turns *t, const struct scope *s, uint32_t prompt)
{
    const struct segments *all = scope_now(s)->segments;
    const char *text = segments_prompt(all, segments_now(all)), *before = segments_before(all, segments_now(all));
    struct haystack h = {0};
    cJSON *messages = NULL;
    turns_free(t);
    if (!scope_info(s)->asked.chat || text == NULL || prompt == 0 || scope_first(s) > 0)
        return true;
    bool ok = before == NULL || json_read(&messages, before, strlen(before));
    const size_t n = (size_t)cJSON_GetArraySize(messages) + 2; /* the prompt, and a system message */
    ok = ok && read_prompt(&h, s, prompt) && (t->turn = calloc(n, sizeof *t->turn)) != NULL;
    if (ok) {
        t->n = n;
        find_all(t, &h, messages, text, scope_info(s)->asked.system);
    }
    cJSON_Delete(messages);
    free(h.bytes);
    free(h.edge);
    return ok;
}
