/* SGLang, by the fields of its documentation and recorded forms of its answers; it did not run here. Its answer has an
 * event for each verification. All verifications of a server have as many drafts (speculative_num_draft_tokens counts
 * the token before them, too), and the last event has their totals, which must be those of the rounds. */
#include <stdio.h>
#include <string.h>

#include "engine/remote/server_kind.h"

static bool
recognise(struct http *http, struct server_facts *f, struct err *err)
{
    cJSON *info = server_ask(http, "/get_server_info", NULL, err);
    if (info == NULL && err->kind == ERR_NONE)
        info = server_ask(http, "/server_info", NULL, err);
    const char *path = server_text(info, "model_path"), *served = server_text(info, "served_model_name");
    const uint64_t nodes = server_number(info, "speculative_num_draft_tokens", VERIFY_NODES);
    const bool own = path[0] != '\0';
    server_label(f->version, sizeof f->version, server_text(info, "version"));
    server_model(f->model, sizeof f->model, served[0] != '\0' ? served : path);
    f->ctx = (uint32_t)server_number(info, "context_length", 1u << 28);
    if (f->ctx == 0)
        f->ctx = (uint32_t)server_number(info, "max_total_num_tokens", 1u << 28);
    f->drafts = nodes > 0 ? (uint32_t)nodes - 1 : 0;
    cJSON_Delete(info);
    return own;
}

static bool
tokens(struct http *http, const struct server_prompt *p, struct server_answer *a, struct err *err)
{
    if (p->chat)
        return err_set(err, ERR_WORK, "SGLang gives no tokens of messages; leave out --chat");
    cJSON *json = cJSON_CreateObject(), *texts = NULL;
    cJSON_AddStringToObject(json, "prompt", p->text);
    cJSON *answer = server_ask(http, "/tokenize", json, err);
    const cJSON *ids = server_at(answer, "tokens"), *id = ids != NULL ? ids->child : NULL;
    if (id != NULL) {
        json = server_json("{\"tokens\":[]}");
        for (; id != NULL && answer_token(a, id) != NULL; id = id->next)
            cJSON_AddItemToArray(cJSON_GetObjectItem(json, "tokens"), server_json("[%d]", (int)id->valuedouble));
        texts = server_ask(http, "/detokenize", json, err);
    }
    const cJSON *text = cJSON_GetArrayItem(server_at(texts, "text"), 0);
    for (size_t i = 0; cJSON_IsString(text) && i < a->n_tokens; i++, text = text->next)
        a->word(a->user, a->tokens[i].token, text->valuestring, strlen(text->valuestring));
    cJSON_Delete(answer);
    cJSON_Delete(texts);
    return ids != NULL && err->kind == ERR_NONE;
}

static cJSON *
request(const struct server_request *r)
{
    char top_k[40] = "", seed[60] = "";
    if (r->sampling.top_k > 0)
        snprintf(top_k, sizeof top_k, ",\"top_k\":%u", (unsigned)r->sampling.top_k);
    if (r->sampling.temperature > 0)
        snprintf(seed, sizeof seed, ",\"sampling_seed\":%u", (unsigned)(r->seed % 0x7fffffffu));
    return server_json("{\"stream\":true,\"return_logprob\":true,\"return_text_in_logprobs\":true,"
                       "\"top_logprobs_num\":%d,\"sampling_params\":{\"max_new_tokens\":%u,\"ignore_eos\":%s,"
                       "\"temperature\":%.17g,\"top_p\":%.17g%s%s}}",
                       PREDICTION_TOP, (unsigned)r->tokens, r->ignore_eos ? "true" : "false",
                       (double)r->sampling.temperature, (double)r->sampling.top_p, top_k, seed);
}

/* ---- the answer ---- */

/* A likely token is [logarithm of its probability, id, text]; its text may be missing. */
static void
likely(struct server_answer *a, struct server_token *t, const cJSON *of)
{
    const double id = cJSON_GetNumberValue(cJSON_GetArrayItem(of, 1));
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(of, 2));
    if (t != NULL)
        answer_top(a, t, id, cJSON_GetNumberValue(cJSON_GetArrayItem(of, 0)));
    if (text != NULL && id >= 0 && id < a->facts->vocab)
        a->word(a->user, (token_t)id, text, strlen(text));
}

/* `output_ids` and the lists of probabilities contain all tokens so far, or with the server's --stream-output only the
 * new ones: completion_tokens tells. */
static bool
event(struct server_answer *a, const cJSON *event)
{
    const cJSON *meta = server_at(event, "meta_info"), *ids = server_at(event, "output_ids"),
                *own = server_at(meta, "output_token_logprobs"), *tops = server_at(meta, "output_top_logprobs"),
                *reason = server_at(meta, "finish_reason");
    const uint64_t all = server_number(meta, "completion_tokens", 1u << 28);
    const int n = all >= a->made && all - a->made <= VERIFY_NODES ? (int)(all - a->made) : -1;
    if (n < 0 || cJSON_GetArraySize(ids) < n)
        return answer_refuse(a, "counts tokens that it does not contain");
    a->made = all;
    for (int i = n; i > 0; i--) { /* from the end */
        struct server_token *t = answer_token(a, cJSON_GetArrayItem(ids, cJSON_GetArraySize(ids) - i));
        if (t == NULL)
            return false;
        likely(a, NULL, cJSON_GetArrayItem(own, cJSON_GetArraySize(own) - i));
        const cJSON *list = cJSON_GetArrayItem(tops, cJSON_GetArraySize(tops) - i);
        for (const cJSON *top = list != NULL ? list->child : NULL; top != NULL; top = top->next)
            likely(a, t, top);
    }
    struct server_round r = a->now;
    a->now = (struct server_round){0};
    r.drafted = n == 0 || a->first ? 0 : a->facts->drafts;
    r.accepted = n == 0 || a->first ? 0 : (uint32_t)n - 1;
    a->first = a->first && n == 0;
    a->drafted += r.drafted;
    if (n > 0 && !answer_round(a, &r))
        return false;
    if (!cJSON_IsObject(reason))
        return true;
    snprintf(a->end, sizeof a->end, "%s", strcmp(server_text(reason, "type"), "length") == 0 ? "tokens" : "eos");
    if (server_at(meta, "spec_draft_token_num") != NULL &&
        server_number(meta, "spec_draft_token_num", 1u << 30) != a->drafted)
        return answer_refuse(a, "has other totals of drafts than its rounds");
    return false;
}

const struct server_kind sglang_kind = {
    .name = "sglang",
    .path = "/generate",
    .ids = "input_ids",
    .recognise = recognise,
    .tokens = tokens,
    .request = request,
    .event = event,
    .metrics = {{"running", "sglang:num_running_reqs"},
                {"waiting", "sglang:num_queue_reqs"},
                {"tokens_per_s", "sglang:gen_throughput"}},
};
