/* llama-server (llama.cpp, tried with 0.5.0). Its answer has an event for each token, with the numbers of drafted and
 * accepted tokens so far. Tokens of rounds with drafts come without probabilities. */
#include <stdio.h>
#include <string.h>

#include "engine/remote/server_kind.h"

static bool
recognise(struct http *http, struct server_facts *f, struct err *err)
{
    cJSON *props = server_ask(http, "/props", NULL, err), *models;
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(props, "default_generation_settings");
    const bool own = settings != NULL && cJSON_GetObjectItemCaseSensitive(props, "build_info") != NULL;
    if (own && (models = server_ask(http, "/v1/models", NULL, err)) != NULL) {
        const cJSON *model = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(models, "data"), 0);
        const cJSON *meta = cJSON_GetObjectItemCaseSensitive(model, "meta");
        const char *alias = server_text(props, "model_alias"), *name = strrchr(alias, '/');
        server_label(f->version, sizeof f->version, server_text(props, "build_info"));
        server_label(f->model, sizeof f->model, name != NULL ? name + 1 : alias);
        server_label(f->types, sizeof f->types, server_text(props, "model_ftype"));
        snprintf(f->id, sizeof f->id, "%s", server_text(model, "id"));
        f->ctx = (uint32_t)server_number(settings, "n_ctx", 1u << 28);
        f->vocab = (uint32_t)server_number(meta, "n_vocab", 1u << 24);
        f->width = (uint32_t)server_number(meta, "n_embd", 1u << 24);
        f->parameters = server_number(meta, "n_params", (uint64_t)1 << 53);
        cJSON_Delete(models);
    }
    cJSON_Delete(props);
    return own && err->kind == ERR_NONE;
}

static cJSON *
templated(struct http *http, const struct server_prompt *p, struct err *err)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "messages", server_messages(p, err));
    return server_ask(http, "/apply-template", json, err);
}

/* The piece of a token is a text, or its bytes as numbers if they are no UTF-8. */
static void
piece(struct server_answer *a, token_t token, const cJSON *piece)
{
    char bytes[256];
    size_t n = 0;
    const cJSON *byte;
    if (cJSON_IsString(piece)) {
        a->word(a->user, token, piece->valuestring, strlen(piece->valuestring));
        return;
    }
    cJSON_ArrayForEach(byte, piece) if (n < sizeof bytes) bytes[n++] = (char)byte->valueint;
    a->word(a->user, token, bytes, n);
}

static bool
tokens(struct http *http, const struct server_facts *f, const struct server_prompt *p, struct server_answer *a,
       struct err *err)
{
    (void)f;
    cJSON *text = p->chat ? templated(http, p, err) : NULL, *json = cJSON_CreateObject(), *answer = NULL;
    const cJSON *token;
    cJSON_AddStringToObject(json, "content", p->chat ? server_text(text, "prompt") : p->text);
    cJSON_AddTrueToObject(json, "add_special");
    cJSON_AddTrueToObject(json, "with_pieces");
    if (p->chat)
        cJSON_AddTrueToObject(json, "parse_special");
    else
        cJSON_AddFalseToObject(json, "parse_special");
    if (p->chat && text == NULL)
        cJSON_Delete(json);
    else
        answer = server_ask(http, "/tokenize", json, err);
    cJSON_ArrayForEach(token, cJSON_GetObjectItemCaseSensitive(answer, "tokens"))
    {
        const struct server_token *t = answer_token(a, cJSON_GetObjectItemCaseSensitive(token, "id"));
        if (t == NULL)
            break;
        piece(a, t->token, cJSON_GetObjectItemCaseSensitive(token, "piece"));
    }
    cJSON_Delete(text);
    cJSON_Delete(answer);
    return answer != NULL;
}

static void
request(cJSON *to, const struct server_facts *f, const struct server_request *r)
{
    static const char *const greedy[] = {"temperature"}, *const sampled[] = {"temperature", "top_k", "top_p"};
    (void)f;
    const bool samples = r->sampling.temperature > 0;
    server_add_ids(to, "prompt", r);
    cJSON_AddNumberToObject(to, "n_predict", r->tokens);
    cJSON_AddTrueToObject(to, "stream");
    cJSON_AddTrueToObject(to, "return_tokens");
    cJSON_AddTrueToObject(to, "timings_per_token");
    cJSON_AddNumberToObject(to, "n_probs", PREDICTION_TOP);
    cJSON_AddBoolToObject(to, "ignore_eos", r->ignore_eos);
    cJSON_AddNumberToObject(to, "temperature", (double)r->sampling.temperature);
    cJSON_AddItemToObject(to, "samplers", cJSON_CreateStringArray(samples ? sampled : greedy, samples ? 3 : 1));
    if (!samples)
        return;
    cJSON_AddNumberToObject(to, "top_k", r->sampling.top_k);
    cJSON_AddNumberToObject(to, "top_p", (double)r->sampling.top_p);
    cJSON_AddNumberToObject(to, "seed", (double)(r->seed % 0xffffffffu));
}

/* ---- the answer ---- */

static void
probabilities(struct server_answer *a, struct server_token *t, const cJSON *event)
{
    const cJSON *of = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(event, "completion_probabilities"), 0), *top;
    cJSON_ArrayForEach(top, cJSON_GetObjectItemCaseSensitive(of, "top_logprobs"))
    {
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(top, "id");
        const double x = cJSON_GetNumberValue(id);
        if (!(x >= 0 && x < a->facts->vocab))
            continue;
        piece(a, (token_t)x, cJSON_GetObjectItemCaseSensitive(top, "bytes"));
        answer_top(t, (token_t)x, cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(top, "logprob")));
    }
}

/* Completes the round that has begun, also if a stop has cut it. */
static bool
complete(struct server_answer *a)
{
    const struct server_round r = a->now;
    a->now = (struct server_round){0};
    return r.n == 0 || answer_round(a, &r);
}

/* A round's tokens have the same numbers so far; it has one more than drafts were accepted. Later tokens with these
 * numbers are of rounds without drafts. */
static bool
token(struct server_answer *a, const cJSON *event, const cJSON *id)
{
    const cJSON *timings = cJSON_GetObjectItemCaseSensitive(event, "timings");
    const uint64_t drafted = server_number(timings, "draft_n", 1u << 30),
                   accepted = server_number(timings, "draft_n_accepted", 1u << 30);
    if (drafted < a->drafted || accepted < a->accepted)
        return answer_refuse(a, "counts fewer drafts than before");
    if (drafted > a->drafted || (a->now.n > 0 && a->now.n == (size_t)a->now.accepted + 1)) {
        if (!complete(a))
            return false;
        a->now.drafted = (uint32_t)(drafted - a->drafted);
        a->now.accepted = (uint32_t)(accepted - a->accepted);
        a->drafted = drafted;
        a->accepted = accepted;
    }
    struct server_token *t = answer_token(a, id);
    if (t == NULL)
        return false;
    probabilities(a, t, event);
    const char *text = server_text(event, "content");
    a->word(a->user, t->token, text, strlen(text));
    return a->now.n <= a->now.accepted || complete(a);
}

static bool
event(struct server_answer *a, const cJSON *event)
{
    const cJSON *id;
    const char *why = server_text(event, "stop_type");
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(event, "tokens")) if (!token(a, event, id)) return false;
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(event, "stop")))
        return true;
    snprintf(a->end, sizeof a->end, "%s", strcmp(why, "limit") == 0 ? "tokens" : "eos");
    complete(a);
    return false;
}

const struct server_kind llama_server_kind = {
    .name = "llama-server",
    .path = "/completion",
    .recognise = recognise,
    .tokens = tokens,
    .request = request,
    .event = event,
    .drafts = "llamacpp:spec_decode_num_drafts_total",
    .drafted = "llamacpp:spec_decode_num_draft_tokens_total",
    .accepted = "llamacpp:spec_decode_num_accepted_tokens_total",
    .at = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
    .running = "llamacpp:requests_processing",
    .waiting = "llamacpp:requests_deferred",
    .tokens_per_s = "llamacpp:predicted_tokens_seconds",
    .no_change = "llama-server changes its speculation only at a start: --launch",
};
