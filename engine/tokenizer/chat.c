#include "engine/tokenizer/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const chat_names[CHAT_FORMATS] = {
    [CHAT_NONE] = "none",     [CHAT_LLAMA2] = "Llama 2",  [CHAT_LLAMA3] = "Llama 3", [CHAT_VICUNA] = "Vicuna",
    [CHAT_CHATML] = "ChatML", [CHAT_MISTRAL] = "Mistral", [CHAT_ZEPHYR] = "Zephyr"};

/* ---- reading a template ---- */

static const char *
find(struct slice text, const char *what)
{
    return text.len == 0 ? NULL : memmem(text.data, text.len, what, strlen(what));
}

static bool
has(struct slice text, const char *what)
{
    return find(text, what) != NULL;
}

static struct slice
behind(struct slice text, const char *at, size_t n)
{
    const size_t skipped = (size_t)(at - text.data) + n;
    return (struct slice){text.data + skipped, text.len - skipped};
}

/* A piece of a Jinja string, its escapes resolved. False: it doesn't fit. */
static bool
copy_unescaped(char *out, size_t size, struct slice text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\\' && i + 1 < text.len) {
            c = text.data[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        if (n + 1 >= size || c == '\0')
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

/* {% set system_message = '…' %} */
static bool
read_assigned_system(struct chat *chat, struct slice rest)
{
    static const char assigned[] = "system_message = ";
    for (const char *at; (at = find(rest, assigned)) != NULL;) {
        rest = behind(rest, at, sizeof assigned - 1);
        if (rest.len < 2 || (rest.data[0] != '\'' && rest.data[0] != '"'))
            continue;
        for (size_t n = 1; n < rest.len; n++) {
            if (rest.data[n] == '\\')
                n++;
            else if (rest.data[n] == rest.data[0])
                return copy_unescaped(chat->system, sizeof chat->system, (struct slice){rest.data + 1, n - 1});
        }
    }
    return false;
}

/* '<|im_start|>system\n…<|im_end|>' in one string */
static bool
read_written_system(struct chat *chat, struct slice rest)
{
    static const char begin[] = "<|im_start|>system";
    for (const char *at; (at = find(rest, begin)) != NULL;) {
        rest = behind(rest, at, sizeof begin - 1);
        const char *end = find(rest, "<|im_end|>");
        struct slice text = {rest.data, end == NULL ? 0 : (size_t)(end - rest.data)};
        if (text.len > 1 && text.data[0] == '\n')
            text = (struct slice){text.data + 1, text.len - 1};
        else if (text.len > 2 && text.data[0] == '\\' && text.data[1] == 'n')
            text = (struct slice){text.data + 2, text.len - 2};
        else
            continue;
        if (!has(text, "{") && !has(text, "' ") && !has(text, "'+") && !has(text, "\"") &&
            copy_unescaped(chat->system, sizeof chat->system, text))
            return true;
    }
    return false;
}

/* What stands behind `what` up to the end of its Jinja string or of its line; "" if that is nothing, or doesn't fit. */
static void
read_rest(char *out, size_t size, struct slice text, const char *what)
{
    const char *at = find(text, what);
    size_t n = 0;
    if (at != NULL) {
        text = behind(text, at, strlen(what));
        while (n < text.len && strchr("\\\"'\n", text.data[n]) == NULL) /* also stops at NUL */
            n++;
    }
    if (n >= size)
        n = 0;
    if (n > 0)
        memcpy(out, text.data, n);
    out[n] = '\0';
}

void
chat_set_day(struct chat *chat, const struct tm *day)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}; /* English in every locale */
    if (chat->today && day->tm_mon >= 0 && day->tm_mon < 12)
        snprintf(chat->date, sizeof chat->date, "%02d %s %d", day->tm_mday % 100, months[day->tm_mon],
                 (day->tm_year + 1900) % 10000);
}

/* "Cutting Knowledge Date: …" and "Today Date: …": with strftime_now the day's, else what date_string is set to. */
static void
read_dates(struct chat *chat, struct slice t)
{
    read_rest(chat->cutting, sizeof chat->cutting, t, "Cutting Knowledge Date: ");
    if (chat->cutting[0] == '\0' || !has(t, "Today Date: "))
        return;
    const time_t now = time(NULL);
    struct tm day;
    chat->today = has(t, "strftime_now(");
    if (chat->today && localtime_r(&now, &day) != NULL)
        chat_set_day(chat, &day);
    if (!chat->today)
        read_rest(chat->date, sizeof chat->date, t, "date_string = \"");
    if (!chat->today && chat->date[0] == '\0')
        read_rest(chat->date, sizeof chat->date, t, "date_string = '");
}

bool
chat_recognise(struct chat *chat, const char *template, size_t len)
{
    const struct slice t = {template, len};
    *chat = (struct chat){0};
    if (has(t, "<|im_start|>"))
        chat->format = CHAT_CHATML;
    else if (has(t, "<|start_header_id|>"))
        chat->format = CHAT_LLAMA3;
    else if (has(t, "[INST]"))
        chat->format = has(t, "<<SYS>>") ? CHAT_LLAMA2 : CHAT_MISTRAL;
    else if (has(t, "USER:") && has(t, "ASSISTANT:"))
        chat->format = CHAT_VICUNA;
    else if (has(t, "<|user|>") && has(t, "<|assistant|>") && has(t, "eos_token"))
        chat->format = CHAT_ZEPHYR;
    chat->open_space = has(t, "[INST] ");
    chat->close_space = has(t, " [/INST]");
    chat->system_tokens = has(t, "[SYSTEM_PROMPT]");
    if (chat->format == CHAT_CHATML || chat->format == CHAT_VICUNA)
        if (!read_assigned_system(chat, t) && (chat->format != CHAT_CHATML || !read_written_system(chat, t)))
            chat->system[0] = '\0';
    if (chat->format == CHAT_LLAMA3)
        read_dates(chat, t);
    return chat->format != CHAT_NONE;
}

bool
chat_of_tokenizer(struct chat *chat, const struct tokenizer *t)
{
    const struct slice template = tokenizer_chat_template(t);
    const bool known = chat_recognise(chat, template.data, template.len);
    const struct slice eos = tokenizer_bytes(t, tokenizer_eos(t), true);
    if (eos.len < sizeof chat->eos)
        memcpy(chat->eos, eos.data, eos.len);
    return known;
}

/* ---- writing a turn ---- */

/* The parts of a text, one after another; without memory, they are only counted. */
struct text {
    char *at;
    size_t len;
};

static void
add_bytes(struct text *t, const char *bytes, size_t n)
{
    if (t->at != NULL && n > 0)
        memcpy(t->at + t->len, bytes, n);
    t->len += n;
}

static void
add(struct text *t, const char *words)
{
    add_bytes(t, words, strlen(words));
}

static void
add_chatml(struct text *t, const char *system, const char *user, size_t n_user)
{
    if (system[0] != '\0') {
        add(t, "<|im_start|>system\n");
        add(t, system);
        add(t, "<|im_end|>\n");
    }
    add(t, "<|im_start|>user\n");
    add_bytes(t, user, n_user);
    add(t, "<|im_end|>\n<|im_start|>assistant\n");
}

static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *
trimmed(const char *words, size_t *n)
{
    for (; *n > 0 && (is_blank(words[0]) || is_blank(words[*n - 1])); --*n)
        words += is_blank(words[0]);
    return words;
}

static void
add_llama3(const struct chat *chat, struct text *t, const char *system, const char *user, size_t n_user)
{
    const bool dated = chat->date[0] != '\0';
    if (system[0] != '\0' || dated) {
        add(t, "<|start_header_id|>system<|end_header_id|>\n\n");
        if (dated) {
            add(t, "Cutting Knowledge Date: ");
            add(t, chat->cutting);
            add(t, "\nToday Date: ");
            add(t, chat->date);
            add(t, "\n\n");
        }
        size_t n_system = strlen(system);
        system = trimmed(system, &n_system);
        add_bytes(t, system, n_system);
        add(t, "<|eot_id|>");
    }
    add(t, "<|start_header_id|>user<|end_header_id|>\n\n");
    add_bytes(t, user, n_user);
    add(t, "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
}

static void
add_llama2(struct text *t, const char *system, const char *user, size_t n_user)
{
    add(t, "[INST] ");
    if (system[0] != '\0') {
        add(t, "<<SYS>>\n");
        add(t, system);
        add(t, "\n<</SYS>>\n\n");
    }
    add_bytes(t, user, n_user);
    add(t, " [/INST]");
}

static void
add_mistral(const struct chat *chat, struct text *t, const char *system, const char *user, size_t n_user)
{
    if (system[0] != '\0' && chat->system_tokens) {
        add(t, chat->open_space ? "[SYSTEM_PROMPT] " : "[SYSTEM_PROMPT]");
        add(t, system);
        add(t, "[/SYSTEM_PROMPT]");
    }
    add(t, chat->open_space ? "[INST] " : "[INST]");
    if (system[0] != '\0' && !chat->system_tokens) {
        add(t, system);
        add(t, "\n\n");
    }
    add_bytes(t, user, n_user);
    add(t, chat->close_space ? " [/INST]" : "[/INST]");
}

static void
add_vicuna(struct text *t, const char *system, const char *user, size_t n_user)
{
    add(t, system);
    add(t, system[0] != '\0' ? " USER: " : "USER: ");
    add_bytes(t, user, n_user);
    add(t, " ASSISTANT:");
}

static void
add_zephyr(const struct chat *chat, struct text *t, const char *system, const char *user, size_t n_user)
{
    if (system[0] != '\0') {
        add(t, "<|system|>\n");
        add(t, system);
        add(t, chat->eos);
        add(t, "\n");
    }
    add(t, "<|user|>\n");
    add_bytes(t, user, n_user);
    add(t, chat->eos);
    add(t, "\n<|assistant|>\n");
}

static void
add_turn(const struct chat *chat, struct text *t, const char *system, const char *user, size_t n_user)
{
    switch (chat->format) {
    case CHAT_LLAMA2: add_llama2(t, system, user, n_user); break;
    case CHAT_LLAMA3: add_llama3(chat, t, system, user, n_user); break;
    case CHAT_VICUNA: add_vicuna(t, system, user, n_user); break;
    case CHAT_CHATML: add_chatml(t, system, user, n_user); break;
    case CHAT_MISTRAL: add_mistral(chat, t, system, user, n_user); break;
    case CHAT_ZEPHYR: add_zephyr(chat, t, system, user, n_user); break;
    case CHAT_NONE:
    case CHAT_FORMATS: add_bytes(t, user, n_user); break;
    }
}

bool
chat_prompt(const struct chat *chat, const char *system, const char *user, size_t n_user, char **text, size_t *len,
            struct err *err)
{
    if (chat->format == CHAT_LLAMA2 || chat->format == CHAT_LLAMA3) /* their templates trim */
        user = trimmed(user, &n_user);
    if (system == NULL)
        system = chat->system;
    struct text t = {0};
    add_turn(chat, &t, system, user, n_user); /* how long it is */
    t = (struct text){.at = malloc(t.len + 1)};
    *text = t.at;
    if (t.at == NULL)
        return err_set(err, ERR_WORK, "out of memory for a prompt of %zu bytes", n_user);
    add_turn(chat, &t, system, user, n_user);
    t.at[t.len] = '\0';
    *len = t.len;
    return true;
}
