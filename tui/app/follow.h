/* Reads the source's events into the scope, and posts controls to it. */
#ifndef TUI_APP_FOLLOW_H
#define TUI_APP_FOLLOW_H

#include "engine/events/live.h"
#include "engine/scope/scope.h"
#include "tui/app/app_options.h"
#include "tui/app/message.h"
#include "tui/app/scorer.h"
#include "tui/app/sweeping.h"
#include "tui/panels/panel.h"

/* The history of posted changes of knobs, policies and heads, for undo and redo. It posts nothing itself. */

#define CHANGES_MOST 256 /* in memory; the oldest are dropped */

struct change {
    enum control_kind kind;               /* CONTROL_KNOB, CONTROL_POLICY or CONTROL_HEAD */
    char name[24], before[32], after[32]; /* a knob's name, "policy", "head", and its requested values */
    uint32_t seq;                         /* the sequence whose setting changed */
    uint32_t group;                       /* changes of a group are undone together; 0: none */
    uint64_t round;                       /* in which the change was posted */
};

struct changes {
    struct change change[CHANGES_MOST]; /* (n) */
    uint32_t n, at;                     /* changes below `at` are made, the others undone */
    uint32_t groups, group;             /* group: of changes that are added now; 0: none */
};

/* Adds a posted change and drops the undone ones. Changes of one knob in one round are joined; one that changes nothing
 * is ignored. */
void changes_add(struct changes *, const struct change *);
void changes_group(struct changes *, bool begin); /* changes added until its end are one group */
void changes_forget_second(struct changes *);     /* drops the changes of sequence 1, whose setting was replaced */

/* The next change to undo, or to redo; NULL: none. */
const struct change *changes_back(const struct changes *);
const struct change *changes_forth(const struct changes *);

struct followed {
    const struct source *source; /* borrowed */
    struct live *live;           /* of the source; NULL: a replay */
    const struct run_info *info;
    struct scope *scope;
    struct segments *ahead;      /* of the whole replay, including its future; NULL: unknown */
    struct event_reader *reader; /* of a live source's log; NULL: it is not started, or this is a replay */
    uint64_t lost;               /* lost events that the scope was notified of */
    uint64_t event_us;           /* time of arrival of the last event */
    uint64_t run_us;             /* time of the last event since the run's start */
    uint64_t saved_us;           /* time of the last export */
    uint32_t break_round;        /* of the last breakpoint reached since it was requested; 0: none */
    struct changes changes;      /* of a live source, for undo */
    struct settings requested;   /* of a live source's sequence in focus */
    struct sweeping sweeping;
    struct scorer scorer;
    struct until until; /* the condition that [ and ] jump to */
    uint32_t searching; /* a replay is searching for the so manieth place where it occurs; 0: for none */
    bool found;         /* and has found it in a round that still lacks ROUND events */
    uint32_t found_seq; /* the sequence that met it */
    bool baseline_asked, ended, trouble_said, cut_said;
    struct err broken;  /* why the replay cannot be read any further */
    struct err starved; /* set once memory ran out for an event */
};

bool follow_open(struct followed *, const struct source *, struct err *);
bool follow_start(struct followed *, struct err *); /* starts a live source */
void follow_close(struct followed *);

bool follow_live(const struct followed *);
bool follow_moving(const struct followed *); /* generating, or playing */
bool follow_idle(const struct followed *);   /* nothing runs and no request is pending */
bool follow_busy(const struct followed *);   /* a sweep, a race, or scoring runs */
/* Fails while texts are scored, because the session must rest. All controls, sweeps and races ask it first. */
bool follow_accepts(const struct followed *, struct err *);
/* Posts a control to a live source. One that would disturb a running sweep stops it first. */
bool follow_post(struct followed *, enum control_kind, const char *name, const char *text, uint32_t n, struct err *);
/* Posts a prompt, and the messages before it (struct control). */
bool follow_post_prompt(struct followed *, const char *text, const char *before, struct err *);
/* The sequence whose settings commands change: with two settings the one in focus, otherwise 0. */
uint32_t follow_seq(const struct followed *);
/* The same for a sequence's setting. */
bool follow_post_of(struct followed *, uint32_t seq, enum control_kind, const char *name, const char *text, uint32_t n,
                    struct err *);
/* Undoes the last change of a setting, or redoes the last undone one; *which: the change, NULL: none. Fails if it could
 * not be posted. */
bool follow_take_back(struct followed *, bool back, const struct change **which, struct err *);
/* Reads events for a bounded time. A new run moves the selection to its end. Shows messages about ends and errors.
 * Returns true if something outside of the scope changed on the screen. */
bool follow_events(struct followed *, struct selection *, struct message *);

#endif
