/* Renders chat templates for scripts that compare them. An input line is JSON: {"template", "context": the text of an
 * object, "day": [year, month, day]}. The output line is {"text"} or {"error"}. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/chat.h"

static struct slice
text_of(const cJSON *o, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return text == NULL ? (struct slice){0} : slice_of(text);
}

static struct tm
day_of(const cJSON *o)
{
    const cJSON *day = cJSON_GetObjectItemCaseSensitive(o, "day");
    int part[3] = {2025, 3, 5};
    for (int i = 0; i < 3 && cJSON_GetArraySize(day) == 3; i++)
        part[i] = (int)cJSON_GetNumberValue(cJSON_GetArrayItem(day, i));
    struct tm tm = {.tm_year = part[0] - 1900, .tm_mon = part[1] - 1, .tm_mday = part[2], .tm_isdst = -1};
    mktime(&tm); /* computes the day of the week */
    return tm;
}

static cJSON *
answer(const cJSON *asked)
{
    cJSON *o = cJSON_CreateObject();
    struct chat *chat = NULL;
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;
    const struct chat_dialogue dialogue = {.context = text_of(asked, "context"), .now = day_of(asked)};
    if (chat_open(&chat, text_of(asked, "template"), &err) && chat_render(chat, &dialogue, &text, &len, &err))
        cJSON_AddStringToObject(o, "text", text);
    else
        cJSON_AddStringToObject(o, "error", err.text);
    free(text);
    chat_close(chat);
    return o;
}

int
main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        cJSON *asked = cJSON_Parse(line), *o = answer(asked);
        char *out = cJSON_PrintUnformatted(o);
        puts(out);
        fflush(stdout);
        free(out);
        cJSON_Delete(o);
        cJSON_Delete(asked);
    }
    free(line);
    return 0;
}
