/* When a session works and when it stands: paused, in steps, up to a breakpoint, slowed down for people who watch. */
#ifndef ENGINE_SESSION_TIMING_H
#define ENGINE_SESSION_TIMING_H

#include <stdbool.h>
#include <stdint.h>

struct timing {
    bool paused;
    bool step_token;      /* one more token, then a pause */
    uint32_t step_rounds; /* so many more rounds, then a pause; 0: not stepping by rounds */
    uint32_t break_at;    /* a pause after this round; 0: none */
    double pace;          /* tokens/s at most; 0: as fast as it goes */
    uint64_t next_us;     /* the next round may begin, by clock_us() */
};

/* Until when it stands: 0: not at all, UINT64_MAX: until a control comes. Within a round only a pause stops it. */
uint64_t timing_stands(const struct timing *, bool in_round);
/* How a session goes on when it is told to: steps are left behind. */
void timing_step(struct timing *, bool token, uint32_t rounds);
/* A token was drafted or emitted. True: it pauses now. */
bool timing_token(struct timing *);
/* A round of so many emitted tokens is over: when the next one may begin, if it is slowed down. */
void timing_slow(struct timing *, uint32_t emitted);
/* Is this round, which is over, the one to stop after? It is asked once. */
bool timing_break(struct timing *, uint32_t round);
/* A round is over. True: so many were asked for, and it pauses now. */
bool timing_round(struct timing *);

#endif
