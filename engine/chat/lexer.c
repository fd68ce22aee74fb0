/* Data, comments, raw parts, and where the rest begins. */
#include "engine/chat/text.h"
#include "engine/chat/token.h"

bool
lexer_add(struct lexer *l, struct token t)
{
    struct tokens *out = l->out;
    if (out->n == out->room) {
        const size_t room = out->room == 0 ? 256 : 2 * out->room;
        struct token *at = render_memory(l->r, room * sizeof *at);
        if (at == NULL)
            return false;
        if (out->n > 0)
            memcpy(at, out->at, out->n * sizeof *at);
        out->at = at;
        out->room = room;
    }
    out->at[out->n++] = t;
    return true;
}

static unsigned
count_lines(struct slice s)
{
    unsigned n = 0;
    for (const char *c = s.data; s.len > 0 && (c = memchr(c, '\n', s.len - (size_t)(c - s.data))) != NULL; c++)
        n++;
    return n;
}

static void
go_to(struct lexer *l, size_t to)
{
    l->line += count_lines((struct slice){l->source.data + l->at, to - l->at});
    if (to > l->at)
        l->line_starts = l->source.data[to - 1] == '\n';
    l->at = to;
}

void
lexer_behind_end(struct lexer *l, size_t end, char control, bool trims_newline)
{
    if (control == '-') {
        const struct slice rest = {l->source.data + end, l->source.len - end};
        end += rest.len - text_strip(rest, (struct slice){0}, TEXT_LEFT).len;
    } else if (control == 0 && trims_newline && end < l->source.len && l->source.data[end] == '\n')
        end++;
    go_to(l, end);
}

/* What stands before a tag that begins with `control`: without the white space that the tag takes away. */
static struct slice
without_space(struct slice data, char control, bool print, bool line_starts)
{
    if (control == '-')
        return text_strip(data, (struct slice){0}, TEXT_RIGHT);
    if (control == '+' || print)
        return data;
    size_t begin = data.len;
    while (begin > 0 && data.data[begin - 1] != '\n')
        begin--;
    const struct slice last = {data.data + begin, data.len - begin};
    const bool blank = last.len > 0 && text_strip(last, (struct slice){0}, TEXT_BOTH).len == 0;
    return blank && (begin > 0 || line_starts) ? (struct slice){data.data, begin} : data;
}

/* Data up to byte `end`, where a tag begins. */
static bool
add_data(struct lexer *l, size_t end, char control, bool print)
{
    const struct slice all = {l->source.data + l->at, end - l->at};
    const struct slice data = without_space(all, control, print, l->line_starts);
    return data.len == 0 || lexer_add(l, (struct token){.type = TOKEN_DATA, .line = l->line, .text = data});
}

static char
control_at(const struct lexer *l, size_t at)
{
    const char c = at < l->source.len ? l->source.data[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
}

static size_t
skip_space(const struct lexer *l, size_t at)
{
    const struct slice rest = {l->source.data + at, l->source.len - at};
    return at + rest.len - text_strip(rest, (struct slice){0}, TEXT_LEFT).len;
}

static bool
says(const struct lexer *l, size_t at, const char *word)
{
    return text_begins((struct slice){l->source.data + at, l->source.len - at}, slice_of(word));
}

/* {#, to the nearest #}. */
static bool
read_comment(struct lexer *l)
{
    const size_t end = text_find(l->source, slice_of("#}"), l->at);
    if (end == SIZE_MAX)
        return render_fail(l->r, "a comment, {#, has no end");
    lexer_behind_end(l, end + 2, end > l->at ? control_at(l, end - 1) : '\0', true);
    return true;
}

/* Whether {% raw %} stands at byte `at`; *end is behind it. */
static bool
is_raw(const struct lexer *l, size_t at, size_t *end)
{
    at += control_at(l, at + 2) != 0 ? 3 : 2;
    at = skip_space(l, at);
    if (!says(l, at, "raw"))
        return false;
    at = skip_space(l, at + 3);
    if (says(l, at, "-%}"))
        *end = skip_space(l, at + 3);
    else if (says(l, at, "%}"))
        *end = at + 2;
    else
        return false;
    return true;
}

/* What is written as it is, up to {% endraw %}. */
static bool
read_raw(struct lexer *l)
{
    for (size_t at = l->at; (at = text_find(l->source, slice_of("{%"), at)) != SIZE_MAX; at += 2) {
        const char control = control_at(l, at + 2);
        size_t end = skip_space(l, at + 2 + (control != '\0'));
        if (!says(l, end, "endraw"))
            continue;
        end = skip_space(l, end + 6);
        const char closing = control_at(l, end);
        if (!says(l, end + (closing != '\0'), "%}"))
            continue;
        if (!add_data(l, at, control, false))
            return false;
        lexer_behind_end(l, end + (closing != '\0') + 2, closing, true);
        return true;
    }
    return render_fail(l->r, "{%% raw %%} has no {%% endraw %%}");
}

/* The nearest {{, {% or {#; the source's end if there is none. */
static size_t
next_tag(const struct lexer *l)
{
    for (size_t at = l->at; (at = text_find(l->source, slice_of("{"), at)) != SIZE_MAX; at++)
        if (at + 1 < l->source.len && memchr("{%#", l->source.data[at + 1], 3) != NULL)
            return at;
    return l->source.len;
}

static bool
read_tag(struct lexer *l, size_t at)
{
    const char kind = l->source.data[at + 1], control = control_at(l, at + 2);
    size_t raw_end = 0;
    const bool raw = kind == '%' && is_raw(l, at, &raw_end);
    if (!add_data(l, at, control, kind == '{'))
        return false;
    if (raw) {
        go_to(l, raw_end);
        return read_raw(l);
    }
    go_to(l, at + 2 + (control != '\0'));
    l->r->line = l->line;
    if (kind == '#')
        return read_comment(l);
    return lexer_add(l, (struct token){.type = kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_PRINT_BEGIN, .line = l->line}) &&
           lexer_inside(l, kind == '%');
}

/* Newlines are \n; the last one goes. */
static bool
normalise(struct render *r, struct slice *source)
{
    char *at = render_memory(r, source->len);
    if (at == NULL)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < source->len; i++) {
        const char c = source->data[i];
        if (c == '\n' && i > 0 && source->data[i - 1] == '\r')
            continue;
        at[n++] = c == '\r' ? '\n' : c;
    }
    n -= n > 0 && at[n - 1] == '\n';
    *source = (struct slice){at, n};
    return true;
}

bool
tokens_read(struct render *r, struct slice source, struct tokens *out)
{
    *out = (struct tokens){0};
    if (!normalise(r, &source))
        return false;
    struct lexer l = {.r = r, .source = source, .line = 1, .line_starts = true, .out = out};
    while (l.at < source.len) {
        r->line = l.line;
        const size_t at = next_tag(&l);
        if (at == source.len) {
            if (!lexer_add(&l, (struct token){.type = TOKEN_DATA, .line = l.line, .text = lexer_rest(&l)}))
                return false;
            break;
        }
        if (!read_tag(&l, at))
            return false;
    }
    return lexer_add(&l, (struct token){.type = TOKEN_END, .line = l.line});
}
