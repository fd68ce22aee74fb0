#include "traces/escape.h"

#include <string.h>

#include "engine/base/printable.h"

static bool
plain(char c) /* most are */
{
    return c >= ' ' && c <= '~';
}

size_t
trace_escape(char *out, const char *bytes, size_t n)
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

static int
digit(char c)
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
trace_unescape(char *out, size_t *n_out, const char *text, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\\') {
            out[at++] = text[i];
        } else if (n - i >= 2 && text[i + 1] == '\\') {
            out[at++] = '\\';
            i++;
        } else if (n - i >= 4 && text[i + 1] == 'x' && digit(text[i + 2]) >= 0 && digit(text[i + 3]) >= 0) {
            out[at++] = (char)(digit(text[i + 2]) << 4 | digit(text[i + 3]));
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
