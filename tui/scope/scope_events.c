/* Taking events in. They come from traces too: every number is checked before it is an index. In a trace a draft's
 * verdict may come earlier than it did live, so what the scope holds never depends on the order of verdicts, tokens and
 * guesses. */
#include <string.h>

#include "engine/base/printable.h"
#include "tui/scope/scope_internal.h"

/* The series of another policy begin anew. */
static void
show_policy(struct scope *s, uint32_t seq)
{
    const struct policy_info *policy = scope_policy_of(s, seq);
    if (!s->is_versus || s->focus->seq == seq)
        sequence_choose_policy(s->focus, policy);
    for (uint32_t i = 0; i < s->n_members; i++)
        if (s->members[i]->held != NULL && (!s->is_versus || s->members[i]->tile.seq == seq))
            sequence_choose_policy(s->members[i]->held, policy);
}

static void
take_setting(struct scope *s, const struct event *e)
{
    for (uint32_t seq = 0; seq < (s->is_versus ? 2 : 1); seq++) {
        struct scope_setting *setting = &s->setting[seq];
        const uint32_t policy = setting->now.policy;
        if ((s->is_versus && !run_info_concerns(s->info, seq, e)) ||
            !settings_apply(&setting->now, s->info, &e->control))
            continue;
        setting->sampled = setting->sampled || setting->now.sampling.temperature > 0;
        if (setting->now.policy != policy)
            show_policy(s, seq);
    }
    scope_take_probe(s);
}

/* Another policy may have changed the head; if so, its event follows at once. */
static void
take_head(struct scope *s, const struct event *e)
{
    struct scope_setting *setting = &s->setting[scope_side(s, e->seq)];
    const bool policy_turned = setting->heads.policy_turned;
    setting->heads.policy_turned = e->control.kind == RECORDED_POLICY;
    if (e->control.kind != RECORDED_HEAD)
        return;
    setting->heads.show_trained = setting->now.head == HEADS_TRAINED;
    setting->heads.other_head = policy_turned;
}

/* The text may come from a trace, so it is printed as text only. */
static void
copy_text(char *out, size_t n, const char *text)
{
    printable_text(text, strnlen(text, n), out, n);
}

static void
take_control(struct scope *s, const struct event *e)
{
    const struct control_event *c = &e->control;
    struct scope_member *m;
    if (c->new_text == NULL)
        return;
    switch (c->kind) {
    case RECORDED_DEVICE: copy_text(s->now.device, sizeof s->now.device, c->new_text); return;
    case RECORDED_RUN:
        scope_begin_run(s);
        s->now.run = e->run;
        break;
    case RECORDED_VERSUS: scope_begin_versus(s, c->new_text); break;
    case RECORDED_NOTE: scope_note_event(s, e); break;
    case RECORDED_STATE: s->now.running = strcmp(c->new_text, "paused") != 0; break;
    case RECORDED_JOINED:
        if ((m = scope_member(s, e->seq)) != NULL)
            scope_joined(s, m, c->new_text);
        break;
    case RECORDED_BACK:
        if ((m = scope_member(s, e->seq)) != NULL)
            scope_goes_on(s, m);
        break;
    case RECORDED_LEFT:
        if ((m = scope_member(s, e->seq)) != NULL)
            scope_left(s, m, c->new_text);
        break;
    case RECORDED_END: copy_text(s->now.end, sizeof s->now.end, c->new_text); break;
    default: take_setting(s, e); break;
    }
    take_head(s, e);
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
    if (!s->is_versus || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_VERSUS))
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
