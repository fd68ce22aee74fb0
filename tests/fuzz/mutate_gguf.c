#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/rng.h"
#include "engine/model/files/gguf.h"
#include "tests/fuzz/fuzz.h"

#define ITEMS_MOST 8192
#define ALIGNMENT  32u

enum kind { NUMBER, TEXT, LIST, TENSOR_TYPE };

struct item {
    enum kind kind;
    size_t at, len; /* the bytes of a text, the elements of a list */
    size_t count;   /* offset of a text's or list's length, which has 8 bytes */
    size_t each;    /* bytes of a list's element; 0: the elements are texts */
};

struct walk {
    const uint8_t *data;
    size_t size, at;
    struct item *item; /* (n) */
    size_t n;
    bool ok;
};

static uint64_t
take(struct walk *w, size_t bytes)
{
    if (!w->ok || bytes > w->size - w->at) {
        w->ok = false;
        return 0;
    }
    w->at += bytes;
    return little_endian(w->data + w->at - bytes, bytes);
}

static void
add(struct walk *w, struct item item)
{
    if (w->ok && w->n < ITEMS_MOST)
        w->item[w->n++] = item;
}

static void
take_text(struct walk *w, bool listed)
{
    const size_t count = w->at;
    const uint64_t len = take(w, 8);
    w->ok = w->ok && len <= w->size - w->at;
    if (!w->ok)
        return;
    if (listed)
        add(w, (struct item){.kind = TEXT, .at = w->at, .len = (size_t)len, .count = count});
    w->at += (size_t)len;
}

static size_t
width_of(uint64_t type)
{
    static const uint8_t widths[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < GGUF_TYPES ? widths[type] : 0;
}

static void
take_value(struct walk *w)
{
    const size_t type_at = w->at;
    const uint64_t type = take(w, 4);
    if (type == GGUF_STRING) {
        take_text(w, true);
    } else if (type == GGUF_ARRAY) {
        const uint64_t element = take(w, 4);
        struct item list = {.kind = LIST, .count = w->at, .each = width_of(element)};
        const uint64_t n = take(w, 8);
        list.at = w->at;
        w->ok = w->ok && n <= w->size && (list.each > 0 || element == GGUF_STRING);
        for (uint64_t i = 0; i < n && w->ok; i++)
            if (list.each == 0)
                take_text(w, i % 16 == 0);
            else
                take(w, list.each);
        list.len = w->at - list.at;
        add(w, list);
    } else {
        const size_t each = width_of(type);
        w->ok = w->ok && each > 0;
        add(w, (struct item){.kind = NUMBER, .at = type_at, .len = 4});
        add(w, (struct item){.kind = NUMBER, .at = w->at, .len = each});
        take(w, each);
    }
}

static void
take_tensor(struct walk *w)
{
    take_text(w, true);
    const size_t dims_at = w->at;
    const uint64_t n = take(w, 4);
    w->ok = w->ok && n <= 4;
    add(w, (struct item){.kind = NUMBER, .at = dims_at, .len = 4});
    for (uint64_t i = 0; i < n && w->ok; i++) {
        add(w, (struct item){.kind = NUMBER, .at = w->at, .len = 8});
        take(w, 8);
    }
    add(w, (struct item){.kind = TENSOR_TYPE, .at = w->at, .len = 4});
    take(w, 4);
    add(w, (struct item){.kind = NUMBER, .at = w->at, .len = 8});
    take(w, 8);
}

/* Walks over the header up to the tensors' data. Returns false if the file's framing is invalid. */
static bool
walk_file(struct walk *w)
{
    if (w->size < 24 || memcmp(w->data, "GGUF", 4) != 0)
        return false;
    w->at = 8;
    const uint64_t tensors = take(w, 8), values = take(w, 8);
    add(w, (struct item){.kind = NUMBER, .at = 4, .len = 4});
    add(w, (struct item){.kind = NUMBER, .at = 8, .len = 8});
    add(w, (struct item){.kind = NUMBER, .at = 16, .len = 8});
    for (uint64_t i = 0; i < values && w->ok; i++) {
        take_text(w, true);
        take_value(w);
    }
    for (uint64_t i = 0; i < tensors && w->ok; i++)
        take_tensor(w);
    return w->ok && w->n > 0;
}

static void
another_number(uint8_t *at, size_t len, uint64_t *random)
{
    static const uint64_t numbers[] = {0,          1,          2,          3,          7,         8,     31,
                                       32,         127,        128,        255,        256,       65535, 0x7fffffff,
                                       0xffffffff, 1ULL << 32, 1ULL << 62, 1ULL << 63, UINT64_MAX};
    const uint64_t old = little_endian(at, len);
    uint64_t value = numbers[splitmix64(random) % (sizeof numbers / sizeof *numbers)];
    switch (splitmix64(random) % 5) {
    case 0: value = old + 1; break;
    case 1: value = old - 1; break;
    case 2: value = old * 2; break;
    case 3: value = old ^ 1ULL << splitmix64(random) % (8 * len); break;
    default: break;
    }
    put_little_endian(at, len, value);
}

/* Cuts bytes out of the header, or doubles them. The tensors' data then begins at the next multiple of the
 * alignment. */
static size_t
resize(uint8_t *data, size_t size, size_t max_size, size_t header, size_t at, size_t len, bool longer)
{
    const size_t begin = (header + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const size_t rest = begin < size ? size - begin : 0, now = longer ? header + len : header - len;
    const size_t next = (now + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint8_t *out = calloc(1, next + rest + 1);
    if (out == NULL || next + rest > max_size) {
        free(out);
        return 0;
    }
    memcpy(out, data, at + (longer ? len : 0));
    memcpy(out + at + (longer ? len : 0), data + at + (longer ? 0 : len), header - at - (longer ? 0 : len));
    memcpy(out + next, data + begin, rest);
    memcpy(data, out, next + rest);
    free(out);
    return next + rest;
}

static size_t
change_length(uint8_t *data, size_t size, size_t max_size, size_t header, const struct item *item, uint64_t *random)
{
    const size_t each = item->kind == TEXT ? 1 : item->each, n = each > 0 ? item->len / each : 0;
    if (n == 0)
        return size;
    const size_t count = 1 + splitmix64(random) % (n < 16 ? n : 16), first = splitmix64(random) % (n - count + 1);
    const bool longer = splitmix64(random) % 2 == 0;
    const size_t made = resize(data, size, max_size, header, item->at + first * each, count * each, longer);
    if (made > 0)
        put_little_endian(data + item->count, 8, longer ? n + count : n - count);
    return made > 0 ? made : size;
}

static void
change(uint8_t *data, const struct item *item, uint64_t *random)
{
    if (item->kind == TEXT && item->len > 0)
        data[item->at + splitmix64(random) % item->len] = (uint8_t)splitmix64(random);
    else if (item->kind == LIST && item->each > 0 && item->len > 0)
        another_number(data + item->at + splitmix64(random) % (item->len / item->each) * item->each, item->each,
                       random);
    else if (item->kind == TENSOR_TYPE)
        put_little_endian(data + item->at, 4, splitmix64(random) % 40);
    else if (item->kind == NUMBER)
        another_number(data + item->at, item->len, random);
}

size_t
mutate_gguf(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t random = seed;
    struct walk w = {.data = data, .size = size, .item = calloc(ITEMS_MOST, sizeof(struct item)), .ok = true};
    if (w.item == NULL || splitmix64(&random) % 8 == 0 || !walk_file(&w)) {
        free(w.item);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    for (uint64_t n = splitmix64(&random) % 3; n > 0; n--)
        change(data, &w.item[splitmix64(&random) % w.n], &random);
    const struct item *last = &w.item[splitmix64(&random) % w.n]; /* last, because it may move the bytes after it */
    if ((last->kind == TEXT || last->kind == LIST) && splitmix64(&random) % 3 == 0)
        size = change_length(data, size, max_size, w.at, last, &random);
    else
        change(data, last, &random);
    free(w.item);
    return size;
}
