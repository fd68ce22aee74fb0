/* The GGUF reader on files that are right, and on files that are wrong in every way that came to mind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "engine/model/gguf.h"
#include "tests/golden/gguf_bytes.h"
#include "tests/golden/tinymodel.h"

/* Parses b and frees it. The reason of a failure has to say `says`. */
static void
assert_refused(struct gguf_bytes *b, const char *says)
{
    struct gguf *g = NULL;
    struct err err = {0};
    assert_false(b->failed);
    /* Exactly as much memory as there are bytes, so that a sanitizer sees the first one read beyond. */
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

static struct gguf *
parse(const struct gguf_bytes *b)
{
    struct gguf *g;
    struct err err = {0};
    assert_false(b->failed);
    if (!gguf_parse(&g, "some.gguf", b->data, b->len, &err))
        fail_msg("%s", err.text);
    return g;
}

/* ---- right ---- */

static void
test_every_value_type_is_read(void **state)
{
    (void)state;
    static const struct {
        enum gguf_type type;
        uint64_t bits;
        size_t size;
        double value;
    } cases[] = {
        {GGUF_U8, 200, 1, 200},
        {GGUF_I8, 0x80, 1, -128},
        {GGUF_U16, 0xfffe, 2, 65534},
        {GGUF_I16, 0x8000, 2, -32768},
        {GGUF_U32, 0xfffffffe, 4, 4294967294.0},
        {GGUF_I32, 0x80000000, 4, -2147483648.0},
        {GGUF_F32, 0xbfc00000, 4, -1.5},
        {GGUF_BOOL, 1, 1, 1},
        {GGUF_U64, 1ull << 40, 8, 1099511627776.0},
        {GGUF_I64, UINT64_MAX, 8, -1},
        {GGUF_F64, 0x4004000000000000, 8, 2.5},
    };
    for (uint32_t version = 2; version <= 3; version++) {
        struct gguf_bytes b = {0};
        const size_t n = sizeof cases / sizeof cases[0];
        put_header(&b, version, 0, n);
        for (size_t i = 0; i < n; i++) {
            char key[8];
            snprintf(key, sizeof key, "k%zu", i);
            put_key_array(&b, key, cases[i].type, 2);
            put_uint(&b, 0, cases[i].size);
            put_uint(&b, cases[i].bits, cases[i].size);
        }
        struct gguf *g = parse(&b);
        assert_int_equal(g->version, version);
        assert_int_equal(g->alignment, 32);
        for (size_t i = 0; i < n; i++) {
            char key[8];
            snprintf(key, sizeof key, "k%zu", i);
            const struct gguf_value *v = gguf_find(g, key);
            assert_non_null(v);
            assert_int_equal(v->element, cases[i].type);
            assert_int_equal(v->count, 2);
            assert_true(gguf_number(v, 0) == 0);
            assert_true(gguf_number(v, 1) == cases[i].value);
        }
        gguf_close(g);
        free(b.data);
    }
}

static void
test_typed_look_ups_check_type_and_range(void **state)
{
    (void)state;
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 6);
    put_key_u32(&b, "u", 7);
    put_key_f32(&b, "f", 0.5f);
    put_key_bool(&b, "b", true);
    put_key_text(&b, "s", "text");
    put_key(&b, "big", GGUF_U64);
    put_u64(&b, 1ull << 32);
    put_key(&b, "negative", GGUF_I32);
    put_u32(&b, UINT32_MAX);
    struct gguf *g = parse(&b);
    struct err err = {0};
    uint32_t u;
    float f;
    bool flag;
    struct slice s;
    assert_true(gguf_get_u32(g, "u", 1, &u, &err) && u == 7);
    assert_true(gguf_get_u32(g, "absent", 1, &u, &err) && u == 1);
    assert_false(gguf_get_u32(g, "f", 1, &u, &err));
    assert_non_null(strstr(err.text, "'f' is of type f32"));
    assert_false(gguf_get_u32(g, "big", 1, &u, &err));
    assert_non_null(strstr(err.text, "4294967296"));
    assert_false(gguf_get_u32(g, "negative", 1, &u, &err));
    assert_true(gguf_get_f32(g, "f", 1, &f, &err) && f == 0.5f);
    assert_true(gguf_get_f32(g, "absent", 2, &f, &err) && f == 2);
    assert_false(gguf_get_f32(g, "u", 1, &f, &err));
    assert_true(gguf_get_bool(g, "b", false, &flag, &err) && flag);
    assert_true(gguf_get_bool(g, "absent", true, &flag, &err) && flag);
    assert_false(gguf_get_bool(g, "u", false, &flag, &err));
    assert_true(gguf_get_string(g, "s", &s, &err) && s.len == 4 && memcmp(s.data, "text", 4) == 0);
    assert_true(gguf_get_string(g, "absent", &s, &err) && s.len == 0);
    assert_false(gguf_get_string(g, "u", &s, &err));
    assert_null(gguf_strings(gguf_find(g, "s"), &err));
    gguf_close(g);
    free(b.data);
}

static void
test_arrays_of_strings_are_walked(void **state)
{
    (void)state;
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 2);
    put_key_array(&b, "a", GGUF_STRING, 3);
    put_text(&b, "one", 3);
    put_text(&b, "", 0);
    put_text(&b, "t\0o", 3);
    put_key_array(&b, "none", GGUF_STRING, 0);
    struct gguf *g = parse(&b);
    struct slice *s = gguf_strings(gguf_find(g, "a"), NULL);
    assert_non_null(s);
    assert_int_equal(s[0].len, 3);
    assert_int_equal(s[1].len, 0);
    assert_memory_equal(s[2].data, "t\0o", 3);
    free(s);
    s = gguf_strings(gguf_find(g, "none"), NULL);
    assert_non_null(s);
    free(s);
    gguf_close(g);
    free(b.data);
}

static void
test_tensors_point_at_their_data(void **state)
{
    (void)state;
    struct gguf_bytes b = {0};
    put_header(&b, 3, 3, 1);
    put_key_u32(&b, "general.alignment", 64);
    put_tensor(&b, "second", 2, 0, 0, 64);
    put_tensor(&b, "first", 32, 1, 8, 0);
    put_tensor(&b, "unheard of", 3, 0, 77, 64);
    put_padding(&b, 64);
    const size_t start = b.len;
    for (int i = 0; i < 34; i++)
        put_uint(&b, (uint64_t)i, 1);
    put_padding(&b, 64);
    put_f32(&b, 3);
    put_f32(&b, 4);
    struct gguf *g = parse(&b);
    const struct gguf_tensor *first = gguf_find_tensor(g, "first"), *second = gguf_find_tensor(g, "second");
    assert_ptr_equal(first->data, b.data + start);
    assert_int_equal(first->bytes, 34);
    assert_int_equal(first->dims[0], 32);
    assert_int_equal(first->dims[1], 1);
    assert_ptr_equal(second->data, b.data + start + 64);
    assert_int_equal(second->bytes, 8);
    assert_null(gguf_find_tensor(g, "third"));
    const struct gguf_tensor *odd = gguf_find_tensor(g, "unheard of");
    assert_int_equal(odd->bytes, 0);
    assert_string_equal(gguf_type_name(8), "Q8_0");
    assert_string_equal(gguf_type_name(30), "BF16");
    assert_string_equal(gguf_type_name(31), "type 31");
    assert_string_equal(gguf_type_name(odd->type), "an unknown type");
    gguf_close(g);
    free(b.data);
}

/* ---- wrong ---- */

static void
test_other_files_are_refused(void **state)
{
    (void)state;
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

static void
test_missing_files_and_folders_are_refused(void **state)
{
    (void)state;
    struct gguf *g;
    struct err err = {0};
    assert_false(gguf_open(&g, "/nowhere/x.gguf", &err));
    assert_non_null(strstr(err.text, "/nowhere/x.gguf: cannot be opened"));
    assert_false(gguf_open(&g, "/", &err));
    assert_non_null(strstr(err.text, "is not a file"));
    assert_false(gguf_open(&g, "/dev/null", &err));
    assert_non_null(strstr(err.text, "is not a file"));
}

static void
test_huge_counts_take_no_memory(void **state)
{
    (void)state;
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
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024); /* KiB */
}

static void
test_wrong_metadata_is_refused(void **state)
{
    (void)state;
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
    put_header(&b, 3, 0, 3);
    put_key_u32(&b, "k", 1);
    put_key_u32(&b, "l", 1);
    put_key_text(&b, "k", "again");
    assert_refused(&b, "metadata 'k' is there twice");
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

static void
test_wrong_tensors_are_refused(void **state)
{
    (void)state;
    struct gguf_bytes b = {0};
    put_one_tensor(&b, 8, 4, 0, 0, 127);
    assert_refused(&b, "tensor 't' wants 128 bytes at offset 0, but the file has only 127");
    put_one_tensor(&b, 8, 0, 0, 32, 63);
    assert_refused(&b, "wants 32 bytes at offset 32");
    put_one_tensor(&b, 8, 0, 0, 16, 128);
    assert_refused(&b, "no multiple of the alignment 32");
    put_one_tensor(&b, 8, 0, 0, UINT64_MAX - 31, 128);
    assert_refused(&b, "wants 32 bytes");
    put_one_tensor(&b, 8, 0, 0, 1ull << 63, 128);
    assert_refused(&b, "wants 32 bytes");
    put_one_tensor(&b, 33, 1, 8, 0, 128);
    assert_refused(&b, "in blocks of 32, but its rows have 33");
    put_one_tensor(&b, 0, 1, 0, 0, 128);
    assert_refused(&b, "impossible dimension of 0");
    put_one_tensor(&b, 1ull << 32, 1ull << 32, 0, 0, 128);
    assert_refused(&b, "impossible dimension");
    put_one_tensor(&b, 1ull << 62, 1, 28, 0, 128); /* times 8 bytes: more than 64 bits */
    assert_refused(&b, "larger than any file");
    put_one_tensor(&b, 1, 0, 77, 1ull << 40, 128);
    assert_refused(&b, "wants 0 bytes at offset 1099511627776");
    for (uint32_t n_dims = 0; n_dims <= 5; n_dims += 5) {
        put_header(&b, 3, 1, 0);
        put_text(&b, "t", 1);
        put_u32(&b, n_dims);
        for (int i = 0; i < 8; i++)
            put_u64(&b, 1);
        assert_refused(&b, "dimensions, not 1 to 4");
    }
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "t", 8, 0, 0, 0);
    put_tensor(&b, "t", 8, 0, 0, 32);
    put_padding(&b, 32);
    put_padding(&b, 256);
    assert_refused(&b, "tensor 't' is there twice");
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "long", 16, 0, 0, 0);
    put_tensor(&b, "late", 8, 0, 0, 32);
    put_padding(&b, 512);
    assert_refused(&b, "tensors 'long' and 'late' lie on top of each other");
}

static void
test_a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t len;
    struct err err = {0};
    assert_true(tinymodel_build(&(struct tinymodel){.n_layers = 1, .width = 32, .vocab = 288}, &bytes, &len, &err));
    struct gguf *g;
    assert_true(gguf_parse(&g, "whole", bytes, len, &err));
    gguf_close(g);
    const size_t metadata = 16000; /* of more than that: every cut there, then some */
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

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Whatever parses after damage has its values and tensors inside the file: reads every byte they claim. */
static void
test_damaged_bytes_never_lead_outside_the_file(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t len;
    struct err err = {0};
    assert_true(tinymodel_build(&(struct tinymodel){.n_layers = 1, .width = 32, .vocab = 288}, &bytes, &len, &err));
    uint64_t random = (uint64_t)time(NULL) | 1;
    print_message("# seed %llu\n", (unsigned long long)random);
    unsigned parsed = 0;
    for (int round = 0; round < 2000; round++) {
        size_t at[4];
        unsigned char old[4];
        for (int i = 0; i < 4; i++) {
            at[i] = next_random(&random) % (i < 2 ? 2000 : 14000);
            old[i] = bytes[at[i]];
            bytes[at[i]] = (unsigned char)(next_random(&random) % 3 == 0 ? 0xff : next_random(&random));
        }
        struct gguf *g;
        if (gguf_parse(&g, "damaged", bytes, len, &err)) {
            parsed++;
            for (uint64_t i = 0; i < g->n_tensors; i++)
                assert_true((size_t)(g->tensors[i].data - bytes) + g->tensors[i].bytes <= len);
            for (uint64_t i = 0; i < g->n_values; i++) {
                assert_true((size_t)(g->values[i].at - bytes) <= len);
                struct slice *s = gguf_strings(&g->values[i], NULL);
                for (uint64_t k = 0; s != NULL && k < g->values[i].count; k++)
                    assert_true((size_t)((const unsigned char *)s[k].data - bytes) + s[k].len <= len);
                free(s);
            }
            gguf_close(g);
        }
        for (int i = 3; i >= 0; i--)
            bytes[at[i]] = old[i];
    }
    print_message("# %u of 2000 parsed\n", parsed);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_type_is_read),
        cmocka_unit_test(test_typed_look_ups_check_type_and_range),
        cmocka_unit_test(test_arrays_of_strings_are_walked),
        cmocka_unit_test(test_tensors_point_at_their_data),
        cmocka_unit_test(test_other_files_are_refused),
        cmocka_unit_test(test_missing_files_and_folders_are_refused),
        cmocka_unit_test(test_huge_counts_take_no_memory),
        cmocka_unit_test(test_wrong_metadata_is_refused),
        cmocka_unit_test(test_wrong_tensors_are_refused),
        cmocka_unit_test(test_a_file_cut_anywhere_is_refused),
        cmocka_unit_test(test_damaged_bytes_never_lead_outside_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
