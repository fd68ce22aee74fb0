/* Draft vocabularies (docs/design-engine.md): the set S of tokens that a draft head computes, as a function of the
 * order of the vocabulary, of the knob draft_vocab and of the text.
 *
 * S consists of the first draft_vocab tokens by rank, its base, and of recent tokens: the tokens of the prompt and of
 * the text so far that are not in the base, in the order in which they appear first. At most DRAFT_RECENT are kept. A
 * further token then takes the place of the one that has been there longest. */
#ifndef ENGINE_EVENTS_DRAFT_VOCAB_H
#define ENGINE_EVENTS_DRAFT_VOCAB_H

#include "kernels/backend.h"

#define DRAFT_VOCAB "draft_vocab" /* the name of the knob, in every policy that has it */

/* Returns the step of the knob: as many logits as a thread computes at a time, so that bases fill whole pieces. Small
 * vocabularies, which gain nothing by that, have a smaller one. */
static inline uint32_t
draft_vocab_step(uint32_t vocab)
{
    return vocab < 4096 ? 64 : 512;
}

struct draft_rank { /* an order of a vocabulary; zeros: none */
    uint32_t vocab;
    token_t *ids;    /* (vocab) by rank; owned */
    uint32_t *place; /* (vocab) the rank of each token; owned */
};

/* Copies the order ids (vocab), which contains each token once. Close it in any case. */
bool draft_rank_open(struct draft_rank *, const token_t *ids, uint32_t vocab, struct err *);
void draft_rank_close(struct draft_rank *);

/* An order by id is described by the tokens that are last, as ranges: "0-2,49152". Printing fails if it is another
 * order or needs more than n bytes. Reading accepts any text: what is no range of ids below vocab is ignored. */
#define DRAFT_LAST_MOST 512
bool draft_rank_print_last(const struct draft_rank *, char *out, size_t n);
bool draft_rank_by_id(struct draft_rank *, const char *last, uint32_t vocab, struct err *);

/* Returns the number of tokens in the base: 0 if the knob's value includes all tokens. */
static inline uint32_t
draft_vocab_base(double value, uint32_t vocab)
{
    return value > 0 && value < vocab ? (uint32_t)value : 0;
}

struct draft_recent {    /* the recent tokens of a text; zeros: of no text */
    uint32_t base, read; /* tokens of the text that were read, with this base */
    uint32_t found;      /* tokens that became recent; the next one goes to place found % DRAFT_RECENT */
    token_t token[DRAFT_RECENT];
};

static inline uint32_t
draft_recent_count(const struct draft_recent *r)
{
    return r->found < DRAFT_RECENT ? r->found : DRAFT_RECENT;
}

/* Reads the text (n) from where the last call ended, or from its begin if the base is another one. */
void draft_recent_read(struct draft_recent *, const struct draft_rank *, uint32_t base, const token_t *text,
                       uint32_t n);

#endif
