#include "engine/base/printable.h"

#include <string.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"

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
        if (bytes[i] == '\n') {
            count = strlen("⏎");
            memcpy(shown, "⏎", count);
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

void
put_shell_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:+,@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
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
