/* Whole characters out of token bytes: a byte token may hold a quarter of a character. Broken sequences are replaced
 * as Unicode recommends: one U+FFFD for each longest prefix that could have become a character. */
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer.h"

static const char replacement[3] = "\xef\xbf\xbd";

/* Takes one byte; returns the number of bytes written to out, at most 6. */
static size_t
take(struct utf8_stream *s, char byte, char *out)
{
    size_t written = 0;
    s->held[s->n_held++] = (unsigned char)byte;
    for (;;) {
        char held[4];
        memcpy(held, s->held, sizeof held);
        size_t n = utf8_character(held, s->n_held, NULL);
        if (n > 0) { /* then it is all that is held */
            memcpy(out + written, held, n);
            s->n_held = 0;
            return written + n;
        }
        if (utf8_is_cut(held, s->n_held))
            return written;
        memcpy(out + written, replacement, sizeof replacement);
        written += sizeof replacement;
        if (s->n_held == 1) { /* the byte itself can start nothing */
            s->n_held = 0;
            return written;
        }
        s->held[0] = (unsigned char)byte; /* it broke what came before; it may start a character of its own */
        s->n_held = 1;
    }
}

size_t
utf8_stream_feed(struct utf8_stream *s, const char *bytes, size_t len, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < len; i++)
        written += take(s, bytes[i], out + written);
    return written;
}

size_t
utf8_stream_end(struct utf8_stream *s, char *out)
{
    if (s->n_held == 0)
        return 0;
    memcpy(out, replacement, sizeof replacement);
    s->n_held = 0;
    return sizeof replacement;
}
