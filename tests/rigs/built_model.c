#include "tests/rigs/built_model.h"

#include "engine/model/files/gguf.h"
#include "engine/model/model_open.h"
#include "tests/rigs/test.h"

struct built
build(const struct tinymodel *options)
{
    struct built b = {0};
    struct err err = {0};
    assert_ok(tinymodel_build(options, &b.bytes, &b.len, &err), err);
    return b;
}

bool
read_bytes(struct model **m, const struct built *b, struct err *err)
{
    struct gguf *file;
    return gguf_parse(&file, "tiny.gguf", b->bytes, b->len, err) && model_read(m, file, err);
}

struct model *
open_tiny_model(struct built *b, const struct tinymodel *options)
{
    struct model *m = NULL;
    struct err err = {0};
    *b = build(options);
    assert_ok(read_bytes(&m, b, &err), err);
    return m;
}

struct model *
open_golden_model(const char *path)
{
    struct model *m = NULL;
    struct err err = {0};
    assert_ok(model_open(&m, path, &err), err);
    return m;
}
