#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t
utf8_character(const char *bytes, size_t len, uint32_t *code)
{
    utf8proc_int32_t c;
    const utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)(len < 4 ? len : 4), &c);
    if (n <= 0)
        return 0;
    if (code != NULL)
        *code = (uint32_t)c;
    return (size_t)n;
}

/* Whether n bytes (1..3) begin a character that is longer: with the lowest or the highest rest they become one. */
static bool
begins_longer(const char *bytes, size_t n)
{
    for (size_t whole = n + 1; whole <= 4; whole++)
        for (int rest = 0x80; rest <= 0xbf; rest += 0x3f) {
            char character[4];
            memset(character, rest, sizeof character);
            memcpy(character, bytes, n);
            if (utf8_character(character, whole, NULL) == whole)
                return true;
        }
    return false;
}

size_t
utf8_broken(const char *bytes, size_t len)
{
    size_t n = len > 0;
    while (n < len && n < 3 && begins_longer(bytes, n + 1))
        n++;
    return n;
}

bool
utf8_is_cut(const char *bytes, size_t len)
{
    return len > 0 && len < 4 && begins_longer(bytes, len);
}

size_t
utf8_put(char out[4], uint32_t code)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)out);
}

bool
utf8_valid(const char *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint64_t eight;
        if (len - at >= sizeof eight &&
            (memcpy(&eight, bytes + at, sizeof eight), (eight & 0x8080808080808080u) == 0)) {
            at += sizeof eight;
            continue;
        }
        const size_t n = utf8_character(bytes + at, len - at, NULL);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

bool
utf8_is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool
printable_code(int32_t code)
{
    if (code == 0x200c || code == 0x200d) /* joiners: scripts need them; a cell drops them */
        return true;
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF: /* bidi controls, tags, soft hyphen, byte order mark */
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
    }
}

size_t
printable_character(const char *bytes, size_t len, char shown[PRINTABLE_ROOM], size_t *n_shown)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t code;
    size_t n = utf8_character(bytes, len, &code);
    if (n > 0 && printable_code((int32_t)code)) {
        memcpy(shown, bytes, n);
        *n_shown = n;
        return n;
    }
    n = n > 0 ? n : 1;
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        memcpy(shown + 4 * i, (char[]){'\\', 'x', hex[byte >> 4], hex[byte & 15]}, 4);
    }
    *n_shown = 4 * n;
    return n;
}

size_t
printable_text(const char *bytes, size_t n, char *out, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < n;) {
        char shown[PRINTABLE_ROOM];
        size_t count;
        const size_t used = printable_character(bytes + i, n - i, shown, &count);
        if (bytes[i] == '\n' || bytes[i] == '\t') {
            const char *sign = bytes[i] == '\n' ? "⏎" : "→";
            count = strlen(sign);
            memcpy(shown, sign, count);
        }
        if (length + count >= size)
            break;
        memcpy(out + length, shown, count);
        length += count;
        i += used;
    }
    out[length] = '\0';
    return length;
}

char *
printable_line(char *out, size_t size, const char *bytes, size_t len)
{
    if (size == 0)
        return out;
    size_t used = 0, mark = 0; /* mark: where "..." still fits */
    for (size_t at = 0; at < len;) {
        char shown[PRINTABLE_ROOM];
        size_t count;
        const size_t n = printable_character(bytes + at, len - at, shown, &count);
        if (count >= size - used) {
            const size_t dots = size - 1 - mark < 3 ? size - 1 - mark : 3;
            memcpy(out + mark, "...", dots);
            used = mark + dots;
            break;
        }
        memcpy(out + used, shown, count);
        used += count;
        if (used + 3 < size)
            mark = used;
        at += n;
    }
    out[used] = '\0';
    return out;
}

bool
shell_word_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:+,@%";
    return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

void
put_shell_word(FILE *out, const char *word)
{
    if (shell_word_plain(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (const char *c = word; *c != '\0'; c++)
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fputc(*c, out);
    fputc('\'', out);
}

/* ---- escapes ---- */

static bool
plain(char c) /* most characters are plain */
{
    return c >= ' ' && c <= '~';
}

size_t
text_escape(char *out, const char *bytes, size_t n)
{
    char *to = out;
    for (size_t i = 0; i < n;) {
        if (plain(bytes[i])) {
            if (bytes[i] == '\\')
                *to++ = '\\';
            *to++ = bytes[i++];
            continue;
        }
        char shown[PRINTABLE_ROOM];
        size_t n_shown;
        i += printable_character(bytes + i, n - i, shown, &n_shown);
        memcpy(to, shown, n_shown);
        to += n_shown;
    }
    *to = '\0';
    return (size_t)(to - out);
}

int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool
text_unescape(char *out, size_t *n_out, const char *text, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\\') {
            out[at++] = text[i];
        } else if (n - i >= 2 && text[i + 1] == '\\') {
            out[at++] = '\\';
            i++;
        } else if (n - i >= 4 && text[i + 1] == 'x' && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
            out[at++] = (char)(hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3]));
            i += 3;
        } else {
            return false;
        }
    }
    out[at] = '\0';
    *n_out = at;
    return true;
}

void
make_printable(char *text, size_t n)
{
    for (size_t i = 0, used; i < n; i += used) {
        char shown[PRINTABLE_ROOM];
        size_t n_shown;
        used = printable_character(text + i, n - i, shown, &n_shown);
        if (n_shown > used) /* it was escaped */
            memset(text + i, '?', used);
    }
}
