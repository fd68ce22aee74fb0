/* What all kinds of servers share: asking, checked reading of their JSON, and the rounds of an answer. */
#include "engine/remote/server_kind.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/json_read.h"
#include "base/utf8.h"

#define ASK_S 120 /* that a server may take for a prompt's tokens, or to describe itself */

const struct server_kind *const server_kinds[] = {&llama_server_kind, &vllm_kind, &sglang_kind, NULL};

/* ---- asking ---- */

cJSON *
server_json(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cJSON_Parse(text);
}

const cJSON *
server_at(const cJSON *from, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(from, name);
}

const char *
server_text(const cJSON *from, const char *name)
{
    const char *text = cJSON_GetStringValue(server_at(from, name));
    return text != NULL ? text : "";
}

uint64_t
server_number(const cJSON *from, const char *name, uint64_t limit)
{
    const double x = cJSON_GetNumberValue(server_at(from, name));
    return x > 0 && x < (double)limit && x == floor(x) ? (uint64_t)x : 0;
}

void
server_label(char *out, size_t n, const char *text)
{
    printable_line(out, n, text, strlen(text));
}

void
server_model(char *out, size_t n, const char *name)
{
    const char *slash = strrchr(name, '/');
    server_label(out, n, slash != NULL && slash[1] != '\0' ? slash + 1 : name);
}

cJSON *
server_ask(struct http *http, const char *path, cJSON *json, struct err *err)
{
    char *body = json != NULL ? cJSON_PrintUnformatted(json) : NULL, *text = NULL;
    cJSON *answer = NULL;
    size_t n;
    int status;
    err->kind = ERR_NONE;
    if (json != NULL && body == NULL) {
        err_set(err, ERR_WORK, "out of memory for a request");
    } else if (http_call(http, path, body, ASK_S, &status, &text, &n, err)) {
        if (status == 200 && !json_read(&answer, text, n))
            err_set(err, ERR_WORK, "out of memory for the server's answer");
        else if (status != 200 && status != 404)
            http_refused(http, path, status, text, n, err);
    }
    cJSON_Delete(json);
    cJSON_free(body);
    free(text);
    return answer;
}

cJSON *
server_messages(const struct server_prompt *p)
{
    cJSON *list = cJSON_Parse(p->before != NULL && p->before[0] != '\0' ? p->before : "[]"), *message;
    const bool own = strcmp(server_text(cJSON_GetArrayItem(list, 0), "role"), "system") == 0;
    if (p->system != NULL && !own) {
        message = server_json("{\"role\":\"system\"}");
        cJSON_AddStringToObject(message, "content", p->system);
        cJSON_InsertItemInArray(list, 0, message);
    }
    message = server_json("{\"role\":\"user\"}");
    cJSON_AddStringToObject(message, "content", p->text);
    cJSON_AddItemToArray(list, message);
    return list;
}

/* ---- answers ---- */

bool
answer_refuse(struct server_answer *a, const char *why)
{
    return err_set(&a->err, ERR_WORK, "the server's answer %s", why);
}

struct server_token *
answer_token(struct server_answer *a, const cJSON *id)
{
    const double x = cJSON_GetNumberValue(id);
    const char *why = NULL;
    if (!(x >= 0 && x < a->facts->vocab && x == floor(x)))
        why = "contains a token that its vocabulary lacks";
    else if (++a->read > a->most && a->most > 0)
        why = "contains more tokens than were requested";
    else if (!array_grow(&a->tokens, &a->room, a->n_tokens + 1, sizeof *a->tokens))
        why = "is larger than the memory";
    if (why != NULL) {
        answer_refuse(a, why);
        return NULL;
    }
    if (a->now.n++ == 0)
        a->now.us = a->us;
    struct server_token *t = &a->tokens[a->n_tokens++];
    *t = (struct server_token){.token = (token_t)x};
    for (int i = 0; i < PREDICTION_TOP; i++)
        t->top[i] = TOKEN_NONE;
    return t;
}

void
answer_top(const struct server_answer *a, struct server_token *t, double id, double logprob)
{
    uint32_t i = t->n_top;
    const float p = (float)exp(logprob);
    if (i == PREDICTION_TOP || !(id >= 0 && id < a->facts->vocab && logprob <= 0))
        return;
    for (; i > 0 && p > t->top_p[i - 1]; i--) {
        t->top[i] = t->top[i - 1];
        t->top_p[i] = t->top_p[i - 1];
    }
    t->top[i] = (token_t)id;
    t->top_p[i] = p;
    t->n_top++;
}

bool
answer_round(struct server_answer *a, const struct server_round *r)
{
    if (r->drafted >= VERIFY_NODES || r->accepted > r->drafted || (r->n > (size_t)r->accepted + 1 && !r->uncounted))
        return answer_refuse(a, "contains counts of drafts that are not possible");
    const bool going = a->round(a->user, r, a->tokens);
    a->n_tokens -= r->n;
    memmove(a->tokens, a->tokens + r->n, a->n_tokens * sizeof *a->tokens);
    return going;
}

/* Pieces of a byte-level BPE spell each byte as a character: printable ones of Latin-1 as themselves, others from
 * U+0100 on, in order. Other pieces have U+2581 for a space and <0x0A> for a byte. */
static size_t
piece_character(const char *piece, size_t n, bool marks, char out[4], size_t *read)
{
    uint32_t code;
    *read = utf8_character(piece, n, &code);
    if (*read == 0) {
        *read = 1;
        out[0] = piece[0];
        return 1;
    }
    for (uint32_t byte = 0, hidden = 256; !marks && byte < 256; byte++) {
        const bool shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        if (code == (shown ? byte : hidden++)) {
            out[0] = (char)byte;
            return 1;
        }
    }
    if (marks && *read == 1 && n == 6 && memcmp(piece, "<0x", 3) == 0 && piece[5] == '>') {
        out[0] = (char)(hex_digit(piece[3]) * 16 + hex_digit(piece[4]));
        *read = 6;
        return 1;
    }
    return utf8_put(out, marks && code == 0x2581 ? ' ' : code);
}

void
answer_piece(struct server_answer *a, token_t token, const char *piece, size_t n)
{
    char bytes[256];
    size_t used = 0, read;
    for (size_t i = 0; i < n && used + 4 <= sizeof bytes; i += read)
        used += piece_character(piece + i, n - i, a->facts->marks_spaces, bytes + used, &read);
    a->word(a->user, token, bytes, used);
}

/* ---- counters ---- */

/* Adds the value of a line of /metrics: several engines of one server have lines of their own, and so has each
 * position. `rest`: the line after its name. */
static void
add_metric(cJSON *to, const char *name, const char *rest)
{
    const char *labels = rest[0] == '{' ? strchr(rest, '}') : NULL, *place = strstr(rest, "position=\"");
    const double value = strtod(labels != NULL ? labels + 1 : rest, NULL);
    const unsigned long i = place != NULL ? strtoul(place + 10, NULL, 10) : 0;
    cJSON *sum = cJSON_GetObjectItem(to, name);
    if (!(value >= 0 && value < 1e15) || i >= VERIFY_NODES)
        return;
    if (sum == NULL)
        sum = place != NULL ? cJSON_AddArrayToObject(to, name) : cJSON_AddNumberToObject(to, name, 0);
    for (int n = cJSON_GetArraySize(sum); place != NULL && n <= (int)i; n++)
        cJSON_AddItemToArray(sum, cJSON_CreateNumber(0));
    if (place != NULL)
        sum = cJSON_GetArrayItem(sum, (int)i);
    if (sum != NULL)
        cJSON_SetNumberValue(sum, sum->valuedouble + value);
}

cJSON *
server_counters(const struct server_kind *k, char *text)
{
    cJSON *counters = cJSON_CreateObject();
    for (char *rest, *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        const size_t n = strcspn(line, "{ ");
        for (const struct server_metric *m = k->metrics; m->name != NULL; m++)
            if (strlen(m->metric) == n && memcmp(line, m->metric, n) == 0)
                add_metric(counters, m->name, line + n);
    }
    return counters;
}
