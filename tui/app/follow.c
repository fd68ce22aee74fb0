#include "tui/app/follow.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- the history of changes ---- */

/* Joins a change with the last one if both change one knob in one round. */
static bool
joins(struct changes *t, const struct change *new)
{
    struct change *last = t->at > 0 && t->at == t->n && t->group == 0 ? &t->change[t->at - 1] : NULL;
    if (last == NULL || last->round != new->round || last->group > 0 || last->seq != new->seq ||
        strcmp(last->name, new->name) != 0)
        return false;
    memcpy(last->after, new->after, sizeof last->after);
    if (strcmp(last->before, last->after) == 0)
        t->n = --t->at;
    return true;
}

void
changes_add(struct changes *t, const struct change *new)
{
    if (strcmp(new->before, new->after) == 0 || joins(t, new))
        return;
    if (t->at == CHANGES_MOST) {
        memmove(&t->change[0], &t->change[1], (CHANGES_MOST - 1) * sizeof t->change[0]);
        t->at--;
    }
    t->change[t->at] = *new;
    t->change[t->at++].group = t->group;
    t->n = t->at;
}

void
changes_group(struct changes *t, bool begin)
{
    t->group = begin ? ++t->groups : 0;
}

void
changes_forget_second(struct changes *t)
{
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->change[i].seq != 1) {
            t->change[kept++] = t->change[i];
            at += i < t->at;
        }
    t->n = kept;
    t->at = at;
}

const struct change *
changes_back(const struct changes *t)
{
    return t->at > 0 ? &t->change[t->at - 1] : NULL;
}

const struct change *
changes_forth(const struct changes *t)
{
    return t->at < t->n ? &t->change[t->at] : NULL;
}

/* ---- following a run ---- */

#define SLICE_US 12000 /* longest time of reading events before keys are handled */

static void
foresee(void *user, const struct event *e)
{
    segments_event(user, e);
}

/* Reads the changes of settings in the whole replay before it plays. */
static bool
read_ahead(struct followed *f, struct err *err)
{
    struct err broken = {0};
    if (!segments_open(&f->ahead, f->info, err))
        return false;
    replay_foresee(f->source->replay, foresee, f->ahead,
                   &broken); /* a broken trace reports its error when it is played */
    return true;
}

bool
follow_open(struct followed *f, const struct source *source, struct err *err)
{
    *f = (struct followed){.source = source, .live = source->live};
    f->info = follow_live(f) ? f->live->ops->info(f->live) : replay_info(source->replay);
    if (follow_live(f))
        f->live->ops->requested(f->live, 0, &f->requested);
    return scope_open(&f->scope, f->info, err) && (follow_live(f) || read_ahead(f, err)) &&
           sweeping_open(&f->sweeping, f->live, f->scope, f->info, err);
}

bool
follow_start(struct followed *f, struct err *err)
{
    if (!follow_live(f))
        return true;
    f->reader = event_reader_open(f->live->ops->log(f->live));
    if (f->reader == NULL)
        return err_set(err, ERR_WORK, "out of memory for reading the event log");
    /* Signals are for this thread: the source's inherits a mask without them. */
    sigset_t block, before;
    sigfillset(&block);
    const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&block, faults[i]);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    const bool started = f->live->ops->start(f->live, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void
follow_close(struct followed *f)
{
    scorer_close(&f->scorer);
    if (f->reader != NULL)
        event_reader_close(f->reader);
    scope_close(f->scope);
    segments_close(f->ahead);
    sweeping_close(&f->sweeping);
}

bool
follow_live(const struct followed *f)
{
    return f->live != NULL;
}

bool
follow_moving(const struct followed *f)
{
    if (follow_live(f))
        return (scope_now(f->scope)->running && !f->ended) || f->baseline_asked ||
               scope_now(f->scope)->progress != NULL || follow_busy(f);
    const struct replay_status status = replay_status(f->source->replay);
    return (status.playing && !status.at_end) || status.seeking;
}

bool
follow_busy(const struct followed *f)
{
    return sweeping_now(&f->sweeping) || f->scorer.runs;
}

bool
follow_accepts(const struct followed *f, struct err *err)
{
    return !f->scorer.runs || err_set(err, ERR_USAGE, "the run is paused while texts are scored; Esc stops scoring");
}

bool
follow_idle(const struct followed *f)
{
    if (follow_moving(f))
        return false;
    /* In this order: all events that a resting source sent are in the log. */
    return !follow_live(f) || (f->live->ops->resting(f->live) && !event_reader_wait(f->reader, 0));
}

uint32_t
follow_seq(const struct followed *f)
{
    return scope_now(f->scope)->versus != NULL ? scope_focus(f->scope) : 0;
}

bool
follow_post(struct followed *f, enum control_kind kind, const char *name, const char *text, uint32_t n, struct err *err)
{
    return follow_post_of(f, follow_seq(f), kind, name, text, n, err);
}

static bool
post_control(struct followed *f, const struct control *c, struct err *err)
{
    const bool posted = follow_accepts(f, err) && f->live->ops->post(f->live, c, err);
    if (posted && (c->kind == CONTROL_RESTART || c->kind == CONTROL_PROMPT || c->kind == CONTROL_VERSUS))
        f->baseline_asked = false; /* a new run drops the request */
    f->live->ops->requested(f->live, follow_seq(f), &f->requested);
    return posted;
}

static bool
post(struct followed *f, uint32_t seq, enum control_kind kind, const char *name, const char *text, uint32_t n,
     struct err *err)
{
    struct control control = {.kind = kind, .text = text, .n = n, .seq = seq};
    if (name != NULL)
        snprintf(control.name, sizeof control.name, "%.15s", name);
    return post_control(f, &control, err);
}

bool
follow_post_prompt(struct followed *f, const char *text, const char *before, struct err *err)
{
    const struct control control = {.kind = CONTROL_PROMPT, .text = text, .before = before};
    return sweeping_stop(&f->sweeping, err) && post_control(f, &control, err);
}

/* Returns how a control that can be undone is recorded; RECORDED_KINDS: it cannot be undone. */
static enum recorded
setting_of(enum control_kind kind)
{
    switch (kind) {
    case CONTROL_KNOB: return RECORDED_KNOB;
    case CONTROL_POLICY: return RECORDED_POLICY;
    case CONTROL_HEAD: return RECORDED_HEAD;
    default: return RECORDED_KINDS;
    }
}

/* Adds the difference between the settings before and after a control was posted to the history. */
static void
add_change(struct followed *f, uint32_t seq, enum control_kind kind, const char *knob, const struct settings *before)
{
    struct settings after;
    f->live->ops->requested(f->live, seq, &after);
    struct change t = {.kind = kind,
                       .seq = kind == CONTROL_KNOB && sampling_knob_index(knob) >= 0 ? 0 : seq,
                       .round = (uint64_t)scope_now(f->scope)->run << 32 | scope_now(f->scope)->round};
    const char *name = settings_print(before, f->info, setting_of(kind), knob, t.before, sizeof t.before);
    if (name == NULL)
        return;
    settings_print(&after, f->info, setting_of(kind), knob, t.after, sizeof t.after);
    snprintf(t.name, sizeof t.name, "%s", name);
    changes_add(&f->changes, &t);
}

bool
follow_post_of(struct followed *f, uint32_t seq, enum control_kind kind, const char *name, const char *text, uint32_t n,
               struct err *err)
{
    struct settings before;
    if (sweeping_disturbed_by(kind) && !sweeping_stop(&f->sweeping, err))
        return false;
    f->live->ops->requested(f->live, seq, &before);
    if (!post(f, seq, kind, name, text, n, err))
        return false;
    if (setting_of(kind) != RECORDED_KINDS)
        add_change(f, seq, kind, name, &before);
    if (kind == CONTROL_VERSUS)
        changes_forget_second(&f->changes);
    return true;
}

bool
follow_take_back(struct followed *f, bool back, const struct change **which, struct err *err)
{
    const struct change *t = *which = back ? changes_back(&f->changes) : changes_forth(&f->changes);
    if (t == NULL)
        return true;
    if (!sweeping_stop(&f->sweeping, err) || !post(f, t->seq, t->kind, t->name, back ? t->before : t->after, 0, err))
        return false;
    f->changes.at = back ? f->changes.at - 1 : f->changes.at + 1;
    return true;
}

/* ---- events ---- */

/* Writes where the condition was met, and in a batch by which sequence. */
static void
report_found(const struct followed *f, const char *what, uint32_t seq, uint32_t round, struct message *message)
{
    char of[32] = "";
    if (scope_is_batch(f->scope))
        snprintf(of, sizeof of, " of sequence %u", (unsigned)seq + 1);
    message_print(message, "%.80s, in round %u%s; ] continues to the next", what, (unsigned)round, of);
    message->of_run = true;
}

/* Points at what met the condition in the newest round; in a round of a sequence that is not in focus, at the round. */
static void
point_at(const struct followed *f, const struct until *u, uint32_t seq, uint32_t round, struct selection *selection)
{
    const struct scope_round *r = scope_round(f->scope, 0);
    struct scope_place place = {.pos = scope_round_position(f->scope, round)};
    if (seq == scope_focus(f->scope) && r != NULL)
        scope_round_has(f->scope, r, u, &place);
    selection_to_place(selection, &place);
}

static void
until_met(const struct followed *f, const struct event *e, struct selection *selection, struct message *message)
{
    const uint32_t round = scope_now(f->scope)->round;
    struct until until;
    if (until_parse(e->control.new_text, &until, NULL) && e->seq == scope_focus(f->scope))
        point_at(f, &until, e->seq, round, selection);
    report_found(f, e->control.new_text, e->seq, round, message);
}

static void
report_baseline(struct followed *f, const char *text, struct message *message)
{
    const double se = metrics_baseline(&scope_now(f->scope)->metrics).se;
    if (isnan(se))
        message_print(message, "autoregressive: %.0f tokens/s on the same prompt", strtod(text, NULL));
    else
        message_print(message, "autoregressive: %.0f ±%.*f tokens/s on the same prompt", strtod(text, NULL),
                      se < 9.95 ? 1 : 0, se);
    message->of_run = true;
}

static void
report_lossless(const char *text, struct message *message)
{
    if (strncmp(text, "no:", 3) == 0) {
        struct err err = {0};
        err_set(&err, ERR_WORK, "not lossless: the autoregressive run differs (%.60s)", text);
        message_fail(message, &err);
        message->of_run = true;
    } else if (strncmp(text, "nothing", 7) == 0) {
        message_print(message, "baseline: %.60s", text);
        message->of_run = true;
    }
}

static void
control_seen(struct followed *f, const struct event *e, struct selection *selection, struct message *message)
{
    const char *text = e->control.new_text;
    switch (e->control.kind) {
    case RECORDED_RUN:
        f->ended = false;
        f->baseline_asked = f->baseline_asked && !sweeping_now(&f->sweeping); /* likewise */
        f->break_round = 0;
        selection->follow = true;
        message_run_begins(message);
        break;
    case RECORDED_CHOICE: message_report(message, text); break;
    case RECORDED_BREAK: f->break_round = (uint32_t)strtoul(text, NULL, 10); break;
    case RECORDED_UNTIL: until_met(f, e, selection, message); break;
    case RECORDED_END:
        f->ended = true;
        f->baseline_asked = f->baseline_asked && strncmp(text, "error", 5) != 0;
        break;
    case RECORDED_BASELINE:
        if (f->baseline_asked)
            report_baseline(f, text, message);
        break;
    case RECORDED_LOSSLESS:
        if (f->baseline_asked)
            report_lossless(text, message);
        f->baseline_asked = false;
        break;
    default: break;
    }
}

static void
event_seen(struct followed *f, const struct event *e, struct selection *selection, struct message *message)
{
    /* a selected token keeps its sequence in focus */
    if (e->type == EVENT_CONTROL && e->control.kind == RECORDED_JOINED && !selection->follow)
        scope_set_focus(f->scope, scope_focus(f->scope));
    scope_event(f->scope, e);
    sweeping_event(&f->sweeping, e);
    f->event_us = clock_us();
    f->run_us = e->t_us;
    if (e->type == EVENT_CONTROL)
        control_seen(f, e, selection, message);
}

/* Posts the sweep's next requests, and shows its result at the end. Returns true if there is a message. */
static bool
follow_sweep(struct followed *f, struct message *message)
{
    struct err err = {0};
    char text[400];
    bool over;
    if (!sweeping_now(&f->sweeping))
        return false;
    if (!sweeping_continue(&f->sweeping, &over, &err))
        message_fail(message, &err);
    if (!over)
        return false;
    sweeping_summary(&f->sweeping, text, sizeof text);
    if (err.kind == ERR_NONE)
        message_print(message, "%s", text);
    return true;
}

static bool
follow_source(struct followed *f, uint64_t until, struct selection *selection, struct message *message)
{
    const struct event *e;
    for (int i = 1; (e = event_reader_next(f->reader)) != NULL; i++) {
        event_seen(f, e, selection, message);
        if (i % 64 == 0 && clock_us() > until)
            break;
    }
    const uint64_t lost = event_reader_lost(f->reader);
    if (lost > f->lost) {
        scope_lost(f->scope, lost - f->lost);
        f->lost = lost;
    }
    struct err err = {0};
    const bool swept = follow_sweep(f, message), scored = scorer_look(&f->scorer, &err);
    if (err.kind != ERR_NONE)
        message_fail(message, &err);
    const char *trouble = f->source->trouble != NULL && !f->trouble_said ? f->source->trouble(f->source->user) : NULL;
    if (trouble == NULL)
        return swept || scored;
    err_set(&err, ERR_WORK, "%s", trouble);
    message_fail(message, &err);
    return f->trouble_said = true;
}

/* Stops a searching replay after the round in which a sequence met the condition. */
static void
look_out(struct followed *f, const struct event *e, struct selection *selection, struct message *message)
{
    char what[UNTIL_TEXT_MOST + 16];
    if (f->searching == 0 || e->type != EVENT_ROUND)
        return;
    if (!f->found && scope_has_come(f->scope, e->seq, &f->until)) {
        f->found = true;
        f->found_seq = e->seq;
    }
    if (!f->found || !replay_status(f->source->replay).between_rounds)
        return;
    f->found = false;
    if (--f->searching > 0)
        return;
    replay_stop(f->source->replay);
    point_at(f, &f->until, f->found_seq, e->round, selection);
    until_print(&f->until, what, sizeof what);
    report_found(f, what, f->found_seq, e->round, message);
}

/* A trace that was full before its run was over. */
static bool
report_cut(struct followed *f, struct message *message)
{
    const struct run_info *full = run_info_of(f->info, !f->info->cut);
    if (!full->cut || f->cut_said || !replay_status(f->source->replay).at_end)
        return false;
    const double kib = (double)full->trace.bytes / 1024;
    const bool mib = kib >= 1024;
    message_print(message, "the trace ends here: it reached its limit (--trace-max %.4g%s); the run continued",
                  mib ? kib / 1024 : kib, mib ? "M" : "K");
    return f->cut_said = true;
}

static bool
follow_replay(struct followed *f, uint64_t until, struct selection *selection, struct message *message)
{
    struct replay *replay = f->source->replay;
    const struct event *e = NULL;
    struct err err = {0};
    if (replay_rewound(replay)) {
        scope_reset(f->scope);
        f->ended = false;
    }
    for (int i = 1; replay_next(replay, clock_us(), &e, &err) && e != NULL; i++) {
        event_seen(f, e, selection, message);
        look_out(f, e, selection, message);
        if (i % 64 == 0 && clock_us() > until)
            break;
    }
    if (f->searching > 0 && !replay_status(replay).seeking) {
        f->searching = 0;
        f->found = false;
        message_print(message, "it does not occur before the end of the trace");
    }
    if (err.kind != ERR_NONE && f->broken.kind == ERR_NONE) {
        f->broken = err;
        message_fail(message, &err);
        return true;
    }
    return report_cut(f, message) || replay_status(replay).playing; /* the time line moves */
}

bool
follow_events(struct followed *f, struct selection *selection, struct message *message)
{
    const uint64_t until = clock_us() + SLICE_US;
    if (follow_live(f)) /* of another sequence, when another one has the focus; or a sweep's */
        f->live->ops->requested(f->live, follow_seq(f), &f->requested);
    bool new =
        follow_live(f) ? follow_source(f, until, selection, message) : follow_replay(f, until, selection, message);
    if (scope_now(f->scope)->starved && f->starved.kind == ERR_NONE) {
        err_set(&f->starved, ERR_WORK, "memory ran out: some of what came is not on the screen");
        message_fail(message, &f->starved);
        new = true;
    }
    return new;
}
