/* Trees of drafts that are chosen by the probability of their paths, the product of the drafter's probabilities, level
 * by level (eagle, dflash and dspark). The nodes are chosen without drawing, also when sampling: dropping a drawn one
 * for its probability would favour other tokens. */
#pragma once

#include "engine/session/round.h"

struct draft_node {
    int32_t parent; /* its index; -1: the pending token */
    token_t token;
    double path;            /* probability of the path to it */
    float p;                /* of the token after its parent */
    const slot_t *row;      /* the drafter's row of its parent, or NULL */
    struct prediction from; /* the drafter's at its parent */
    bool kept;
    int32_t proposed; /* its node in the round's tree */
};

#define DRAFT_TREE (VERIFY_NODES * (PREDICTION_TOP + 1))

struct draft_tree {
    struct draft_node node[DRAFT_TREE]; /* (n) parents first */
    uint32_t n, level;                  /* level: the first node of the latest one */
};

/* Adds the topk likeliest tokens after a node. */
void draft_tree_add(struct draft_tree *, int32_t parent, const slot_t *row, const struct prediction *, uint32_t topk);
/* Marks the `most` nodes from `first` on with the largest path probabilities, the earlier first among equals. The parent
 * of a node that is kept is kept, too: its path is at least as probable, and it comes first. */
void draft_tree_keep(struct draft_tree *, uint32_t first, uint32_t most);
/* Removes all nodes but the `most` best ones. */
void draft_tree_prune(struct draft_tree *, uint32_t most);
/* Proposes the `most` best nodes. False: stop now. */
bool draft_tree_propose(struct round *, struct draft_tree *, uint32_t most);
