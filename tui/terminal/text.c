#include "tui/terminal/text.h"

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

size_t
text_incomplete(const char *bytes, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char byte = (unsigned char)bytes[n - back];
        if ((byte & 0xc0) == 0x80)
            continue; /* a continuation byte: its start is further back */
        const size_t want = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
        return byte < 0xf5 && want > back ? back : 0;
    }
    return 0;
}

/* Columns of one character: 0 for marks and joiners, 2 for wide ones. */
static int
columns_of(int32_t code)
{
    const int width = utf8proc_charwidth(code);
    return width < 0 ? 0 : width > 2 ? 2 : width;
}

size_t
text_cluster(const char *utf8, int *columns)
{
    *columns = 1;
    const size_t n = strnlen(utf8, 64);
    if (n == 0)
        return 0;
    int32_t code = -1;
    size_t length = decode(utf8, n, &code);
    if (length == 0)
        return 1;
    const int width = columns_of(code);
    *columns = width == 0 ? 1 : width; /* a mark with nothing to sit on takes a cell of its own */
    while (length < n) {
        const size_t used = decode(utf8 + length, n - length, &code);
        if (used == 0 || (unsigned char)utf8[length] < 0x80 || columns_of(code) != 0)
            break;
        length += used;
    }
    return length;
}

int
text_width(const char *utf8)
{
    int total = 0, columns = 0;
    for (size_t used; (used = text_cluster(utf8, &columns)) != 0; utf8 += used)
        total += columns;
    return total;
}

size_t
text_fit(const char *utf8, int columns, int *used)
{
    size_t length = 0;
    int total = 0, width = 0;
    for (size_t n; (n = text_cluster(utf8 + length, &width)) != 0; length += n) {
        if (total + width > columns)
            break;
        total += width;
    }
    if (used != NULL)
        *used = total;
    return length;
}

size_t
text_before(const char *utf8, size_t at)
{
    size_t before = 0;
    int width = 0;
    for (size_t i = 0, n; i < at && (n = text_cluster(utf8 + i, &width)) != 0; i += n)
        before = i;
    return before;
}

size_t
text_encode(int32_t code, char out[5])
{
    if (!utf8proc_codepoint_valid(code)) {
        out[0] = '\0';
        return 0;
    }
    const utf8proc_ssize_t n = utf8proc_encode_char(code, (utf8proc_uint8_t *)out);
    out[n] = '\0';
    return (size_t)n;
}
