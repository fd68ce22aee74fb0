/* vLLM (tried with 0.32.0). Its answer has an event for each verification, with all its tokens. The numbers of drafts come
 * with the last event, if the server was started with --per-request-spec-decode-metrics detailed, so the rounds are
 * complete then. Steps without drafts are not counted there. An answer that is watched has a round for each event at
 * once, without counts of drafts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "engine/remote/server_kind.h"

static bool
recognise(struct http *http, struct server_facts *f, struct err *err)
{
    cJSON *version = server_ask(http, "/version", NULL, err), *models, *answer;
    const bool own = server_text(version, "version")[0] != '\0';
    if (own && (models = server_ask(http, "/v1/models", NULL, err)) != NULL) {
        const cJSON *model = cJSON_GetArrayItem(server_at(models, "data"), 0);
        server_label(f->version, sizeof f->version, server_text(version, "version"));
        server_model(f->model, sizeof f->model, server_text(model, "id"));
        snprintf(f->id, sizeof f->id, "%s", server_text(model, "id"));
        f->ctx = (uint32_t)server_number(model, "max_model_len", 1u << 28);
        answer = server_ask(http, "/tokenize", server_json("{\"prompt\":\"a a\",\"return_token_strs\":true}"), err);
        const cJSON *pieces = server_at(answer, "token_strs"), *piece = pieces != NULL ? pieces->child : NULL;
        for (; piece != NULL; piece = piece->next)
            f->marks_spaces =
                f->marks_spaces || (cJSON_IsString(piece) && strstr(piece->valuestring, "\u2581") != NULL);
        cJSON_Delete(answer);
        cJSON_Delete(models);
    }
    cJSON_Delete(version);
    return own && err->kind == ERR_NONE;
}

static bool
tokens(struct http *http, const struct server_prompt *p, struct server_answer *a, struct err *err)
{
    cJSON *json = server_json("{\"return_token_strs\":true}");
    cJSON_AddStringToObject(json, "model", a->facts->id);
    if (p->chat)
        cJSON_AddItemToObject(json, "messages", server_messages(p));
    else
        cJSON_AddStringToObject(json, "prompt", p->text);
    cJSON *answer = server_ask(http, "/tokenize", json, err);
    const cJSON *ids = server_at(answer, "tokens"), *id = ids != NULL ? ids->child : NULL,
                *piece = cJSON_GetArrayItem(server_at(answer, "token_strs"), 0);
    for (const struct server_token *t; id != NULL && (t = answer_token(a, id)) != NULL; id = id->next) {
        if (cJSON_IsString(piece))
            answer_piece(a, t->token, piece->valuestring, strlen(piece->valuestring));
        piece = piece != NULL ? piece->next : NULL;
    }
    cJSON_Delete(answer);
    return ids != NULL;
}

static cJSON *
request(const struct server_request *r)
{
    cJSON *to = server_json(
        "{\"max_tokens\":%u,\"stream\":true,\"stream_options\":{\"include_usage\":true},\"return_token_ids\":true,"
        "\"return_tokens_as_token_ids\":true,\"logprobs\":%d,\"ignore_eos\":%s,\"temperature\":%.17g,\"top_p\":%.17g,"
        "\"top_k\":%u,\"seed\":%" PRIu64 "}",
        (unsigned)r->tokens, PREDICTION_TOP, r->ignore_eos ? "true" : "false", (double)r->sampling.temperature,
        (double)r->sampling.top_p, (unsigned)r->sampling.top_k, r->seed >> 11);
    cJSON_AddStringToObject(to, "model", r->model);
    return to;
}

/* ---- the answer ---- */

/* The likeliest tokens are named "token_id:N". */
static void
probabilities(const struct server_answer *a, struct server_token *t, const cJSON *tops)
{
    for (const cJSON *top = tops != NULL ? tops->child : NULL; top != NULL; top = top->next)
        if (top->string != NULL && strncmp(top->string, "token_id:", 9) == 0)
            answer_top(a, t, strtod(top->string + 9, NULL), cJSON_GetNumberValue(top));
}

/* Keeps the steps that drafted; they come with the last event. */
static bool
steps(struct server_answer *a, const cJSON *of)
{
    const cJSON *accepted = server_at(of, "per_step_accepted"), *drafted = server_at(of, "per_step_drafted");
    const int n = cJSON_GetArraySize(accepted);
    a->n_steps = 0; /* the last list counts */
    a->counted = cJSON_IsObject(of) && (n > 0 || server_number(of, "num_spec_steps", 1u << 30) == 0);
    if (!array_grow(&a->steps, &a->steps_room, (size_t)n, sizeof *a->steps))
        return answer_refuse(a, "is larger than the memory");
    accepted = accepted != NULL ? accepted->child : NULL;
    drafted = drafted != NULL ? drafted->child : NULL;
    for (; accepted != NULL; accepted = accepted->next, drafted = drafted != NULL ? drafted->next : NULL) {
        const double n_accepted = cJSON_GetNumberValue(accepted), n_drafted = cJSON_GetNumberValue(drafted);
        if (!(n_accepted >= 0 && n_accepted <= n_drafted && n_drafted < VERIFY_NODES))
            return answer_refuse(a, "contains counts of drafts that are not possible");
        a->steps[a->n_steps++] =
            (struct server_round){.accepted = (uint32_t)n_accepted, .drafted = (uint32_t)n_drafted};
    }
    return true;
}

static cJSON *
ask(struct server_answer *a, const char *path, cJSON *json)
{
    cJSON_AddStringToObject(json, "model", a->facts->id);
    return a->ask(a->user, path, json);
}

/* Asks for texts of tokens. */
static cJSON *
detokenize(struct server_answer *a, cJSON *ids)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "tokens", ids);
    return ask(a, "/detokenize", json);
}

/* Asks for the bytes of new tokens: events have texts, which may begin or end within a character. The tokens of the whole
 * text have them; few are others, if the model chose another spelling. The text of such a token twice has its space,
 * which some vocabularies omit at the beginning of a text: the token's bytes are the longer half. */
static void
ask_words(struct server_answer *a)
{
    cJSON *ids = cJSON_CreateArray(), *answer, *json;
    size_t unknown = 0;
    for (size_t i = 0; i < a->n_tokens; i++) {
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(a->tokens[i].token));
        unknown += !a->known(a->user, a->tokens[i].token);
    }
    if (unknown == 0) {
        cJSON_Delete(ids);
        return;
    }
    answer = detokenize(a, ids);
    json = server_json("{\"return_token_strs\":true,\"add_special_tokens\":false}");
    cJSON_AddStringToObject(json, "prompt", server_text(answer, "prompt"));
    cJSON_Delete(answer);
    answer = ask(a, "/tokenize", json);
    const cJSON *piece = cJSON_GetArrayItem(server_at(answer, "token_strs"), 0);
    for (const cJSON *id = cJSON_GetArrayItem(server_at(answer, "tokens"), 0); id != NULL && cJSON_IsString(piece);
         id = id->next, piece = piece->next)
        if (id->valuedouble >= 0 && id->valuedouble < a->facts->vocab)
            answer_piece(a, (token_t)id->valuedouble, piece->valuestring, strlen(piece->valuestring));
    cJSON_Delete(answer);
    for (size_t i = 0; i < a->n_tokens; i++) {
        const int id = (int)a->tokens[i].token;
        if (a->known(a->user, id))
            continue;
        if ((answer = detokenize(a, server_json("[%d,%d]", id, id))) == NULL)
            return;
        const char *text = server_text(answer, "prompt");
        a->word(a->user, id, text + strlen(text) / 2, strlen(text) - strlen(text) / 2);
        cJSON_Delete(answer);
    }
}

static bool
event(struct server_answer *a, const cJSON *event)
{
    const cJSON *choice = cJSON_GetArrayItem(server_at(event, "choices"), 0), *ids = server_at(choice, "token_ids"),
                *top = cJSON_GetArrayItem(server_at(server_at(choice, "logprobs"), "top_logprobs"), 0),
                *metrics = server_at(event, "metrics");
    const char *why = server_text(choice, "finish_reason");
    a->now = (struct server_round){0};
    for (const cJSON *id = ids != NULL ? ids->child : NULL; id != NULL; id = id->next) {
        struct server_token *t = answer_token(a, id);
        if (t == NULL)
            return false;
        probabilities(a, t, top);
        top = top != NULL ? top->next : NULL;
    }
    if (why[0] != '\0')
        snprintf(a->end, sizeof a->end, "%s", strcmp(why, "length") == 0 ? "tokens" : "eos");
    if (a->watched && a->now.n > 0) {
        ask_words(a);
        return answer_round(a, &(struct server_round){.us = a->us, .n = a->now.n, .uncounted = true});
    }
    if (a->now.n > 0) {
        if (!array_grow(&a->later, &a->later_room, a->n_later + 1, sizeof *a->later))
            return answer_refuse(a, "is larger than the memory");
        a->later[a->n_later++] = a->now;
    }
    return metrics == NULL || a->watched || steps(a, server_at(metrics, "speculative_decoding"));
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
finish(struct server_answer *a)
{
    size_t step = 0;
    ask_words(a);
    bool going = true;
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
    return going && (step == a->n_steps || answer_refuse(a, "counts drafts that its tokens do not have"));
}

const struct server_kind vllm_kind = {
    .name = "vllm",
    .path = "/v1/completions",
    .ids = "prompt",
    .recognise = recognise,
    .tokens = tokens,
    .request = request,
    .event = event,
    .finish = finish,
    .metrics = {{"drafts", "vllm:spec_decode_num_drafts_total"},
                {"drafted", "vllm:spec_decode_num_draft_tokens_total"},
                {"accepted", "vllm:spec_decode_num_accepted_tokens_total"},
                {"at", "vllm:spec_decode_num_accepted_tokens_per_pos_total"},
                {"running", "vllm:num_requests_running"},
                {"waiting", "vllm:num_requests_waiting"}},
};
