/* A model that reads a text, and what it says after each token: for collecting what is trained on. One at a time, with the
 * logits on the host; generating for people is the session's. */
#ifndef ENGINE_TRAINING_READER_H
#define ENGINE_TRAINING_READER_H

#include "engine/context/context.h"
#include "engine/session/engine.h"

/* Who reads: the engine's own model, or who plays a role (READS_DRAFT + role). */
enum reads { READS_TARGET, READS_DRAFT, READS_COMPANION, READS };

struct reader {
    const struct engine *engine; /* borrowed */
    const struct model *model;   /* the one whose layers read */
    struct weights *own;         /* of self:E: the first E layers alone, or NULL */
    struct context *context;
    seq_t seq;
    uint32_t vocab, layers, width;
};

/* For texts of up to ctx tokens. The role is somebody's (engine_has). */
bool reader_open(struct reader *, const struct engine *, enum reads, uint32_t ctx, const atomic_bool *cancel,
                 struct err *);
void reader_close(struct reader *); /* also when it is all zero */

/* Told of the row that read the text's token `at`; false stops. */
typedef bool (*reader_fn)(void *user, struct reader *, uint32_t at, slot_t);

uint32_t reader_length(const struct reader *);        /* tokens read */
void reader_forget(struct reader *, uint32_t length); /* all but the first so many */
/* Reads text[length..to) behind what was read; `told` may be NULL. False: context_error() of the reader's context. */
bool reader_read(struct reader *, const token_t *text, uint32_t to, reader_fn told, void *user);
/* The last layer's logits (vocab) after the row. */
bool reader_logits(struct reader *, slot_t, float *z);

#endif
