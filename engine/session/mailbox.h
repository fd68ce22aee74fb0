/* Controls on their way from any thread to the engine's. A control in the mailbox was parsed and checked, and consists
 * of values: it cannot be refused any more. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/events/until.h"
#include "engine/session/prompt.h"
#include "engine/session/session.h"

struct mail { /* a control as values; its kind decides which members count */
    struct mail *next;
    enum control_kind kind;
    uint32_t asked_round; /* set by mailbox_post() */
    uint32_t n;           /* rounds to step, the round to stop after, tokens to add */
    uint32_t seq;         /* the sequence of a note; that of a setting, or 0 if all have the same */
    char *note;           /* "POSITION TEXT"; owned */
    uint32_t policy;      /* the requested one, or the one with the knob */
    uint32_t knob;
    bool sampling; /* the knob is one of sampling */
    double value;  /* of the knob; the pace in tokens/s */
    enum probe_mode probe;
    uint32_t probe_percent;
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
    uint32_t steering;  /* controls in the queue that change `moving` */
    bool resting;       /* the engine waits for the next control */
    uint32_t round;     /* the present round, in which controls are requested */
    atomic_bool cancel; /* interrupts > 0; contexts check it before every layer */
};

void mailbox_open(struct mailbox *);
void mailbox_close(struct mailbox *);

/* From any thread. The mailbox owns the mail only if it was posted. */
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

/* From the engine's thread: returns the oldest mail, which the caller frees; NULL: there is none. Waits for one until
 * clock_us() is until_us (0: does not wait, UINT64_MAX: without a limit). */
struct mail *mailbox_take(struct mailbox *, uint64_t until_us);
void mailbox_round(struct mailbox *, uint32_t number); /* this round begins */
void mailbox_paused(struct mailbox *, bool paused);
void mailbox_rest(struct mailbox *);  /* it is `resting` until it takes the next mail */
void mailbox_share(struct mailbox *); /* all sequences have the settings of the first */

void mail_free(struct mail *); /* with all mail after it */
