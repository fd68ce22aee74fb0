/* Internal to the readers of a tokenizer.model and of the JSON files in its directory. */
#ifndef ENGINE_MODEL_TOKENIZER_SENTENCEPIECE_H
#define ENGINE_MODEL_TOKENIZER_SENTENCEPIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "engine/model/tokenizer/tokenizer_internal.h"

struct added_tokens {
    struct special *list; /* (n) texts are in the tokenizer's memory */
    uint32_t n, room;
    uint32_t ids; /* highest id + 1 */
};

struct sentencepiece {
    struct tokenizer *t;
    const char *where;
    struct err *err;
    struct added_tokens added;
};

/* A reader of the Protocol Buffers wire format without a schema. It returns the fields of a message in order and checks
 * every length. Callers skip unknown fields. */

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_32 = 5 };

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;     /* for VARINT, 64 and 32 */
    struct slice bytes; /* for BYTES: a text or a nested message */
};

struct protobuf {
    struct slice rest;
    bool broken; /* it is not a message, or it is truncated */
};

#endif
