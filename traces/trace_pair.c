#include "traces/trace_pair.h"

#include <stdlib.h>
#include <string.h>

#include "traces/pair_info.h"

enum stage { OPENING, PROMPTS, TURNS, CLOSING, OVER };

struct side {
    char *folder;
    struct saved_run run;
    struct event next; /* where `have` */
    bool have, over;
    uint64_t elapsed_us, emitted;
    uint32_t own_round, round; /* the newest round by its own number, and by the stream's */
    char end[64];              /* how it ended, as told */
};

struct trace_pair {
    struct side side[2];
    struct pair_info info;

    enum stage stage;
    uint32_t step;   /* of the opening */
    uint32_t turn;   /* whose it is; */
    bool in_turn;    /* … and it has begun */
    uint32_t round;  /* begun so far */
    uint64_t number; /* of the last event */
    struct err failure;
};

/* ---- life ---- */

bool
trace_pair_open(struct trace_pair **out, const struct saved_choice choice[2], struct err *err)
{
    struct trace_pair *p = *out = calloc(1, sizeof *p);
    bool ok = p != NULL;
    for (int i = 0; i < 2 && ok; i++)
        ok = (p->side[i].folder = strdup(choice[i].folder)) != NULL;
    if (!ok)
        err_set(err, ERR_WORK, "out of memory for two traces");
    for (int i = 0; i < 2 && ok; i++) {
        const struct saved_choice own = {p->side[i].folder, choice[i].run, choice[i].seq};
        ok = saved_run_open(&p->side[i].run, &own, err);
    }
    ok = ok && pair_info_open(&p->info, &p->side[0].run, &p->side[1].run, err) && trace_pair_rewind(p, err);
    if (!ok) {
        trace_pair_close(p);
        *out = NULL;
    }
    return ok;
}

void
trace_pair_close(struct trace_pair *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        saved_run_close(&p->side[i].run);
        free(p->side[i].folder);
    }
    pair_info_close(&p->info);
    free(p);
}

const struct run_info *
trace_pair_info(const struct trace_pair *p)
{
    return &p->info.run[0];
}

uint64_t
trace_pair_rounds(const struct trace_pair *p)
{
    return p->side[0].run.rounds + p->side[1].run.rounds;
}

uint64_t
trace_pair_duration_us(const struct trace_pair *p)
{
    return p->side[0].run.duration_us + p->side[1].run.duration_us;
}

static bool
rewind_both(struct trace_pair *p, bool brief, struct err *err)
{
    p->stage = OPENING;
    p->step = p->turn = p->round = 0;
    p->in_turn = false;
    p->number = 0;
    p->failure.kind = ERR_NONE;
    for (int i = 0; i < 2; i++) {
        struct side *s = &p->side[i];
        s->have = s->over = false;
        s->elapsed_us = s->emitted = 0;
        s->own_round = s->run.begin_round;
        s->round = 0;
        s->end[0] = '\0';
        if (!saved_run_rewind(&s->run, brief, &p->failure)) {
            if (err != NULL)
                *err = p->failure;
            return false;
        }
    }
    return true;
}

bool
trace_pair_rewind(struct trace_pair *p, struct err *err)
{
    return rewind_both(p, false, err);
}

bool
trace_pair_rewind_brief(struct trace_pair *p, struct err *err)
{
    return rewind_both(p, true, err);
}

/* ---- the stream ---- */

/* An event that neither trace has. */
static void
tell(struct trace_pair *p, uint32_t seq, const char *name, const char *text, struct event *out)
{
    *out = (struct event){.number = ++p->number,
                          .t_us = p->side[0].elapsed_us + p->side[1].elapsed_us,
                          .run = 1,
                          .seq = seq,
                          .round = p->round,
                          .type = EVENT_CONTROL,
                          .control = {.old_text = "", .new_text = text, .applied_round = p->round}};
    snprintf(out->control.name, sizeof out->control.name, "%s", name);
}

/* The run, its second setting, and of each what was known before. False: all that is said. */
static bool
tell_opening(struct trace_pair *p, struct event *out)
{
    static const char *const of_each[] = {"baseline_se", "baseline", "joined"};
    enum { EACH = sizeof of_each / sizeof of_each[0] };
    while (p->step < 2 + 2 * EACH) {
        const uint32_t at = p->step++;
        const uint32_t seq = at < 2 ? 0 : (at - 2) / EACH;
        const struct saved_settings *begin = &p->side[seq].run.begin;
        const char *prompt = p->info.run[seq].prompt != NULL ? p->info.run[seq].prompt : "";
        const char *const text[] = {begin->baseline_se, begin->baseline, prompt};
        if (at == 0)
            tell(p, 0, "run", "start", out);
        else if (at == 1)
            tell(p, 0, "versus", p->info.versus, out);
        else if (text[(at - 2) % EACH][0] != '\0' || (at - 2) % EACH == EACH - 1)
            tell(p, seq, of_each[(at - 2) % EACH], text[(at - 2) % EACH], out);
        else
            continue;
        return true;
    }
    return false;
}

/* False: it has no more. */
static bool
fetch(struct trace_pair *p, struct side *s)
{
    struct err stop = {0};
    if (!s->have && !s->over) {
        s->have = saved_run_next(&s->run, &s->next, &stop);
        s->over = !s->have;
        if (stop.kind != ERR_NONE)
            p->failure = stop;
    }
    return s->have;
}

static void
number_rounds(struct trace_pair *p, struct side *s, struct event *e)
{
    if (e->type == EVENT_CONTROL) { /* asked while the round before stood, applied to the next one */
        e->control.applied_round = e->control.applied_round > s->own_round ? p->round + 1 : p->round;
        e->round = p->round;
        return;
    }
    if (e->type != EVENT_VOCAB && e->round > s->own_round) {
        s->own_round = e->round;
        s->round = ++p->round;
    }
    e->round = s->round;
}

/* The side's next event, as one of the stream; `end` is the end of one of two. */
static void
hand_out(struct trace_pair *p, uint32_t seq, struct event *out)
{
    struct side *s = &p->side[seq];
    *out = s->next;
    s->have = false;
    if (out->t_us > s->elapsed_us)
        s->elapsed_us = out->t_us;
    out->number = ++p->number;
    out->t_us = p->side[0].elapsed_us + p->side[1].elapsed_us;
    out->run = 1;
    out->seq = seq;
    number_rounds(p, s, out);
    if (out->type == EVENT_ROUND)
        s->emitted += out->round_end.emitted;
    if (out->type == EVENT_CONTROL && strcmp(out->control.name, "end") == 0) {
        snprintf(s->end, sizeof s->end, "%s", out->control.new_text);
        snprintf(out->control.name, sizeof out->control.name, "left");
    }
}

/* Is the side's next event to be passed over? The prompt was told in the opening; a sequence leaves once. */
static bool
is_said(const struct side *s)
{
    const struct event *e = &s->next;
    return e->type == EVENT_CONTROL &&
           (strcmp(e->control.name, "joined") == 0 || (strcmp(e->control.name, "end") == 0 && s->run.left));
}

static bool
peek(struct trace_pair *p, uint32_t seq)
{
    struct side *s = &p->side[seq];
    while (fetch(p, s) && is_said(s)) {
        if (strcmp(s->next.control.name, "end") == 0)
            snprintf(s->end, sizeof s->end, "%s", s->next.control.new_text);
        s->have = false;
    }
    return s->have;
}

/* Both read their prompts before anybody drafts. */
static bool
next_of_prompts(struct trace_pair *p, struct event *out)
{
    for (; p->turn < 2; p->turn++)
        if (peek(p, p->turn) && p->side[p->turn].next.round <= p->side[p->turn].run.begin_round &&
            p->side[p->turn].next.type != EVENT_ROUND) {
            hand_out(p, p->turn, out);
            return true;
        }
    p->turn = 0;
    return false;
}

static bool
next_of_turns(struct trace_pair *p, struct event *out)
{
    const bool there[] = {peek(p, 0), peek(p, 1)};
    if (!there[0] && !there[1])
        return false;
    if (!p->in_turn || !there[p->turn])
        p->turn = !there[0] || (there[1] && p->side[1].emitted < p->side[0].emitted);
    hand_out(p, p->turn, out);
    p->in_turn = out->type != EVENT_ROUND;
    return true;
}

static bool
next_event(struct trace_pair *p, struct event *out)
{
    for (;; p->stage++) {
        if (p->failure.kind != ERR_NONE)
            return false;
        if ((p->stage == OPENING && tell_opening(p, out)) || (p->stage == PROMPTS && next_of_prompts(p, out)) ||
            (p->stage == TURNS && next_of_turns(p, out)))
            return p->failure.kind == ERR_NONE;
        if (p->stage == CLOSING && p->failure.kind == ERR_NONE && p->side[0].end[0] != '\0') {
            tell(p, 0, "end", p->side[0].end, out);
            p->stage = OVER;
            return true;
        }
        if (p->stage >= CLOSING)
            return false;
    }
}

bool
trace_pair_next(struct trace_pair *p, struct event *out, struct err *err)
{
    const bool ok = next_event(p, out);
    if (!ok && err != NULL)
        *err = p->failure;
    return ok;
}
