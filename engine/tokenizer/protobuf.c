#include "engine/tokenizer/protobuf.h"

#include <string.h>

#include "engine/base/little_endian.h"

#define LONGEST_VARINT 10 /* bytes of seven bits */

static bool
break_off(struct protobuf *p)
{
    p->broken = true;
    return false;
}

static bool
take(struct protobuf *p, uint64_t n, struct slice *out)
{
    if (n > p->rest.len)
        return break_off(p);
    *out = (struct slice){p->rest.data, (size_t)n};
    p->rest = (struct slice){p->rest.data + n, p->rest.len - (size_t)n};
    return true;
}

/* Seven bits a byte, the low ones first; the last byte has no high bit. */
static bool
take_varint(struct protobuf *p, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < LONGEST_VARINT && i < p->rest.len; i++) {
        const unsigned char byte = (unsigned char)p->rest.data[i];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            p->rest = (struct slice){p->rest.data + i + 1, p->rest.len - i - 1};
            return true;
        }
    }
    return break_off(p);
}

static bool
take_fixed(struct protobuf *p, size_t n, uint64_t *value)
{
    struct slice bytes;
    if (!take(p, n, &bytes))
        return false;
    *value = little_endian((const unsigned char *)bytes.data, n);
    return true;
}

bool
protobuf_next(struct protobuf *p, struct protobuf_field *f)
{
    uint64_t key, n;
    if (p->broken || p->rest.len == 0 || !take_varint(p, &key))
        return false;
    *f = (struct protobuf_field){.number = (uint32_t)(key >> 3), .wire = (enum protobuf_wire)(key & 7)};
    if (key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return break_off(p);
    switch (f->wire) {
    case PROTOBUF_VARINT: return take_varint(p, &f->value);
    case PROTOBUF_64: return take_fixed(p, 8, &f->value);
    case PROTOBUF_32: return take_fixed(p, 4, &f->value);
    case PROTOBUF_BYTES: return take_varint(p, &n) && take(p, n, &f->bytes);
    }
    return break_off(p); /* groups, which nobody writes any more */
}

float
protobuf_float(const struct protobuf_field *f)
{
    const uint32_t bits = (uint32_t)f->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
