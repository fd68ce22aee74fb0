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
    const bool own = path[0] != '\0';
    if (own) {
        const char *name = served[0] != '\0' ? served : path, *slash = strrchr(name, '/');
        const uint64_t drafts = server_number(info, "speculative_num_draft_tokens", VERIFY_NODES);
        server_label(f->version, sizeof f->version, server_text(info, "version"));
        server_label(f->model, sizeof f->model, slash != NULL && slash[1] != '\0' ? slash + 1 : name);
        f->ctx = (uint32_t)server_number(info, "context_length", 1u << 28);
        if (f->ctx == 0)
            f->ctx = (uint32_t)server_number(info, "max_total_num_tokens", 1u << 28);
        f->drafts = drafts > 0 ? (uint32_t)drafts - 1 : 0;
    }
    cJSON_Delete(info);
    return own;
}

static bool
tokens(struct http *http, const struct server_facts *f, const struct server_prompt *p, struct server_answer *a,
       struct err *err)
{
    (void)f;
    if (p->chat)
        return err_set(err, ERR_WORK, "SGLang gives no tokens of messages; leave out --chat");
    cJSON *json = cJSON_CreateObject(), *lists = cJSON_CreateArray(), *texts = NULL;
    cJSON_AddStringToObject(json, "prompt", p->text);
    cJSON *answer = server_ask(http, "/tokenize", json, err);
    const cJSON *id, *text;
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(answer, "tokens"))
    {
        if (answer_token(a, id) == NULL)
            break;
        cJSON *list = cJSON_CreateArray();
        cJSON_AddItemToArray(list, cJSON_CreateNumber(id->valuedouble));
        cJSON_AddItemToArray(lists, list);
    }
    json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "tokens", lists);
    if (answer != NULL)
        texts = server_ask(http, "/detokenize", json, err);
    else
        cJSON_Delete(json);
    size_t i = 0;
    cJSON_ArrayForEach(text, cJSON_GetObjectItemCaseSensitive(texts, "text"))
    {
        if (i < a->n_tokens && cJSON_IsString(text))
            a->word(a->user, a->tokens[i].token, text->valuestring, strlen(text->valuestring));
        i++;
    }
    cJSON_Delete(answer);
    cJSON_Delete(texts);
    return answer != NULL && err->kind == ERR_NONE;
}

static void
request(cJSON *to, const struct server_facts *f, const struct server_request *r)
{
    (void)f;
    cJSON *sampling = cJSON_AddObjectToObject(to, "sampling_params");
    server_add_ids(to, "input_ids", r);
    cJSON_AddTrueToObject(to, "stream");
    cJSON_AddTrueToObject(to, "return_logprob");
    cJSON_AddTrueToObject(to, "return_text_in_logprobs");
    cJSON_AddNumberToObject(to, "top_logprobs_num", PREDICTION_TOP);
    cJSON_AddNumberToObject(sampling, "max_new_tokens", r->tokens);
    cJSON_AddBoolToObject(sampling, "ignore_eos", r->ignore_eos);
    cJSON_AddNumberToObject(sampling, "temperature", (double)r->sampling.temperature);
    cJSON_AddNumberToObject(sampling, "top_p", (double)r->sampling.top_p);
    if (r->sampling.top_k > 0)
        cJSON_AddNumberToObject(sampling, "top_k", r->sampling.top_k);
    if (r->sampling.temperature > 0)
        cJSON_AddNumberToObject(sampling, "sampling_seed", (double)(r->seed % 0x7fffffffu));
}

/* ---- the answer ---- */

/* A likely token is [logarithm of its probability, id, text]; its text may be missing. */
static token_t
likely(struct server_answer *a, const cJSON *of)
{
    const double id = cJSON_GetNumberValue(cJSON_GetArrayItem(of, 1));
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(of, 2));
    if (!(id >= 0 && id < a->facts->vocab))
        return TOKEN_NONE;
    if (text != NULL)
        a->word(a->user, (token_t)id, text, strlen(text));
    return (token_t)id;
}

static bool
totals_agree(const struct server_answer *a, const cJSON *meta)
{
    const cJSON *drafted = cJSON_GetObjectItemCaseSensitive(meta, "spec_draft_token_num");
    return drafted == NULL || server_number(meta, "spec_draft_token_num", 1u << 30) == a->drafted;
}

/* `output_ids` and the lists of probabilities contain all tokens so far, or with the server's --stream-output only the
 * new ones: completion_tokens tells. */
static bool
event(struct server_answer *a, const cJSON *event)
{
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(event, "meta_info"),
                *ids = cJSON_GetObjectItemCaseSensitive(event, "output_ids"),
                *own = cJSON_GetObjectItemCaseSensitive(meta, "output_token_logprobs"),
                *tops = cJSON_GetObjectItemCaseSensitive(meta, "output_top_logprobs"), *top,
                *reason = cJSON_GetObjectItemCaseSensitive(meta, "finish_reason");
    const uint64_t all = server_number(meta, "completion_tokens", 1u << 28);
    const int n = all >= a->made && all - a->made < VERIFY_NODES + 1u ? (int)(all - a->made) : -1;
    const int skip = cJSON_GetArraySize(ids) - n;
    if (n < 0 || skip < 0)
        return answer_refuse(a, "counts tokens that it does not contain");
    a->made = all;
    for (int i = 0; i < n; i++) {
        struct server_token *t = answer_token(a, cJSON_GetArrayItem(ids, skip + i));
        if (t == NULL)
            return false;
        const int at = cJSON_GetArraySize(own) - n + i, at_top = cJSON_GetArraySize(tops) - n + i;
        if (at >= 0)
            likely(a, cJSON_GetArrayItem(own, at));
        cJSON_ArrayForEach(top, cJSON_GetArrayItem(tops, at_top))
            answer_top(t, likely(a, top), cJSON_GetNumberValue(cJSON_GetArrayItem(top, 0)));
    }
    struct server_round r = a->now;
    a->now = (struct server_round){0};
    if (n > 0) {
        r.drafted = a->first ? 0 : a->facts->drafts;
        r.accepted = a->first ? 0 : (uint32_t)n - 1;
        a->first = false;
        a->drafted += r.drafted;
        if (!answer_round(a, &r))
            return false;
    }
    if (!cJSON_IsObject(reason))
        return true;
    snprintf(a->end, sizeof a->end, "%s", strcmp(server_text(reason, "type"), "length") == 0 ? "tokens" : "eos");
    return totals_agree(a, meta) ? false : answer_refuse(a, "has other totals of drafts than its rounds");
}

const struct server_kind sglang_kind = {
    .name = "sglang",
    .path = "/generate",
    .recognise = recognise,
    .tokens = tokens,
    .request = request,
    .event = event,
    .running = "sglang:num_running_reqs",
    .waiting = "sglang:num_queue_reqs",
    .tokens_per_s = "sglang:gen_throughput",
    .no_change = "SGLang changes its speculation only at a start: --launch",
};
