#include "tui/terminal/clipboard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file_replace.h"

/* RFC 4648. */
static char *
base64(char *out, const unsigned char *bytes, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        *out++ = letters[three >> 18];
        *out++ = letters[three >> 12 & 63];
        *out++ = left > 1 ? letters[three >> 6 & 63] : '=';
        *out++ = left > 2 ? letters[three & 63] : '=';
    }
    return out;
}

char *
clipboard_sequence(const char *text, size_t n)
{
    static const char begin[] = "\033]52;c;", end[] = "\a";
    char *out = n <= CLIPBOARD_MOST ? malloc(sizeof begin + (n + 2) / 3 * 4 + sizeof end) : NULL;
    if (out == NULL)
        return NULL;
    memcpy(out, begin, sizeof begin - 1);
    char *at = base64(out + sizeof begin - 1, (const unsigned char *)text, n);
    memcpy(at, end, sizeof end);
    return out;
}

bool
clipboard_put(const char *text, size_t n)
{
    char *sequence = isatty(STDOUT_FILENO) ? clipboard_sequence(text, n) : NULL;
    const bool done = sequence != NULL && file_put(STDOUT_FILENO, sequence, strlen(sequence));
    free(sequence);
    return done;
}
