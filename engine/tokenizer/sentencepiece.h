/* What the readers of a tokenizer.model and of the files beside it share. */
#ifndef ENGINE_TOKENIZER_SENTENCEPIECE_H
#define ENGINE_TOKENIZER_SENTENCEPIECE_H

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

/* Lists what was added to the vocabulary. */
bool sentencepiece_list_added(struct sentencepiece *, struct slice config, struct slice added);
/* The same tokens, once there is room for them; BOS and EOS, the chat template. */
bool sentencepiece_read_config(struct sentencepiece *, struct slice config);

#endif
