#include "tests/rigs/tokenizer_rig.h"

#include "base/rng.h"
#include "base/utf8.h"
#include "engine/model/files/gguf.h"
#include "tests/rigs/test.h"

struct opened
open_tiny_tokenizer(const struct tinymodel *options)
{
    struct opened o = {0};
    struct err err = {0};
    size_t len;
    if (!tinymodel_build(options, &o.bytes, &len, &err) || !gguf_parse(&o.file, "tiny", o.bytes, len, &err) ||
        !tokenizer_open(&o.tokenizer, o.file, &err))
        fail_msg("%s", err.text);
    return o;
}

struct opened
open_gguf_tokenizer(const char *path)
{
    struct opened o = {0};
    struct err err = {0};
    if (!gguf_open(&o.file, path, &err) || !tokenizer_open(&o.tokenizer, o.file, &err))
        fail_msg("%s", err.text);
    return o;
}

void
close_opened(struct opened *o)
{
    tokenizer_close(o->tokenizer);
    gguf_close(o->file);
    free(o->bytes);
}

token_t *
encode(const struct tokenizer *t, const char *text, size_t len, struct tokenize_options options, size_t *n)
{
    token_t *ids;
    struct err err = {0};
    assert_ok(tokenizer_encode(t, text, len, options, &ids, n, &err), err);
    return ids;
}

void
assert_ids(const struct tokenizer *t, const char *text, struct tokenize_options options, const token_t *expected,
           size_t n)
{
    size_t got;
    token_t *ids = encode(t, text, strlen(text), options, &got);
    assert_int_equal(got, n);
    assert_memory_equal(ids, expected, n * sizeof *ids);
    free(ids);
}

void
assert_round_trip(const struct tokenizer *t, const char *name, const char *text, size_t len)
{
    struct err err = {0};
    size_t n, n_back;
    char *back;
    token_t *ids = encode(t, text, len, (struct tokenize_options){.bos = true}, &n);
    assert_ok(tokenizer_decode(t, ids, n, &back, &n_back, &err), err);
    if (n_back != len || memcmp(back, text, len) != 0)
        fail_msg("%s: %zu bytes come back as %zu others", name, len, n_back);
    assert_int_equal(back[len], '\0');
    free(back);
    free(ids);
}

size_t
random_text(uint64_t *random, char *out, size_t characters)
{
    static const uint32_t limits[] = {0x80, 0x80, 0x80, 0x100, 0x500, 0x3000, 0x10000, 0x110000};
    size_t len = 0;
    for (size_t i = 0; i < characters; i++) {
        uint32_t c = (uint32_t)(splitmix64(random) % limits[splitmix64(random) % 8]);
        if (splitmix64(random) % 3 == 0)
            c = (unsigned char)"  \n\tthe ing'sAE0123.,"[splitmix64(random) % 22];
        if (c == 0x2581 || (c >= 0xd800 && c < 0xe000))
            c = 'e';
        len += utf8_put(out + len, c);
    }
    return len;
}

/* ---- goldens ---- */

char *
golden_text(const char *family, const char *name, size_t *len)
{
    char path[200];
    snprintf(path, sizeof path, TOKENIZERS "%s/%s", family, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    char *text = malloc(1u << 20);
    assert_non_null(text);
    *len = fread(text, 1, (1u << 20) - 1, file);
    text[*len] = '\0';
    fclose(file);
    return text;
}

static void
compare_ids(const struct tokenizer *t, const char *where, size_t line, const char *text, size_t len, bool special,
            const char *expected)
{
    size_t n, i = 0;
    token_t *got = encode(t, text, len, (struct tokenize_options){.special = special}, &n);
    char *end;
    for (long id; id = strtol(expected, &end, 10), end != expected; expected = end, i++)
        if (i >= n || got[i] != id)
            fail_msg("%s line %zu, %s: token %zu should be %ld, is %d", where, line, special ? "special" : "plain", i,
                     id, i < n ? (int)got[i] : -1);
    if (i != n)
        fail_msg("%s line %zu, %s: %zu tokens, should be %zu", where, line, special ? "special" : "plain", n, i);
    free(got);
}

/* A line has hexadecimal bytes, ids with control tokens, and ids without them; strtol() stops at the end of the
 * line. */
void
assert_golden_ids(const struct tokenizer *t, const char *family, size_t at_least)
{
    size_t len, lines = 0;
    char *golden = golden_text(family, "ids.tsv", &len), *rest = golden;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        char *hex = strsep(&line, "\t"), *special = strsep(&line, "\t"), *plain = line;
        char text[2048];
        size_t n = 0;
        for (; hex[2 * n] != '\0' && n < sizeof text; n++) {
            char pair[3] = {hex[2 * n], hex[2 * n + 1], '\0'};
            text[n] = (char)strtoul(pair, NULL, 16);
        }
        lines++;
        assert_non_null(plain);
        compare_ids(t, family, lines, text, n, true, special);
        compare_ids(t, family, lines, text, n, false, plain);
    }
    assert_at_least(lines, at_least);
    free(golden);
}
