/* A sequence of a session: a place where a sequence runs, and after its end the next one. A session without a batch has one.
 * Everything here is the engine thread's own. */
#ifndef ENGINE_SESSION_SEQUENCE_H
#define ENGINE_SESSION_SEQUENCE_H

#include "engine/session/round.h"
#include "engine/session/session.h"

/* What a round spent, and on what. Time and loads run into one account at a time, forwards: nothing is taken back. */
enum account {
    SPENT_DRAFT,
    SPENT_ASIDE, /* a policy's passes that draft nothing (SWIFT's search) */
    SPENT_WAIT,  /* it stood at a gate, paused or stepping */
    SPENT_VERIFY,
    SPENT_LEARN, /* the policy looked at the verdict */
    SPENT_PROBE, /* emitting events, and the scope's own probes */
    ACCOUNTS
};

struct spent {
    uint64_t ns[ACCOUNTS];
    struct loads loads[ACCOUNTS];
    uint64_t heads_ns;  /* of draft and learning, in head calls */
    bool heads_unknown; /* … which the backend could not always tell */
    enum account account;
    uint64_t since_ns;
    struct loads since; /* the context's running totals */
};

void spent_begin(struct spent *, enum account, struct loads now);
/* From now on it is spent on something else. Returns on what before, for those who turn back. */
enum account spent_switch(struct spent *, enum account, struct loads now);
void spent_heads(struct spent *, uint64_t ns); /* a head call of the account that runs */

/* Of several sequences: what one of them spends alone is its own, the rest is everybody's. With own zeroed at the round's
 * beginning, and `then` the round's as it was, up to now, when that began. */
void spent_own(struct spent *own, const struct spent *then, const struct spent *now);
void spent_less(struct spent *, const struct spent *own); /* what is left without it */
/* The round's work: all loads but those of passes aside and of the scope's probes. */
struct loads spent_work(const struct spent *);

/* What a verdict emits: accepted drafts, then the target's own token; cut after an end of sequence. The rows of all
 * emitted tokens but the last are committed, behind the pending token's: KV length = tokens - 1. */
struct emission {
    token_t token[VERIFY_NODES + 1];
    uint32_t n;
    slot_t row[VERIFY_NODES]; /* (n) */
    bool own;                 /* the last one is the target's own */
    bool ended;               /* … or ends the sequence */
};

/* Everything of a sequence's round that policies don't see. */
struct round_state {
    struct sequence *sequence;
    struct verify_row node[VERIFY_NODES];
    uint32_t pos[VERIFY_NODES];
    uint32_t n;              /* nodes, node 0 counted */
    uint32_t steps;          /* depth of the tree: drafts on its longest path */
    uint32_t cut;            /* of them, those that are not verified */
    struct round_event line; /* the round's, filled in as it goes */
    struct spent own;        /* where several take part: what the policy spent on this one alone */
    struct verdict verdict;
    struct emission emission;
    bool lacks_last;    /* the last draft is a token that the target lacks: it is rejected, nothing follows it */
    bool annealed;      /* temperature[] below is this round's */
    float *temperature; /* (L + 1) of the last exit rule */
};

struct helper_context { /* of a model that helps the target; all 0: the role is nobody's, or the target's own layers' */
    struct context *ctx;
    uint32_t vocab, layers;
    token_t unknown; /* what it reads for a token that it lacks */
};

#define HELPER_FEW 8 /* tokens of a sequence that are read together with those of others, or with drafts */

/* A sequence's rows in a helper's context, which follow the target's: its trunk is the first tokens of the sequence, the
 * pending one's among them. */
struct helper {
    const struct helper_context *of; /* the session's */
    seq_t seq;
    slot_t row[VERIFY_NODES]; /* of the round's nodes; SLOT_NONE: not asked for */
    slot_t fresh[HELPER_FEW]; /* (n_fresh) of the last tokens, read in one sweep with drafts: they come to the */
    uint32_t n_fresh;         /* trunk together with those that are accepted */
    struct round view;        /* what round_model() hands out */
    uint32_t looked_at;       /* rows of its trunk that the scope's probes have passed */
};

#define FINALS (4 * VERIFY_NODES)

struct sequence {
    struct session *session;
    uint32_t number;        /* of its sequence, from 0: `seq` in events */
    bool over;              /* the sequence has ended, and no other took its place */
    uint32_t past;          /* so many tokens end no sequence: it was asked to go on behind them */
    token_t *tokens;        /* (ctx + 2) the prompt's and the emitted ones; the last is pending, once one is emitted */
    uint32_t n_tokens;      /* … at most ctx + 1 */
    uint32_t prompt_tokens; /* the first of them */
    seq_t seq;              /* in the target's context */
    struct helper helpers[HELPERS];
    struct {
        uint32_t pos; /* 0: nothing yet; no guess is about the first token */
        token_t token;
    } final[FINALS];         /* what the target's last layer said of position p, as probed: p % FINALS */
    struct settings current; /* of the round that runs; the same in all sequences, except in a versus */
    struct policy *policies; /* (info.n_policies) */
    uint32_t met;            /* the policy that has seen the rows */
    enum head_choice head;   /* that looks at its layers: what settings and engine come to */
    bool look_again;         /* another head looks at them since the last round */
    struct round round;
    struct round_state state;
};

static inline struct policy *
seq_policy(const struct sequence *l) /* the one that drafts */
{
    return &l->policies[l->current.policy];
}

static inline uint32_t
seq_emitted(const struct sequence *l)
{
    return l->n_tokens - l->prompt_tokens;
}

#endif
