/* Runs a model over texts and returns its logits after each token, to collect training data on the host. Several texts
 * share a pass over the weights, each in a lane of its own; the results of one text are the same bits whatever the
 * others contain. */
#pragma once

#include "engine/context/context.h"
#include "engine/session/engine.h"

#define READER_SEQUENCES 64 /* at most */

/* The model that reads: the engine's own, or that of a role (READS_DRAFT + role). */
enum reads { READS_TARGET, READS_DRAFT, READS_COMPANION, READS };

struct reader {
    const struct engine *engine; /* borrowed */
    const struct model *model;   /* the one whose layers read */
    struct context *context;     /* of self:E on the engine's own weights, with keys and values of E layers */
    seq_t seq[READER_SEQUENCES]; /* of each text */
    uint32_t vocab, layers, width;
};

/* Opens a reader of `sequences` texts, numbered from 0, of up to ctx tokens each. The engine must have a model for the
 * role (engine_has()). */
bool reader_open(struct reader *, const struct engine *, enum reads, uint32_t ctx, uint32_t sequences,
                 const atomic_bool *cancel, struct err *);
void reader_close(struct reader *); /* also when it is all zero */

void reader_forget(struct reader *, uint32_t sequence, uint32_t length); /* all but the first so many */

struct reader_text {
    uint32_t sequence; /* no two have the same */
    const token_t *tokens;
    uint32_t to; /* how far to read */
    void *user;  /* for the callback */
};

/* Called with the row that read token `at` of the text; false stops. */
typedef bool (*reader_fn)(void *user, struct reader *, uint32_t at, slot_t);

/* Reads tokens[length..to) of each of n texts, where `length` is what its lane has read already; `told` may be NULL.
 * False: context_error() of the reader's context. */
bool reader_read(struct reader *, const struct reader_text *, size_t n, reader_fn each);
/* The last layer's logits (vocab) after the row. */
bool reader_logits(struct reader *, slot_t, float *z);
