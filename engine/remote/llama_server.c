/* llama-server (llama.cpp, tried with 0.5.0). Its answer has an event for each token, with the numbers of drafted and
 * accepted tokens so far. Tokens of rounds with drafts come without probabilities. */
#include <stdio.h>
#include <string.h>

#include "engine/remote/server_kind.h"

static bool
recognise(struct http *http, struct server_facts *f, struct err *err)
{
    cJSON *props = server_ask(http, "/props", NULL, err), *models;
    const bool own = server_at(props, "build_info") != NULL;
    if (own && (models = server_ask(http, "/v1/models", NULL, err)) != NULL) {
        const cJSON *meta = server_at(cJSON_GetArrayItem(server_at(models, "data"), 0), "meta");
        server_label(f->version, sizeof f->version, server_text(props, "build_info"));
        server_model(f->model, sizeof f->model, server_text(props, "model_alias"));
        server_label(f->types, sizeof f->types, server_text(props, "model_ftype"));
        f->ctx = (uint32_t)server_number(server_at(props, "default_generation_settings"), "n_ctx", 1u << 28);
        f->vocab = (uint32_t)server_number(meta, "n_vocab", 1u << 24);
        f->width = (uint32_t)server_number(meta, "n_embd", 1u << 24);
        f->parameters = server_number(meta, "n_params", (uint64_t)1 << 53);
        cJSON_Delete(models);
    }
    cJSON_Delete(props);
    return own && err->kind == ERR_NONE;
}

/* The piece of a token is a text, or its bytes as numbers if they are no UTF-8. */
static void
piece(struct server_answer *a, token_t token, const cJSON *piece)
{
    char bytes[256];
    size_t n = 0;
    const cJSON *byte = piece != NULL ? piece->child : NULL;
    for (; byte != NULL && n < sizeof bytes; byte = byte->next)
        bytes[n++] = (char)byte->valueint;
    if (cJSON_IsString(piece))
        a->word(a->user, token, piece->valuestring, strlen(piece->valuestring));
    else
        a->word(a->user, token, bytes, n);
}

static bool
tokens(struct http *http, const struct server_prompt *p, struct server_answer *a, struct err *err)
{
    cJSON *text = NULL;
    if (p->chat) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddItemToObject(json, "messages", server_messages(p));
        if ((text = server_ask(http, "/apply-template", json, err)) == NULL)
            return false;
    }
    cJSON *json =
        server_json("{\"add_special\":true,\"with_pieces\":true,\"parse_special\":%s}", p->chat ? "true" : "false");
    cJSON_AddStringToObject(json, "content", p->chat ? server_text(text, "prompt") : p->text);
    cJSON *answer = server_ask(http, "/tokenize", json, err);
    const cJSON *list = server_at(answer, "tokens"), *token = list != NULL ? list->child : NULL;
    for (const struct server_token *t; token != NULL && (t = answer_token(a, server_at(token, "id"))) != NULL;
         token = token->next)
        piece(a, t->token, server_at(token, "piece"));
    cJSON_Delete(text);
    cJSON_Delete(answer);
    return list != NULL;
}

static cJSON *
request(const struct server_request *r)
{
    char sampling[200] = "\"samplers\":[\"temperature\"]";
    if (r->sampling.temperature > 0)
        snprintf(sampling, sizeof sampling,
                 "\"samplers\":[\"temperature\",\"top_k\",\"top_p\"],\"top_k\":%u,\"top_p\":%.17g,\"seed\":%u",
                 (unsigned)r->sampling.top_k, (double)r->sampling.top_p, (unsigned)(r->seed % 0xffffffffu));
    return server_json("{\"n_predict\":%u,\"stream\":true,\"return_tokens\":true,\"timings_per_token\":true,"
                       "\"n_probs\":%d,\"ignore_eos\":%s,\"temperature\":%.17g,%s}",
                       (unsigned)r->tokens, PREDICTION_TOP, r->ignore_eos ? "true" : "false",
                       (double)r->sampling.temperature, sampling);
}

/* ---- the answer ---- */

static void
probabilities(struct server_answer *a, struct server_token *t, const cJSON *event)
{
    const cJSON *tops = server_at(cJSON_GetArrayItem(server_at(event, "completion_probabilities"), 0), "top_logprobs");
    for (const cJSON *top = tops != NULL ? tops->child : NULL; top != NULL; top = top->next) {
        const double id = cJSON_GetNumberValue(server_at(top, "id"));
        answer_top(a, t, id, cJSON_GetNumberValue(server_at(top, "logprob")));
        if (id >= 0 && id < a->facts->vocab)
            piece(a, (token_t)id, server_at(top, "bytes"));
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
token(struct server_answer *a, const cJSON *event, const cJSON *id, const cJSON *bytes)
{
    const cJSON *timings = server_at(event, "timings");
    const uint64_t drafted = server_number(timings, "draft_n", 1u << 30),
                   accepted = server_number(timings, "draft_n_accepted", 1u << 30);
    if (drafted < a->drafted || accepted < a->accepted)
        return answer_refuse(a, "counts fewer drafts than before");
    if (!a->first && drafted > a->drafted) {
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
    if ((double)t->token == cJSON_GetNumberValue(cJSON_GetArrayItem(server_at(event, "tokens"), 0)))
        probabilities(a, t, event);
    piece(a, t->token, bytes);
    a->first = false;
    return a->now.n <= a->now.accepted || complete(a);
}

/* No event comes for a token that ends within a character: the next one has the text of both, and the later id. Takes
 * the ids before it from the tokens of that text, if they end with it; else they stay unknown, and are left out. */
static bool
event(struct server_answer *a, const cJSON *event)
{
    const cJSON *id = cJSON_GetArrayItem(server_at(event, "tokens"), 0), *list = NULL, *before,
                *text = server_at(event, "content");
    const uint64_t made = server_number(event, "tokens_predicted", 1u << 30);
    cJSON *answer = NULL;
    bool going = true;
    if (id != NULL && made > a->made + 1 && made - a->made < VERIFY_NODES) {
        cJSON *json = server_json("{\"with_pieces\":true}");
        cJSON_AddItemToObject(json, "content", cJSON_Duplicate(text, true));
        answer = a->ask(a->user, "/tokenize", json);
        list = server_at(answer, "tokens");
    }
    const int last = cJSON_GetArraySize(list) - 1, missing = last >= 0 ? (int)(made - a->made) - 1 : 0;
    if (last >= 0 &&
        cJSON_GetNumberValue(server_at(cJSON_GetArrayItem(list, last), "id")) == cJSON_GetNumberValue(id)) {
        for (int i = last > missing ? last - missing : 0; going && i < last; i++) {
            before = cJSON_GetArrayItem(list, i);
            going = token(a, event, server_at(before, "id"), server_at(before, "piece"));
        }
        text = server_at(cJSON_GetArrayItem(list, last), "piece");
    }
    a->made = made > a->made ? made : a->made;
    going = going && (id == NULL || token(a, event, id, text));
    cJSON_Delete(answer);
    if (!going || !cJSON_IsTrue(server_at(event, "stop")))
        return going;
    snprintf(a->end, sizeof a->end, "%s", strcmp(server_text(event, "stop_type"), "limit") == 0 ? "tokens" : "eos");
    complete(a);
    return false;
}

const struct server_kind llama_server_kind = {
    .name = "llama-server",
    .path = "/completion",
    .ids = "prompt",
    .recognise = recognise,
    .tokens = tokens,
    .request = request,
    .event = event,
    .metrics = {{"drafts", "llamacpp:spec_decode_num_drafts_total"},
                {"drafted", "llamacpp:spec_decode_num_draft_tokens_total"},
                {"accepted", "llamacpp:spec_decode_num_accepted_tokens_total"},
                {"at", "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"},
                {"running", "llamacpp:requests_processing"},
                {"waiting", "llamacpp:requests_deferred"},
                {"tokens_per_s", "llamacpp:predicted_tokens_seconds"}},
};
