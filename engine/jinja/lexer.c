/* The lexer: converts a template to tokens and applies Jinja's white space rules. */
#include <errno.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "engine/jinja/template.h"

struct lexer {
    struct render *r;
    struct slice source;
    size_t at;
    unsigned line;
    bool line_starts; /* the last byte read was a newline */
    struct tokens *out;
};

static struct slice
rest_from(const struct lexer *l, size_t at)
{
    return at < l->source.len ? (struct slice){l->source.data + at, l->source.len - at} : (struct slice){"", 0};
}

static bool
add(struct lexer *l, struct token t)
{
    struct tokens *out = l->out;
    struct token *at = render_grow(l->r, out->at, out->n, &out->room, sizeof *at);
    if (at == NULL)
        return false;
    out->at = at;
    out->at[out->n++] = t;
    return true;
}

/* ---- data and comments ---- */

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

static size_t
skip_space(const struct lexer *l, size_t at)
{
    const struct slice rest = rest_from(l, at);
    return at + rest.len - text_strip(rest, (struct slice){0}, TEXT_LEFT).len;
}

/* Moves past the end of {% %}, {# #} or {{ }} and the white space that the tag removes. */
static void
go_after_end(struct lexer *l, size_t end, char control, bool trims_newline)
{
    if (control == '-')
        end = skip_space(l, end);
    else if (control == 0 && trims_newline && end < l->source.len && l->source.data[end] == '\n')
        end++;
    go_to(l, end);
}

/* Returns the data before a tag without the white space that the tag's `control` character removes. */
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

/* Adds the data up to byte `end`, where a tag begins. */
static bool
add_data(struct lexer *l, size_t end, char control, bool print)
{
    const struct slice all = {l->source.data + l->at, end - l->at};
    const struct slice data = without_space(all, control, print, l->line_starts);
    return data.len == 0 || add(l, (struct token){.type = TOKEN_DATA, .line = l->line, .text = data});
}

static char
control_at(const struct lexer *l, size_t at)
{
    const char c = at < l->source.len ? l->source.data[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
}

/* Skips a comment from {# to the next #}. */
static bool
read_comment(struct lexer *l)
{
    const size_t end = text_find(l->source, slice_of("#}"), l->at);
    if (end == SIZE_MAX)
        return render_fail(l->r, "a comment, {#, has no end");
    go_after_end(l, end + 2, end > l->at ? control_at(l, end - 1) : '\0', true);
    return true;
}

/* ---- inside {{ }} and {% %} ---- */

/* Parses the first n bytes as a hexadecimal number; returns false if they are not n hexadecimal digits. */
static bool
read_hex(struct slice s, size_t n, uint32_t *number)
{
    *number = 0;
    for (size_t i = 0; i < n; i++) {
        const int digit = i < s.len ? hex_digit(s.data[i]) : -1;
        if (digit < 0)
            return false;
        *number = *number << 4 | (uint32_t)digit;
    }
    return true;
}

/* Appends the character of the escape sequence whose backslash is before s.data[*at]. */
static bool
add_escape(struct render *r, struct buffer *b, struct slice s, size_t *at)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = s.data[*at];
    const char *simple = c == '\0' ? NULL : strchr(from, c);
    const size_t digits = c == 'x' ? 2 : 4;
    uint32_t code = 0;
    if (c == '\n') /* the line continues */
        ++*at;
    else if (simple != NULL) {
        ++*at;
        return buffer_add(r, b, (struct slice){&to[simple - from], 1});
    } else if (memchr("xuUN01234567", c, 12) != NULL) {
        if ((c != 'x' && c != 'u') || !read_hex((struct slice){s.data + *at + 1, s.len - *at - 1}, digits, &code) ||
            (code >= 0xd800 && code < 0xe000))
            return render_fail(r, "a string's \\%c… is not supported", c);
        *at += 1 + digits;
        return buffer_add_code(r, b, code);
    } else
        return buffer_add_words(r, b, "\\");
    return true;
}

static bool
read_string(struct lexer *l)
{
    const struct slice rest = rest_from(l, l->at);
    const char quote = rest.data[0];
    struct buffer b = {0};
    size_t at = 1;
    const unsigned line = l->line;
    while (at < rest.len && rest.data[at] != quote) {
        size_t end = at;
        while (end < rest.len && rest.data[end] != quote && rest.data[end] != '\\')
            l->line += rest.data[end++] == '\n';
        if (!buffer_add(l->r, &b, (struct slice){rest.data + at, end - at}))
            return false;
        at = end;
        if (at + 1 < rest.len && rest.data[at] == '\\') {
            l->line += rest.data[++at] == '\n';
            if (!add_escape(l->r, &b, rest, &at))
                return false;
        } else if (at < rest.len && rest.data[at] == '\\')
            at++;
    }
    if (at >= rest.len)
        return render_fail(l->r, "a string, %c, has no end", quote);
    l->at += at + 1;
    return add(l, (struct token){.type = TOKEN_CONST,
                                 .line = line,
                                 .text = {rest.data, at + 1},
                                 .constant = value_text(buffer_text(&b))});
}

static bool
is_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t
count_digits(struct slice s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && s.data[at + n] >= '0' && s.data[at + n] <= '9')
        n++;
    return n;
}

static bool
read_number(struct lexer *l)
{
    const struct slice rest = rest_from(l, l->at);
    size_t n = count_digits(rest, 0), more;
    bool real = false;
    if (n < rest.len && rest.data[n] == '.' && (more = count_digits(rest, n + 1)) > 0) {
        real = true;
        n += 1 + more;
    }
    char text[64];
    const size_t shown = n < sizeof text ? n : sizeof text - 1;
    if ((n < rest.len && is_in_name(rest.data[n])) || (!real && n > 1 && rest.data[0] == '0'))
        return render_fail(l->r, "a number that begins with '%.*s' is not supported", (int)shown + 1, rest.data);
    memcpy(text, rest.data, shown);
    text[shown] = '\0';
    errno = 0;
    const struct value v = real ? value_float(strtod(text, NULL)) : value_int(strtoll(text, NULL, 10));
    if (n >= sizeof text || (errno != 0 && !real))
        return render_fail(l->r, "a number is too large");
    l->at += n;
    return add(l, (struct token){.type = TOKEN_CONST, .line = l->line, .text = {rest.data, n}, .constant = v});
}

static bool
read_sign(struct lexer *l, int *n_open)
{
    static const char *const doubles[] = {"//", "**", "==", "!=", ">=", "<="};
    const struct slice rest = rest_from(l, l->at);
    unsigned sign = SIGN((unsigned char)rest.data[0]);
    size_t n = 1;
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        if (text_begins(rest, slice_of(doubles[i]))) {
            sign = SIGN2(doubles[i][0], doubles[i][1]);
            n = 2;
        }
    if (sign == SIGN2('*', '*'))
        return render_fail(l->r, "the operator '**' is not supported");
    const char c = rest.data[0];
    char shown[PRINTABLE_ROOM];
    size_t n_shown;
    if (n == 1 && (c == '\0' || strchr("+-/*%~[](){}><=.:|,;", c) == NULL)) {
        printable_character(rest.data, rest.len, shown, &n_shown);
        return render_fail(l->r, "'%.*s' is not understood", (int)n_shown, shown);
    }
    *n_open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    l->at += n;
    return add(l, (struct token){.type = TOKEN_SIGN, .line = l->line, .sign = sign, .text = {rest.data, n}});
}

/* If %} or }} is at the current position, moves past it and returns true. */
static bool
reads_end(struct lexer *l, bool block)
{
    const struct slice rest = rest_from(l, l->at);
    const char c = rest.data[0];
    const char control = c == '-' || (c == '+' && block) ? c : '\0';
    if (!text_begins((struct slice){rest.data + (control != 0), rest.len - (control != 0)},
                     slice_of(block ? "%}" : "}}")))
        return false;
    const unsigned line = l->line;
    go_after_end(l, l->at + 2 + (control != 0), control, block);
    return add(l, (struct token){.type = block ? TOKEN_BLOCK_END : TOKEN_PRINT_END,
                                 .line = line,
                                 .text = slice_of(block ? "%}" : "}}")});
}

/* Reads the tokens of a {{ or {% up to and including its end. */
static bool
read_inside(struct lexer *l, bool block)
{
    int n_open = 0;
    while (l->at < l->source.len) {
        const struct slice rest = rest_from(l, l->at);
        l->r->line = l->line;
        const char c = rest.data[0];
        bool ok = true;
        if (n_open <= 0 && reads_end(l, block))
            return true;
        if (l->r->failed != NULL)
            return false;
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            l->at++;
            l->line += c == '\n';
        } else if (c >= '0' && c <= '9')
            ok = read_number(l);
        else if (is_in_name(c)) {
            size_t n = 1;
            while (n < rest.len && is_in_name(rest.data[n]))
                n++;
            ok = add(l, (struct token){.type = TOKEN_NAME, .line = l->line, .text = {rest.data, n}});
            l->at += n;
        } else
            ok = c == '\'' || c == '"' ? read_string(l) : read_sign(l, &n_open);
        if (!ok)
            return false;
    }
    return render_fail(l->r, "%s has no end", block ? "{%" : "{{");
}

/* Returns the position of the next {{, {% or {#; the source's end if there is none. */
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
    if (!add_data(l, at, control, kind == '{'))
        return false;
    go_to(l, at + 2 + (control != '\0'));
    l->r->line = l->line;
    if (kind == '#')
        return read_comment(l);
    return add(l, (struct token){.type = kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_PRINT_BEGIN, .line = l->line}) &&
           read_inside(l, kind == '%');
}

/* Converts newlines to \n and removes a final newline. */
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
            if (!add(&l, (struct token){.type = TOKEN_DATA, .line = l.line, .text = rest_from(&l, l.at)}))
                return false;
            break;
        }
        if (!read_tag(&l, at))
            return false;
    }
    return add(&l, (struct token){.type = TOKEN_END, .line = l.line});
}
