/* A model that reads texts, and what it says after each token: for collecting what is trained on, with the logits on the host;
 * generating for people is the session's. Several texts share a pass over the weights, each in a lane of its own; what is
 * said of one is the same bits whatever stands in the others. */
#ifndef ENGINE_TRAINING_READER_H
#define ENGINE_TRAINING_READER_H

#include "engine/context/context.h"
#include "engine/session/engine.h"

#define READER_LANES 64 /* at most */

/* Who reads: the engine's own model, or who plays a role (READS_DRAFT + role). */
enum reads { READS_TARGET, READS_DRAFT, READS_COMPANION, READS };

struct reader {
    const struct engine *engine; /* borrowed */
    const struct model *model;   /* the one whose layers read */
    struct context *context;     /* of self:E on the engine's own weights, with keys and values of E layers */
    seq_t seq[READER_LANES];     /* of each lane */
    uint32_t vocab, layers, width;
};

/* Texts of up to ctx tokens in each of so many lanes, counted from 0. The role is somebody's (engine_has). */
bool reader_open(struct reader *, const struct engine *, enum reads, uint32_t ctx, uint32_t lanes,
                 const atomic_bool *cancel, struct err *);
void reader_close(struct reader *); /* also when it is all zero */

void reader_forget(struct reader *, uint32_t lane, uint32_t length); /* all but the first so many */

struct reader_text {
    uint32_t lane; /* no two have the same */
    const token_t *tokens;
    uint32_t to; /* how far to read */
    void *user;  /* for who is told */
};

/* Told of the row that read the text's token `at`; false stops. */
typedef bool (*reader_fn)(void *user, struct reader *, uint32_t at, slot_t);

/* Reads tokens[length..to) of each of n texts behind what was read of it; `told` may be NULL. False: context_error() of the
 * reader's context. */
bool reader_read(struct reader *, const struct reader_text *, size_t n, reader_fn told);
/* The last layer's logits (vocab) after the row. */
bool reader_logits(struct reader *, slot_t, float *z);

#endif
