/* Builds segments from events, and describes them: measures, name, changes. */
#include "engine/measure/segments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/events/sampling_knobs.h"

#define OTHERS 4

struct segment_side {                    /* a setting and its segments */
    struct segment next;                 /* the settings in force, and their changes since the newest segment */
    uint32_t last;                       /* 1 + the number of its newest segment; 0: none */
    struct settings now, ran;            /* now: in force; ran: at the start of the newest segment */
    struct segment_change other[OTHERS]; /* changed knobs that no known policy declares */
    uint32_t n_other;
    struct estimate baseline[2]; /* of the prompt, and of the prompt with a speed limit */
    uint32_t prompts;            /* number of its newest prompt */
    double next_se;              /* of the next baseline event; NAN: unknown */
    uint64_t generated;          /* tokens generated in the run */
};

struct kept_prompt { /* owned; NULL: none */
    char *text, *before;
};

struct segments {
    const struct run_info *info;
    struct segment *ring;             /* (SEGMENTS) segment number i is ring[i % SEGMENTS] */
    uint32_t n;                       /* number of segments since the start */
    struct segment none;              /* empty */
    struct segment_side side[2], *at; /* two in a versus; at: the side of the current event */
    bool versus;
    uint32_t focus;             /* the side that the readers return */
    struct kept_prompt *prompt; /* (SEGMENTS) all prompts except the first, number i at i % SEGMENTS; owned */
    bool races;                 /* the runs are those of a race */
    uint32_t sequences;         /* sequences that had a round in the run */
};

/* Do the settings in force begin a segment with the next round? */
static inline bool
segments_side_coming(const struct segment_side *side)
{
    return side->last == 0 || side->next.cause[0] != '\0' || side->next.n_changes > 0;
}

struct estimates
segment_estimates(const struct segment *s, const struct run_info *info)
{
    struct round_sums sums = s->sums;
    if (s->joint.rounds > 0)
        round_sums_add(&sums, &s->joint, info->rho);
    return round_sums_estimates(&sums, info->layers, info->rho);
}

struct estimate
segment_speedup(const struct segment *s, const struct run_info *info)
{
    const struct estimate within = sliced_speedup(&s->sliced);
    const double apart = estimate_quotient(segment_estimates(s, info).tokens_per_s, s->baseline).value;
    return isnan(within.value) ? (struct estimate){.value = apart, .se = NAN} : within;
}

void
segment_letter(uint32_t number, char out[8])
{
    char reversed[8];
    int n = 0;
    for (uint64_t left = (uint64_t)number + 1; left > 0; left = (left - 1) / 26)
        reversed[n++] = (char)('A' + (left - 1) % 26);
    for (int i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    out[n] = '\0';
}

/* Returns the symbol of a knob of the policy or of sampling. */
static const char *
symbol_of(const struct segment *s, const struct run_info *info, const char *name)
{
    const struct policy_info *p = s->policy < info->n_policies ? &info->policies[s->policy] : NULL;
    const int i = p != NULL ? policy_knob_index(p, name) : -1, drawn = sampling_knob_index(name);
    const char *symbol = i >= 0 ? p->knobs[i].symbol : drawn >= 0 ? sampling_knobs[drawn].symbol : "";
    return symbol[0] != '\0' ? symbol : name;
}

static size_t
write_change(const struct segment *s, const struct run_info *info, const struct segment_change *c, bool arrows,
             char *out, size_t n)
{
    const bool named = strcmp(c->name, "policy") != 0, from = arrows && c->before[0] != '\0';
    const int made = snprintf(out, n, "%s%s%s%s%s", named ? symbol_of(s, info, c->name) : "", named ? " " : "",
                              from ? c->before : "", from ? "→" : "", c->after);
    return made < 0 ? 0 : (size_t)made;
}

void
segment_text(const struct segment *s, const struct run_info *info, bool arrows, char *out, size_t n)
{
    static const struct {
        const char *cause, *text;
    } causes[] = {{"start", "start"}, {"restart", "again"}, {"prompt", "new prompt"}};
    size_t used = 0;
    out[0] = '\0';
    if (s->races > 0) {
        snprintf(out, n, "race, %u runs", (unsigned)s->races);
        return;
    }
    if (s->versus)
        used += (size_t)snprintf(out, n, "%u: ", (unsigned)s->seq + 1);
    const size_t begin = used;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (strcmp(s->cause, causes[i].cause) == 0 && (s->n_changes == 0 || i == 2))
            used += (size_t)snprintf(out + used, n - used, "%s", causes[i].text);
    for (uint32_t i = 0; i < s->n_changes && used + 3 < n; i++) {
        if (used > begin)
            used += (size_t)snprintf(out + used, n - used, ", ");
        used += write_change(s, info, &s->change[i], arrows, out + used, n - used);
    }
}

/* Does the current event concern this segment? A control about both settings of a versus is applied to each side. */
static bool
is_meant(const struct segments *s, const struct segment *at)
{
    return !s->versus || at->seq == s->at->next.seq;
}

/* ---- results of a baseline ---- */
static void
segments_take_baseline(struct segments *s, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || !isfinite(value) || !(value > 0))
        return;
    const bool paced = s->at->next.paced;
    s->at->baseline[paced] = (struct estimate){.value = value, .se = s->at->next_se, .n = UINT64_MAX};
    s->at->next_se = NAN;
    s->at->next.baseline = s->at->baseline[paced];
    for (uint32_t back = 0; back < segments_held(s); back++) {
        struct segment *at = &s->ring[(s->n - 1 - back) % SEGMENTS];
        if (at->prompt == s->at->next.prompt && at->paced == paced && is_meant(s, at))
            at->baseline = s->at->baseline[paced];
    }
}

/* Reads "yes", "yes: 7 sequences", "sampled", or "no: token 17", counted from the run's first generated token. Tokens
 * after a difference cannot be compared, and with several sequences the token's sequence is unknown. */
static void
segments_take_lossless(struct segments *s, const char *text)
{
    const bool yes = strncmp(text, "yes", 3) == 0, sampled = strcmp(text, "sampled") == 0;
    uint64_t differs = UINT64_MAX;
    if (strncmp(text, "no: token ", 10) == 0 && (s->sequences < 2 || run_info_apart(s->info)))
        differs = strtoull(text + 10, NULL, 10);
    else if (strncmp(text, "no:", 3) == 0)
        differs = 0;
    else if (!yes && !sampled)
        return;
    for (uint32_t back = 0; back < segments_held(s); back++) {
        struct segment *at = &s->ring[(s->n - 1 - back) % SEGMENTS];
        if (at->run != s->at->next.run)
            break;
        if (!is_meant(s, at))
            continue;
        at->compared = at->total.emitted;
        if (sampled)
            at->lossless = LOSSLESS_SAMPLED;
        else if (differs > at->before + at->total.emitted)
            at->lossless = LOSSLESS_YES;
        else
            at->lossless = differs > at->before || differs == 0 ? LOSSLESS_NO : LOSSLESS_UNKNOWN;
    }
}

/* Returns the newest segment of the side; an empty one if there is none, or it is no longer stored. */
static struct segment *
newest(struct segments *s)
{
    const uint32_t last = s->at->last;
    return last > 0 && s->n - last < SEGMENTS ? &s->ring[(last - 1) % SEGMENTS] : &s->none;
}

/* Returns the segment that the settings are compared with: the side's last one, or at the start of a second setting
 * the other side's; NULL: none. */
static const struct segment *
before(struct segments *s)
{
    if (s->at->last == 0)
        return s->at == &s->side[1] ? &s->side[0].next : NULL;
    return newest(s);
}

/* ---- settings ---- */

static const char *
policy_name(const struct segments *s, uint32_t policy)
{
    return policy < s->info->n_policies ? s->info->policies[policy].name : "?";
}

/* Copies the settings in force to the next segment. */
static void
copy_settings(struct segments *s)
{
    const struct settings *now = &s->at->now;
    struct segment *next = &s->at->next;
    const bool known = now->policy < s->info->n_policies;
    next->policy = now->policy;
    for (uint32_t k = 0; k < POLICY_KNOBS; k++)
        next->value[k] = known ? now->value[now->policy][k] : NAN;
    snprintf(next->head, sizeof next->head, "%s", now->head == HEADS_POLICY ? "" : head_mode_names[now->head]);
    next->sampling = now->sampling;
    next->seed = now->seed;
}

static void
copy_text(char *out, size_t n, const char *text)
{
    if (text == NULL)
        text = "";
    printable_text(text, strnlen(text, 4 * n), out, n);
}

static struct segment_change *
add_change(struct segment *next, const char *name)
{
    if (next->n_changes == SEGMENT_CHANGES)
        return NULL;
    struct segment_change *c = &next->change[next->n_changes++];
    *c = (struct segment_change){0};
    copy_text(c->name, sizeof c->name, name);
    return c;
}

static void
compare_knobs(struct segments *s)
{
    const uint32_t policy = s->at->next.policy;
    const struct policy_info *p = policy < s->info->n_policies ? &s->info->policies[policy] : NULL;
    for (uint32_t k = 0; p != NULL && k < p->n_knobs; k++) {
        const double was = s->at->ran.value[policy][k], is = s->at->now.value[policy][k];
        struct segment_change *c = was != is ? add_change(&s->at->next, p->knobs[k].name) : NULL;
        if (c == NULL)
            continue;
        knob_format(&p->knobs[k], was, c->before, sizeof c->before);
        knob_format(&p->knobs[k], is, c->after, sizeof c->after);
    }
}

/* Lists the differences between the settings in force and those of the newest segment. */
static void
compare(struct segments *s)
{
    const struct segment *last = before(s);
    struct segment *next = &s->at->next;
    struct segment_change *c;
    copy_settings(s);
    next->n_changes = 0;
    if (last == NULL)
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
    for (uint32_t i = 0; i < s->at->n_other; i++)
        if (strcmp(s->at->other[i].before, s->at->other[i].after) != 0 &&
            (c = add_change(next, s->at->other[i].name)) != NULL)
            *c = s->at->other[i];
}

static void
take_other(struct segments *s, const struct control_event *c)
{
    uint32_t i = 0;
    while (i < s->at->n_other && strcmp(s->at->other[i].name, c->knob) != 0)
        i++;
    if (i == OTHERS)
        return;
    if (i == s->at->n_other) {
        s->at->other[s->at->n_other++] = (struct segment_change){0};
        copy_text(s->at->other[i].name, sizeof s->at->other[i].name, c->knob);
        copy_text(s->at->other[i].before, sizeof s->at->other[i].before, c->old_text);
    }
    copy_text(s->at->other[i].after, sizeof s->at->other[i].after, c->new_text);
}

static void
forget_baselines(struct segments *s)
{
    s->at->next.baseline = s->at->baseline[0] = s->at->baseline[1] = (struct estimate){.value = NAN, .se = NAN};
    s->at->next_se = NAN;
}

static void
take_pace(struct segments *s, const char *text)
{
    s->at->next.paced = strtod(text, NULL) > 0;
    s->at->next.baseline = s->at->baseline[s->at->next.paced];
}

static void
begin_run(struct segments *s, const struct event *e)
{
    struct segment *next = &s->at->next;
    const bool other = strcmp(e->control.new_text, "prompt") == 0;
    next->run = e->run;
    copy_text(next->cause, sizeof next->cause, s->races ? "race" : e->control.new_text);
    if (next->cause[0] == '\0')
        snprintf(next->cause, sizeof next->cause, "start");
    if (other) {
        if (!s->races || newest(s)->races == 0) /* the prompts of a race have one number */
            s->at->prompts++;
        next->prompt = s->at->prompts;
        forget_baselines(s);
    }
    next->versus = s->versus = false;
    s->at->generated = s->sequences = 0;
}

/* Builds the second setting from the first one; for a second saved run, from that run's initial settings. */
static void
begin_versus(struct segments *s, const char *text)
{
    struct segment_side *first = &s->side[0], *second = &s->side[1];
    s->versus = first->next.versus = true;
    second->next = first->next;
    second->next.seq = 1;
    second->last = second->n_other = 0;
    second->generated = 0;
    memcpy(second->baseline, first->baseline, sizeof second->baseline);
    second->next_se = first->next_se;
    second->prompts = first->prompts;
    second->now = second->ran = first->now;
    s->at = second;
    if (run_info_apart(s->info)) {
        settings_begin(&second->now, run_info_of(s->info, 1));
        forget_baselines(s);
    }
    settings_read_versus(&second->now, s->info, text);
}

static void
forget_prompt(struct kept_prompt *p)
{
    free(p->text);
    free(p->before);
    *p = (struct kept_prompt){NULL, NULL};
}

static bool
same_text(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static void
take_prompt(struct segments *s, const struct control_event *c)
{
    const bool raced = !s->races && newest(s)->races > 0; /* its prompt is the one before the race */
    for (uint32_t back = 0; raced && back < segments_held(s); back++) {
        const struct segment *earlier = segments_at(s, back);
        if (earlier->races == 0 && same_text(segments_prompt(s, earlier), c->new_text) &&
            same_text(segments_before(s, earlier), c->old_text)) {
            s->at->next.prompt = earlier->prompt;
            return;
        }
    }
    struct kept_prompt *p = &s->prompt[s->at->next.prompt % SEGMENTS];
    forget_prompt(p);
    p->text = strdup(c->new_text);
    p->before = c->old_text != NULL && c->old_text[0] != '\0' ? strdup(c->old_text) : NULL;
}

/* ---- events ---- */

static bool
is_of_policy(const struct segments *s, const char *knob)
{
    const uint32_t policy = s->at->now.policy;
    return policy < s->info->n_policies && policy_knob_index(&s->info->policies[policy], knob) >= 0;
}

static void
take_control(struct segments *s, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (c->new_text == NULL)
        return;
    settings_apply(&s->at->now, s->info, c);
    switch (c->kind) {
    case RECORDED_RUN: begin_run(s, e); break;
    case RECORDED_VERSUS: begin_versus(s, c->new_text); break;
    case RECORDED_RACE: s->races = strcmp(c->new_text, "begins") == 0; break;
    case RECORDED_PROMPT: take_prompt(s, c); break;
    case RECORDED_PACE: take_pace(s, c->new_text); break;
    case RECORDED_BASELINE_SE: s->at->next_se = strtod(c->new_text, NULL); break;
    case RECORDED_BASELINE: segments_take_baseline(s, c->new_text); break;
    case RECORDED_BASELINE_SLICE: sliced_slice(&newest(s)->sliced, strtod(c->new_text, NULL)); break;
    case RECORDED_LOSSLESS: segments_take_lossless(s, c->new_text); break;
    case RECORDED_KNOB:
        if (!is_of_policy(s, c->knob))
            take_other(s, c);
        break;
    default: break;
    }
    compare(s);
}

static struct segment *
begin_segment(struct segments *s, const struct event *e)
{
    struct segment *last = newest(s);
    const bool again = s->races && last->races > 0; /* another run of the race */
    struct segment *at = again ? last : &s->ring[s->n % SEGMENTS];
    s->at->next.races = s->races ? last->races + 1 : 0;
    s->at->next.number = again ? last->number : s->n;
    s->at->next.run = e->run;
    s->at->next.first_round = e->round;
    s->at->next.before = s->at->generated + 1;
    const uint64_t spent = (uint64_t)e->round_end.draft_us + e->round_end.verify_us;
    s->at->next.t_us = e->t_us > spent ? e->t_us - spent : 0;
    s->n += !again;
    s->at->last = s->n;
    *at = s->at->next;
    s->at->ran = s->at->now;
    s->at->next.n_changes = s->at->n_other = 0;
    s->at->next.cause[0] = '\0';
    s->at->next.races = 0;
    return at;
}

static void
take_round(struct segments *s, const struct event *e)
{
    const struct tally t = tally_of(&e->round_end);
    struct segment *at = newest(s);
    const bool same = at->run == e->run && at->joint.rounds > 0 && at->joint_round == e->round;
    if (!same && (segments_side_coming(s->at) || at->run != e->run))
        at = begin_segment(s, e);
    if (at->joint.rounds > 0 && !same) {
        round_sums_add(&at->sums, &at->joint, s->info->rho);
        at->joint = (struct tally){0};
    }
    tally_add(&at->total, &t);
    sliced_round(&at->sliced, (double)t.emitted, (t.draft_us + t.verify_us) * 1e-6);
    at->total.shared += tally_join(&at->joint, &t);
    at->joint_round = e->round;
    s->at->generated += t.emitted;
    if (e->seq >= s->sequences)
        s->sequences = e->seq + 1;
}

void
segments_event(struct segments *s, const struct event *e)
{
    const bool versus = s->versus;
    for (uint32_t seq = 0; seq < 2 && e->type == EVENT_CONTROL; seq++) {
        s->at = &s->side[seq];
        if (versus ? run_info_concerns(s->info, seq, e) : seq == 0)
            take_control(s, e);
    }
    s->at = &s->side[s->versus && e->seq == 1];
    if (e->type == EVENT_ROUND)
        take_round(s, e);
}

/* ---- opening and closing ---- */

static void
forget_prompts(struct segments *s)
{
    for (uint32_t i = 0; s->prompt != NULL && i < SEGMENTS; i++)
        forget_prompt(&s->prompt[i]);
}

void
segments_reset(struct segments *s)
{
    forget_prompts(s);
    s->at = &s->side[0];
    s->at->last = 0;
    s->versus = s->races = false;
    s->n = s->at->prompts = 0;
    memset(s->ring, 0, SEGMENTS * sizeof *s->ring);
    s->at->generated = s->sequences = 0;
    settings_begin(&s->at->now, s->info);
    s->at->ran = s->at->now;
    s->at->next = (struct segment){.cause = "start"};
    forget_baselines(s);
    s->at->n_other = 0;
    copy_settings(s);
}

bool
segments_open(struct segments **out, const struct run_info *info, struct err *err)
{
    struct segments *s = *out = calloc(1, sizeof *s);
    if (s != NULL) {
        s->info = info;
        s->ring = calloc(SEGMENTS, sizeof *s->ring);
        s->prompt = calloc(SEGMENTS, sizeof *s->prompt);
    }
    if (s == NULL || s->ring == NULL || s->prompt == NULL) {
        segments_close(s);
        *out = NULL;
        return err_set(err, ERR_WORK, "out of memory for the segments of a run");
    }
    segments_reset(s);
    return true;
}

void
segments_close(struct segments *s)
{
    if (s == NULL)
        return;
    forget_prompts(s);
    free(s->prompt);
    free(s->ring);
    free(s);
}

uint32_t
segments_held(const struct segments *s)
{
    return s->n < SEGMENTS ? s->n : SEGMENTS;
}

const struct segment *
segments_at(const struct segments *s, uint32_t back)
{
    return back < segments_held(s) ? &s->ring[(s->n - 1 - back) % SEGMENTS] : NULL;
}

const struct segment *
segments_named(const struct segments *s, const char *letter)
{
    uint64_t number = 0;
    for (const char *at = letter; *at != '\0'; at++) {
        const char c = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        if (c < 'A' || c > 'Z' || number > s->n)
            return NULL;
        number = number * 26 + (uint64_t)(c - 'A') + 1;
    }
    return number > 0 && number <= s->n ? segments_at(s, s->n - (uint32_t)number) : NULL;
}

static const struct segment_side *
shown(const struct segments *s)
{
    return &s->side[s->versus && s->focus == 1];
}

bool
segment_concerns(const struct segment *s, uint32_t seq)
{
    return !s->versus || s->seq == (seq == 1);
}

bool
segment_same_setting(const struct segment *a, const struct segment *b, const struct run_info *info)
{
    const uint32_t knobs = a->policy < info->n_policies ? info->policies[a->policy].n_knobs : 0;
    bool same = a->policy == b->policy && strcmp(a->head, b->head) == 0 &&
                a->sampling.temperature == b->sampling.temperature && a->sampling.top_k == b->sampling.top_k &&
                a->sampling.top_p == b->sampling.top_p;
    for (uint32_t k = 0; same && k < knobs; k++)
        same = a->value[k] == b->value[k];
    return same;
}

void
segments_focus(struct segments *s, uint32_t seq)
{
    s->focus = seq;
}

const struct segment *
segments_coming(const struct segments *s)
{
    return s->n > 0 && segments_side_coming(shown(s)) ? &shown(s)->next : NULL;
}

const struct segment *
segments_now(const struct segments *s)
{
    return &shown(s)->next;
}

static const struct kept_prompt *
prompt_of(const struct segments *s, const struct segment *at)
{
    static const struct kept_prompt none = {NULL, NULL};
    return s->side[0].prompts - at->prompt < SEGMENTS ? &s->prompt[at->prompt % SEGMENTS] : &none;
}

const char *
segments_prompt(const struct segments *s, const struct segment *at)
{
    const char *prompt = prompt_of(s, at)->text;
    return at->prompt == 0 && prompt == NULL ? s->info->prompt : prompt;
}

const char *
segments_before(const struct segments *s, const struct segment *at)
{
    return prompt_of(s, at)->before;
}
