/* Taking events in. They come from traces too: every number is checked before it is an index. In a trace a draft's
 * verdict may come earlier than it did live, so what the scope holds never depends on the order of verdicts, tokens and
 * guesses. */
#include <string.h>

#include "engine/base/printable.h"
#include "tui/scope/scope_internal.h"

/* A probe, or how tokens are drawn. */
static void
take_run(struct scope_run *run, const struct control_event *c)
{
    const int knob = sampling_knob_index(c->name);
    double value;
    if (strcmp(c->name, "probe") == 0)
        snprintf(run->probe, sizeof run->probe, "%s", c->new_text);
    if (knob < 0 || !knob_parse(&sampling_knobs[knob], c->new_text, &value, NULL))
        return;
    sampling_knob_set(&run->sampling, &run->seed, knob, value);
    run->sampled = run->sampled || run->sampling.temperature > 0;
}

static void
take_knob(struct scope *s, uint32_t seq, const struct control_event *c)
{
    struct scope_setting *setting = &s->setting[scope_side(s, seq)];
    const struct policy_info *policy = scope_policy_of(s, seq);
    const int i = policy != NULL ? policy_knob_index(policy, c->name) : -1;
    double value;
    if (i < 0 || !knob_parse(&policy->knobs[i], c->new_text, &value, NULL))
        return;
    setting->values[setting->policy * POLICY_KNOBS + (uint32_t)i] = value;
}

static void
take_control(struct scope *s, const struct event *e)
{
    const struct control_event *c = &e->control;
    struct scope_heads *heads = &s->setting[scope_side(s, e->seq)].heads;
    if (c->new_text == NULL)
        return;
    if (strcmp(c->name, "device") == 0) {
        printable_text(c->new_text, strnlen(c->new_text, sizeof s->now.device), s->now.device, sizeof s->now.device);
        return;
    }
    heads->policy_turned = heads->policy_turned && strcmp(c->name, "head") == 0;
    if (strcmp(c->name, "run") == 0) {
        scope_begin_run(s);
        s->now.run = e->run;
    } else if (strcmp(c->name, "policy") == 0) {
        scope_choose_policy(s, e->seq, c->new_text);
        heads->policy_turned = true;
    } else if (strcmp(c->name, "versus") == 0) {
        scope_begin_versus(s, c->new_text);
    } else if (strcmp(c->name, "note") == 0) {
        scope_note_event(s, e);
    } else if (strcmp(c->name, "state") == 0) {
        s->now.running = strcmp(c->new_text, "paused") != 0;
    } else if (run_info_common(c->name)) {
        for (uint32_t seq = 0; seq < 2; seq++)
            if (!s->is_versus ? seq == 0 : run_info_concerns(s->info, seq, e))
                take_run(&s->setting[seq].run, c);
        scope_take_run(s);
    } else if (strcmp(c->name, "head") == 0) {
        snprintf(heads->head, sizeof heads->head, "%s", strcmp(c->new_text, "trained") == 0 ? "trained" : "lens");
        heads->show_trained = heads->head[0] == 't';
        heads->other_head = heads->policy_turned;
        heads->policy_turned = false;
    } else if (strcmp(c->name, "joined") == 0 || strcmp(c->name, "left") == 0 || strcmp(c->name, "back") == 0) {
        struct scope_member *m = scope_member(s, e->seq);
        if (m != NULL && c->name[0] == 'j')
            scope_joined(s, m, c->new_text);
        else if (m != NULL && c->name[0] == 'b')
            scope_goes_on(s, m);
        else if (m != NULL)
            scope_left(s, m, c->new_text);
    } else if (strcmp(c->name, "end") == 0) {
        /* It may come from a trace: nothing but text. Room for the longest sentence that is held, escaped. */
        printable_text(c->new_text, strnlen(c->new_text, sizeof s->now.end), s->now.end, sizeof s->now.end);
    } else {
        take_knob(s, e->seq, c);
    }
}

static void
take_of_sequence(struct scope *s, const struct event *e)
{
    struct scope_member *m = scope_member(s, e->seq);
    if (m == NULL)
        return;
    if (e->type == EVENT_ROUND || e->type == EVENT_TOKEN)
        scope_goes_on(s, m);
    struct scope_sequence *q = m->held;
    if (e->type == EVENT_ROUND)
        scope_count_round(s, m, e);
    if (q == NULL)
        return;
    wrong_paths_event(&q->wrong, e);
    switch (e->type) {
    case EVENT_TOKEN: scope_token_event(s, q, e); break;
    case EVENT_VERDICT: scope_verdict_event(q, &e->verdict); break;
    case EVENT_LAYER: scope_layer_event(s, q, e); break;
    case EVENT_SERIES: scope_series_event(s, q, e); break;
    case EVENT_EXPERTS: scope_experts_event(s, q, e); break;
    case EVENT_ROUND:
        scope_round_event(q, e);
        scope_aggregate_round(s, q);
        break;
    default: break;
    }
    s->now.starved = s->now.starved || q->starved;
    if (q == s->focus)
        scope_take_lengths(s);
}

static void
take_measures(struct scope *s, const struct event *e)
{
    if (!s->is_versus || (e->type == EVENT_CONTROL && strcmp(e->control.name, "versus") == 0))
        metrics_event(&s->now.metrics, e);
    else
        scope_versus_event(s, e);
}

void
scope_event(struct scope *s, const struct event *e)
{
    segments_event(s->segments, e);
    s->now.version++;
    switch (e->type) {
    case EVENT_VOCAB: scope_vocab_event(s, &e->vocab); break;
    case EVENT_CONTROL: take_control(s, e); break;
    case EVENT_TOKEN:
        s->in_progress = false;
        take_of_sequence(s, e);
        break;
    case EVENT_ROUND:
        s->now.end[0] = '\0'; /* an extended run goes on */
        s->now.round = e->round;
        take_of_sequence(s, e);
        break;
    case EVENT_VERDICT:
    case EVENT_LAYER:
    case EVENT_EXPERTS:
    case EVENT_SERIES: take_of_sequence(s, e); break;
    case EVENT_PROGRESS:
        s->progress = e->progress;
        s->progress.what[sizeof s->progress.what - 1] = '\0';
        s->in_progress = e->progress.done < 1; /* NAN ends it too */
        break;
    case EVENT_TYPES: break;
    }
    if (e->type == EVENT_ROUND || (e->type == EVENT_CONTROL && e->control.new_text != NULL))
        take_measures(s, e);
}

void
scope_lost(struct scope *s, uint64_t events)
{
    /* What is under way can't be told from what is missing; the next whole round is right again. */
    s->now.version++;
    s->now.epoch++;
    s->now.lost += events;
    for (uint32_t i = 0; i < s->n_members; i++)
        if (s->members[i]->held != NULL)
            sequence_lost(s->members[i]->held);
    scope_take_lengths(s);
}
