/* The GGUF reader on files with all kinds of errors. */
#include <sys/resource.h>

#include "engine/model/files/gguf.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/test.h"

/* Parses b, which must fail with an error that contains `says`, and frees b. */
static void
assert_refused(struct gguf_bytes *b, const char *says)
{
    struct gguf *g = NULL;
    struct err err = {0};
    assert_false(b->failed);
    /* The memory has exactly the size of the bytes, so that a sanitizer detects any read after them. */
    unsigned char *exact = malloc(b->len + (b->len == 0));
    assert_non_null(exact);
    if (b->len > 0)
        memcpy(exact, b->data, b->len);
    if (gguf_parse(&g, "some.gguf", exact, b->len, &err))
        fail_msg("accepted a file that should be refused: %s", says);
    assert_null(g);
    assert_int_equal(err.kind, ERR_WORK);
    if (strstr(err.text, says) == NULL)
        fail_msg("says \"%s\", not \"%s\"", err.text, says);
    assert_memory_equal(err.text, "some.gguf: ", 11);
    free(exact);
    free(b->data);
    *b = (struct gguf_bytes){0};
}

TEST(other_files_are_refused)
{
    struct gguf_bytes b = {0};
    assert_refused(&b, "is not a GGUF file");
    put_bytes(&b, "GGU", 3);
    assert_refused(&b, "is not a GGUF file");
    put_bytes(&b, "ggml....", 8);
    assert_refused(&b, "is not a GGUF file");
    put_bytes(&b, "GGUF", 4);
    assert_refused(&b, "ends at byte 4");
    put_header(&b, 1, 0, 0);
    assert_refused(&b, "version 1; this program reads versions 2 and 3");
    put_header(&b, 4, 0, 0);
    assert_refused(&b, "version 4");
    put_header(&b, 0x03000000, 0, 0);
    assert_refused(&b, "big-endian");
}

TEST(missing_files_and_folders_are_refused)
{
    struct gguf *g;
    struct err err = {0};
    assert_false(gguf_open(&g, "/nowhere/x.gguf", &err));
    assert_contains(err.text, "/nowhere/x.gguf: cannot be opened");
    assert_false(gguf_open(&g, "/", &err));
    assert_contains(err.text, "is not a file");
    assert_false(gguf_open(&g, "/dev/null", &err));
    assert_contains(err.text, "is not a file");
}

TEST(huge_counts_take_no_memory)
{
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    static const uint64_t counts[] = {1u << 10, 1u << 20, UINT32_MAX, 1ull << 40, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct gguf_bytes b = {0};
        put_header(&b, 3, 0, counts[i]);
        put_key_u32(&b, "k", 1);
        assert_refused(&b, "metadata values, more than");
        put_header(&b, 3, counts[i], 0);
        put_tensor(&b, "t", 1, 0, 0, 0);
        assert_refused(&b, "tensors, more than");
        put_header(&b, 3, 0, 1);
        put_key_array(&b, "tokens", GGUF_STRING, counts[i]);
        put_text(&b, "x", 1);
        assert_refused(&b, "'tokens' claims");
        put_header(&b, 3, 0, 1);
        put_key_array(&b, "scores", GGUF_F64, counts[i]);
        put_u64(&b, 1);
        assert_refused(&b, "'scores' claims");
        put_header(&b, 3, 0, 1);
        put_key(&b, "s", GGUF_STRING);
        put_u64(&b, counts[i]);
        assert_refused(&b, "a metadata string at byte 37 claims");
        put_header(&b, 3, 0, 1);
        put_u64(&b, counts[i]);
        put_u64(&b, 0);
        assert_refused(&b, "a metadata key at byte 24 claims");
        put_header(&b, 3, 1, 0);
        put_tensor(&b, "t", counts[i], counts[i], 0, 0);
        assert_refused(&b, "tensor 't'");
    }
    getrusage(RUSAGE_SELF, &after);
    assert_less(after.ru_maxrss - before.ru_maxrss, 64 * 1024); /* KiB */
}

TEST(wrong_metadata_is_refused)
{
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 1);
    put_key(&b, "k\x1b[2J", (enum gguf_type)13);
    put_u64(&b, 0);
    assert_refused(&b, "'k\\x1b[2J' has the unknown type 13");
    put_header(&b, 3, 0, 1);
    put_key_array(&b, "a", GGUF_ARRAY, 1);
    put_u64(&b, 0);
    assert_refused(&b, "'a' is an array of arrays");
    put_header(&b, 3, 0, 1);
    put_key_array(&b, "a", (enum gguf_type)99, 0);
    assert_refused(&b, "unknown type 99");
    put_header(&b, 3, 0, 1);
    put_key(&b, "b", GGUF_BOOL);
    put_uint(&b, 2, 1);
    assert_refused(&b, "'b' holds a truth value that is 2");
    put_header(&b, 3, 0, 1);
    put_key_array(&b, "b", GGUF_BOOL, 3);
    put_uint(&b, 0x030100, 3);
    assert_refused(&b, "'b' holds a truth value that is 3");
    static const uint32_t alignments[] = {0, 1, 4, 24, 33, 1u << 21, UINT32_MAX};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        put_header(&b, 3, 0, 1);
        put_key_u32(&b, "general.alignment", alignments[i]);
        assert_refused(&b, "general.alignment is");
    }
    put_header(&b, 3, 0, 1);
    put_key_text(&b, "general.alignment", "32");
    assert_refused(&b, "'general.alignment' is of type string");
}

static void
put_one_tensor(struct gguf_bytes *b, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset, size_t data)
{
    put_header(b, 3, 1, 0);
    put_tensor(b, "t", cols, rows, type, offset);
    put_padding(b, 32);
    for (size_t i = 0; i < data; i++)
        put_uint(b, 0, 1);
}

TEST(wrong_tensors_are_refused)
{
    struct gguf_bytes b = {0};
    put_one_tensor(&b, 8, 4, 0, 0, 127);
    assert_refused(&b, "tensor 't' is not in the file");
    put_one_tensor(&b, 8, 0, 0, 32, 63);
    assert_refused(&b, "is not in the file");
    put_one_tensor(&b, 8, 0, 0, 16, 128);
    assert_refused(&b, "is not aligned");
    put_one_tensor(&b, 8, 0, 0, UINT64_MAX - 31, 128);
    assert_refused(&b, "is not in the file");
    put_one_tensor(&b, 8, 0, 0, 1ull << 63, 128);
    assert_refused(&b, "is not in the file");
    put_one_tensor(&b, 33, 1, 8, 0, 128);
    assert_refused(&b, "not whole blocks");
    put_one_tensor(&b, 0, 1, 0, 0, 128);
    assert_refused(&b, "impossible dimension");
    put_one_tensor(&b, 1ull << 32, 1ull << 32, 0, 0, 128);
    assert_refused(&b, "impossible dimension");
    put_one_tensor(&b, 1ull << 62, 1, 28, 0, 128); /* times 8 bytes: more than 64 bits */
    assert_refused(&b, "larger than any file");
    put_one_tensor(&b, 1, 0, 77, 1ull << 40, 128);
    assert_refused(&b, "is not in the file");
    for (uint32_t n_dims = 0; n_dims <= 5; n_dims += 5) {
        put_header(&b, 3, 1, 0);
        put_text(&b, "t", 1);
        put_u32(&b, n_dims);
        for (int i = 0; i < 8; i++)
            put_u64(&b, 1);
        assert_refused(&b, "1 to 4 dimensions");
    }
}

TEST(a_file_cut_anywhere_is_refused)
{
    unsigned char *bytes;
    size_t len;
    struct err err = {0};
    assert_ok(tinymodel_build(&(struct tinymodel){.n_layers = 1, .width = 32, .vocab = 288}, &bytes, &len, &err), err);
    struct gguf *g;
    assert_ok(gguf_parse(&g, "whole", bytes, len, &err), err);
    gguf_close(g);
    const size_t metadata = 16000; /* more than 16,000 bytes: tries every cut in them, and then some */
    for (size_t cut = 0; cut < len; cut += cut < metadata ? 1 : 997) {
        unsigned char *part = malloc(cut + 1);
        assert_non_null(part);
        memcpy(part, bytes, cut);
        if (gguf_parse(&g, "cut", part, cut, &err))
            fail_msg("accepted %zu of %zu bytes", cut, len);
        free(part);
    }
    free(bytes);
}
