/* What a session looks out for while it runs on: told of its events as they happen, it says at a round's end whether what was
 * asked for has come. The engine thread's own. */
#ifndef ENGINE_SESSION_WATCH_H
#define ENGINE_SESSION_WATCH_H

#include "engine/events/event.h"
#include "engine/events/until.h"

#define WATCH_GUESSES 2048 /* of a round that are remembered; further ones are not looked at */

struct lane;

struct watch {
    struct until until;  /* UNTIL_NOTHING: for nothing */
    bool met;            /* in a round that is over, */
    uint32_t seq;        /* by that sequence */
    bool unsure;         /* a draft of this round was, */
    uint32_t unsure_seq; /* of that sequence */
    uint32_t n;          /* of the round's guesses: of the target's layers, the last one's among them */
    struct watch_guess {
        uint32_t seq, pos;
        int32_t layer;
        token_t token;
        float confidence;
    } guess[WATCH_GUESSES];
};

void watch_for(struct watch *, const struct until *); /* from now on */
/* An event of that lane's sequence, which has been told. */
void watch_event(struct watch *, const struct lane *, const struct event *);

#endif
