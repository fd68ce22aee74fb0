/* Compares the drafts that two engines accepted for the same prompts (docs/methods.md: Head or engine). Draft i of a
 * round is tested if the drafts before it were accepted: n_i drafts were tested, k_i accepted; n_0 rounds could have
 * drafts, and k_0 had some. With a greedy target and the same drafter both engines' rounds are equal. Where they are not, Fisher's exact test is made for each i,
 * with Holm's correction, and labels of the engines are exchanged within prompts: a permutation test with the prompts
 * as blocks, whose statistic is the largest of all i (Westfall and Young 1993). Both tests are two-sided. The engines differ
 * at i if both are below SAME_DRAFTS_LEVEL. */
#pragma once

#include "base/err.h"
#include "engine/measure/positions.h"

#define SAME_DRAFTS_DRAWS 10000
#define SAME_DRAFTS_LEVEL 0.01
#define SAME_DRAFTS_LEAST 8 /* prompts: fewer have too few permutations for this level */

struct draft_round {
    uint32_t drafted, accepted;
};

struct draft_pair { /* a prompt's rounds, here (0) and there (1); the prompt's forward pass gives the first token */
    const struct draft_round *rounds[2]; /* (n) */
    size_t n[2];
    /* Tokens with which both texts begin. Drafts of the last one and of later ones are not compared: engines shorten
     * the last round of a text in different ways. */
    uint32_t common;
};

struct same_drafts {
    size_t prompts;     /* with tested drafts */
    uint32_t positions; /* at which an engine tested drafts */
    /* [0]: rounds that could have drafts, and that had some; [i]: tested and accepted drafts i; here and there */
    uint64_t n[2][POSITIONS + 1], k[2][POSITIONS + 1];
    uint32_t longest[2];                                   /* drafts of a round, not shortened */
    double fisher[POSITIONS + 1], permuted[POSITIONS + 1]; /* p of both tests, corrected for all i, */
    double p[POSITIONS + 1];                               /* and the larger one */
    int differs_from;                                      /* the first i at which the engines differ; -1: none */
    bool fewer;                                            /* k_i is lower there, else higher */
    bool equal;                                            /* all rounds are equal; else the first difference: */
    size_t prompt;
    uint32_t token, draft; /* tokens before its round, and the draft of the round; from 0 and from 1 */
};

/* Compares n prompts. Fails only if memory runs out. */
bool same_drafts(struct same_drafts *, const struct draft_pair *, size_t n, uint64_t seed, struct err *);

/* Fisher's exact test, one-sided: the probability that at most k1 of n1 are accepted if k0 + k1 of n0 + n1 are, and all
 * are equally likely. */
double same_drafts_fisher(uint64_t k0, uint64_t n0, uint64_t k1, uint64_t n1);
