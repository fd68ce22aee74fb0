#include "engine/base/utf8.h"

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
