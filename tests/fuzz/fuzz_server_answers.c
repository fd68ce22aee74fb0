/* Answers of servers: bytes become server-sent events, JSON and rounds of each kind of server. Every number of a round
 * is within its bounds, and an answer is refused in one line. The first byte chooses whether tokens are limited. */
#include "base/json_read.h"
#include "engine/remote/server_kind.h"
#include "engine/remote/sse.h"
#include "tests/fuzz/fuzz.h"

#define VOCAB 1000
#define MOST  40 /* tokens that were requested */

struct answer {
    const struct server_kind *kind;
    struct server_answer of;
    uint64_t tokens, sum; /* sum: of all bytes, which are read for it */
};

static void
word(void *user, token_t token, const char *bytes, size_t n)
{
    MUST(token >= 0 && token < VOCAB);
    for (size_t i = 0; i < n; i++)
        ((struct answer *)user)->sum += (unsigned char)bytes[i];
}

static bool
known(void *user, token_t token)
{
    (void)user;
    MUST(token >= 0 && token < VOCAB);
    return true; /* else the server is asked */
}

/* Answers as /tokenize does: each byte of the content is a token, if there is one. */
static cJSON *
ask(void *user, const char *path, cJSON *json)
{
    (void)user, (void)path;
    cJSON *answer = cJSON_CreateObject(), *tokens = cJSON_AddArrayToObject(answer, "tokens");
    for (const char *c = server_text(json, "content"); *c != '\0'; c++) {
        cJSON *token = cJSON_CreateObject();
        cJSON_AddNumberToObject(token, "id", (double)*c);
        cJSON_AddStringToObject(token, "piece", "x");
        cJSON_AddItemToArray(tokens, token);
    }
    cJSON_Delete(json);
    return answer;
}

static bool
take_round(void *user, const struct server_round *r, const struct server_token *tokens)
{
    struct answer *a = user;
    MUST(r->n <= a->of.n_tokens && r->drafted < VERIFY_NODES && r->accepted <= r->drafted);
    MUST(r->uncounted || r->n <= (size_t)r->accepted + 1);
    for (size_t i = 0; i < r->n; i++) {
        MUST(tokens[i].token >= 0 && tokens[i].token < VOCAB && tokens[i].n_top <= PREDICTION_TOP);
        for (uint32_t k = 0; k < tokens[i].n_top; k++) {
            MUST(tokens[i].top[k] >= TOKEN_NONE && tokens[i].top[k] < VOCAB);
            MUST(tokens[i].top_p[k] >= 0 && tokens[i].top_p[k] <= 1);
            MUST(k == 0 || tokens[i].top_p[k] <= tokens[i].top_p[k - 1]);
        }
    }
    a->tokens += r->n;
    MUST(a->of.most == 0 || a->tokens <= a->of.most);
    return a->tokens < 4096;
}

static bool
take_event(void *user, char *data, size_t n)
{
    struct answer *a = user;
    cJSON *event = NULL;
    MUST(json_read(&event, data, n));
    const bool going = cJSON_IsObject(event) && a->kind->event(&a->of, event);
    cJSON_Delete(event);
    return going;
}

static void
feed(const struct server_kind *kind, const char *bytes, size_t n, bool limited)
{
    static const struct server_facts facts = {.vocab = VOCAB, .drafts = 3};
    struct sse sse = {.most = 1 << 20};
    struct answer a = {.kind = kind,
                       .of = {.facts = &facts,
                              .word = word,
                              .known = known,
                              .ask = ask,
                              .round = take_round,
                              .most = limited ? MOST : 0,
                              .first = true}};
    a.of.user = &a;
    sse_feed(&sse, bytes, n, take_event, &a);
    if (a.of.err.kind == ERR_NONE && kind->finish != NULL)
        kind->finish(&a.of);
    if (a.of.err.kind != ERR_NONE)
        must_refuse(&a.of.err);
    MUST(memchr(a.of.end, '\0', sizeof a.of.end) != NULL);
    sse_close(&sse);
    free(a.of.tokens);
    free(a.of.later);
    free(a.of.steps);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t k = 0; size > 0 && server_kinds[k] != NULL; k++)
        feed(server_kinds[k], (const char *)data + 1, size - 1, (data[0] & 1) != 0);
    return 0;
}

/* Changes the JSON of one event, or lines. */
static size_t
mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    static const char before[] = "data: ";
    const size_t n_before = sizeof before - 1;
    uint8_t *at = data, *chosen = NULL;
    unsigned n = 0;
    while ((at = memmem(at, size - (size_t)(at - data), before, n_before)) != NULL) {
        at += n_before;
        chosen = (seed >> 3) % ++n == 0 ? at : chosen;
    }
    if (chosen == NULL || seed % 4 == 0)
        return mutate_lines(data, size, max_size, seed);
    const size_t rest = size - (size_t)(chosen - data);
    const uint8_t *end = memchr(chosen, '\n', rest);
    const size_t old = end != NULL ? (size_t)(end - chosen) : rest, room = max_size - size + old;
    uint8_t *json = malloc(room + 1);
    if (json == NULL || room == 0) {
        free(json);
        return size;
    }
    memcpy(json, chosen, old);
    const size_t new = mutate_json(json, old, room, seed);
    memmove(chosen + new, chosen + old, rest - old);
    memcpy(chosen, json, new);
    free(json);
    return size - old + new;
}

MUTATOR(mutate(data, size, max_size, seed));
