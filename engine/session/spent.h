/* What a round spent, and on what. Time and loads run into one account at a time, forwards: nothing is taken back. */
#ifndef ENGINE_SESSION_SPENT_H
#define ENGINE_SESSION_SPENT_H

#include "engine/context/context.h"

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
enum account spent_turn(struct spent *, enum account, struct loads now);
void spent_heads(struct spent *, uint64_t ns); /* a head call of the account that runs */

/* Of several sequences: what one of them spends alone is its own, the rest is everybody's. With own zeroed at the round's
 * beginning, and `then` the round's as it was, up to now, when that began. */
void spent_own(struct spent *own, const struct spent *then, const struct spent *now);
void spent_less(struct spent *, const struct spent *own); /* what is left without it */
/* The round's work: all loads but those of passes aside and of the scope's probes. */
struct loads spent_work(const struct spent *);

#endif
