#include "traces/escape.h"

#include <stdint.h>

/* Length of the well-formed UTF-8 character at s (Unicode's table 3-7: shortest form, no surrogates, at most U+10FFFF),
 * or 0. */
static size_t
character(const unsigned char *s, size_t n, uint32_t *code)
{
    size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : 4;
    if (len > n || s[0] > 0xf4 || (s[0] >= 0x80 && s[0] < 0xc2))
        return 0;
    static const unsigned char lead[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = s[0] & lead[len];
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return len;
}

static bool
printable(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    if (c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
        return false; /* separators and bidi controls */
    return c != 0xfeff && (c & 0xfffe) != 0xfffe && !(c >= 0xfdd0 && c <= 0xfdef);
}

size_t
escape(char *out, const char *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)bytes;
    char *to = out;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = character(s + i, n - i, &c);
        if (len > 0 && printable(c)) {
            if (c == '\\')
                *to++ = '\\';
            for (; len > 0; len--)
                *to++ = bytes[i++];
            continue;
        }
        for (len = len > 0 ? len : 1; len > 0; len--, i++) {
            *to++ = '\\';
            *to++ = 'x';
            *to++ = hex[s[i] >> 4];
            *to++ = hex[s[i] & 15];
        }
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
unescape(char *out, size_t *n_out, const char *text, size_t n)
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
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = character((const unsigned char *)text + i, n - i, &c);
        bool keep = len > 0 && printable(c);
        for (len = len > 0 ? len : 1; len > 0; len--, i++)
            if (!keep)
                text[i] = '?';
    }
}
