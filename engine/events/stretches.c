/* Stretches of rounds under one setting. */
#include "engine/events/stretches_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/events/sampling_knobs.h"

/* An empty one where there is none yet. */
static struct stretch *
newest(struct stretches *s)
{
    return &s->ring[(s->n - 1) % STRETCHES];
}

/* ---- settings ---- */

static const char *
policy_name(const struct stretches *s, uint32_t policy)
{
    return policy < s->info->n_policies ? s->info->policies[policy].name : "?";
}

static void
choose_policy(struct stretches *s, const char *name)
{
    const struct policy_info *p = run_info_policy(s->info, name);
    s->next.policy = p != NULL ? (uint32_t)(p - s->info->policies) : s->info->n_policies;
    for (uint32_t k = 0; k < POLICY_KNOBS; k++)
        s->next.value[k] = p != NULL ? s->values[s->next.policy * POLICY_KNOBS + k] : NAN;
}

static void
copy_text(char *out, size_t n, const char *text)
{
    if (text == NULL)
        text = "";
    printable_text(text, strnlen(text, 4 * n), out, n);
}

static struct stretch_change *
add_change(struct stretch *next, const char *name)
{
    if (next->n_changes == STRETCH_CHANGES)
        return NULL;
    struct stretch_change *c = &next->change[next->n_changes++];
    *c = (struct stretch_change){0};
    copy_text(c->name, sizeof c->name, name);
    return c;
}

static void
compare_knobs(struct stretches *s)
{
    const uint32_t policy = s->next.policy;
    const struct policy_info *p = policy < s->info->n_policies ? &s->info->policies[policy] : NULL;
    for (uint32_t k = 0; p != NULL && k < p->n_knobs; k++) {
        const double before = s->ran[policy * POLICY_KNOBS + k], after = s->values[policy * POLICY_KNOBS + k];
        struct stretch_change *c = before != after ? add_change(&s->next, p->knobs[k].name) : NULL;
        if (c == NULL)
            continue;
        knob_format(&p->knobs[k], before, c->before, sizeof c->before);
        knob_format(&p->knobs[k], after, c->after, sizeof c->after);
    }
}

/* In what the settings in force differ from those that the newest stretch ran with. */
static void
compare(struct stretches *s)
{
    const struct stretch *last = newest(s);
    struct stretch *next = &s->next;
    struct stretch_change *c;
    next->n_changes = 0;
    if (s->n == 0)
        return;
    if (next->policy != last->policy && (c = add_change(next, "policy")) != NULL) {
        snprintf(c->before, sizeof c->before, "%s", policy_name(s, last->policy));
        snprintf(c->after, sizeof c->after, "%s", policy_name(s, next->policy));
    }
    compare_knobs(s);
    if (strcmp(next->head, last->head) != 0 && (c = add_change(next, "head")) != NULL) {
        snprintf(c->before, sizeof c->before, "%s", last->head);
        snprintf(c->after, sizeof c->after, "%s", next->head);
    }
    if (next->paced != last->paced && (c = add_change(next, "speed")) != NULL) {
        snprintf(c->before, sizeof c->before, "%s", last->paced ? "slowed" : "max");
        snprintf(c->after, sizeof c->after, "%s", next->paced ? "slowed" : "max");
    }
    for (uint32_t i = 0; i < s->n_other; i++)
        if (strcmp(s->other[i].before, s->other[i].after) != 0 && (c = add_change(next, s->other[i].name)) != NULL)
            *c = s->other[i];
}

static bool
coming(const struct stretches *s)
{
    return s->n == 0 || s->next.cause[0] != '\0' || s->next.n_changes > 0;
}

static bool
names_a_control(const char *name)
{
    for (int i = 0; control_names[i] != NULL; i++)
        if (strcmp(control_names[i], name) == 0)
            return true;
    return false;
}

static void
take_other(struct stretches *s, const struct control_event *c)
{
    uint32_t i = 0;
    while (i < s->n_other && strcmp(s->other[i].name, c->name) != 0)
        i++;
    if (names_a_control(c->name) || i == OTHERS)
        return;
    if (i == s->n_other) {
        s->other[s->n_other++] = (struct stretch_change){0};
        copy_text(s->other[i].name, sizeof s->other[i].name, c->name);
        copy_text(s->other[i].before, sizeof s->other[i].before, c->old_text);
    }
    copy_text(s->other[i].after, sizeof s->other[i].after, c->new_text);
}

static void
take_knob(struct stretches *s, const struct control_event *c)
{
    const struct policy_info *policy = s->next.policy < s->info->n_policies ? &s->info->policies[s->next.policy] : NULL;
    const int i = policy != NULL ? policy_knob_index(policy, c->name) : -1;
    double value;
    if (i < 0)
        take_other(s, c);
    else if (knob_parse(&policy->knobs[i], c->new_text, &value, NULL))
        s->values[s->next.policy * POLICY_KNOBS + (uint32_t)i] = s->next.value[i] = value;
}

static void
forget_baselines(struct stretches *s)
{
    s->next.baseline = s->baseline[0] = s->baseline[1] = (struct estimate){.value = NAN, .se = NAN};
    s->next_se = NAN;
}

static void
take_pace(struct stretches *s, const char *text)
{
    s->next.paced = strtod(text, NULL) > 0;
    s->next.baseline = s->baseline[s->next.paced];
}

static void
begin_run(struct stretches *s, const struct event *e)
{
    struct stretch *next = &s->next;
    const bool other = strcmp(e->control.new_text, "prompt") == 0;
    next->run = e->run;
    copy_text(next->cause, sizeof next->cause, e->control.new_text);
    if (next->cause[0] == '\0')
        snprintf(next->cause, sizeof next->cause, "start");
    if (other) {
        next->prompt++;
        forget_baselines(s);
    }
    s->generated = s->sequences = 0;
}

static void
take_prompt(struct stretches *s, const char *text)
{
    char **at = &s->prompt[s->next.prompt % STRETCHES];
    free(*at);
    *at = strdup(text);
}

/* ---- events ---- */

static void
take_sampling(struct stretches *s, const struct control_event *c)
{
    const int i = sampling_knob_index(c->name);
    double value;
    if (i >= 0 && knob_parse(&sampling_knobs[i], c->new_text, &value, NULL))
        sampling_knob_set(&s->next.sampling, &s->next.seed, i, value);
}

static void
take_control(struct stretches *s, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (c->new_text == NULL)
        return;
    if (strcmp(c->name, "run") == 0) {
        begin_run(s, e);
    } else if (strcmp(c->name, "policy") == 0) {
        choose_policy(s, c->new_text);
    } else if (strcmp(c->name, "head") == 0) {
        copy_text(s->next.head, sizeof s->next.head, c->new_text);
    } else if (strcmp(c->name, "prompt") == 0) {
        take_prompt(s, c->new_text);
    } else if (strcmp(c->name, "pace") == 0) {
        take_pace(s, c->new_text);
    } else if (strcmp(c->name, "baseline_se") == 0) {
        s->next_se = strtod(c->new_text, NULL);
    } else if (strcmp(c->name, "baseline") == 0) {
        stretches_take_baseline(s, c->new_text);
    } else if (strcmp(c->name, "lossless") == 0) {
        stretches_take_lossless(s, c->new_text);
    } else {
        take_sampling(s, c);
        take_knob(s, c);
    }
    compare(s);
}

static struct stretch *
begin_stretch(struct stretches *s, const struct event *e)
{
    struct stretch *at = &s->ring[s->n % STRETCHES];
    s->next.number = s->n;
    s->next.run = e->run;
    s->next.first_round = e->round;
    s->next.before = s->generated + 1;
    const uint64_t spent = (uint64_t)e->round_end.draft_us + e->round_end.verify_us;
    s->next.t_us = e->t_us > spent ? e->t_us - spent : 0;
    s->n++;
    *at = s->next;
    memcpy(s->ran, s->values, (size_t)s->info->n_policies * POLICY_KNOBS * sizeof *s->ran);
    s->next.n_changes = s->n_other = 0;
    s->next.cause[0] = '\0';
    return at;
}

static void
take_round(struct stretches *s, const struct event *e)
{
    const struct tally t = tally_of(&e->round_end);
    struct stretch *at = newest(s);
    const bool same = at->run == e->run && at->joint.rounds > 0 && at->joint_round == e->round;
    if (!same && (coming(s) || at->run != e->run))
        at = begin_stretch(s, e);
    if (at->joint.rounds > 0 && !same) {
        round_sums_add(&at->sums, &at->joint, s->info->rho);
        at->joint = (struct tally){0};
    }
    tally_add(&at->joint, &t);
    tally_add(&at->total, &t);
    at->joint_round = e->round;
    s->generated += t.emitted;
    if (e->seq >= s->sequences)
        s->sequences = e->seq + 1;
}

void
stretches_event(struct stretches *s, const struct event *e)
{
    if (e->type == EVENT_CONTROL)
        take_control(s, e);
    else if (e->type == EVENT_ROUND)
        take_round(s, e);
}

/* ---- life ---- */

static void
forget_prompts(struct stretches *s)
{
    for (uint32_t i = 0; s->prompt != NULL && i < STRETCHES; i++) {
        free(s->prompt[i]);
        s->prompt[i] = NULL;
    }
}

void
stretches_reset(struct stretches *s)
{
    forget_prompts(s);
    s->n = 0;
    memset(s->ring, 0, STRETCHES * sizeof *s->ring);
    s->generated = s->sequences = 0;
    for (uint32_t i = 0; i < s->info->n_policies; i++)
        for (uint32_t k = 0; k < POLICY_KNOBS; k++)
            s->values[i * POLICY_KNOBS + k] = s->info->start_values != NULL
                                                  ? s->info->start_values[i * POLICY_KNOBS + k]
                                                  : s->info->policies[i].knobs[k].def;
    s->next = (struct stretch){.cause = "start", .sampling = s->info->sampling, .seed = s->info->seed};
    forget_baselines(s);
    memcpy(s->ran, s->values, (size_t)s->info->n_policies * POLICY_KNOBS * sizeof *s->ran);
    s->n_other = 0;
    choose_policy(s, s->info->policy);
}

bool
stretches_open(struct stretches **out, const struct run_info *info, struct err *err)
{
    struct stretches *s = *out = calloc(1, sizeof *s);
    if (s != NULL) {
        s->info = info;
        s->ring = calloc(STRETCHES, sizeof *s->ring);
        s->values = calloc((size_t)info->n_policies * POLICY_KNOBS + 1, sizeof *s->values);
        s->ran = calloc((size_t)info->n_policies * POLICY_KNOBS + 1, sizeof *s->ran);
        s->prompt = calloc(STRETCHES, sizeof *s->prompt);
    }
    if (s == NULL || s->ring == NULL || s->values == NULL || s->ran == NULL || s->prompt == NULL) {
        stretches_close(s);
        *out = NULL;
        return err_set(err, ERR_WORK, "out of memory for the stretches of a run");
    }
    stretches_reset(s);
    return true;
}

void
stretches_close(struct stretches *s)
{
    if (s == NULL)
        return;
    forget_prompts(s);
    free(s->prompt);
    free(s->ring);
    free(s->values);
    free(s->ran);
    free(s);
}

/* ---- reading ---- */

uint32_t
stretches_held(const struct stretches *s)
{
    return s->n < STRETCHES ? s->n : STRETCHES;
}

const struct stretch *
stretches_at(const struct stretches *s, uint32_t back)
{
    return back < stretches_held(s) ? &s->ring[(s->n - 1 - back) % STRETCHES] : NULL;
}

const struct stretch *
stretches_named(const struct stretches *s, const char *letter)
{
    uint64_t number = 0;
    for (const char *at = letter; *at != '\0'; at++) {
        const char c = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        if (c < 'A' || c > 'Z' || number > s->n)
            return NULL;
        number = number * 26 + (uint64_t)(c - 'A') + 1;
    }
    return number > 0 && number <= s->n ? stretches_at(s, s->n - (uint32_t)number) : NULL;
}

const struct stretch *
stretches_coming(const struct stretches *s)
{
    return s->n > 0 && coming(s) ? &s->next : NULL;
}

const struct stretch *
stretches_now(const struct stretches *s)
{
    return &s->next;
}

double
stretches_value(const struct stretches *s, uint32_t policy, uint32_t knob)
{
    return policy < s->info->n_policies && knob < POLICY_KNOBS ? s->values[policy * POLICY_KNOBS + knob] : NAN;
}

const char *
stretches_prompt(const struct stretches *s, const struct stretch *at)
{
    const char *told = s->next.prompt - at->prompt < STRETCHES ? s->prompt[at->prompt % STRETCHES] : NULL;
    return at->prompt == 0 && told == NULL ? s->info->prompt : told;
}
