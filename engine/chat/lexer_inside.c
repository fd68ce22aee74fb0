/* What stands in {{ }} and {% %}: names, strings, numbers, signs. */
#include <errno.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "engine/base/printable.h"
#include "engine/base/utf8.h"
#include "engine/chat/buffer.h"
#include "engine/chat/text.h"
#include "engine/chat/token.h"

#define MOST_BRACKETS 200 /* open at a time */

/* ---- strings ---- */

static bool
read_hex(struct slice s, size_t at, size_t n, uint32_t *code)
{
    *code = 0;
    if (at + n > s.len)
        return false;
    for (size_t i = at; i < at + n; i++) {
        const char c = s.data[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

/* \x41, \u0041, \U00000041, \101: how many bytes behind the backslash; 0: it is none of them. */
static size_t
read_code(struct slice s, size_t at, uint32_t *code)
{
    const char c = s.data[at];
    const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (n > 0)
        return read_hex(s, at + 1, n, code) ? n + 1 : 0;
    size_t digits = 0;
    for (*code = 0; digits < 3 && at + digits < s.len; digits++) {
        const char d = s.data[at + digits];
        if (d < '0' || d > '7')
            break;
        *code = *code * 8 + (uint32_t)(d - '0');
    }
    return digits;
}

static bool
add_escape(struct render *r, struct buffer *b, struct slice s, size_t *at)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = s.data[*at];
    const char *simple = c == '\0' ? NULL : strchr(from, c);
    uint32_t code = 0;
    if (c == '\n') /* the line goes on */
        ++*at;
    else if (simple != NULL) {
        ++*at;
        return buffer_add(r, b, (struct slice){&to[simple - from], 1});
    } else if (memchr("xuUN01234567", c, 12) != NULL) {
        const size_t n = c == 'N' ? 0 : read_code(s, *at, &code);
        if (n == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return render_fail(r, "a string's \\%c… is no character that is supported", c);
        *at += n;
        return buffer_add_code(r, b, code);
    } else
        return buffer_add_words(r, b, "\\");
    return true;
}

static bool
read_string(struct lexer *l)
{
    const struct slice rest = lexer_rest(l);
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
    return lexer_add(l, (struct token){.type = TOKEN_CONST, .line = line, .constant = value_text(buffer_text(&b))});
}

/* ---- numbers ---- */

static size_t
count_digits(struct slice s, size_t at, const char *digits)
{
    size_t n = 0;
    while (at + n < s.len && s.data[at + n] != '\0' &&
           (strchr(digits, s.data[at + n]) != NULL ||
            (s.data[at + n] == '_' && n > 0 && at + n + 1 < s.len && s.data[at + n + 1] != '\0' &&
             strchr(digits, s.data[at + n + 1]) != NULL)))
        n++;
    return n;
}

/* A float's length; 0 if it is none. */
static size_t
float_length(struct slice s)
{
    static const char digits[] = "0123456789";
    size_t n = count_digits(s, 0, digits);
    bool is_float = false;
    if (n < s.len && s.data[n] == '.') {
        const size_t behind = count_digits(s, n + 1, digits);
        is_float = behind > 0;
        n += behind > 0 ? behind + 1 : 0;
    }
    if (n < s.len && (s.data[n] | 32) == 'e') {
        const size_t sign = n + 1 < s.len && (s.data[n + 1] == '+' || s.data[n + 1] == '-');
        const size_t power = count_digits(s, n + 1 + sign, digits);
        if (power > 0)
            return n + 1 + sign + power;
    }
    return is_float ? n : 0;
}

static bool
read_number(struct lexer *l)
{
    const struct slice rest = lexer_rest(l);
    const bool after_dot = l->at > 0 && l->source.data[l->at - 1] == '.';
    size_t n = after_dot ? 0 : float_length(rest);
    const bool real = n > 0;
    int base = 10;
    if (!real) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char letter = rest.len > 1 && rest.data[0] == '0' ? (char)(rest.data[1] | 32) : '\0';
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
        const char *which = base == 16 ? digits : base == 8 ? "01234567" : base == 2 ? "01" : "0123456789";
        const size_t behind = base == 10 ? 0 : count_digits(rest, 2, which);
        if (behind == 0)
            base = 10;
        n = behind > 0 ? behind + 2 : rest.data[0] == '0' ? count_digits(rest, 0, "0") : count_digits(rest, 0, which);
    }
    char text[64];
    size_t kept = 0;
    for (size_t i = base == 10 ? 0 : 2; i < n && kept < sizeof text; i++)
        if (rest.data[i] != '_')
            text[kept++] = rest.data[i];
    errno = 0;
    const size_t last = kept < sizeof text ? kept : sizeof text - 1;
    text[last] = '\0';
    const struct value v = real ? value_float(strtod(text, NULL)) : value_int(strtoll(text, NULL, base));
    if (kept == sizeof text || (errno != 0 && !real))
        return render_fail(l->r, "a number is too large");
    l->at += n;
    return lexer_add(l, (struct token){.type = TOKEN_CONST, .line = l->line, .constant = v});
}

/* ---- names and signs ---- */

static bool
is_letter(uint32_t code)
{
    if (code < 0x80)
        return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9') ||
               code == '_';
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || c == UTF8PROC_CATEGORY_MN ||
           c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL;
}

static size_t
name_length(struct slice s)
{
    size_t n = 0;
    uint32_t code;
    while (n < s.len) {
        const size_t one = text_character((struct slice){s.data + n, s.len - n}, &code);
        if (!is_letter(code))
            break;
        n += one;
    }
    return n;
}

static bool
read_sign(struct lexer *l, char *open, size_t *n_open)
{
    static const char *const doubles[] = {"//", "**", "==", "!=", ">=", "<="};
    const struct slice rest = lexer_rest(l);
    unsigned sign = SIGN((unsigned char)rest.data[0]);
    size_t n = 1;
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        if (text_begins(rest, slice_of(doubles[i]))) {
            sign = SIGN2(doubles[i][0], doubles[i][1]);
            n = 2;
        }
    const char c = rest.data[0];
    char shown[PRINTABLE_ROOM];
    size_t n_shown;
    if (n == 1 && (c == '\0' || strchr("+-/*%~[](){}><=.:|,;", c) == NULL)) {
        printable_character(rest.data, rest.len, shown, &n_shown);
        return render_fail(l->r, "'%.*s' is not understood", (int)n_shown, shown);
    }
    if (c == '(' || c == '[' || c == '{') {
        if (*n_open == MOST_BRACKETS)
            return render_fail(l->r, "brackets are nested too deeply");
        open[(*n_open)++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (*n_open == 0 || open[*n_open - 1] != c)
            return render_fail(l->r, "'%c' closes nothing", c);
        --*n_open;
    }
    l->at += n;
    return lexer_add(l, (struct token){.type = TOKEN_SIGN, .line = l->line, .sign = sign});
}

/* Behind %} or }} if that is here. */
static bool
reads_end(struct lexer *l, bool block)
{
    const struct slice rest = lexer_rest(l);
    const char c = rest.data[0];
    const char control = c == '-' || (c == '+' && block) ? c : '\0';
    if (!text_begins((struct slice){rest.data + (control != 0), rest.len - (control != 0)},
                     slice_of(block ? "%}" : "}}")))
        return false;
    const unsigned line = l->line;
    lexer_behind_end(l, l->at + 2 + (control != 0), control, block);
    return lexer_add(l, (struct token){.type = block ? TOKEN_BLOCK_END : TOKEN_PRINT_END, .line = line});
}

bool
lexer_inside(struct lexer *l, bool block)
{
    char open[MOST_BRACKETS];
    size_t n_open = 0;
    while (l->at < l->source.len) {
        const struct slice rest = lexer_rest(l);
        l->r->line = l->line;
        uint32_t code;
        const size_t first = text_character(rest, &code);
        bool ok = true;
        if (n_open == 0 && reads_end(l, block))
            return true;
        if (l->r->failed != NULL)
            return false;
        if (text_is_space(code)) {
            l->at += first;
            l->line += code == '\n';
        } else if (code >= '0' && code <= '9')
            ok = read_number(l);
        else if (is_letter(code)) {
            const size_t n = name_length(rest);
            ok = lexer_add(l, (struct token){.type = TOKEN_NAME, .line = l->line, .text = {rest.data, n}});
            l->at += n;
        } else
            ok = code == '\'' || code == '"' ? read_string(l) : read_sign(l, open, &n_open);
        if (!ok)
            return false;
    }
    return render_fail(l->r, "%s has no end", block ? "{%" : "{{");
}
