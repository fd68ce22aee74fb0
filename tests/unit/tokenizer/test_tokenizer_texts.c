/* Properties for any text: decoding restores it, merging follows its definition, and the time is not quadratic. */
#include "base/rng.h"
#include "base/utf8.h"
#include "cli/options/commands.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tokenizer_rig.h"

#define BUNDLED bundled_model_path()

TEST(random_unicode_comes_back_unchanged)
{
    struct opened o = open_gguf_tokenizer(BUNDLED), tiny = open_tiny_tokenizer(&(struct tinymodel){.nasty = true});
    uint64_t random = seed_or(1);
    char text[400];
    for (int i = 0; i < 3000; i++) {
        size_t len = random_text(&random, text, (size_t)(splitmix64(&random) % 100));
        assert_round_trip(o.tokenizer, "o", text, len);
        assert_round_trip(tiny.tokenizer, "tiny", text, len);
    }
    close_opened(&o);
    close_opened(&tiny);
}

TEST(random_bytes_come_back_unchanged)
{
    struct opened o = open_gguf_tokenizer(BUNDLED), tiny = open_tiny_tokenizer(&(struct tinymodel){.nasty = true});
    uint64_t random = seed_or(1);
    char text[200];
    for (int i = 0; i < 3000; i++) {
        size_t len = (size_t)(splitmix64(&random) % sizeof text);
        for (size_t k = 0; k < len; k++)
            text[k] = (char)(splitmix64(&random) % 8 == 0 ? "\xe2\x96\x80\xf0\xc3\xff "[splitmix64(&random) % 7]
                                                          : (int)(splitmix64(&random) & 0xff));
        if (memmem(text, len, "\xe2\x96\x81", 3) != NULL)
            continue;
        assert_round_trip(o.tokenizer, "o", text, len);
        assert_round_trip(tiny.tokenizer, "tiny", text, len);
    }
    close_opened(&o);
    close_opened(&tiny);
}

/* Merges by definition, without a heap: repeatedly the best pair of neighbours, the leftmost of equals. */
static size_t
naive_bpe(const struct tokenizer *t, const char *text, token_t *out)
{
    struct slice pieces[300];
    size_t n = 0;
    for (const char *c = text; *c != '\0'; c += pieces[n++].len)
        pieces[n] = (struct slice){c, utf8_character(c, strlen(c), NULL)};
    for (;;) {
        size_t best = n;
        token_t best_id = (token_t)tokenizer_size(t);
        for (size_t i = 0; i + 1 < n; i++)
            for (token_t id = 259; id < best_id; id++) { /* the tiny vocabulary's scores fall with the id */
                const struct slice piece = tokenizer_bytes(t, id, false);
                if (tokenizer_kind(t, id) == TOKEN_NORMAL && piece.len == pieces[i].len + pieces[i + 1].len &&
                    memcmp(piece.data, pieces[i].data, piece.len) == 0) {
                    best = i;
                    best_id = id;
                }
            }
        if (best == n)
            break;
        pieces[best].len += pieces[best + 1].len;
        memmove(&pieces[best + 1], &pieces[best + 2], (n - best - 2) * sizeof pieces[0]);
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = TOKEN_NONE;
        for (token_t id = 259; out[i] == TOKEN_NONE && id < (token_t)tokenizer_size(t); id++) {
            const struct slice piece = tokenizer_bytes(t, id, false);
            if (piece.len == pieces[i].len && memcmp(piece.data, pieces[i].data, piece.len) == 0)
                out[i] = id;
        }
    }
    return n;
}

TEST(merging_by_heap_equals_merging_by_definition)
{
    struct opened o = open_tiny_tokenizer(&(struct tinymodel){.vocab = 1200, .no_space_prefix = true, .n_layers = 1});
    uint64_t random = seed_or(1);
    for (int round = 0; round < 60; round++) {
        char text[64];
        token_t expected[64];
        const size_t len = 1 + (size_t)(splitmix64(&random) % 60);
        for (size_t i = 0; i < len; i++)
            text[i] = "bcdaeio ab"[splitmix64(&random) % 10];
        text[len] = '\0';
        assert_ids(o.tokenizer, text, (struct tokenize_options){0}, expected, naive_bpe(o.tokenizer, text, expected));
    }
    close_opened(&o);
}

TEST(long_texts_do_not_take_quadratic_time)
{
    struct opened o = open_gguf_tokenizer(BUNDLED);
    const size_t len = 2u << 20; /* quadratic merging would take hours */
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'a', len);
    assert_round_trip(o.tokenizer, "o", text, len);
    free(text);
    close_opened(&o);
}
