#include "tests/golden/tinyvocab.h"

#include <stdio.h>

#include "tests/golden/tinymodel.h"

#define SPACE "\xe2\x96\x81" /* ▁, the space within pieces */

struct piece {
    const char *text;
    size_t len;
};

#define PIECE(text)                                                                                                    \
    {                                                                                                                  \
        text, sizeof text - 1                                                                                          \
    }
static const struct piece nasty_pieces[TINYMODEL_NASTY] = {
    PIECE("\x1b[2J"),          /* clear the screen */
    PIECE("\x1b]0;owned\x07"), /* set the title */
    PIECE("\x1b[?1049l"),      /* leave the alternate screen */
    PIECE("\x1bP$q\"p\x1b\\"), /* a device control string */
    PIECE("\xc2\x9b"
          "31m"), /* C1 CSI, as UTF-8 */
    PIECE("\x9b"
          "31m"),                               /* C1 CSI, raw */
    PIECE("\x07\x08\x7f"),                      /* bell, backspace, delete */
    PIECE("\r\n"),                              /* a line end */
    PIECE("\t\x0b\x0c"),                        /* tabs and a form feed */
    PIECE("\x0e\x0f"),                          /* other character sets */
    PIECE("\xe2\x80\xae"),                      /* right-to-left override */
    PIECE("\xe2\x81\xa6x\xe2\x81\xa9"),         /* bidi isolate */
    PIECE("\xe2\x80\xa8"),                      /* line separator */
    PIECE("\xc3"),                              /* half a character */
    PIECE("\xff\xfe"),                          /* never UTF-8 */
    PIECE("\xed\xa0\x80"),                      /* a surrogate */
    PIECE("\xc0\xaf"),                          /* overlong */
    PIECE("a\0b"),                              /* a NUL inside */
    PIECE("\",\""),                             /* CSV */
    PIECE("=1+1"),                              /* a spreadsheet's formula */
    PIECE("\\x1b\\"),                           /* looks like an escaped byte */
    PIECE("\xe6\xbc\xa2\xe5\xad\x97"),          /* wide: two cells each */
    PIECE("e\xcc\x81\xcc\x81\xcc\x81\xcc\x81"), /* combining marks */
    PIECE("%s%n"),
};

static size_t
syllable(char *out, uint32_t i) /* i < 105 */
{
    out[0] = "bcdfghjklmnpqrstvwxyz"[i / 5];
    out[1] = "aeiou"[i % 5];
    return 2;
}

/* Piece i of the ordinary ones. out: at least 16 bytes. */
static size_t
ordinary_piece(uint32_t i, char *out)
{
    static const char marks[] = ".,!?";
    memcpy(out, SPACE, 3);
    if (i == 0)
        return 3;
    i -= 1;
    if (i < 26) {
        out[0] = (char)('a' + i);
        return 1;
    }
    i -= 26;
    if (i < 4) {
        out[0] = marks[i];
        return 1;
    }
    i -= 4;
    if (i < 26) {
        out[3] = (char)('a' + i);
        return 4;
    }
    i -= 26;
    if (i < 105)
        return syllable(out, i);
    i -= 105;
    if (i < 105)
        return 3 + syllable(out + 3, i);
    i -= 105;
    size_t len = syllable(out, i % 105);
    len += syllable(out + len, i / 105 % 105);
    if (i >= 105 * 105)
        len += syllable(out + len, i / (105 * 105) - 1);
    return len;
}

static void
put_tokens(struct gguf_bytes *b, uint32_t vocab, uint32_t padding, bool nasty)
{
    put_key_array(b, "tokenizer.ggml.tokens", GGUF_STRING, vocab + padding);
    put_text(b, "<unk>", 5);
    put_text(b, "<s>", 3);
    put_text(b, "</s>", 4);
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        put_text(b, name, (size_t)snprintf(name, sizeof name, "<0x%02X>", i));
    }
    const uint32_t n_nasty = nasty ? TINYMODEL_NASTY : 0;
    for (uint32_t i = 0; i < n_nasty; i++)
        put_text(b, nasty_pieces[i].text, nasty_pieces[i].len);
    for (uint32_t id = TINYMODEL_FIRST_PIECE + n_nasty; id < vocab - 2; id++) {
        char text[16];
        put_text(b, text, ordinary_piece(id - TINYMODEL_FIRST_PIECE - n_nasty, text));
    }
    put_text(b, "<|end|>", 7);
    put_text(b, "<|note|>", 8);
    for (uint32_t i = 0; i < padding; i++) {
        char name[24];
        put_text(b, name, (size_t)snprintf(name, sizeof name, "<pad %u>", (unsigned)i));
    }
}

void
tinyvocab_put(struct gguf_bytes *b, uint32_t vocab, uint32_t padding, bool nasty, bool space_prefix)
{
    enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE }; /* types as in the file */
    put_key_text(b, "tokenizer.ggml.model", "llama");
    put_tokens(b, vocab, padding, nasty);
    put_key_array(b, "tokenizer.ggml.scores", GGUF_F32, vocab + padding);
    for (uint32_t id = 0; id < vocab + padding; id++)
        put_f32(b, id < TINYMODEL_FIRST_PIECE || id >= vocab - 2 ? 0 : -(float)(id - TINYMODEL_FIRST_PIECE));
    put_key_array(b, "tokenizer.ggml.token_type", GGUF_I32, vocab + padding);
    for (uint32_t id = 0; id < vocab + padding; id++) {
        uint32_t kind = id == 0 ? UNKNOWN : id <= 2 || id == vocab - 2 ? CONTROL : NORMAL;
        if (id >= 3 && id < TINYMODEL_FIRST_PIECE)
            kind = BYTE;
        put_u32(b, id >= vocab ? UNUSED : id == vocab - 1 ? USER : kind);
    }
    put_key_u32(b, "tokenizer.ggml.unknown_token_id", 0);
    put_key_u32(b, "tokenizer.ggml.bos_token_id", 1);
    put_key_u32(b, "tokenizer.ggml.eos_token_id", 2);
    put_key_u32(b, "tokenizer.ggml.eot_token_id", vocab - 2);
    put_key_bool(b, "tokenizer.ggml.add_bos_token", true);
    put_key_bool(b, "tokenizer.ggml.add_eos_token", false);
    put_key_bool(b, "tokenizer.ggml.add_space_prefix", space_prefix);
}

bool
tinyvocab_is_text(uint32_t vocab, uint32_t id)
{
    return id == 2 || (id >= TINYMODEL_FIRST_PIECE && id != vocab - 2);
}
