/* Commands that start a run from a prompt. In a chat a prompt is the next turn of the conversation: the template gets
 * all turns, which are those that the events contain. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tui/app/verbs.h"

/* ---- the conversation ---- */

/* Writes a text as UTF-8, with U+FFFD for bytes that are none. */
static void
put_utf8(FILE *out, const char *bytes, size_t n)
{
    for (size_t at = 0, used; at < n; at += used) {
        uint32_t code = 0;
        used = utf8_character(bytes + at, n - at, &code);
        if (used > 0 && code != 0)
            fwrite(bytes + at, 1, used, out);
        else
            fputs("\xef\xbf\xbd", out);
        used = used > 0 ? used : 1;
    }
}

/* Returns the generated text of the sequence in focus, without the end of sequence, for the caller to free; NULL: out
 * of memory. */
static char *
answer_of(const struct scope *s)
{
    const struct scope_now *now = scope_now(s);
    const uint32_t end = now->committed > 0 && strcmp(now->end, "eos") == 0 ? now->committed - 1 : now->committed;
    char *bytes = NULL, *text = NULL;
    size_t n_bytes = 0, n;
    FILE *out = open_memstream(&bytes, &n_bytes);
    for (uint32_t pos = scope_first(s); out != NULL && pos < end; pos++) {
        const struct scope_column *c = scope_column(s, pos);
        uint32_t length = 0;
        const char *token = c != NULL && c->fate != FATE_PROMPT ? scope_bytes(s, c->token, &length) : NULL;
        if (token != NULL)
            fwrite(token, 1, length, out);
    }
    if (out == NULL || fclose(out) != 0 || (out = open_memstream(&text, &n)) == NULL) {
        free(bytes);
        return NULL;
    }
    put_utf8(out, bytes, n_bytes);
    free(bytes);
    return fclose(out) == 0 ? text : NULL;
}

/* Adds a message at an index, or at the end. False: out of memory. */
static bool
add_message(cJSON *turns, int at, const char *role, const char *content)
{
    cJSON *message = cJSON_CreateObject();
    if (cJSON_AddStringToObject(message, "role", role) != NULL &&
        cJSON_AddStringToObject(message, "content", content) != NULL && cJSON_InsertItemInArray(turns, at, message))
        return true;
    cJSON_Delete(message);
    return false;
}

bool
verb_has_system(const cJSON *turns)
{
    const char *role = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(turns, 0), "role"));
    return role != NULL && strcmp(role, "system") == 0;
}

/* Adds the current prompt and the answer to it. Without an answer, the next prompt takes the place of the current
 * one. */
static bool
add_turns(const struct app *app, cJSON *turns)
{
    const char *prompt = app_prompt(app);
    const int end = cJSON_GetArraySize(turns);
    char *answer = answer_of(app->run.scope);
    const bool ok = answer != NULL &&
                    (answer[0] == '\0' || prompt == NULL ||
                     (add_message(turns, end, "user", prompt) && add_message(turns, end + 1, "assistant", answer)));
    free(answer);
    return ok;
}

/* Stores the messages before the next prompt (struct control) in *out, NULL if there are none, for the caller to
 * free. */
static bool
turns_before(const struct app *app, bool anew, char **out, struct err *err)
{
    const struct segments *all = scope_now(app->run.scope)->segments;
    const bool sweeps = sweeping_now(&app->run.sweeping); /* its runs are no turns */
    const char *before = anew ? NULL : sweeps ? app->run.sweeping.turns : segments_before(all, segments_now(all));
    cJSON *turns = NULL;
    *out = NULL;
    bool ok = before == NULL || json_read(&turns, before, strlen(before));
    turns = turns != NULL ? turns : cJSON_CreateArray();
    ok = ok && turns != NULL && (anew || sweeps || add_turns(app, turns));
    if (app->system != NULL && verb_has_system(turns))
        cJSON_DeleteItemFromArray(turns, 0);
    if (app->system != NULL && app->system[0] != '\0')
        ok = add_message(turns, 0, "system", app->system) && ok;
    if (cJSON_GetArraySize(turns) > 0)
        ok = (*out = cJSON_PrintUnformatted(turns)) != NULL && ok; /* cJSON's memory is free()'s */
    cJSON_Delete(turns);
    return ok || err_set(err, ERR_WORK, "out of memory for the conversation");
}

static bool
chats(const struct app *app)
{
    return follow_live(&app->run) && app->run.live->ops->chats(app->run.live);
}

/* Runs a prompt, even if the last run was paused. anew: it begins a conversation. */
static bool
run(struct app *app, const char *text, bool anew, struct err *err)
{
    char *before = NULL;
    if (chats(app) && !turns_before(app, anew, &before, err))
        return false;
    const bool posted = follow_post_prompt(&app->run, text, before, err);
    free(before);
    if (!posted)
        return false;
    app->run.ended = false;
    app->run.break_round = 0;
    app->anew = false;
    app->upcoming.own = true;
    return follow_post(&app->run, CONTROL_RESUME, NULL, NULL, 0, err);
}

/* ---- commands ---- */

bool
run_prompt(struct app *app, const char *rest, struct err *err)
{
    if (!verb_only_live(app, "run another prompt", err))
        return false;
    if (rest[0] != '\0')
        return run(app, rest, !app_continues(app), err);
    const struct history *h = &app->line.history[LINE_PROMPT];
    app_open_line(app, LINE_PROMPT, h->n > 0 && !chats(app) ? h->line[h->n - 1] : "");
    return true;
}

bool
run_new(struct app *app, const char *rest, struct err *err)
{
    if (!verb_only_live(app, "begin a conversation", err))
        return false;
    if (rest[0] != '\0')
        return run(app, rest, true, err);
    app->anew = true;
    app_open_line(app, LINE_PROMPT, "");
    return true;
}

bool
run_system(struct app *app, const char *rest, struct err *err)
{
    if (!verb_only_live(app, "have another system message", err))
        return false;
    if (!chats(app))
        return err_set(err, ERR_USAGE,
                       "there is no system message: prompts go to the model as they are; start with --chat");
    char *text = strdup(rest);
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the system message");
    free(app->system);
    app->system = text;
    message_print(&app->message, rest[0] != '\0' ? "the next prompt has this system message"
                                                 : "the next prompt has the system message from the start");
    return true;
}

bool
run_next(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    if (!verb_only_live(app, "run another prompt", err))
        return false;
    if (scope_is_batch(app->run.scope) && scope_now(app->run.scope)->versus == NULL)
        return err_set(err, ERR_USAGE, "a batch has its prompts already; the next one comes when a sequence ends");
    const char *next = upcoming_next(&app->upcoming, app_prompt(app));
    if (next == NULL)
        return err_set(err, ERR_USAGE, "there is no other prompt; start with --prompts FILE.jsonl, or press p");
    if (!run(app, next, true, err))
        return false;
    upcoming_take(&app->upcoming, next);
    return true;
}
