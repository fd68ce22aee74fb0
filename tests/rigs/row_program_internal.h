/* What the files of random programs share. */
#ifndef TESTS_RIGS_ROW_PROGRAM_INTERNAL_H
#define TESTS_RIGS_ROW_PROGRAM_INTERNAL_H

#include "engine/context/context.h"
#include "tests/rigs/row_program.h"

enum {
    CTX = 72,
    SEQS = 4,
    MAX_SLOTS = CTX + 64,
    MAX_RING = 64,
    MAX_LAYERS = 8,
    MAX_WIDTH = 128,
    MAX_VOCAB = 64,
    SPARE_VOCAB = 4, /* tokens that only the pool knows, at most */
    PLANS = 4
};

struct shadow_row { /* by slot */
    token_t token;
    slot_t parent; /* SLOT_NONE: the trunk's end */
    seq_t seq;
    uint32_t depth, pos;
    int plan;
};

struct shadow_seq {
    bool used;
    int plan; /* of rows appended to it; 0: nothing skipped */
    uint32_t len;
    slot_t trunk[CTX];
};

struct program {
    const struct row_world *w;
    struct dist_pool *pool;    /* theirs */
    struct context *c, *clean; /* clean: one sequence, one row at a time */
    struct naive_token clean_path[CTX];
    uint32_t clean_len;
    uint64_t seed;
    uint32_t n_random;
    unsigned op;
    uint32_t layers, vocab, n_slots;
    atomic_bool cancel;
    struct shadow_row rows[MAX_SLOTS];
    slot_t open[MAX_RING]; /* uncommitted rows, in order of append */
    uint32_t n_open;
    struct shadow_seq seqs[SEQS];
    bool skip_attention[PLANS][MAX_LAYERS + 1], skip_mlp[PLANS][MAX_LAYERS + 1];
    struct row_counts n;
};

#define EXPECT(p, condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("seed %llu, operation %u: not true: %s (context: %s)", (unsigned long long)(p)->seed, (p)->op,    \
                     #condition, context_error((p)->c)->text);                                                         \
    } while (0)

/* A random number below n; true once in n times. */
uint32_t row_below(struct program *, uint32_t n);
bool row_one_in(struct program *, uint32_t n);

/* The tokens from position 0 to the row, itself last; for a committed row in the trunk of the sequence. */
size_t row_path_of(const struct program *, seq_t, slot_t, bool committed, struct naive_token *path);
void row_forget_open(struct program *, const bool *gone); /* gone (n_open) */
void row_forget_open_of(struct program *, seq_t);
uint32_t row_slots_in_use(const struct program *);

/* Brings the path's last token to a depth in the clean context, every row before it alone and to the end. */
slot_t row_clean(struct program *, const struct naive_token *path, size_t n, uint32_t depth);
/* A row's hidden states at every depth, and its logits: near the oracle's, and bit for bit the clean context's. */
void row_compare(struct program *, seq_t, slot_t, bool committed);

/* A sequence in use; plain: one that skips nothing. */
seq_t row_random_seq(struct program *, bool plain);
/* Any row whose hidden states are there; SLOT_NONE when the first try finds none. */
slot_t row_random(struct program *, seq_t *, bool *committed);

/* One random operation, on the context and its shadow. */
void row_operation(struct program *);
/* Of these, what is asked: an early exit, predictions, a verdict. */
void row_until(struct program *);
void row_prediction(struct program *);
void row_verify(struct program *);

#endif
