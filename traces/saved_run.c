#include "traces/saved_run.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/events/sampling_knobs.h"
#include "engine/events/versus_text.h"

/* ---- what a run begins with ---- */

static void
start_close(struct saved_start *s)
{
    free(s->info.start_values);
    free(s->info.prompt);
    s->info.start_values = NULL;
    s->info.prompt = NULL;
}

static bool
set_prompt(struct saved_start *s, const char *text)
{
    free(s->info.prompt);
    s->info.prompt = strdup(text);
    s->info.prompt_len = strlen(text);
    return s->info.prompt != NULL;
}

static bool
start_copy(struct saved_start *to, const struct saved_start *from)
{
    const size_t bytes = (size_t)from->info.n_policies * POLICY_KNOBS * sizeof *from->info.start_values;
    start_close(to);
    *to = *from;
    to->info.prompt = NULL;
    to->info.start_values = malloc(bytes + 1);
    if (to->info.start_values != NULL)
        memcpy(to->info.start_values, from->info.start_values, bytes);
    return set_prompt(to, from->info.prompt) && to->info.start_values != NULL;
}

static bool
start_take(struct saved_start *s, const struct control_event *c, bool paced)
{
    struct run_info *info = &s->info;
    const struct policy_info *p = run_info_policy(info, info->policy);
    const int knob = p != NULL ? policy_knob_index(p, c->name) : -1, sampling = sampling_knob_index(c->name);
    double value;
    if (strcmp(c->name, "policy") == 0)
        snprintf(info->policy, sizeof info->policy, "%s", c->new_text); /* one that is declared: the reader checks it */
    else if (strcmp(c->name, "prompt") == 0)
        return set_prompt(s, c->new_text);
    else if (strcmp(c->name, "baseline_se") == 0 && !paced)
        snprintf(s->baseline_se, sizeof s->baseline_se, "%s", c->new_text);
    else if (strcmp(c->name, "baseline") == 0 && !paced)
        snprintf(s->baseline, sizeof s->baseline, "%s", c->new_text);
    else if (sampling >= 0 && knob_parse(&sampling_knobs[sampling], c->new_text, &value, NULL))
        sampling_knob_set(&info->sampling, &info->seed, sampling, value);
    else if (knob >= 0 && knob_parse(&p->knobs[knob], c->new_text, &value, NULL))
        info->start_values[(size_t)(p - info->policies) * POLICY_KNOBS + (size_t)knob] = value;
    return true;
}

/* ---- which events are its own ---- */

/* Of a run with two settings a knob is one's own, as are notes, and comings and goings of any sequence. */
static bool
concerns(const struct saved_run *s, bool versus, const struct event *e)
{
    static const char *const own[] = {"note", "joined", "left", "back"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(e->control.name, own[i]) == 0)
            return e->seq == s->seq;
    if (run_info_common(e->control.name) || strcmp(e->control.name, "end") == 0)
        return true;
    if (strcmp(e->control.name, "head") == 0 && e->seq == 0 && e->control.old_text[0] == '\0')
        return true; /* as both begin, until the second one's is told */
    return !versus || e->seq == (s->seq == 1);
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
    if (strcmp(c->name, "run") == 0) {
        v->versus = v->paced = v->met = v->begun = false;
        v->hash = 0;
        if (strcmp(c->new_text, "prompt") == 0)
            v->now.baseline[0] = v->now.baseline_se[0] = '\0';
        return start_copy(&v->begin, &v->now);
    }
    if (strcmp(c->name, "versus") == 0) {
        v->versus = true;
        struct run_info *begin = &v->begin.info;
        const uint32_t policy = s->seq == 1 ? versus_read(begin, c->new_text, begin->start_values) : begin->n_policies;
        if (policy < begin->n_policies)
            memcpy(begin->policy, begin->policies[policy].name, sizeof begin->policy);
        return true;
    }
    if (strcmp(c->name, "pace") == 0)
        v->paced = strtod(c->new_text, NULL) > 0;
    if (strcmp(c->name, "prompt") == 0 && !set_prompt(&v->begin, c->new_text)) /* of the run that has just begun */
        return false;
    return (v->versus && e->seq != 0) || start_take(&v->now, c, v->paced); /* the second one's go with it */
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
    const struct saved_start first = {.info = *s->info};
    struct event e;
    struct err stop = {0};
    bool ok = start_copy(&v.now, &first) && start_copy(&v.begin, &first) &&
              (s->used = calloc((size_t)s->info->n_policies + 1, sizeof *s->used)) != NULL;
    const bool read = !ok || trace_reader_rewind_brief(s->reader, err);
    while (ok && read && trace_reader_next(s->reader, &e, &stop))
        ok = survey_event(s, &v, &e);
    start_close(&v.now);
    start_close(&v.begin);
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
    start_close(&s->begin);
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
    static const char *const without[] = {"run", "prompt", "versus", "state", "break", "until"};
    if (e->type == EVENT_VOCAB)
        return true;
    if (e->run != s->run || e->type != EVENT_CONTROL)
        return e->run == s->run && is_of_sequence(e) && e->seq == s->seq;
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (strcmp(e->control.name, without[i]) == 0)
            return false;
    return concerns(s, s->versus, e);
}

bool
saved_run_next(struct saved_run *s, struct event *e, struct err *err)
{
    do {
        if (!trace_reader_next(s->reader, e, err) || e->run > s->run)
            return false;
    } while (!is_own(s, e));
    s->left = s->left || (e->type == EVENT_CONTROL && strcmp(e->control.name, "left") == 0);
    e->t_us = e->run == s->run && e->t_us > s->begin_us ? e->t_us - s->begin_us : 0;
    e->t_us = e->t_us < s->duration_us ? e->t_us : s->duration_us; /* which no layer's word lengthens */
    return true;
}
