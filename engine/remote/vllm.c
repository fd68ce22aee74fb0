/* vLLM (tried with 0.32.0). Its answer has an event for each verification, with all its tokens. The numbers of drafts come
 * with the last event, if the server was started with --per-request-spec-decode-metrics detailed, so the rounds are
 * complete then. Steps without drafts are not counted there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "engine/remote/server_kind.h"

static bool
recognise(struct http *http, struct server_facts *f, struct err *err)
{
    cJSON *version = server_ask(http, "/version", NULL, err), *models = NULL;
    const bool own = server_text(version, "version")[0] != '\0';
    if (own && (models = server_ask(http, "/v1/models", NULL, err)) != NULL) {
        const cJSON *model = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(models, "data"), 0);
        const char *id = server_text(model, "id"), *name = strrchr(id, '/');
        server_label(f->version, sizeof f->version, server_text(version, "version"));
        server_label(f->model, sizeof f->model, name != NULL && name[1] != '\0' ? name + 1 : id);
        snprintf(f->id, sizeof f->id, "%s", id);
        f->ctx = (uint32_t)server_number(model, "max_model_len", 1u << 28);
        cJSON *json = cJSON_CreateObject(), *answer;
        cJSON_AddStringToObject(json, "prompt", "a a");
        cJSON_AddTrueToObject(json, "return_token_strs");
        answer = server_ask(http, "/tokenize", json, err);
        f->byte_pieces = true;
        const cJSON *piece;
        cJSON_ArrayForEach(piece, cJSON_GetObjectItemCaseSensitive(
                                      answer, "token_strs")) if (cJSON_IsString(piece) &&
                                                                 strstr(piece->valuestring, "\xe2\x96\x81") != NULL)
            f->byte_pieces = false;
        cJSON_Delete(answer);
    }
    cJSON_Delete(version);
    cJSON_Delete(models);
    return own && err->kind == ERR_NONE;
}

static bool
tokens(struct http *http, const struct server_facts *f, const struct server_prompt *p, struct server_answer *a,
       struct err *err)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "model", f->id);
    cJSON_AddTrueToObject(json, "return_token_strs");
    if (p->chat)
        cJSON_AddItemToObject(json, "messages", server_messages(p, err));
    else
        cJSON_AddStringToObject(json, "prompt", p->text);
    cJSON *answer = server_ask(http, "/tokenize", json, err);
    const cJSON *id, *piece = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(answer, "token_strs"), 0);
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(answer, "tokens"))
    {
        const struct server_token *t = answer_token(a, id);
        if (t == NULL)
            break;
        if (cJSON_IsString(piece))
            answer_piece(a, t->token, piece->valuestring, strlen(piece->valuestring));
        piece = piece != NULL ? piece->next : NULL;
    }
    cJSON_Delete(answer);
    return answer != NULL;
}

static void
request(cJSON *to, const struct server_facts *f, const struct server_request *r)
{
    cJSON_AddStringToObject(to, "model", f->id);
    server_add_ids(to, "prompt", r);
    cJSON_AddNumberToObject(to, "max_tokens", r->tokens);
    cJSON_AddTrueToObject(to, "stream");
    cJSON_AddTrueToObject(cJSON_AddObjectToObject(to, "stream_options"), "include_usage");
    cJSON_AddTrueToObject(to, "return_token_ids");
    cJSON_AddTrueToObject(to, "return_tokens_as_token_ids");
    cJSON_AddNumberToObject(to, "logprobs", PREDICTION_TOP);
    cJSON_AddBoolToObject(to, "ignore_eos", r->ignore_eos);
    cJSON_AddNumberToObject(to, "temperature", (double)r->sampling.temperature);
    cJSON_AddNumberToObject(to, "top_p", (double)r->sampling.top_p);
    cJSON_AddNumberToObject(to, "top_k", r->sampling.top_k);
    cJSON_AddNumberToObject(to, "seed", (double)(r->seed >> 11));
}

/* ---- the answer ---- */

/* The likeliest tokens are named "token_id:N" here; the sampled one comes first if it is none of them. */
static void
probabilities(struct server_answer *a, struct server_token *t, const cJSON *of)
{
    const cJSON *top;
    cJSON_ArrayForEach(top, of)
    {
        char *end = NULL;
        const bool named = top->string != NULL && strncmp(top->string, "token_id:", 9) == 0;
        const unsigned long id = named ? strtoul(top->string + 9, &end, 10) : 0;
        if (!named || *end != '\0' || id >= a->facts->vocab)
            continue;
        answer_top(t, (token_t)id, cJSON_GetNumberValue(top));
    }
    for (uint32_t i = 1; i < t->n_top; i++)
        for (uint32_t k = i; k > 0 && t->top_p[k] > t->top_p[k - 1]; k--) {
            const float p = t->top_p[k];
            const token_t token = t->top[k];
            t->top_p[k] = t->top_p[k - 1];
            t->top[k] = t->top[k - 1];
            t->top_p[k - 1] = p;
            t->top[k - 1] = token;
        }
}

/* Keeps the steps that drafted; they come with the last event. */
static bool
steps(struct server_answer *a, const cJSON *of)
{
    const cJSON *accepted = cJSON_GetObjectItemCaseSensitive(of, "per_step_accepted"),
                *drafted = cJSON_GetObjectItemCaseSensitive(of, "per_step_drafted");
    const int n = cJSON_GetArraySize(accepted);
    a->counted = cJSON_IsObject(of) && (n > 0 || server_number(of, "num_spec_steps", 1u << 30) == 0);
    if (n != cJSON_GetArraySize(drafted) || !array_grow(&a->steps, &a->steps_room, (size_t)n, sizeof *a->steps))
        return answer_refuse(a, "contains counts of drafts that are not possible");
    accepted = accepted != NULL ? accepted->child : NULL;
    drafted = drafted != NULL ? drafted->child : NULL;
    for (; accepted != NULL && drafted != NULL; accepted = accepted->next, drafted = drafted->next) {
        const double n_accepted = cJSON_GetNumberValue(accepted), n_drafted = cJSON_GetNumberValue(drafted);
        if (!(n_accepted >= 0 && n_accepted <= n_drafted && n_drafted < VERIFY_NODES))
            return answer_refuse(a, "contains counts of drafts that are not possible");
        a->steps[a->n_steps++] =
            (struct server_round){.accepted = (uint32_t)n_accepted, .drafted = (uint32_t)n_drafted};
    }
    return true;
}

static bool
event(struct server_answer *a, const cJSON *event)
{
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(event, "choices"), 0), *id,
                *top = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(choice, "logprobs"),
                                                        "top_logprobs"),
                *metrics = cJSON_GetObjectItemCaseSensitive(event, "metrics");
    const char *why = server_text(choice, "finish_reason"), *text = server_text(choice, "text");
    a->now = (struct server_round){0};
    top = top != NULL ? top->child : NULL;
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(choice, "token_ids"))
    {
        struct server_token *t = answer_token(a, id);
        if (t == NULL)
            return false;
        probabilities(a, t, top);
        top = top != NULL ? top->next : NULL;
    }
    if (a->now.n == 1 && text[0] != '\0')
        a->word(a->user, a->tokens[a->n_tokens - 1].token, text, strlen(text));
    if (a->now.n > 0) {
        if (!array_grow(&a->later, &a->later_room, a->n_later + 1, sizeof *a->later))
            return err_set(&a->err, ERR_WORK, "out of memory for the server's answer");
        a->later[a->n_later++] = a->now;
    }
    if (why[0] != '\0')
        snprintf(a->end, sizeof a->end, "%s", strcmp(why, "length") == 0 ? "tokens" : "eos");
    return metrics == NULL || steps(a, cJSON_GetObjectItemCaseSensitive(metrics, "speculative_decoding"));
}

/* Asks for the bytes of a token that came only together with others. */
static bool
ask_words(struct http *http, struct server_answer *a)
{
    for (size_t i = 0; i < a->n_tokens; i++) {
        if (a->known(a->user, a->tokens[i].token))
            continue;
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "model", a->facts->id);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(json, "tokens"), cJSON_CreateNumber(a->tokens[i].token));
        cJSON *answer = server_ask(http, "/detokenize", json, &a->err);
        const char *text = server_text(answer, "prompt");
        a->word(a->user, a->tokens[i].token, text, strlen(text));
        cJSON_Delete(answer);
        if (a->err.kind != ERR_NONE)
            return false;
    }
    return true;
}

/* Takes the round of the next step that an event's n tokens can be: one with drafts has a token more than it accepted,
 * but the last step of an answer may be cut. A round of one token may have had drafts, of which none was accepted, or none:
 * the first such rounds count as those with drafts. An event contains several rounds if the client was late. */
static struct server_round
next_round(struct server_answer *a, size_t *step, size_t n, bool last)
{
    struct server_round r = {.n = a->counted ? 1 : n, .uncounted = !a->counted};
    if (*step >= a->n_steps)
        return r;
    const struct server_round *s = &a->steps[*step];
    if ((size_t)s->accepted + 1 > n && !(last && *step + 1 == a->n_steps))
        return r;
    r.n = s->accepted + 1 < n ? s->accepted + 1 : n;
    r.drafted = s->drafted;
    r.accepted = s->accepted;
    ++*step;
    return r;
}

static bool
finish(struct http *http, struct server_answer *a)
{
    size_t step = 0;
    bool going = ask_words(http, a);
    for (size_t i = 0; going && i < a->n_later; i++) {
        const bool last = i + 1 == a->n_later;
        for (size_t left = a->later[i].n; going && left > 0;) {
            struct server_round r =
                i == 0 && left == a->later[i].n ? (struct server_round){.n = 1} : next_round(a, &step, left, last);
            r.us = a->later[i].us;
            left -= r.n;
            going = answer_round(a, &r);
        }
    }
    if (going && step < a->n_steps)
        return answer_refuse(a, "counts drafts that its tokens do not have");
    return going;
}

const struct server_kind vllm_kind = {
    .name = "vllm",
    .path = "/v1/completions",
    .recognise = recognise,
    .tokens = tokens,
    .request = request,
    .event = event,
    .finish = finish,
    .drafts = "vllm:spec_decode_num_drafts_total",
    .drafted = "vllm:spec_decode_num_draft_tokens_total",
    .accepted = "vllm:spec_decode_num_accepted_tokens_total",
    .at = "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    .running = "vllm:num_requests_running",
    .waiting = "vllm:num_requests_waiting",
    .no_change = "vLLM changes its speculation only at a start: --launch",
};
