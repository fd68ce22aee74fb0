/* Models split over several GGUF files: any part opens the model, and errors name a part that is missing or invalid. */
#include <unistd.h>

#include "engine/model/files/gguf.h"
#include "engine/model/model_open.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/test.h"

#define PARTS 3u

static char folder[] = "/tmp/specscope-split-XXXXXX";

static const char *
part_name(char out[128], unsigned part, unsigned count)
{
    snprintf(out, 128, "%s/tiny-%05u-of-%05u.gguf", folder, part, count);
    return out;
}

static void
write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

struct lies { /* false values for a part's metadata; 0: the correct value */
    uint32_t no_of_second, count, tensors;
};

static void
put_split(struct gguf_bytes *b, uint32_t no, uint32_t count, uint32_t tensors)
{
    put_key(b, "split.no", GGUF_U16);
    put_uint(b, no, 2);
    put_key(b, "split.count", GGUF_U16);
    put_uint(b, count, 2);
    put_key(b, "split.tensors.count", GGUF_I32);
    put_u32(b, tensors);
}

/* Distributes the model's tensors: metadata and every third tensor to the first part, the others to the second and
 * third. */
static void
write_split(const struct gguf *g, const struct lies *lies)
{
    const uint32_t count = lies->count != 0 ? lies->count : PARTS;
    const uint32_t n_all = lies->tensors != 0 ? lies->tensors : (uint32_t)g->n_tensors;
    for (uint32_t part = 0; part < PARTS; part++) {
        struct gguf_bytes b = {0};
        uint64_t n = 0, offset = 0;
        for (uint64_t i = 0; i < g->n_tensors; i++)
            n += i % PARTS == part;
        put_header(&b, 3, n, 3 + (part == 0 ? g->n_values : 0));
        if (part == 0) { /* copies the metadata, from the first key's length to the end of the last value */
            const unsigned char *start = (const unsigned char *)g->values[0].key.data - 8;
            const unsigned char *end = (const unsigned char *)g->tensors[0].name.data - 8;
            put_bytes(&b, start, (size_t)(end - start));
        }
        put_split(&b, part == 1 && lies->no_of_second != 0 ? lies->no_of_second : part, count, n_all);
        for (int data = 0; data < 2; data++) {
            if (data)
                put_padding(&b, 32);
            for (uint64_t i = 0; i < g->n_tensors; i++) {
                const struct gguf_tensor *t = &g->tensors[i];
                char name[64];
                if (i % PARTS != part)
                    continue;
                if (data) {
                    put_bytes(&b, t->data, (size_t)t->bytes);
                    put_padding(&b, 32);
                    continue;
                }
                snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
                put_tensor(&b, name, t->dims[0], t->n_dims == 1 ? 0 : t->dims[1], t->type, offset);
                offset += (t->bytes + 31) / 32 * 32;
            }
        }
        assert_false(b.failed);
        char path[128];
        write_bytes(part_name(path, part + 1, PARTS), b.data, b.len);
        free(b.data);
    }
}

static void
remove_parts(void)
{
    char path[128];
    for (unsigned part = 1; part <= PARTS; part++)
        unlink(part_name(path, part, PARTS));
}

struct tiny {
    unsigned char *bytes;
    struct gguf *file;
};

static struct tiny
open_tiny(void)
{
    struct tiny t = {0};
    struct err err = {0};
    size_t len;
    const struct tinymodel options = {.n_layers = 2};
    if (!tinymodel_build(&options, &t.bytes, &len, &err) || !gguf_parse(&t.file, "tiny", t.bytes, len, &err))
        fail_msg("%s", err.text);
    return t;
}

static void
close_tiny(struct tiny *t)
{
    gguf_close(t->file);
    free(t->bytes);
}

TEST(any_part_opens_the_whole_model)
{
    struct tiny t = open_tiny();
    uint64_t hash = 0;
    write_split(t.file, &(struct lies){0});
    for (unsigned part = 1; part <= PARTS; part++) {
        char path[128];
        struct model *m;
        struct err err = {0};
        assert_ok(model_open(&m, part_name(path, part, PARTS), &err), err);
        assert_int_equal(m->file->n_tensors, t.file->n_tensors);
        assert_int_equal(m->file->n_parts, PARTS - 1);
        if (part != 1)
            assert_int_equal(m->hash, hash);
        hash = m->hash;
        for (uint64_t i = 0; i < t.file->n_tensors; i++) {
            const struct gguf_tensor *whole = &t.file->tensors[i], *split;
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)whole->name.len, whole->name.data);
            split = gguf_find_tensor(m->file, name);
            assert_non_null(split);
            assert_int_equal(split->bytes, whole->bytes);
            assert_memory_equal(split->data, whole->data, whole->bytes);
        }
        model_close(m);
    }
    remove_parts();
    close_tiny(&t);
}

static void
assert_refused(unsigned part, const char *says)
{
    char path[128];
    struct gguf *g = NULL;
    struct err err = {0};
    assert_false(gguf_open(&g, part_name(path, part, PARTS), &err));
    assert_null(g);
    if (strstr(err.text, says) == NULL)
        fail_msg("says \"%s\", not \"%s\"", err.text, says);
}

TEST(a_missing_part_is_named)
{
    char path[128];
    struct tiny t = open_tiny();
    write_split(t.file, &(struct lies){0});
    assert_int_equal(unlink(part_name(path, 2, PARTS)), 0);
    assert_refused(1, "/tiny-00002-of-00003.gguf: part 2 of 3 is missing; fetch it into the same folder");
    assert_refused(3, "/tiny-00002-of-00003.gguf: part 2 of 3 is missing");
    write_split(t.file, &(struct lies){0});
    assert_int_equal(unlink(part_name(path, 1, PARTS)), 0);
    assert_refused(2, "/tiny-00001-of-00003.gguf: part 1 of 3 is missing");
    remove_parts();
    close_tiny(&t);
}

TEST(parts_that_do_not_belong_together_are_refused)
{
    struct tiny t = open_tiny();
    write_split(t.file, &(struct lies){.no_of_second = 2});
    assert_refused(1, "/tiny-00002-of-00003.gguf: says that it is part 3 of 3, not 2 of 3");
    write_split(t.file, &(struct lies){.count = 2});
    assert_refused(1, "so its name should end in -00001-of-00002.gguf; rename the parts");
    assert_refused(3, "says that it is part 3 of 2");
    write_split(t.file, &(struct lies){.tensors = 5});
    assert_refused(1, "its 3 parts should have 5 tensors, but have 21");
    char path[128], other[128];
    write_split(t.file, &(struct lies){0});
    snprintf(other, sizeof other, "%s/renamed.gguf", folder);
    assert_int_equal(rename(part_name(path, 1, PARTS), other), 0);
    struct gguf *g;
    struct err err = {0};
    assert_false(gguf_open(&g, other, &err));
    assert_contains(err.text, "/renamed.gguf: is part 1 of 3, so its name should end in -00001-of-00003.gguf");
    unlink(other);
    write_split(t.file, &(struct lies){0});
    write_bytes(part_name(path, 3, PARTS), "GGUF", 4);
    assert_refused(1, "/tiny-00003-of-00003.gguf: ends at byte 4");
    remove_parts();
    close_tiny(&t);
}

static int
make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int
remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

FIXTURE(make_folder, remove_folder);
