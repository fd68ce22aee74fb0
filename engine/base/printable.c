#include "engine/base/printable.h"

#include <string.h>
#include <utf8proc.h>

/* Decodes one character; returns its bytes, or 0 when they are not UTF-8. n counts the bytes that may be read. */
static size_t
decode(const char *bytes, size_t n, int32_t *code)
{
    if (n > 4)
        n = 4;
    const utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)n, code);
    return used > 0 ? (size_t)used : 0;
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
printable_text(const char *bytes, size_t n, char *out, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    size_t length = 0;
    for (size_t i = 0; i < n;) {
        int32_t code = -1;
        size_t used = decode(bytes + i, n - i, &code);
        const char *from = bytes + i;
        size_t count = used;
        char escape[16];
        if (used == 1 && bytes[i] == '\n') {
            from = "⏎";
            count = strlen(from);
        } else if (used == 0 || !printable_code(code)) {
            used = used == 0 ? 1 : used;
            count = 0;
            for (size_t k = 0; k < used; k++) {
                const unsigned char byte = (unsigned char)bytes[i + k];
                escape[count++] = '\\';
                escape[count++] = 'x';
                escape[count++] = hex[byte >> 4];
                escape[count++] = hex[byte & 15];
            }
            from = escape;
        }
        if (length + count >= size)
            break;
        memcpy(out + length, from, count);
        length += count;
        i += used;
    }
    out[length] = '\0';
    return length;
}
