#include "engine/base/utf8.h"

#include <stdio.h>
#include <string.h>

/* The range of a character's second byte, which depends on its first: this is what keeps overlong forms, surrogates
 * and code points above U+10FFFF out (Unicode 15, table 3-7). Returns the character's length, 0 if `first` is none. */
static size_t
second_byte(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80)
        return 1;
    if (first < 0xc2)
        return 0;
    if (first < 0xe0)
        return 2;
    if (first < 0xf0) {
        if (first == 0xe0)
            *low = 0xa0;
        else if (first == 0xed)
            *high = 0x9f;
        return 3;
    }
    if (first > 0xf4)
        return 0;
    if (first == 0xf0)
        *low = 0x90;
    else if (first == 0xf4)
        *high = 0x8f;
    return 4;
}

/* Bytes at the front that belong to one character, complete or not; *whole is the length it should have. */
static size_t
well_formed(const char *bytes, size_t len, size_t *whole)
{
    const unsigned char *b = (const unsigned char *)bytes;
    unsigned char low, high;
    *whole = len == 0 ? 0 : second_byte(b[0], &low, &high);
    if (*whole == 0)
        return 0;
    size_t n = 1;
    while (n < *whole && n < len && b[n] >= low && b[n] <= high) {
        low = 0x80;
        high = 0xbf;
        n++;
    }
    return n;
}

size_t
utf8_character(const char *bytes, size_t len, uint32_t *code)
{
    size_t whole;
    size_t n = well_formed(bytes, len, &whole);
    if (n == 0 || n != whole)
        return 0;
    if (code != NULL) {
        static const uint32_t mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
        *code = (unsigned char)bytes[0] & mask[n];
        for (size_t i = 1; i < n; i++)
            *code = *code << 6 | ((unsigned char)bytes[i] & 0x3fu);
    }
    return n;
}

size_t
utf8_broken(const char *bytes, size_t len)
{
    size_t whole;
    size_t n = well_formed(bytes, len, &whole);
    return n == 0 && len > 0 ? 1 : n;
}

size_t
utf8_put(char out[4], uint32_t code)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[n] | code);
    return n;
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
utf8_is_cut(const char *bytes, size_t len)
{
    size_t whole;
    size_t n = well_formed(bytes, len, &whole);
    return n == len && n < whole;
}

/* Characters that change how what follows is shown, or move the cursor. */
static bool
controls_display(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

char *
utf8_printable(char *out, size_t size, const char *bytes, size_t len)
{
    if (size == 0)
        return out;
    size_t used = 0, mark = 0; /* mark: where "..." still fits */
    for (size_t at = 0; at < len;) {
        char shown[20];
        uint32_t code;
        size_t n = utf8_character(bytes + at, len - at, &code), n_shown = n;
        if (n == 0 || controls_display(code)) {
            n = n == 0 ? 1 : n;
            n_shown = 0;
            for (size_t i = 0; i < n; i++)
                n_shown += (size_t)snprintf(shown + n_shown, 5, "\\x%02x", (unsigned char)bytes[at + i]);
        } else {
            memcpy(shown, bytes + at, n);
        }
        if (n_shown >= size - used) {
            size_t dots = size - 1 - mark < 3 ? size - 1 - mark : 3;
            memcpy(out + mark, "...", dots);
            used = mark + dots;
            break;
        }
        memcpy(out + used, shown, n_shown);
        used += n_shown;
        if (used + 3 < size)
            mark = used;
        at += n;
    }
    out[used] = '\0';
    return out;
}
