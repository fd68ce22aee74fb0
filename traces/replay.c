#include "traces/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum target { TO_NOTHING, TO_ROUND, TO_TOKEN, TO_TIME, TO_END };

struct replay {
    struct trace_reader *reader; /* set if it replays a trace */
    struct trace_pair *pair;     /* set if it replays two runs */
    struct event event;          /* the next event, valid if `have`; after its return it is valid until the next call */
    bool have, handed_out, at_end, between_rounds;
    bool in_pause; /* the last event is of a pause between two rounds */

    bool playing;
    double speed;
    double head_us;  /* the play head, on the time line */
    uint64_t run_us; /* beginning of the last event's run on it */
    uint64_t now_us; /* time of its last movement */
    bool clocked;    /* now_us is valid */

    enum target target;
    uint64_t target_round, target_us;
    uint64_t target_tokens; /* from here */
    bool want_rewind;       /* before anything else */
    bool rewound;           /* for replay_rewound() */
    uint64_t round;         /* complete rounds returned */
    struct err failure;

    bool follows, edge; /* follows: the trace may grow; edge: new events are due at once */
    uint64_t looked_us; /* time of the last check of its files */
};

#define LOOK_US 100000

/* ---- source ---- */

static bool
next_event(struct replay *r)
{
    return r->pair != NULL ? trace_pair_next(r->pair, &r->event, &r->failure)
                           : trace_reader_next(r->reader, &r->event, &r->failure);
}

static bool
begin_again(struct replay *r, bool brief)
{
    return r->pair != NULL ? trace_pair_rewind(r->pair, brief, &r->failure)
                           : trace_reader_rewind(r->reader, brief, &r->failure);
}

static uint64_t
rounds_of(const struct replay *r)
{
    return r->pair != NULL ? trace_pair_rounds(r->pair) : trace_reader_state(r->reader).rounds;
}

static uint64_t
duration_of(const struct replay *r)
{
    return r->pair != NULL ? trace_pair_duration_us(r->pair) : trace_reader_state(r->reader).duration_us;
}

static uint64_t
time_of(const struct replay *r, const struct event *e)
{
    return r->pair != NULL ? e->t_us : trace_reader_time(r->reader, e);
}

static bool
ends_round(const struct replay *r, const struct event *e)
{
    return e->type == EVENT_ROUND && (r->pair != NULL || trace_reader_state(r->reader).round_ended);
}

/* ---- opening and closing ---- */

static bool
open_either(struct replay **out, const char *folder, const struct saved_choice *two, bool follow, struct err *err)
{
    struct replay *r = *out = calloc(1, sizeof *r);
    if (r == NULL)
        return err_set(err, ERR_WORK, "out of memory for replaying %s", folder);
    r->speed = 1;
    r->follows = r->edge = follow;
    if (two != NULL ? trace_pair_open(&r->pair, two, err) : trace_reader_open(&r->reader, folder, follow, err))
        return true;
    free(r);
    *out = NULL;
    return false;
}

bool
replay_open_pair(struct replay **out, const struct saved_choice two[2], struct err *err)
{
    return open_either(out, two[0].folder, two, false, err);
}

bool
replay_open(struct replay **out, const char *folder, bool follow, struct err *err)
{
    return open_either(out, folder, NULL, follow, err);
}

void
replay_close(struct replay *r)
{
    if (r == NULL)
        return;
    trace_reader_close(r->reader);
    trace_pair_close(r->pair);
    free(r);
}

const struct run_info *
replay_info(const struct replay *r)
{
    return r->pair != NULL ? trace_pair_info(r->pair) : trace_reader_info(r->reader);
}

struct replay_status
replay_status(const struct replay *r)
{
    return (struct replay_status){
        .playing = r->playing,
        .seeking = r->target != TO_NOTHING,
        .at_end = r->at_end,
        .follows = r->follows && !trace_reader_state(r->reader).closed,
        .between_rounds = r->between_rounds,
        .speed = r->speed,
        .round = r->round,
        .rounds = rounds_of(r),
        .t_us = (uint64_t)r->head_us,
        .duration_us = duration_of(r),
        .run_us = r->run_us,
    };
}

bool
replay_rewound(struct replay *r)
{
    bool rewound = r->rewound;
    r->rewound = false;
    return rewound;
}

static bool
rewind_now(struct replay *r)
{
    r->want_rewind = false;
    r->have = r->handed_out = r->at_end = r->between_rounds = r->in_pause = false;
    r->failure.kind = ERR_NONE;
    return begin_again(r, false);
}

bool
replay_foresee(struct replay *r, void (*take)(void *user, const struct event *), void *user, struct err *err)
{
    if (r->follows) /* the future is unknown */
        return true;
    bool ok = begin_again(r, true);
    while (ok && next_event(r))
        take(user, &r->event);
    ok = (ok && r->failure.kind == ERR_NONE) || err_copy(err, &r->failure);
    return rewind_now(r) && ok; /* replay_next() reports the error again */
}

/* ---- playing ---- */

static void
move_head(struct replay *r, uint64_t now_us)
{
    if (r->clocked && r->playing && r->target == TO_NOTHING && now_us > r->now_us)
        r->head_us += (double)(now_us - r->now_us) * r->speed;
    r->now_us = now_us;
    r->clocked = true;
    double end = (double)duration_of(r);
    if (r->head_us > end || (r->edge && r->playing))
        r->head_us = end;
}

/* True for an event after the pause that followed a round: while an engine waits it probes positions that it left out.
 * These predictions belong to the picture at the round's end, with the tokens that they name. */
static bool
is_of_pause(const struct replay *r)
{
    const struct event *e = &r->event;
    if (!r->between_rounds)
        return false;
    if (e->type == EVENT_CONTROL && e->control.kind == RECORDED_STATE)
        return true;
    return r->in_pause && (e->type == EVENT_VOCAB || (e->type == EVENT_LAYER && e->layer.probed_by == PROBED_SCOPE));
}

/* True if the next event is due. Ends a search whose target was passed. */
static bool
is_due(struct replay *r)
{
    uint64_t t_us = time_of(r, &r->event);
    if (is_of_pause(r))
        return true;
    switch (r->target) {
    case TO_ROUND:
        if (r->round < r->target_round)
            return true;
        break;
    case TO_TIME:
        if (t_us <= r->target_us)
            return true;
        r->head_us = (double)r->target_us;
        break;
    case TO_TOKEN:
    case TO_END: return true;
    case TO_NOTHING: break;
    }
    r->target = TO_NOTHING;
    return r->playing && (r->edge || (double)t_us <= r->head_us);
}

static void
handed_out(struct replay *r)
{
    const uint64_t on_line = time_of(r, &r->event);
    const double t_us = (double)on_line;
    r->run_us = on_line > r->event.t_us ? on_line - r->event.t_us : 0;
    if (r->target != TO_NOTHING && t_us > r->head_us)
        r->head_us = t_us;
    const bool ends = ends_round(r, &r->event);
    r->in_pause = is_of_pause(r);
    r->between_rounds = ends || r->in_pause;
    r->round += ends;
    if ((r->target == TO_TOKEN && r->event.type == EVENT_TOKEN && --r->target_tokens == 0) ||
        (r->target == TO_ROUND && r->round >= r->target_round))
        r->target = TO_NOTHING;
    r->handed_out = true;
}

static bool
fetch(struct replay *r, struct err *err)
{
    if (r->handed_out || !r->have) {
        r->handed_out = false;
        r->have = next_event(r);
        if (!r->have) {
            const bool more_may_come =
                r->follows && r->failure.kind == ERR_NONE && !trace_reader_state(r->reader).closed;
            r->at_end = !more_may_come;
            r->edge = more_may_come;
            r->playing = r->playing && more_may_come;
            r->target = TO_NOTHING;
            if (r->failure.kind == ERR_NONE)
                r->head_us = (double)duration_of(r);
        }
    }
    return r->failure.kind == ERR_NONE || err_copy(err, &r->failure);
}

static void
look_for_more(struct replay *r, uint64_t now_us)
{
    if (!r->follows || r->at_end || now_us - r->looked_us < LOOK_US)
        return;
    r->looked_us = now_us;
    trace_reader_look(r->reader, now_us, NULL); /* the next event reports an error */
}

bool
replay_next(struct replay *r, uint64_t now_us, const struct event **event, struct err *err)
{
    *event = NULL;
    look_for_more(r, now_us);
    move_head(r, now_us);
    if (r->want_rewind && !rewind_now(r)) {
        r->at_end = true;
        r->playing = false;
    }
    if (r->at_end)
        return r->failure.kind == ERR_NONE || err_copy(err, &r->failure);
    if (!fetch(r, err))
        return false;
    if (r->have && is_due(r)) {
        handed_out(r);
        *event = &r->event;
    }
    return true;
}

/* ---- steering ---- */

static void
go_to_start(struct replay *r)
{
    r->want_rewind = r->rewound = true;
    r->at_end = r->edge = false;
    r->head_us = 0;
    r->round = 0;
    r->target = TO_NOTHING;
}

void
replay_play(struct replay *r, bool play)
{
    if (play && r->at_end)
        go_to_start(r);
    r->playing = play;
}

void
replay_set_speed(struct replay *r, double speed)
{
    if (isnan(speed))
        return;
    r->speed = speed < REPLAY_SLOWEST ? REPLAY_SLOWEST : speed > REPLAY_FASTEST ? REPLAY_FASTEST : speed;
}

void
replay_step_rounds(struct replay *r, uint32_t n)
{
    r->playing = false;
    if (n == 0 || r->at_end)
        return;
    uint64_t target = (r->target == TO_ROUND && r->target_round > r->round ? r->target_round : r->round) + n;
    r->target = target <= rounds_of(r) ? TO_ROUND : TO_END;
    r->target_round = target;
}

void
replay_step_token(struct replay *r)
{
    r->playing = false;
    if (r->at_end)
        return;
    r->target_tokens = r->target == TO_TOKEN ? r->target_tokens + 1 : 1;
    r->target = TO_TOKEN;
}

void
replay_stop(struct replay *r)
{
    r->playing = false;
    r->target = TO_NOTHING;
}

void
replay_goto(struct replay *r, uint64_t round)
{
    r->playing = false;
    /* a jump back, also to the end of the current round if later events were returned */
    if (round <= r->round)
        go_to_start(r);
    if (round == 0 || r->at_end)
        return;
    r->target = round <= rounds_of(r) ? TO_ROUND : TO_END;
    r->target_round = round;
}

void
replay_goto_fraction(struct replay *r, double fraction)
{
    if (isnan(fraction))
        return;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    double target = fraction * (double)duration_of(r);
    if (target < r->head_us)
        go_to_start(r);
    if (fraction <= 0 || r->at_end)
        return;
    r->target = fraction < 1 ? TO_TIME : TO_END;
    r->target_us = (uint64_t)target;
}
