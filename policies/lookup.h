/* Drafts copied from earlier text, for the policies ngram and suffix (docs/policies/ngram.md). No
 * model predicts them, so they depend on the text alone, and what-if can repeat them exactly. */
#pragma once

#include "engine/session/round.h"
#include "policies/what_if.h"

#define LOOKUP_PLACES 64 /* earlier occurrences that count, at most: the latest ones */
#define LOOKUP_NODES  (VERIFY_NODES - 1)

struct lookup_rule {
    uint32_t least, most; /* tokens of a match */
    bool latest;          /* only the latest occurrence counts */
    double per_match;     /* drafts in depth for each token of the match; 0: as many as `depth` */
    uint32_t depth;       /* drafts in depth, at most */
    uint32_t nodes;       /* drafts, at most; more than `depth`: a tree, else a chain */
    double probability;   /* of a draft's path, at least */
    /* why drafting stopped if it reached `depth`, drafts for each token of the match, or `nodes` in a tree */
    const char *full, *full_match, *full_tree;
};

struct lookup_node {
    int32_t parent; /* index of the draft before it; -1: the pending token */
    uint32_t depth; /* 1: it follows the pending token */
    token_t token;
    double probability; /* occurrences that continue along its path, of all occurrences */
};

struct lookup {
    uint32_t matched;   /* tokens; 0: no match */
    uint32_t n;         /* drafts; a draft follows its parent */
    const char *reason; /* why drafting stopped, a constant */
    struct lookup_node node[LOOKUP_NODES];
};

/* Prompt lookup: up to so many drafts in a chain after a match of n_min to n_max tokens (in any order). Declares its
 * knobs, which come first, and the series: `least` is the default of n_min; `drafts`, `symbol` and `help` are the
 * number of drafts. */
#define LOOKUP_NGRAM_KNOBS 4
bool lookup_ngram_open(struct policy *, int least, const char *drafts, const char *symbol, const char *help);
/* Returns the rule of these knobs. */
struct lookup_rule lookup_ngram(const double *value);

/* Finds earlier occurrences of the last tokens of a text of n tokens, and drafts the tokens that follow them, the most
 * frequent continuation first and, of equally frequent ones, the latest. None is deeper than `budget`. Time: O(n). */
void lookup_text(struct lookup *, const struct lookup_rule *, const token_t *text, uint32_t n, uint32_t budget);

/* Proposes the drafts that each round's text gives, by the rule of its knob values, and writes the summaries; reports
 * the series `match`. False: stop now. */
bool lookup_draft(struct policy *const *, struct round *const *, uint32_t n,
                  struct lookup_rule (*)(const double *value));
/* The same for the drafts of a round of a record, and for all of its rounds, verified. */
void lookup_what_if_round(struct what_if *, const struct lookup_rule *);
bool lookup_what_if(const struct layer_record *, struct lookup_rule, struct tally *); /* returns true */
