/* Reading Protocol Buffers' wire format, without a schema: the fields of a message one after the other, every length
 * checked. What a caller doesn't know it passes over. */
#ifndef ENGINE_TOKENIZER_PROTOBUF_H
#define ENGINE_TOKENIZER_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/slice.h"

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_32 = 5 };

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;     /* of VARINT, 64 and 32 */
    struct slice bytes; /* of BYTES: a text, or a message within this one */
};

struct protobuf {
    struct slice rest;
    bool broken; /* it is no message, or was cut short */
};

/* False: there is no other field, or the message is broken. */
bool protobuf_next(struct protobuf *, struct protobuf_field *);
/* A float, of a field that is one (PROTOBUF_32). */
float protobuf_float(const struct protobuf_field *);

#endif
