/* The sequences of a run. One has the focus: scope.h's functions tell of it alone, but for the measures, which are those
 * of all. Of every other one there is a tile, and while its history is held the focus can go to it and show all of it.
 *
 * Held are the histories of those that are generated, and the latest of those that left, as long as there is room. In a
 * run of more than 8 sequences at a time each has a smaller share of what scope.h says, down to an eighth from 33 on:
 * with 32 layers and trained heads up to 64 at a time stay below 100 MB, however long they are. */
#ifndef TUI_SCOPE_BATCH_H
#define TUI_SCOPE_BATCH_H

#include "tui/scope/scope.h"

#define SCOPE_TILES  4096         /* held of a run; further sequences are in the measures alone */
#define SCOPE_TAIL   64           /* tokens at its end that a tile knows */
#define SCOPE_MEMORY (96ul << 20) /* bytes of histories up to which those that left are kept */

struct scope_tile {
    uint32_t seq;       /* its number */
    uint32_t lane;      /* from 0: the first that was free when it joined, so at most as many as there are at a time */
    bool in_lane;       /* live, or nobody took its lane since */
    char prompt[128];   /* the beginning of its prompt, safe for the terminal; "" when it was not told */
    bool live, held;    /* held: the focus can go to it */
    char left[16];      /* why it ended: eos, tokens, context; "" while live. Safe for the terminal */
    uint32_t round;     /* the last one that it took part in; 0: none yet */
    struct tally total; /* of its ROUND lines; times and loads are its shares */
    double rounds_us;   /* what the rounds that it took part in took of everybody's drafting and verifying */
};

struct scope_batch {
    uint32_t tiles, live, left; /* sequences heard of; of these */
    uint32_t waiting;           /* prompts that nothing was heard of; 0 when it is not known how many there are */
};

struct scope_said { /* a token of a tile's text */
    token_t token;
    enum fate fate; /* FATE_GHOST: drafted; FATE_REJECTED: struck, what took its place follows */
};

struct scope_batch scope_batch(const struct scope *);
bool scope_is_batch(const struct scope *); /* there are several sequences, or there will be */

/* By ascending number; NULL beyond the last. Valid until the next event. */
const struct scope_tile *scope_tile(const struct scope *, uint32_t index);
/* The index of the sequence of that number, scope_batch().tiles when there is none. */
uint32_t scope_tile_index(const struct scope *, uint32_t seq);
/* Tokens emitted over the time of the rounds that it took part in, which is what a person waiting for it sees; NAN. */
double scope_tile_tokens_per_s(const struct scope_tile *);
struct measures scope_tile_measures(const struct scope *, const struct scope_tile *); /* the rest, from its own lines */
/* Its newest round, perhaps under way; NULL: none is held. */
const struct scope_round *scope_tile_round(const struct scope *, const struct scope_tile *);
/* Writes the end of its text, n tokens at most (up to SCOPE_TAIL of a sequence that is not held any more); returns how
 * many. */
uint32_t scope_tile_tail(const struct scope *, const struct scope_tile *, struct scope_said *, uint32_t n);

uint32_t scope_focus(const struct scope *); /* the number of the sequence in focus */
/* False: that sequence isn't held. The choice stays, for the next run, too; before there was one, the focus is the first
 * sequence's, and when that left it goes on to the next one that joins. */
bool scope_set_focus(struct scope *, uint32_t seq);

#endif
