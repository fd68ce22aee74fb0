/* What the readers of a tokenizer.model and of the files beside it share. */
#ifndef ENGINE_TOKENIZER_SENTENCEPIECE_H
#define ENGINE_TOKENIZER_SENTENCEPIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/slice.h"
#include "engine/tokenizer/tokenizer_internal.h"

struct added_tokens {
    struct special *list; /* (n) texts in memory of the tokenizer's */
    uint32_t n, room;
    uint32_t ids; /* one more than the highest id */
};

struct sentencepiece {
    struct tokenizer *t;
    const char *where;
    struct err *err;
    struct added_tokens added;
};

/* Reading Protocol Buffers' wire format, without a schema: the fields of a message one after the other, every length
 * checked. What a caller doesn't know it passes over. */

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

#endif
