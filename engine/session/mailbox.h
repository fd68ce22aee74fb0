/* Controls on their way from any thread to the engine's. What is in the mailbox was parsed and checked before, and is of
 * values only: nothing in it can be refused any more. */
#ifndef ENGINE_SESSION_MAILBOX_H
#define ENGINE_SESSION_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/events/until.h"
#include "engine/session/prompt.h"
#include "engine/session/session.h"

struct mail { /* a control as values; which, its kind says */
    struct mail *next;
    enum control_kind kind;
    uint32_t asked_round; /* set by mailbox_post() */
    uint32_t n;           /* rounds to step, the round to stop after, tokens to add */
    uint32_t seq;         /* the sequence of a note; that of a setting, or 0 if all have the same */
    char *note;           /* what it says, as its event does: "POSITION TEXT"; owned */
    uint32_t policy;      /* that is asked for, or whose knob it is */
    uint32_t knob;
    bool sampling; /* … which is one of sampling, not of a policy */
    double value;  /* of the knob; tokens/s of a pace */
    enum probe_mode probe;
    enum head_mode head;
    struct until until;
    struct prompt prompt;      /* owned */
    uint64_t read_at;          /* changes of requested settings before the control was parsed, if it depends on them */
    struct settings *settings; /* (n_settings) a new run: its sequences' settings, if they differ; owned */
    uint32_t n_settings;       /* 1: all sequences have the same */
};

struct mailbox {
    pthread_mutex_t lock; /* all of it */
    pthread_cond_t wake;
    struct mail *first, *last;
    uint32_t interrupts;                      /* prompts, restarts and quits in the queue */
    struct settings requested[SETTINGS_MOST]; /* (n_settings) of the next round: of each sequence, or one for all */
    uint32_t n_settings;
    uint64_t changes;   /* of requested settings */
    bool moving;        /* it generates, or will once the queue is read */
    uint32_t steering;  /* controls in the queue that decide that */
    bool resting;       /* the engine has done all that it took, and waits for the next control */
    uint32_t round;     /* the engine's: what is asked for is asked in it */
    atomic_bool cancel; /* = interrupts > 0; the context looks at it before every layer */
};

void mailbox_open(struct mailbox *);
void mailbox_close(struct mailbox *);

/* From any thread. The mail is the mailbox's only when it was posted. */
enum posted {
    POSTED,
    POSTED_LATE, /* settings that the control depends on have changed since: parse it again */
    POSTED_NOT   /* a breakpoint in the past, or no memory; *err says which */
};
/* A change of a setting is in `requested` when this returns. */
enum posted mailbox_post(struct mailbox *, struct mail *, struct err *);
/* Returns the number of changes so far, for mail.read_at. */
uint64_t mailbox_requested(struct mailbox *, uint32_t seq, struct settings *out);
bool mailbox_moving(struct mailbox *);
bool mailbox_resting(struct mailbox *); /* … and the queue is empty */
/* Applies a change of a setting. */
void mail_apply(const struct mail *, struct settings *);
/* A change that concerns all sequences, even where they have different settings. */
bool mail_is_common(const struct mail *);

/* From the engine's thread: the oldest mail, waited for until clock_us() is until_us (0: not at all, UINT64_MAX: for
 * ever); the caller's. NULL: there is none. */
struct mail *mailbox_take(struct mailbox *, uint64_t until_us);
void mailbox_round(struct mailbox *, uint32_t number); /* this round runs now */
void mailbox_paused(struct mailbox *, bool paused);    /* it has come to a halt, or goes on */
void mailbox_rest(struct mailbox *);                   /* it is `resting`, until it takes the next mail */
void mailbox_share(struct mailbox *);                  /* all sequences have the settings of the first */

void mail_free(struct mail *); /* and what follows it */

#endif
