/* Merges two saved runs (trace_pair.h): finds each run in its trace, describes both, and returns their events in
 * step. */
#include "traces/trace_pair.h"

#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "base/rng.h"
#include "engine/events/settings.h"

struct saved_start { /* the settings at the beginning of a run */
    struct settings settings;
    char *prompt;                       /* owned */
    char baseline[32], baseline_se[32]; /* of this prompt, measured at full speed; "": unknown */
};

struct saved_run {
    const char *folder; /* the caller's */
    struct trace_reader *reader;
    const struct run_info *info; /* the reader's */
    uint32_t run, seq;
    struct saved_start begin;
    bool versus;          /* the run has two settings, and `seq` selects this one's */
    uint64_t prompt_hash; /* of its tokens */
    uint32_t begin_round; /* in which its prompt was read: 0, or later if it joined a batch */
    uint64_t begin_us;    /* of its first event */
    uint64_t duration_us; /* from its first event to its last */
    uint64_t rounds;
    bool left; /* the event of its end was returned */
};

/* ---- initial settings ---- */

static bool
set_prompt(struct saved_start *s, const char *text)
{
    char *own = strdup(text);
    free(s->prompt);
    s->prompt = own;
    return own != NULL;
}

static bool
start_copy(struct saved_start *to, const struct saved_start *from)
{
    char *own = to->prompt;
    *to = *from;
    to->prompt = own;
    return set_prompt(to, from->prompt);
}

static bool
start_take(struct saved_start *s, const struct run_info *info, const struct control_event *c, bool paced)
{
    switch (c->kind) {
    case RECORDED_PROMPT: return set_prompt(s, c->new_text);
    case RECORDED_BASELINE_SE:
        if (!paced)
            snprintf(s->baseline_se, sizeof s->baseline_se, "%s", c->new_text);
        return true;
    case RECORDED_BASELINE:
        if (!paced)
            snprintf(s->baseline, sizeof s->baseline, "%s", c->new_text);
        return true;
    default: settings_apply(&s->settings, info, c); return true;
    }
}

/* ---- the events of one sequence ---- */

/* True if a control concerns the sequence. Notes, beginnings and ends concern one sequence, as do knobs in a run with
 * two settings. */
static bool
concerns(const struct saved_run *s, bool versus, const struct event *e)
{
    switch (e->control.kind) {
    case RECORDED_NOTE:
    case RECORDED_JOINED:
    case RECORDED_LEFT:
    case RECORDED_BACK: return e->seq == s->seq;
    case RECORDED_END: return true;
    case RECORDED_HEAD:
        if (e->seq == 0 && e->control.old_text[0] == '\0')
            return true; /* the head that both sequences begin with, before that of the second one is recorded */
        break;
    default: break;
    }
    return run_info_common(&e->control) || !versus || e->seq == (s->seq == 1);
}

static bool
is_of_sequence(const struct event *e)
{
    return e->type == EVENT_TOKEN || e->type == EVENT_VERDICT || e->type == EVENT_LAYER || e->type == EVENT_SERIES ||
           e->type == EVENT_EXPERTS || e->type == EVENT_ROUND;
}

/* ---- finding the run ---- */

struct run_search {
    struct saved_start now, begin;  /* after the last event, and at the beginning of its run */
    uint32_t wanted, run;           /* wanted: 0: the last one; run: of the last event */
    bool versus, paced, met, there; /* of the present run; met: it has a round of the sequence; there: some run has */
    uint32_t last_run;              /* the last one with a round of any sequence */
    uint64_t hash, first_us;
    uint32_t first_round;
    bool begun; /* the sequence has an event in the present run */
};

static bool
search_control(struct saved_run *s, struct run_search *v, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (c->kind == RECORDED_RUN) {
        v->versus = v->paced = v->met = v->begun = false;
        v->hash = 0;
        if (strcmp(c->new_text, "prompt") == 0)
            v->now.baseline[0] = v->now.baseline_se[0] = '\0';
        return start_copy(&v->begin, &v->now);
    }
    if (c->kind == RECORDED_VERSUS) {
        struct settings second = v->begin.settings;
        v->versus = true;
        settings_read_versus(&second, s->info, c->new_text);
        if (s->seq == 1 && second.policy < s->info->n_policies)
            v->begin.settings = second;
        return true;
    }
    if (c->kind == RECORDED_PACE)
        v->paced = strtod(c->new_text, NULL) > 0;
    if (c->kind == RECORDED_PROMPT &&
        !set_prompt(&v->begin, c->new_text)) /* the prompt control follows the run control */
        return false;
    return (v->versus && e->seq != 0) ||
           start_take(&v->now, s->info, c, v->paced); /* the second setting ends with its run */
}

/* At the first round of the sequence in a run, this run replaces the one found before. */
static bool
search_round(struct saved_run *s, struct run_search *v, const struct event *e)
{
    v->last_run = e->run;
    if (e->seq != s->seq || (v->wanted > 0 && e->run != v->wanted))
        return true;
    if (!v->met) {
        s->rounds = 0;
        s->run = e->run;
        s->versus = v->versus;
        s->prompt_hash = v->hash;
        s->begin_round = v->first_round;
        s->begin_us = v->first_us;
        if (!start_copy(&s->begin, &v->begin))
            return false;
    }
    v->met = v->there = true;
    s->rounds++;
    return true;
}

static bool
search_event(struct saved_run *s, struct run_search *v, const struct event *e)
{
    const bool own = is_of_sequence(e) && e->seq == s->seq;
    bool ok = true;
    v->run = e->run;
    if (e->type == EVENT_CONTROL)
        ok = search_control(s, v, e);
    if (own && !v->begun) {
        v->begun = true;
        v->first_us = e->t_us;
        v->first_round = e->round;
    }
    if (own && e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT)
        v->hash = splitmix64_mix(v->hash + (uint64_t)e->token.token + 1);
    if (e->type == EVENT_ROUND)
        ok = search_round(s, v, e);
    if (v->met && (own || (e->type == EVENT_CONTROL && concerns(s, v->versus, e))))
        s->duration_us = e->t_us > s->begin_us ? e->t_us - s->begin_us : 0;
    return ok;
}

static bool
find_run(struct saved_run *s, uint32_t wanted, struct err *err)
{
    struct run_search v = {.wanted = wanted};
    struct event e;
    struct err stop = {0};
    settings_begin(&v.now.settings, s->info);
    bool ok = set_prompt(&v.now, s->info->prompt) && start_copy(&v.begin, &v.now);
    const bool read = !ok || trace_reader_rewind(s->reader, true, err);
    while (ok && read && trace_reader_next(s->reader, &e, &stop))
        ok = search_event(s, &v, &e);
    free(v.now.prompt);
    free(v.begin.prompt);
    if (!ok)
        return err_set(err, ERR_WORK, "out of memory for the runs of %s", s->folder);
    if (!read)
        return false;
    if (stop.kind != ERR_NONE)
        return err_copy(err, &stop);
    if (v.last_run == 0)
        return err_set(err, ERR_USAGE, "%s: this trace has no whole round, so there is nothing to compare", s->folder);
    if (!v.there && wanted > 0)
        return err_set(err, ERR_USAGE,
                       "%s: there is no round of sequence %u in run %u; the last run with a round is %u", s->folder,
                       (unsigned)s->seq + 1, (unsigned)wanted, (unsigned)v.last_run);
    return v.there || err_set(err, ERR_USAGE, "%s: there is no round of sequence %u", s->folder, (unsigned)s->seq + 1);
}

/* ---- opening, closing, events ---- */

/* brief: without LAYER, EXPERTS and SERIES events */
static bool
saved_run_rewind(struct saved_run *s, bool brief, struct err *err)
{
    s->left = false;
    return trace_reader_rewind(s->reader, brief, err);
}

/* Finds the run by reading the trace once. ERR_USAGE: there is no such run or sequence. Call saved_run_close() also
 * after a failure. */
static bool
saved_run_open(struct saved_run *s, const struct saved_choice *choice, struct err *err)
{
    *s = (struct saved_run){.folder = choice->folder, .seq = choice->seq};
    if (!trace_reader_open(&s->reader, choice->folder, false, err))
        return false;
    s->info = trace_reader_info(s->reader);
    return find_run(s, choice->run, err) && saved_run_rewind(s, false, err);
}

static void
saved_run_close(struct saved_run *s)
{
    free(s->begin.prompt);
    trace_reader_close(s->reader);
    *s = (struct saved_run){0};
}

static bool
is_own(const struct saved_run *s, const struct event *e)
{
    if (e->type == EVENT_VOCAB)
        return true;
    if (e->run != s->run || e->type != EVENT_CONTROL)
        return e->run == s->run && is_of_sequence(e) && e->seq == s->seq;
    switch (e->control.kind) {
    case RECORDED_RUN:
    case RECORDED_PROMPT:
    case RECORDED_VERSUS:
    case RECORDED_STATE:
    case RECORDED_BREAK:
    case RECORDED_UNTIL: return false;
    default: return concerns(s, s->versus, e);
    }
}

/* Returns the next of its events: VOCAB of all runs up to its own, at time 0; the sequence's events; controls that
 * concern it, except `run`, `prompt`, `versus`, pauses and breakpoints. t_us counts from its beginning. False with
 * err->kind == ERR_NONE at the end. */
static bool
saved_run_next(struct saved_run *s, struct event *e, struct err *err)
{
    do {
        if (!trace_reader_next(s->reader, e, err) || e->run > s->run)
            return false;
    } while (!is_own(s, e));
    s->left = s->left || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_LEFT);
    e->t_us = e->run == s->run && e->t_us > s->begin_us ? e->t_us - s->begin_us : 0;
    e->t_us = e->t_us < s->duration_us ? e->t_us
                                       : s->duration_us; /* LAYER events after the last round do not extend the run */
    return true;
}

struct side {
    struct saved_run run;
    struct event next; /* valid if `have` */
    bool have, over;
    uint64_t elapsed_us, emitted;
    uint32_t own_round, round; /* the newest round, as numbered in its trace and in the stream */
    char end[64];              /* why it ended */
};

struct trace_pair {
    struct saved_choice choice[2]; /* folders are owned */
    struct side side[2];
    struct run_info run[2]; /* run[0].second is run[1]; their pointers are the saved runs' or the following ones */
    struct policy_info *policies;  /* the first run's, then those that only the second declares; owned */
    double *values[2];             /* (n_policies * POLICY_KNOBS) at the beginnings of the runs; owned */
    char versus[VERSUS_TEXT_MOST]; /* the second setting */

    struct opening { /* a control that is in neither trace */
        uint32_t seq;
        enum recorded kind;
        const char *text;
    } opening[8];
    uint32_t n_opening, step; /* number of them returned */
    uint32_t next;            /* the sequence of the next event */
    bool drafting;            /* both prompts have been read */
    bool in_round, ended;     /* in_round: its round has begun; ended: the end was returned */
    uint32_t round;           /* number of the newest round */
    uint64_t number;          /* of the last event */
    struct err failure;
};

/* ---- the description: one list of policies, and the settings of each run ---- */

#define ADVICE "so they cannot be shown in step; %s diff compares them without --scope"

static bool
comparable(const struct saved_run *a, const struct saved_run *b, struct err *err)
{
    const struct run_info *x = a->info, *y = b->info;
    if (x->model_hash != y->model_hash || x->layers != y->layers || x->vocab != y->vocab)
        return err_set(err, ERR_USAGE, "%s and %s are of different models (%.40s, %.40s), " ADVICE, a->folder,
                       b->folder, x->model_name, y->model_name, program_name());
    return a->prompt_hash == b->prompt_hash || err_set(err, ERR_USAGE, "%s and %s continue different prompts, " ADVICE,
                                                       a->folder, b->folder, program_name());
}

static bool
declared_alike(const struct policy_info *a, const struct policy_info *b)
{
    bool alike = a->n_knobs == b->n_knobs && a->n_series == b->n_series;
    for (uint32_t i = 0; alike && i < a->n_knobs; i++) {
        const struct knob *x = &a->knobs[i], *y = &b->knobs[i];
        alike = strcmp(x->name, y->name) == 0 && x->kind == y->kind && (x->kind != KNOB_CHOICE || x->max == y->max);
        for (int c = 0; alike && x->kind == KNOB_CHOICE && c <= (int)x->max; c++)
            alike = strcmp(x->choices[c], y->choices[c]) == 0;
    }
    for (uint32_t i = 0; alike && i < a->n_series; i++) {
        const struct series *x = &a->series[i], *y = &b->series[i];
        alike = strcmp(x->key, y->key) == 0 && x->form == y->form && x->rows == y->rows && x->cols == y->cols;
    }
    return alike;
}

/* Lists the first run's policies, then those that only the second declares. Fails if both begin under a policy that
 * they declare differently. */
static bool
join_policies(struct trace_pair *p, struct err *err)
{
    const struct saved_run *first = &p->side[0].run, *second = &p->side[1].run;
    const struct run_info *a = first->info, *b = second->info;
    uint32_t n = a->n_policies;
    memcpy(p->policies, a->policies, n * sizeof *p->policies);
    for (uint32_t i = 0; i < b->n_policies; i++) {
        const struct policy_info *theirs = &b->policies[i], *known = run_info_policy(a, theirs->name);
        if (known == NULL)
            p->policies[n++] = *theirs;
        if (known == NULL || second->begin.settings.policy != i || declared_alike(known, theirs))
            continue;
        if (&a->policies[first->begin.settings.policy] == known)
            return err_set(err, ERR_USAGE, "%s and %s declare policy %s differently (versions %s and %s), " ADVICE,
                           first->folder, second->folder, known->name, a->version, b->version, program_name());
        p->policies[known - a->policies] = *theirs;
    }
    p->run[0].n_policies = p->run[1].n_policies = n;
    return true;
}

/* Values of a policy that the run declares differently are ignored. */
static void
start_values(struct trace_pair *p, int side)
{
    const struct saved_run *run = &p->side[side].run;
    for (uint32_t i = 0; i < p->run[side].n_policies; i++) {
        const struct policy_info *policy = &p->policies[i], *own = run_info_policy(run->info, policy->name);
        double *values = p->values[side] + i * POLICY_KNOBS;
        for (uint32_t k = 0; k < policy->n_knobs; k++)
            values[k] = policy->knobs[k].def;
        if (own != NULL && declared_alike(policy, own))
            memcpy(values, run->begin.settings.value[own - run->info->policies], POLICY_KNOBS * sizeof *values);
    }
}

static const char *
name_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : folder;
}

static void
add_opening(struct trace_pair *p, uint32_t seq, enum recorded kind, const char *text)
{
    if (text[0] != '\0' || kind == RECORDED_JOINED)
        p->opening[p->n_opening++] = (struct opening){seq, kind, text};
}

/* The opening: a run, its second setting, and for each sequence the baseline and the beginning. */
static void
plan_opening(struct trace_pair *p)
{
    add_opening(p, 0, RECORDED_RUN, "start");
    add_opening(p, 0, RECORDED_VERSUS, p->versus);
    for (uint32_t seq = 0; seq < 2; seq++) {
        const struct saved_start *begin = &p->side[seq].run.begin;
        add_opening(p, seq, RECORDED_BASELINE_SE, begin->baseline_se);
        add_opening(p, seq, RECORDED_BASELINE, begin->baseline);
        add_opening(p, seq, RECORDED_JOINED, begin->prompt);
    }
}

static bool
describe(struct trace_pair *p, struct err *err)
{
    const size_t most = (size_t)p->side[0].run.info->n_policies + p->side[1].run.info->n_policies;
    if (!comparable(&p->side[0].run, &p->side[1].run, err))
        return false;
    p->policies = calloc(most, sizeof *p->policies);
    for (int i = 0; i < 2; i++) {
        p->values[i] = calloc(most * POLICY_KNOBS, sizeof *p->values[i]);
        p->run[i] = *p->side[i].run.info;
    }
    if (p->policies == NULL || p->values[0] == NULL || p->values[1] == NULL)
        return err_set(err, ERR_WORK, "out of memory for two traces");
    if (!join_policies(p, err))
        return false;
    if (p->run[0].n_policies > POLICIES_MOST)
        return err_set(err, ERR_USAGE, "%s and %s declare %u policies together; at most %d can be shown",
                       p->choice[0].folder, p->choice[1].folder, (unsigned)p->run[0].n_policies, POLICIES_MOST);
    for (int i = 0; i < 2; i++) {
        const struct saved_start *begin = &p->side[i].run.begin;
        const char *policy = p->side[i].run.info->policies[begin->settings.policy].name;
        start_values(p, i);
        snprintf(p->run[i].policy, sizeof p->run[i].policy, "%s", policy);
        p->run[i].sampling = begin->settings.sampling;
        p->run[i].seed = begin->settings.seed;
        p->run[i].prompt = begin->prompt;
        p->run[i].prompt_len = strlen(begin->prompt);
        p->run[i].policies = p->policies;
        p->run[i].start_values = p->values[i];
        p->run[i].sequences = p->run[i].prompts = 1;
        p->run[i].saved_as = name_of(p->choice[i].folder);
    }
    if (p->run[1].ctx > p->run[0].ctx)
        p->run[0].ctx = p->run[1].ctx;
    p->run[0].second = &p->run[1];
    struct settings first, second;
    settings_begin(&first, &p->run[0]);
    settings_begin(&second, &p->run[1]);
    settings_print_versus(&first, &second, &p->run[0], p->versus);
    plan_opening(p);
    return true;
}

/* ---- opening and closing ---- */

bool
trace_pair_open(struct trace_pair **out, const struct saved_choice choice[2], struct err *err)
{
    struct trace_pair *p = *out = calloc(1, sizeof *p);
    bool ok = p != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        p->choice[i] = choice[i];
        ok = (p->choice[i].folder = strdup(choice[i].folder)) != NULL;
    }
    if (!ok)
        err_set(err, ERR_WORK, "out of memory for two traces");
    for (int i = 0; i < 2 && ok; i++)
        ok = saved_run_open(&p->side[i].run, &p->choice[i], err);
    ok = ok && describe(p, err) && trace_pair_rewind(p, false, err);
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
        free((char *)p->choice[i].folder);
        free(p->values[i]);
    }
    free(p->policies);
    free(p);
}

const struct run_info *
trace_pair_info(const struct trace_pair *p)
{
    return &p->run[0];
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

bool
trace_pair_rewind(struct trace_pair *p, bool brief, struct err *err)
{
    p->ended = false;
    p->step = p->next = p->round = 0;
    p->drafting = p->in_round = false;
    p->number = 0;
    p->failure.kind = ERR_NONE;
    for (int i = 0; i < 2; i++) {
        struct side *s = &p->side[i];
        s->have = s->over = false;
        s->elapsed_us = s->emitted = 0;
        s->own_round = s->run.begin_round;
        s->round = 0;
        s->end[0] = '\0';
        if (!saved_run_rewind(&s->run, brief, &p->failure))
            return err_copy(err, &p->failure);
    }
    return true;
}

/* ---- the stream ---- */

/* Makes a control of the opening or the end. */
static void
emit(struct trace_pair *p, uint32_t seq, enum recorded kind, const char *text, struct event *out)
{
    *out = (struct event){.number = ++p->number,
                          .t_us = p->side[0].elapsed_us + p->side[1].elapsed_us,
                          .run = 1,
                          .seq = seq,
                          .round = p->round,
                          .type = EVENT_CONTROL,
                          .control = {.kind = kind, .old_text = "", .new_text = text, .applied_round = p->round}};
}

/* Reads the side's next event; returns false at its end. */
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
    if (e->type == EVENT_CONTROL) { /* posted in one round, applied to the next */
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

/* Converts the side's next event to one of the stream; the end of a run becomes the end of its sequence. */
static void
return_event(struct trace_pair *p, uint32_t seq, struct event *out)
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
    if (out->type == EVENT_CONTROL && out->control.kind == RECORDED_END) {
        snprintf(s->end, sizeof s->end, "%s", out->control.new_text);
        out->control.kind = RECORDED_LEFT;
    }
}

/* True if the next event is a repetition: the opening contains the prompt, and a sequence ends once. */
static bool
is_repeated(const struct side *s)
{
    const struct event *e = &s->next;
    return e->type == EVENT_CONTROL &&
           (e->control.kind == RECORDED_JOINED || (e->control.kind == RECORDED_END && s->run.left));
}

static bool
peek(struct trace_pair *p, uint32_t seq)
{
    struct side *s = &p->side[seq];
    while (fetch(p, s) && is_repeated(s)) {
        if (s->next.control.kind == RECORDED_END)
            snprintf(s->end, sizeof s->end, "%s", s->next.control.new_text);
        s->have = false;
    }
    return s->have;
}

static bool
reads_prompt(const struct side *s)
{
    return s->have && s->next.round <= s->run.begin_round && s->next.type != EVENT_ROUND;
}

/* First both prompts are read. Then the sequence that has emitted fewer tokens is next; if they are equal, the same one
 * continues. */
static bool
next_of_sides(struct trace_pair *p, struct event *out)
{
    const bool there[] = {peek(p, 0), peek(p, 1)};
    const uint64_t first = p->side[0].emitted, second = p->side[1].emitted;
    if (!there[0] && !there[1])
        return false;
    if (!p->drafting) {
        p->next = !reads_prompt(&p->side[0]) && reads_prompt(&p->side[1]);
        p->drafting = p->next == 0 && !reads_prompt(&p->side[0]);
    }
    if (!there[p->next])
        p->next = !there[0];
    else if (p->drafting && !p->in_round && there[0] && there[1] && first != second)
        p->next = second < first;
    return_event(p, p->next, out);
    p->in_round = p->drafting && out->type != EVENT_ROUND;
    return true;
}

static bool
next_event(struct trace_pair *p, struct event *out)
{
    if (p->step < p->n_opening) {
        const struct opening *o = &p->opening[p->step++];
        emit(p, o->seq, o->kind, o->text, out);
    } else if (p->failure.kind == ERR_NONE && !next_of_sides(p, out)) {
        if (p->ended || p->side[0].end[0] == '\0')
            return false;
        emit(p, 0, RECORDED_END, p->side[0].end, out);
        p->ended = true;
    }
    return p->failure.kind == ERR_NONE;
}

bool
trace_pair_next(struct trace_pair *p, struct event *out, struct err *err)
{
    return next_event(p, out) || err_copy(err, &p->failure);
}
