/* Checks every event of a session against the guarantees in engine/events/event.h. */
#pragma once

#include "tests/rigs/session_rig.h"

struct sequence_promises {
    uint32_t round, next_pos, drafts, verdicts;
    uint32_t pos[VERIFY_NODES];   /* positions of the round's drafts */
    int32_t judged_last;          /* the draft of the latest verdict */
    uint32_t accepted, committed; /* drafts in this round; tokens in this round */
    bool judged, own, whole;      /* the round's verification began; the target's own token came, its ROUND came */
    bool live, joining;           /* in a batch: it joined and has not left; it had no round since then */
    token_t draft[VERIFY_NODES];
    int32_t parent[VERIFY_NODES], end;     /* end: the last accepted draft of the round */
    token_t correction;                    /* the round's correction; TOKEN_NONE: there is none */
    struct layer_event heard;              /* the policy's latest prediction */
    struct layer_event list[VERIFY_NODES]; /* the prediction that each draft came from; pos 0: none */
};

struct promises {
    struct session_rig_result *out;
    const struct run_info *info;
    uint8_t *seen; /* flags by token id */
    uint32_t vocab, layers;
    uint64_t number, t_us;
    uint32_t run, round;
    bool batch;
    bool versus; /* this run is a versus: sequences 0 and 1 have rounds one at a time */
    bool paused;
    struct sequence_promises *all, *at; /* (out->n_sequences); the entry of the event's sequence */
    double layers_loaded, heads_loaded; /* in this round, by all sequences */
    uint32_t live, together, lines;     /* sequences that run; those in this round, and their lines so far */
};

/* Checks the next event and collects the tokens that it commits. Writes the first broken guarantee to out->wrong. */
void promises_check(struct promises *, const struct event *);
