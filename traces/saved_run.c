#include "traces/saved_run.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/events/sampling_knobs.h"
#include "engine/events/versus_text.h"

/* ---- settings ---- */

static size_t
values_of(const struct run_info *info)
{
    return (size_t)info->n_policies * POLICY_KNOBS;
}

static bool
settings_open(struct saved_settings *s, const struct run_info *info)
{
    *s = (struct saved_settings){.sampling = info->sampling, .seed = info->seed};
    s->values = calloc(values_of(info) + 1, sizeof *s->values);
    if (s->values == NULL)
        return false;
    memcpy(s->values, info->start_values, values_of(info) * sizeof *s->values);
    while (s->policy + 1 < info->n_policies && strcmp(info->policies[s->policy].name, info->policy) != 0)
        s->policy++;
    return true;
}

static void
settings_close(struct saved_settings *s)
{
    free(s->values);
    free(s->prompt);
    *s = (struct saved_settings){0};
}

static bool
settings_copy(struct saved_settings *to, const struct saved_settings *from, const struct run_info *info)
{
    double *values = to->values;
    char *prompt = from->prompt != NULL ? strdup(from->prompt) : NULL;
    if (from->prompt != NULL && prompt == NULL)
        return false;
    free(to->prompt);
    *to = *from;
    to->prompt = prompt;
    to->values = values;
    memcpy(values, from->values, values_of(info) * sizeof *values);
    return true;
}

static bool
settings_take(struct saved_settings *s, const struct run_info *info, const struct control_event *c, bool paced)
{
    const struct policy_info *p = s->policy < info->n_policies ? &info->policies[s->policy] : NULL;
    const int knob = p != NULL ? policy_knob_index(p, c->name) : -1, sampling = sampling_knob_index(c->name);
    double value;
    if (strcmp(c->name, "policy") == 0) {
        const struct policy_info *chosen = run_info_policy(info, c->new_text);
        s->policy = chosen != NULL ? (uint32_t)(chosen - info->policies) : s->policy;
    } else if (strcmp(c->name, "prompt") == 0) {
        free(s->prompt);
        return (s->prompt = strdup(c->new_text)) != NULL;
    } else if (strcmp(c->name, "baseline_se") == 0 && !paced) {
        snprintf(s->baseline_se, sizeof s->baseline_se, "%s", c->new_text);
    } else if (strcmp(c->name, "baseline") == 0 && !paced) {
        snprintf(s->baseline, sizeof s->baseline, "%s", c->new_text);
    } else if (sampling >= 0 && knob_parse(&sampling_knobs[sampling], c->new_text, &value, NULL)) {
        sampling_knob_set(&s->sampling, &s->seed, sampling, value);
    } else if (knob >= 0 && knob_parse(&p->knobs[knob], c->new_text, &value, NULL)) {
        s->values[s->policy * POLICY_KNOBS + (uint32_t)knob] = value;
    }
    return true;
}

/* ---- which events are its own ---- */

/* Of a run with two settings a knob is one's own, as are notes, and comings and goings of any sequence. */
static bool
concerns(const struct saved_run *s, bool versus, const struct event *e)
{
    static const char *const own[] = {"note", "joined", "left", "back"};
    static const char *const common[] = {"pace", "probe", "baseline", "baseline_se", "lossless", "end"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(e->control.name, own[i]) == 0)
            return e->seq == s->seq;
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (strcmp(e->control.name, common[i]) == 0)
            return true;
    if (strcmp(e->control.name, "head") == 0 && e->seq == 0 && e->control.old_text[0] == '\0')
        return true; /* as both begin, until the second one's is told */
    return !versus || sampling_knob_index(e->control.name) >= 0 || e->seq == (s->seq == 1);
}

static bool
is_of_sequence(const struct event *e)
{
    return e->type == EVENT_TOKEN || e->type == EVENT_VERDICT || e->type == EVENT_LAYER || e->type == EVENT_SERIES ||
           e->type == EVENT_EXPERTS || e->type == EVENT_ROUND;
}

/* ---- the survey ---- */

struct survey {
    struct saved_settings now, begin; /* as events go by, and when the present run began */
    uint32_t wanted, run;             /* that is asked for, 0: the last one; that is read */
    bool versus, paced, met, there;   /* of the run; it is the one, so far; there is such a run */
    uint32_t last_run;                /* with a round of any sequence */
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
        return settings_copy(&v->begin, &v->now, s->info);
    }
    if (strcmp(c->name, "versus") == 0) {
        v->versus = true;
        const uint32_t policy = s->seq == 1 ? versus_read(s->info, c->new_text, v->begin.values) : s->info->n_policies;
        v->begin.policy = policy < s->info->n_policies ? policy : v->begin.policy;
        return true;
    }
    if (strcmp(c->name, "pace") == 0)
        v->paced = strtod(c->new_text, NULL) > 0;
    if (strcmp(c->name, "prompt") == 0) { /* of the run that has just begun */
        free(v->begin.prompt);
        if ((v->begin.prompt = strdup(c->new_text)) == NULL)
            return false;
    }
    return (v->versus && e->seq != 0) || settings_take(&v->now, s->info, c, v->paced); /* the second one's go with it */
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
        if (!settings_copy(&s->begin, &v->begin, s->info))
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
    bool ok = settings_open(&v.now, s->info) && settings_open(&v.begin, s->info) && settings_open(&s->begin, s->info) &&
              (s->used = calloc((size_t)s->info->n_policies + 1, sizeof *s->used)) != NULL;
    const bool read = !ok || trace_reader_rewind_brief(s->reader, err);
    while (ok && read && trace_reader_next(s->reader, &e, &stop))
        ok = survey_event(s, &v, &e);
    settings_close(&v.now);
    settings_close(&v.begin);
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
    settings_close(&s->begin);
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
