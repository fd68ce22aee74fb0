/* Controls on their way from any thread to the engine's. What is in the mailbox was parsed and checked before, and is of
 * values only: nothing in it can be refused any more. */
#ifndef ENGINE_SESSION_MAILBOX_H
#define ENGINE_SESSION_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/events/until.h"
#include "engine/session/prompt.h"
#include "engine/session/session.h"

struct versus { /* two settings, one beside the other */
    bool on;
    uint32_t policy; /* the second one's, and which of its knobs are other than the first's: */
    bool given[POLICY_KNOBS];
    double value[POLICY_KNOBS];
    bool head_given;
    enum head_mode head;
};

struct mail { /* a control as values; which, its kind says */
    struct mail *next;
    enum control_kind kind;
    uint32_t asked_round; /* set by mailbox_post() */
    uint32_t n;           /* rounds to step, the round to stop after, tokens to add */
    uint32_t seq;         /* whose note it is; in a versus whose setting, else 0 */
    char *note;           /* what it says, as its event does: "POSITION TEXT"; owned */
    uint32_t policy;      /* that is asked for, or whose knob it is */
    uint32_t knob;
    bool sampling; /* … which is one of sampling, not of a policy */
    double value;  /* of the knob; tokens/s of a pace */
    enum probe_mode probe;
    enum head_mode head;
    struct until until;
    struct prompt prompt;    /* owned */
    struct versus versus;    /* on: also with a prompt or a restart of a run of two settings; */
    struct settings *second; /* then the second one, as requested when this was posted; owned */
};

struct mailbox {
    pthread_mutex_t lock; /* all of it */
    pthread_cond_t wake;
    struct mail *first, *last;
    uint32_t interrupts;          /* prompts, restarts and quits in the queue */
    struct settings requested[2]; /* what the next round gets; in a versus of each sequence, */
    bool versus;                  /* else [0] of all */
    bool moving;                  /* it generates, or will once the queue is read */
    uint32_t steering;            /* controls in the queue that decide that */
    bool resting;                 /* the engine has done all that it took, and waits for the next control */
    uint32_t round;               /* the engine's: what is asked for is asked in it */
    atomic_bool cancel;           /* = interrupts > 0; the context looks at it before every layer */
};

void mailbox_open(struct mailbox *);
void mailbox_close(struct mailbox *);

/* From any thread. The mail is the mailbox's only when it was posted. */
enum posted {
    POSTED,
    POSTED_LATE, /* a knob of a policy that is not the requested one any more: read the control again */
    POSTED_NOT   /* a breakpoint in the past, or no memory; *err says which */
};
/* A change of a setting is in `requested` when this returns. */
enum posted mailbox_post(struct mailbox *, struct mail *, struct err *);
void mailbox_requested(struct mailbox *, uint32_t seq, struct settings *out);
bool mailbox_moving(struct mailbox *);
bool mailbox_resting(struct mailbox *); /* … and the queue is empty */
/* The settings of a versus' second sequence: those of the first, but for what was given. */
void settings_second(const struct settings *first, const struct versus *, struct settings *second);

/* From the engine's thread: the oldest mail, waited for until clock_us() is until_us (0: not at all, UINT64_MAX: for
 * ever); the caller's. NULL: there is none. */
struct mail *mailbox_take(struct mailbox *, uint64_t until_us);
void mailbox_round(struct mailbox *, uint32_t number); /* this round runs now */
void mailbox_paused(struct mailbox *, bool paused);    /* it has come to a halt, or goes on */
void mailbox_rest(struct mailbox *);                   /* it is `resting`, until it takes the next mail */
void mailbox_alone(struct mailbox *);                  /* a versus could not begin */

void mail_free(struct mail *); /* and what follows it */

#endif
