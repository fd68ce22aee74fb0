#include "traces/trace_pair.h"

#include <stdlib.h>
#include <string.h>

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
    struct run_info run[2];        /* run[0].second is run[1]; what they point to is the saved runs' or these: */
    struct policy_info *policies;  /* the first one's, and those that only the second one declares; owned */
    double *values[2];             /* (n_policies * POLICY_KNOBS) as their runs begin; owned */
    char versus[VERSUS_TEXT_MOST]; /* the second one's setting */

    struct opening { /* a control that neither trace has: */
        uint32_t seq;
        enum recorded kind;
        const char *text;
    } opening[8];
    uint32_t n_opening, step; /* so many were handed out */
    uint32_t turn;            /* whose it is; */
    bool drafting;            /* both have read their prompts */
    bool in_turn, ended;      /* … and it has begun; the end was handed out */
    uint32_t round;           /* begun so far */
    uint64_t number;          /* of the last event */
    struct err failure;
};

/* ---- one list of policies, and for each run its own settings ---- */

static bool
comparable(const struct saved_run *a, const struct saved_run *b, struct err *err)
{
    const struct run_info *x = a->info, *y = b->info;
    static const char advice[] = "so they can't go in step; specscope diff compares them without --scope";
    if (x->model_hash != y->model_hash || x->layers != y->layers || x->vocab != y->vocab)
        return err_set(err, ERR_USAGE, "%s and %s are of different models (%.40s, %.40s), %s", a->folder, b->folder,
                       x->model_name, y->model_name, advice);
    return a->prompt_hash == b->prompt_hash ||
           err_set(err, ERR_USAGE, "%s and %s went on from different prompts, %s", a->folder, b->folder, advice);
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

/* A slider that has room for both. */
static void
widen(struct policy_info *p, const struct policy_info *other)
{
    for (uint32_t i = 0; i < p->n_knobs; i++) {
        struct knob *k = &p->knobs[i];
        const struct knob *o = &other->knobs[i];
        k->min = o->min < k->min ? o->min : k->min;
        k->max = o->max > k->max ? o->max : k->max;
        k->step = o->step < k->step ? o->step : k->step;
    }
}

static bool
runs_under(const struct saved_run *s, const struct policy_info *policy)
{
    return s->used[policy - s->info->policies] || s->begin.settings.policy == policy - s->info->policies;
}

static bool
join_policies(struct trace_pair *p, struct err *err)
{
    const struct saved_run *first = &p->side[0].run, *second = &p->side[1].run;
    const struct run_info *a = first->info, *b = second->info;
    uint32_t n = a->n_policies;
    memcpy(p->policies, a->policies, n * sizeof *p->policies);
    for (uint32_t i = 0; i < b->n_policies; i++) {
        const struct policy_info *theirs = &b->policies[i], *known = run_info_policy(a, theirs->name);
        struct policy_info *place = &p->policies[known != NULL ? (uint32_t)(known - a->policies) : n++];
        if (known != NULL && declared_alike(known, theirs))
            widen(place, theirs);
        else if (known == NULL || (runs_under(second, theirs) && !runs_under(first, known)))
            *place = *theirs;
        else if (runs_under(second, theirs))
            return err_set(err, ERR_USAGE,
                           "%s and %s declare policy %s differently (versions %s and %s), so they can't be beside each "
                           "other on the screen; specscope diff compares them without --scope",
                           first->folder, second->folder, known->name, a->version, b->version);
    }
    p->run[0].n_policies = p->run[1].n_policies = n;
    return true;
}

/* Of a policy that is not declared alike the values do not fit. */
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

/* The run, its second setting, and of each what was known before. */
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
bring_together(struct trace_pair *p, struct err *err)
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
                       p->side[0].folder, p->side[1].folder, (unsigned)p->run[0].n_policies, POLICIES_MOST);
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
        p->run[i].saved_as = name_of(p->side[i].folder);
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
    ok = ok && bring_together(p, err) && trace_pair_rewind(p, false, err);
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
    p->step = p->turn = p->round = 0;
    p->drafting = p->in_turn = false;
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

/* ---- the stream ---- */

/* An event that neither trace has. */
static void
tell(struct trace_pair *p, uint32_t seq, enum recorded kind, const char *text, struct event *out)
{
    *out = (struct event){.number = ++p->number,
                          .t_us = p->side[0].elapsed_us + p->side[1].elapsed_us,
                          .run = 1,
                          .seq = seq,
                          .round = p->round,
                          .type = EVENT_CONTROL,
                          .control = {.kind = kind, .old_text = "", .new_text = text, .applied_round = p->round}};
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
    if (out->type == EVENT_CONTROL && out->control.kind == RECORDED_END) {
        snprintf(s->end, sizeof s->end, "%s", out->control.new_text);
        out->control.kind = RECORDED_LEFT;
    }
}

/* Is the side's next event to be passed over? The prompt was told in the opening; a sequence leaves once. */
static bool
is_said(const struct side *s)
{
    const struct event *e = &s->next;
    return e->type == EVENT_CONTROL &&
           (e->control.kind == RECORDED_JOINED || (e->control.kind == RECORDED_END && s->run.left));
}

static bool
peek(struct trace_pair *p, uint32_t seq)
{
    struct side *s = &p->side[seq];
    while (fetch(p, s) && is_said(s)) {
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

/* Both read their prompts before either drafts. Then the turn is that of the one that has emitted fewer tokens, or of the last one. */
static bool
next_of_sides(struct trace_pair *p, struct event *out)
{
    const bool there[] = {peek(p, 0), peek(p, 1)};
    const uint64_t first = p->side[0].emitted, second = p->side[1].emitted;
    if (!there[0] && !there[1])
        return false;
    if (!p->drafting) {
        p->turn = !reads_prompt(&p->side[0]) && reads_prompt(&p->side[1]);
        p->drafting = p->turn == 0 && !reads_prompt(&p->side[0]);
    }
    if (!there[p->turn])
        p->turn = !there[0];
    else if (p->drafting && !p->in_turn && there[0] && there[1] && first != second)
        p->turn = second < first;
    hand_out(p, p->turn, out);
    p->in_turn = p->drafting && out->type != EVENT_ROUND;
    return true;
}

static bool
next_event(struct trace_pair *p, struct event *out)
{
    if (p->step < p->n_opening) {
        const struct opening *o = &p->opening[p->step++];
        tell(p, o->seq, o->kind, o->text, out);
    } else if (p->failure.kind == ERR_NONE && !next_of_sides(p, out)) {
        if (p->ended || p->side[0].end[0] == '\0')
            return false;
        tell(p, 0, RECORDED_END, p->side[0].end, out);
        p->ended = true;
    }
    return p->failure.kind == ERR_NONE;
}

bool
trace_pair_next(struct trace_pair *p, struct event *out, struct err *err)
{
    const bool ok = next_event(p, out);
    if (!ok && err != NULL)
        *err = p->failure;
    return ok;
}
