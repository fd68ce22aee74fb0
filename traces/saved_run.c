#include "traces/saved_run.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"

/* ---- what a run begins with ---- */

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

/* ---- which events are its own ---- */

/* In a run with two settings a change of a knob concerns one sequence. In any run notes, beginnings and ends do. */
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

/* ---- the survey ---- */

struct survey {
    struct saved_start now, begin;  /* as events go by, and when the present run began */
    uint32_t wanted, run;           /* that is asked for, 0: the last one; that is read */
    bool versus, paced, met, there; /* of the run; it is the one, so far; there is such a run */
    uint32_t last_run;              /* with a round of any sequence */
    uint64_t hash, first_us;
    uint32_t first_round;
    bool begun; /* the sequence has an event in it */
};

static bool
survey_control(struct saved_run *s, struct survey *v, const struct event *e)
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
    if (c->kind == RECORDED_PROMPT && !set_prompt(&v->begin, c->new_text)) /* of the run that has just begun */
        return false;
    return (v->versus && e->seq != 0) ||
           start_take(&v->now, s->info, c, v->paced); /* the second setting ends with the run */
}

/* The first round of the sequence in a run: it is the one, as long as no later one has one, too. */
static bool
survey_round(struct saved_run *s, struct survey *v, const struct event *e)
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
        memset(s->used, 0, s->info->n_policies * sizeof *s->used);
        if (!start_copy(&s->begin, &v->begin))
            return false;
    }
    v->met = v->there = true;
    s->rounds++;
    s->used[run_info_policy(s->info, e->round_end.policy) - s->info->policies] = true;
    return true;
}

static bool
survey_event(struct saved_run *s, struct survey *v, const struct event *e)
{
    const bool own = is_of_sequence(e) && e->seq == s->seq;
    bool ok = true;
    v->run = e->run;
    if (e->type == EVENT_CONTROL)
        ok = survey_control(s, v, e);
    if (own && !v->begun) {
        v->begun = true;
        v->first_us = e->t_us;
        v->first_round = e->round;
    }
    if (own && e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT)
        v->hash = splitmix64_mix(v->hash + (uint64_t)e->token.token + 1);
    if (e->type == EVENT_ROUND)
        ok = survey_round(s, v, e);
    if (v->met && (own || (e->type == EVENT_CONTROL && concerns(s, v->versus, e))))
        s->duration_us = e->t_us > s->begin_us ? e->t_us - s->begin_us : 0;
    return ok;
}

static bool
survey(struct saved_run *s, uint32_t wanted, struct err *err)
{
    struct survey v = {.wanted = wanted};
    struct event e;
    struct err stop = {0};
    settings_begin(&v.now.settings, s->info);
    bool ok = set_prompt(&v.now, s->info->prompt) && start_copy(&v.begin, &v.now) &&
              (s->used = calloc((size_t)s->info->n_policies + 1, sizeof *s->used)) != NULL;
    const bool read = !ok || trace_reader_rewind_brief(s->reader, err);
    while (ok && read && trace_reader_next(s->reader, &e, &stop))
        ok = survey_event(s, &v, &e);
    free(v.now.prompt);
    free(v.begin.prompt);
    if (!ok)
        return err_set(err, ERR_WORK, "out of memory for the runs of %s", s->folder);
    if (!read || stop.kind != ERR_NONE) {
        if (stop.kind != ERR_NONE)
            *err = stop;
        return false;
    }
    if (v.last_run == 0)
        return err_set(err, ERR_USAGE, "%s: this trace has no whole round, so there is nothing to compare", s->folder);
    if (!v.there && wanted > 0)
        return err_set(err, ERR_USAGE,
                       "%s: there is no round of sequence %u in run %u; the last run with a round is %u", s->folder,
                       (unsigned)s->seq + 1, (unsigned)wanted, (unsigned)v.last_run);
    return v.there || err_set(err, ERR_USAGE, "%s: there is no round of sequence %u", s->folder, (unsigned)s->seq + 1);
}

/* ---- life, and events ---- */

bool
saved_run_open(struct saved_run *s, const struct saved_choice *choice, struct err *err)
{
    *s = (struct saved_run){.folder = choice->folder, .seq = choice->seq};
    if (!trace_reader_open(&s->reader, choice->folder, err))
        return false;
    s->info = trace_reader_info(s->reader);
    return survey(s, choice->run, err) && saved_run_rewind(s, false, err);
}

void
saved_run_close(struct saved_run *s)
{
    free(s->begin.prompt);
    free(s->used);
    trace_reader_close(s->reader);
    *s = (struct saved_run){0};
}

bool
saved_run_rewind(struct saved_run *s, bool brief, struct err *err)
{
    s->left = false;
    return brief ? trace_reader_rewind_brief(s->reader, err) : trace_reader_rewind(s->reader, err);
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

bool
saved_run_next(struct saved_run *s, struct event *e, struct err *err)
{
    do {
        if (!trace_reader_next(s->reader, e, err) || e->run > s->run)
            return false;
    } while (!is_own(s, e));
    s->left = s->left || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_LEFT);
    e->t_us = e->run == s->run && e->t_us > s->begin_us ? e->t_us - s->begin_us : 0;
    e->t_us = e->t_us < s->duration_us ? e->t_us : s->duration_us; /* which no layer's word lengthens */
    return true;
}
