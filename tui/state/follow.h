/* Following the source: its events go into the scope, and what is asked of it goes out. */
#ifndef TUI_STATE_FOLLOW_H
#define TUI_STATE_FOLLOW_H

#include "tui/panels/panel.h"
#include "tui/scope/scope.h"
#include "tui/state/source.h"
#include "tui/state/sweeping.h"
#include "tui/state/turns.h"
#include "tui/widgets/message.h"

struct followed {
    const struct source *source; /* `now` */
    struct source now, given;  /* what was handed in, and with another replay in its place where one was opened here: */
    struct replay *beside;     /* owned; NULL: none was */
    struct saved_choice first; /* of which this is the first one */
    const struct run_info *info;
    struct scope *scope;
    struct segments *ahead;      /* of all of a replay, the future, too; NULL: not known */
    struct event_reader *reader; /* of a live session's log; NULL: not started, or a replay */
    uint64_t lost;               /* events that the scope was told of as lost */
    uint64_t event_us;           /* when the last event came */
    uint64_t run_us;             /* since the run's start, of the last event */
    uint64_t saved_us;           /* when the run was exported last */
    uint32_t break_round;        /* of the last breakpoint reached since it was asked for; 0: none */
    struct turns turns;          /* of a live session */
    struct settings requested;   /* likewise, of the sequence in focus */
    struct sweeping sweeping;
    struct until until; /* what is jumped to with ] and [; a replay on its way looks out for it */
    bool searching;     /* … it is on its way, */
    bool found;         /* … and has seen it in a line of a round whose other lines are still to come: */
    uint32_t found_seq; /* that sequence's */
    bool baseline_asked, ended, trouble_said, cut_said;
    struct err broken;  /* the replay cannot be read any further */
    struct err starved; /* once memory ran out for what came */
};

/* What the source points to is borrowed. Stays where it is. */
bool follow_open(struct followed *, const struct source *, struct err *);
bool follow_start(struct followed *, struct err *); /* of a live session, or nothing */
void follow_close(struct followed *);

bool follow_live(const struct followed *);
bool follow_moving(const struct followed *); /* generating, or playing */
bool follow_idle(const struct followed *);   /* nothing is going on and nothing asked for is outstanding */
/* For a live session only. What a sweep under way would be disturbed by stops it first. */
bool follow_post(struct followed *, enum control_kind, const char *name, const char *text, uint32_t n, struct err *);
/* Whose settings are meant: where two have their own, those of the one in focus; 0. */
uint32_t follow_seq(const struct followed *);
/* The same of that sequence's setting. */
bool follow_post_of(struct followed *, uint32_t seq, enum control_kind, const char *name, const char *text, uint32_t n,
                    struct err *);
/* Takes back the change of a setting that was posted last, or makes the one again that was taken back last; *which it was, NULL: there is
 * none. False: it could not be posted. */
bool follow_take_back(struct followed *, bool back, const struct turn **which, struct err *);
/* Takes events in, for a bounded time. A new run takes the selection to its end; what a person should know is said. True:
 * there is something new to draw that the scope knows nothing of. */
bool follow_events(struct followed *, struct selection *, struct message *);

/* What will be turned in the replay that is followed, before it plays. False: it can't be read, *err says why. */
bool follow_foresee(struct followed *, struct err *);
/* In a replay, follow_beside.c. The saved run of that folder beside the one that is replayed, from about where it stands; or the
 * first one alone again. The scope is another one then. False: *err says why not, and all is as it was. */
bool follow_beside(struct followed *, const char *folder, struct err *);
bool follow_alone(struct followed *, struct err *);

#endif
