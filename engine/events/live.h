/* A live source of events: an engine's session (engine/session/session.h) or a server (engine/remote/remote.h). The
 * scope, `run` and `tune` use both through this interface. A source appends events to its log and takes controls. What
 * it cannot know is absent from its events, and a control that it cannot carry out is refused with a reason. */
#ifndef ENGINE_EVENTS_LIVE_H
#define ENGINE_EVENTS_LIVE_H

#include "engine/events/control.h"
#include "engine/events/event.h"
#include "engine/events/run_info.h"
#include "engine/events/settings.h"

struct live; /* begins a source's struct: its only member is the table */

struct live_ops {
    const struct run_info *(*info)(const struct live *);
    struct event_log *(*log)(struct live *);
    bool (*start)(struct live *, struct err *); /* starts its thread; open readers and the trace before */
    /* Any thread may call the following functions. post() fails if the control is refused. */
    bool (*post)(struct live *, const struct control *, struct err *);
    /* The settings of the sequence's next round; post() has changed them when it returns. */
    void (*requested)(struct live *, uint32_t seq, struct settings *out);
    bool (*chats)(const struct live *); /* Do prompts become turns of a conversation? */
    /* The head that results from these settings; "" if there is one only. */
    const char *(*head)(const struct live *, const struct settings *);
    uint32_t (*threads)(const struct live *); /* that compute now; 0: unknown */
    bool (*moving)(struct live *);            /* it generates, or will after the posted controls */
    /* It has carried out all posted controls, emitted their events, and waits for the next one. */
    bool (*resting)(struct live *);
    bool (*failed)(struct live *, struct err *);
    void (*close)(struct live *); /* cancels, joins and frees, also the log, whose readers must be closed */
};

struct live {
    const struct live_ops *ops;
};

static inline void
live_close(struct live *live) /* NULL does nothing */
{
    if (live != NULL)
        live->ops->close(live);
}

#endif
