/* The GGUF reader on valid files. */

#include "engine/model/files/gguf.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/test.h"

static struct gguf *
parse(const struct gguf_bytes *b)
{
    struct gguf *g;
    struct err err = {0};
    assert_false(b->failed);
    assert_ok(gguf_parse(&g, "some.gguf", b->data, b->len, &err), err);
    return g;
}

TEST(every_value_type_is_read)
{
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
            assert_number_equal(gguf_number(v, 0), 0);
            assert_number_equal(gguf_number(v, 1), cases[i].value);
        }
        gguf_close(g);
        free(b.data);
    }
}

TEST(typed_look_ups_check_type_and_range)
{
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
    assert_ok(gguf_get_u32(g, "u", 1, &u, &err), err);
    assert_int_equal(u, 7);
    assert_ok(gguf_get_u32(g, "absent", 1, &u, &err), err);
    assert_int_equal(u, 1);
    assert_false(gguf_get_u32(g, "f", 1, &u, &err));
    assert_contains(err.text, "'f' is of type f32");
    assert_false(gguf_get_u32(g, "big", 1, &u, &err));
    assert_contains(err.text, "4294967296");
    assert_false(gguf_get_u32(g, "negative", 1, &u, &err));
    assert_ok(gguf_get_f32(g, "f", 1, &f, &err), err);
    assert_number_equal(f, 0.5f);
    assert_ok(gguf_get_f32(g, "absent", 2, &f, &err), err);
    assert_number_equal(f, 2);
    assert_false(gguf_get_f32(g, "u", 1, &f, &err));
    assert_true(gguf_get_bool(g, "b", false, &flag, &err) && flag);
    assert_true(gguf_get_bool(g, "absent", true, &flag, &err) && flag);
    assert_false(gguf_get_bool(g, "u", false, &flag, &err));
    assert_ok(gguf_get_string(g, "s", &s, &err), err);
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.data, "text", 4);
    assert_ok(gguf_get_string(g, "absent", &s, &err), err);
    assert_int_equal(s.len, 0);
    assert_false(gguf_get_string(g, "u", &s, &err));
    assert_null(gguf_strings(gguf_find(g, "s"), &err));
    gguf_close(g);
    free(b.data);
}

TEST(arrays_of_strings_are_walked)
{
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

TEST(tensors_point_at_their_data)
{
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
    assert_string_equal(gguf_type_name(31), "an unknown type");
    assert_string_equal(gguf_type_name(odd->type), "an unknown type");
    gguf_close(g);
    free(b.data);
}
