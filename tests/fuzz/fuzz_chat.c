/* Untrusted chat templates and dialogues: any bytes render within their bounds, twice with the same result, or fail in
 * one line. Input is a template and, after a byte 0xff (which UTF-8 never contains), a JSON object of variables. */

#include "engine/jinja/chat.h"
#include "tests/fuzz/fuzz.h"

static bool
render(const struct chat *chat, struct slice context, char **text, size_t *len)
{
    static const struct chat_bounds bounds = {.steps = 20000, .memory = 4u << 20, .output = 1u << 20, .depth = 200};
    struct chat_dialogue dialogue = {.now = {.tm_year = 125, .tm_mon = 2, .tm_mday = 5}, .bounds = &bounds};
    struct err err = {0};
    if (context.data == NULL) {
        dialogue.system = "Be kind.";
        dialogue.user = slice_of("Hello");
    } else
        dialogue.context = context;
    if (chat_render(chat, &dialogue, text, len, &err)) {
        MUST(*len <= bounds.output && (*text)[*len] == '\0');
        return true;
    }
    MUST(*text == NULL && err.kind != ERR_NONE && err.text[0] != '\0' && strpbrk(err.text, "\n\033\r") == NULL);
    return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *template = (const char *)data, *behind = size == 0 ? NULL : memchr(template, 0xff, size);
    const size_t n = behind == NULL ? size : (size_t)(behind - template);
    const struct slice context = behind == NULL ? (struct slice){0} : (struct slice){behind + 1, size - n - 1};
    struct chat *chat;
    struct err err = {0};
    if (!chat_open(&chat, (struct slice){template, n}, &err)) {
        MUST(chat == NULL && err.kind == ERR_WORK && strstr(err.text, "line ") != NULL &&
             strpbrk(err.text, "\n\033\r") == NULL);
        return 0;
    }
    char *text[2];
    size_t len[2];
    const bool first = render(chat, context, &text[0], &len[0]), second = render(chat, context, &text[1], &len[1]);
    MUST(first == second && (!first || (len[0] == len[1] && memcmp(text[0], text[1], len[0]) == 0)));
    free(text[0]);
    free(text[1]);
    chat_close(chat);
    return 0;
}

MUTATOR(mutate_lines(data, size, max_size, seed));
