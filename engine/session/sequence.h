/* A sequence of a session: its tokens, its rows in all contexts, its policies and its round. When it ends, the next
 * sequence of the run may take its place. Only the engine's thread uses it. */
#pragma once

#include "engine/events/draft_vocab.h"
#include "engine/model/model.h"
#include "engine/session/round.h"
#include "engine/session/session.h"

/* The time and loads of a round, by what they were spent on. They count towards one account at a time. */
enum account {
    SPENT_DRAFT,
    SPENT_LEARNING, /* learning passes of the policy, which draft nothing (SWIFT's search) */
    SPENT_WAIT,     /* at a control point, paused or stepping */
    SPENT_VERIFY,
    SPENT_LEARN, /* the policy's observation of the verdict */
    SPENT_PROBE, /* emitting events, and the scope's own probes */
    ACCOUNTS
};

struct spent {
    uint64_t ns[ACCOUNTS];
    struct loads loads[ACCOUNTS];
    uint64_t heads_ns;  /* head calls of drafting and learning */
    bool heads_unknown; /* the backend could not measure all of these */
    enum account account;
    uint64_t since_ns;
    struct loads since; /* the context's running totals */
};

void spent_begin(struct spent *, enum account, struct loads now);
/* Switches to another account; returns the one before. */
enum account spent_switch(struct spent *, enum account, struct loads now);
void spent_heads(struct spent *, uint64_t ns); /* adds a head call */

/* Adds to `own`, the costs of one sequence alone, the difference of the round's costs before and after a step. */
void spent_own(struct spent *own, const struct spent *then, const struct spent *now);
void spent_less(struct spent *, const struct spent *own); /* subtracts */
/* The round's work: all loads except those of learning passes and of the scope's probes. */
struct loads spent_work(const struct spent *);

/* The tokens that a verdict emits: accepted drafts, then the target's own token; cut after an end of sequence. The rows
 * of all emitted tokens except the last are committed after the pending token's row: KV length = tokens - 1. */
struct emission {
    token_t token[VERIFY_NODES + 1];
    uint32_t n;
    slot_t row[VERIFY_NODES]; /* (n) */
    bool own;                 /* the last token is the target's own */
    bool ended;               /* the last token ends the sequence */
};

/* The part of a sequence's round that policies do not see. */
struct round_state {
    struct sequence *sequence;
    struct verify_row node[VERIFY_NODES];
    uint32_t pos[VERIFY_NODES];
    token_t listed[VERIFY_NODES][PREDICTION_RANKS]; /* the prediction that a node came from; TOKEN_NONE: none */
    uint32_t n;                                     /* nodes, with node 0 */
    uint32_t steps;                                 /* depth of the tree: drafts on its longest path */
    uint32_t unverified;                            /* drafts of the chain that are not verified */
    struct round_event line;                        /* filled in during the round */
    struct spent own;                               /* costs of this sequence alone, if several take part */
    struct verdict verdict;
    struct emission emission;
    bool lacks_last;    /* the last draft is a token that the target lacks: it will be rejected, and no draft follows */
    bool annealed;      /* temperature[] is of this round */
    float *temperature; /* (L + 1) of the last exit rule */
};

struct aux_context { /* of an auxiliary model; zeros: there is none, or it is the target's own first layers */
    struct context *ctx;
    uint32_t vocab, layers;
    token_t *rank;   /* (vocab) the target's order of its tokens, those that the target lacks last; owned */
    token_t unknown; /* replaces a token that the model lacks */
    /* Its row at position P has the token at P + ahead, and predicts the token at P + predicts. */
    uint32_t ahead, predicts;
    /* Of a feature drafter, else NULL: its rows have the target's features at their position. feature[]: (n_features)
     * which of the features that the target keeps; fed: (AUX_FED, all of a row's) a buffer. A block drafter's trunk has
     * the target's committed rows; blocks follow it. */
    const struct drafter_desc *drafter;
    uint32_t n_features, feature[MODEL_FEATURES];
    float *fed;
};

static inline token_t
aux_token(const struct aux_context *h, token_t token) /* as the model reads it */
{
    return (uint32_t)token < h->vocab ? token : h->unknown;
}

#define AUX_FED 64 /* rows that are fed at a time */
#define AUX_FEW 8  /* so many tokens of a sequence are read together with those of others, or with drafts */

/* A sequence's rows in an auxiliary model's context. They follow the target's rows: the trunk contains the first tokens
 * of the sequence, which may include the pending one. */
struct aux_sequence {
    const struct aux_context *of; /* the session's */
    seq_t seq;
    slot_t row[VERIFY_NODES]; /* of the round's nodes; SLOT_NONE: not requested */
    slot_t
        fresh[AUX_FEW]; /* (n_fresh) rows of the last tokens that run together with drafts; they are committed with */
    uint32_t n_fresh;   /* the accepted drafts */
    struct round view;  /* returned by rounds_model() */
    uint32_t inspected; /* rows of the trunk that the scope has probed */
};

#define FINALS (4 * VERIFY_NODES)

struct sequence {
    struct session *session;
    uint32_t number;        /* from 0: `seq` in events */
    bool over;              /* it has ended, and no other took its place */
    uint32_t past;          /* these tokens were there when it was extended; none of them ends it */
    token_t *tokens;        /* (ctx + 2) of the prompt, then the emitted ones, of which the last is pending */
    uint32_t n_tokens;      /* at most ctx + 1 */
    uint32_t prompt_tokens; /* of n_tokens, those of the prompt */
    seq_t seq;              /* in the target's context */
    struct aux_sequence aux[AUX_MODELS];
    struct {
        uint32_t pos; /* 0: none; the first token has no prediction */
        token_t token;
    } final[FINALS];            /* the last layer's prediction of position p, as probed, at p % FINALS */
    uint32_t inspected;         /* PROBE_SHARE: rows of the trunk that were probed, or will not be */
    struct settings current;    /* of the present round; the same in all sequences, unless they take turns */
    struct policy *policies;    /* (info.n_policies) */
    uint32_t met;               /* the policy that has seen the rows */
    enum head_choice head;      /* the head at its layers, by settings and engine */
    struct draft_recent recent; /* of its text */
    uint32_t set;               /* the set of tokens of heads that draft, in all contexts (kernels/backend.h); 0: all */
    bool inspect_again;         /* the head has changed since the last round */
    struct round round;
    struct round_state state;
};

static inline struct policy *
seq_policy(const struct sequence *q) /* the policy in force */
{
    return &q->policies[q->current.policy];
}

static inline uint32_t
seq_draft_tokens(const struct sequence *q) /* that heads for drafts compute; 0: all */
{
    return q->set > 0 ? q->recent.base + draft_recent_count(&q->recent) : 0;
}

static inline uint32_t
seq_emitted(const struct sequence *q)
{
    return q->n_tokens - q->prompt_tokens;
}

static inline bool
seq_shows_verified(const struct sequence *q) /* Are the last layer's predictions shown that verification computed? */
{
    return q->current.probe == PROBE_POLICY || q->current.probe == PROBE_SHARE;
}
