#include "engine/tokenizer/byte_chars.h"

#include "engine/base/utf8.h"

/* Bytes that don't stand for themselves, in order: 0..32, 127..160, 173. */
static int
place_among_others(unsigned byte)
{
    if (byte <= 32)
        return (int)byte;
    if (byte >= 127 && byte <= 160)
        return (int)byte - 127 + 33;
    return byte == 173 ? 33 + 34 : -1;
}

size_t
byte_char_put(char out[2], unsigned char byte)
{
    const int place = place_among_others(byte);
    char character[4];
    const size_t n = utf8_put(character, place < 0 ? byte : 0x100u + (unsigned)place);
    out[0] = character[0];
    if (n > 1)
        out[1] = character[1];
    return n;
}

int
byte_of_char(uint32_t code)
{
    if (code < 0x100)
        return place_among_others(code) < 0 ? (int)code : -1;
    const uint32_t place = code - 0x100;
    if (place < 33)
        return (int)place;
    if (place < 33 + 34)
        return (int)place - 33 + 127;
    return place == 33 + 34 ? 173 : -1;
}

size_t
byte_chars_read(char *out, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        uint32_t code;
        const size_t size = utf8_character(text + at, len - at, &code);
        const int byte = size == 0 ? -1 : byte_of_char(code);
        if (byte < 0)
            return SIZE_MAX;
        out[n++] = (char)byte;
        at += size;
    }
    return n;
}
