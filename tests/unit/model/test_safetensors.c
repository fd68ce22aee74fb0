/* Safetensors files: the tensors that are read, and headers with false values, which are refused by name. */
#include "engine/model/files/safetensors.h"
#include "tests/rigs/test.h"

#define DATA_BYTES 64

struct file {
    unsigned char bytes[2048];
    size_t len;
};

/* Makes a file of the given header and DATA_BYTES bytes that count up. */
static struct file
with_header(const char *header)
{
    struct file f = {0};
    const size_t n = strlen(header);
    assert_at_most(8 + n + DATA_BYTES, sizeof f.bytes);
    f.bytes[0] = (unsigned char)n;
    f.bytes[1] = (unsigned char)(n >> 8);
    memcpy(f.bytes + 8, header, n);
    for (size_t i = 0; i < DATA_BYTES; i++)
        f.bytes[8 + n + i] = (unsigned char)i;
    f.len = 8 + n + DATA_BYTES;
    return f;
}

static void
assert_refused(const struct file *f, const char *says)
{
    struct safetensors *s = NULL;
    struct err err = {0};
    assert_false(safetensors_parse(&s, "tiny.safetensors", f->bytes, f->len, &err));
    assert_null(s);
    if (strstr(err.text, says) == NULL)
        fail_msg("says \"%s\", not \"%s\"", err.text, says);
    assert_int_equal(strncmp(err.text, "tiny.safetensors: ", 18), 0);
}

TEST(tensors_point_at_their_data)
{
    const struct file f = with_header("{\"__metadata__\":{\"format\":\"pt\"},"
                                      "\"b\":{\"dtype\":\"BF16\",\"shape\":[3,4],\"data_offsets\":[8,32]},"
                                      "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                      "\"c\":{\"dtype\":\"F16\",\"shape\":[2,2,2],\"data_offsets\":[32,48]},"
                                      "\"d\":{\"dtype\":\"F8_E4M3\",\"shape\":[16],\"data_offsets\":[48,64]}}   ");
    struct safetensors *s;
    struct err err = {0};
    assert_ok(safetensors_parse(&s, "tiny", f.bytes, f.len, &err), err);
    assert_int_equal(s->n_tensors, 4);
    const struct safetensor *a = &s->tensors[0], *b = &s->tensors[1], *c = &s->tensors[2], *d = &s->tensors[3];
    assert_string_equal(a->name, "a");
    assert_int_equal(a->type, WEIGHT_F32);
    assert_int_equal(a->rows, 1);
    assert_int_equal(a->cols, 2);
    assert_int_equal(a->data[0], 0);
    assert_string_equal(b->name, "b");
    assert_int_equal(b->type, WEIGHT_BF16);
    assert_int_equal(b->rows, 3);
    assert_int_equal(b->cols, 4);
    assert_int_equal(b->data[0], 8);
    assert_int_equal(b->bytes, 24);
    assert_int_equal(c->type, WEIGHT_F16);
    assert_int_equal(c->n_dims, 3);
    assert_int_equal(c->rows, 0);
    assert_int_equal(c->cols, 0);
    assert_int_equal(d->type, WEIGHT_TYPES);
    assert_string_equal(d->dtype, "F8_E4M3");
    safetensors_close(s);
}

#define TENSOR(name, dtype, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

TEST(lies_in_the_header_are_refused)
{
    static const struct {
        const char *header, *says;
    } cases[] = {
        {"", "its header is no JSON object"},
        {"[]", "its header is no JSON object"},
        {"{\"a\":", "its header is no JSON object"},
        {"{\"a\":1}", "tensor 'a' lacks its dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", "tensor 'a' lacks its dtype or its data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "lacks its dtype or its data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"x\":0,\"y\":4}}}", "lacks its dtype or its"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "tensor 'a' has no shape"},
        {"{" TENSOR("a", "F32", "[-1]", 0, 4) "}", "has an impossible shape"},
        {"{" TENSOR("a", "F32", "[1.5]", 0, 4) "}", "has an impossible shape"},
        {"{" TENSOR("a", "F32", "[\"1\"]", 0, 4) "}", "has an impossible shape"},
        {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", "has an impossible shape"},
        {"{" TENSOR("a", "F32", "[4294967296,4294967296]", 0, 4) "}", "has an impossible shape"},
        {"{" TENSOR("a", "F32", "[2]", 0, 4) "}", "2 elements of F32, which are not 4 bytes"},
        {"{" TENSOR("a", "F32", "[17]", 0, 68) "}", "wants bytes 0 to 68, but the file has 64"},
        {"{" TENSOR("a", "F32", "[1]", 8, 4) "}", "wants bytes 8 to 4"},
        {"{" TENSOR("a", "F32", "[1]", -4, 0) "}", "lacks its dtype or its data_offsets"},
        {"{" TENSOR("a", "F32", "[1]", 1e300, 1e301) "}", "lacks its dtype or its data_offsets"},
        {"{" TENSOR("a\\u001b[31m", "F32", "[2]", 0, 4) "}", "tensor 'a\\x1b[31m' has 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct file f = with_header(cases[i].header);
        assert_refused(&f, cases[i].says);
    }
}

TEST(lies_about_the_headers_length_are_refused)
{
    struct file f = with_header("{}");
    f.len = 7;
    assert_refused(&f, "has only 7 bytes");
    f = with_header("{}");
    f.bytes[2] = 1;
    assert_refused(&f, "claims a header of 65538 bytes, but has 66");
    memset(f.bytes, 0xff, 8);
    assert_refused(&f, "claims a header of 18446744073709551615 bytes");
}

TEST(a_file_cut_anywhere_is_refused)
{
    struct file f = with_header("{" TENSOR("a", "F32", "[2,8]", 0, 64) "}");
    for (const size_t whole = f.len; f.len-- > 0;) {
        struct safetensors *s;
        struct err err = {0};
        assert_less(f.len, whole);
        assert_false(safetensors_parse(&s, "cut", f.bytes, f.len, &err));
        assert_int_equal(err.kind, ERR_WORK);
    }
}
