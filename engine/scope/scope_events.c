/* Applies events to the scope. They may come from a foreign trace, so every number is checked before it is used as an
 * index. In a trace verdicts may come earlier than in the live run, so the result never depends on the order of
 * verdicts, tokens and predictions. */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/scope/scope_internal.h"

/* Empties the series for another policy. */
static void
show_policy(struct scope *s, uint32_t seq)
{
    const struct policy_info *policy = scope_policy_of(s, seq);
    if (s->now.versus == NULL || s->focus->seq == seq)
        sequence_choose_policy(s->focus, policy);
    for (uint32_t i = 0; i < s->n_members; i++)
        if (s->members[i]->held != NULL && (s->now.versus == NULL || s->members[i]->tile.seq == seq))
            sequence_choose_policy(s->members[i]->held, policy);
}

static void
apply_setting(struct scope *s, const struct event *e)
{
    for (uint32_t seq = 0; seq < (s->now.versus != NULL ? 2 : 1); seq++) {
        struct scope_setting *setting = &s->setting[seq];
        const uint32_t policy = setting->now.policy;
        if ((s->now.versus != NULL && !run_info_concerns(s->info, seq, e)) ||
            !settings_apply(&setting->now, s->info, &e->control))
            continue;
        setting->sampled = setting->sampled || setting->now.sampling.temperature > 0;
        if (setting->now.policy != policy)
            show_policy(s, seq);
    }
    scope_take_probe(s);
}

/* A change of policy may change the head; its event follows at once. */
static void
apply_head(struct scope *s, const struct event *e)
{
    struct scope_setting *setting = &s->setting[scope_side(s, e->seq)];
    const bool policy_changed = setting->heads.policy_changed;
    setting->heads.policy_changed = e->control.kind == RECORDED_POLICY;
    if (e->control.kind != RECORDED_HEAD)
        return;
    setting->heads.show_trained = setting->now.head == HEADS_TRAINED;
    setting->heads.other_head = policy_changed;
}

/* The text may come from a trace, so it is made printable. */
static void
copy_text(char *out, size_t n, const char *text)
{
    printable_text(text, strnlen(text, n), out, n);
}

/* A foreign trace may have another text. */
static void
take_costs(struct scope *s, const char *text)
{
    struct cost_model costs;
    if (cost_model_parse(text, &costs, NULL))
        s->now.costs = costs;
}

static void
apply_control(struct scope *s, const struct event *e)
{
    const struct control_event *c = &e->control;
    struct scope_member *m;
    if (c->new_text == NULL)
        return;
    switch (c->kind) {
    case RECORDED_DEVICE: copy_text(s->now.device, sizeof s->now.device, c->new_text); return;
    case RECORDED_SERVER: copy_text(s->now.server, sizeof s->now.server, c->new_text); return;
    case RECORDED_COST: take_costs(s, c->new_text); return;
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
            scope_rejoined(s, m);
        break;
    case RECORDED_LEFT:
        if ((m = scope_member(s, e->seq)) != NULL)
            scope_left(s, m, c->new_text);
        break;
    case RECORDED_END: copy_text(s->now.end, sizeof s->now.end, c->new_text); break;
    default: apply_setting(s, e); break;
    }
    apply_head(s, e);
}

static void
commit(struct scope_sequence *q, uint32_t pos)
{
    if (pos + 1 > q->committed)
        q->committed = pos + 1;
}

/* ---- rounds ---- */

static void
forget_predictions(struct scope_sequence *q, uint32_t pos)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        aux_cells_forget_predictions(&q->aux[role], pos);
    for (int head = 0; head < 2 && q->cells[head] != NULL && sequence_holds_cells(q, pos); head++)
        for (uint32_t l = 1; l <= q->info->layers; l++) {
            struct scope_cell *cell = &sequence_cells(q, head, pos)[l];
            if (cell->probed_by == PROBED_POLICY)
                cell->known = false;
        }
}

static void
round_event(struct scope_sequence *q, const struct event *e)
{
    struct scope_round *r = sequence_open_round(q, e, q->committed);
    r->end = e->round_end;
    r->end.policy[sizeof r->end.policy - 1] = '\0';
    r->end.stop_reason[sizeof r->end.stop_reason - 1] = '\0';
    r->whole = true;
    q->open = false;
    q->round = e->round;
    const uint32_t from = q->committed > q->max_positions && q->base < q->committed - q->max_positions
                              ? q->committed - q->max_positions
                              : q->base;
    for (uint32_t p = from; p < q->committed; p++) {
        if (sequence_column(q, p) == NULL)
            continue;
        q->columns[p % q->max_positions].threshold = r->end.threshold;
        /* after the path left the main line, predictions of drafts concern another text */
        if (p > q->left_main)
            forget_predictions(q, p);
    }
    /* rejected drafts are shown until the next round; everything else after the end of the text is dropped */
    uint32_t tail = q->committed;
    for (const struct scope_column *c; (c = sequence_column(q, tail)) != NULL && c->fate == FATE_REJECTED;)
        tail++;
    sequence_forget_from(q, tail);
}

/* ---- tokens ---- */

static void
add_draft(struct scope_sequence *q, const struct event *e)
{
    const struct token_event *t = &e->token;
    if (t->candidate < 1 || t->candidate >= VERIFY_NODES || t->parent < 0 || t->parent >= t->candidate ||
        t->pos < q->committed)
        return;
    struct scope_round *r = sequence_open_round(q, e, t->pos);
    if (q->node[t->candidate] >= 0 || r->n_drafts >= SCOPE_DRAFTS)
        return;
    struct scope_column *c = sequence_touch(q, t->pos);
    if (c == NULL)
        return;
    const bool main_line = t->parent == q->main_tail;
    const int32_t parent = q->node[t->parent];
    const float p = t->confidence >= 0 && t->confidence <= 1 ? t->confidence : NAN,
                before = t->parent == 0 ? 1
                         : parent < 0   ? NAN
                                        : r->drafts[parent].path;
    q->node[t->candidate] = (int32_t)r->n_drafts;
    r->drafts[r->n_drafts++] = (struct scope_draft){.pos = t->pos,
                                                    .token = t->token,
                                                    .parent = t->parent,
                                                    .candidate = t->candidate,
                                                    .exit_layer = t->exit_layer,
                                                    .confidence = t->confidence,
                                                    .probability = p,
                                                    .path = before * p,
                                                    .accepted = -1,
                                                    .committed = -1,
                                                    .main_line = main_line};
    if (!main_line) {
        c->siblings++;
        return;
    }
    q->main_tail = t->candidate;
    c->token = t->token;
    c->fate = FATE_GHOST;
    c->round = e->round;
    c->exit_layer = t->exit_layer;
    c->confidence = t->confidence;
}

static void
token_event(struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct token_event *t = &e->token;
    if (t->token < 0 || (uint32_t)t->token >= q->info->vocab)
        return;
    struct event safe = *e;
    if (t->exit_layer < 1 || (uint32_t)t->exit_layer > q->info->layers)
        safe.token.exit_layer = -1;
    scope_need_word(s, t->token);
    if (t->source == SOURCE_DRAFT) {
        add_draft(q, &safe);
        return;
    }
    if ((unsigned)t->source >= TOKEN_SOURCES || t->committed == 0)
        return;
    static const enum fate fates[TOKEN_SOURCES] = {[SOURCE_PROMPT] = FATE_PROMPT,
                                                   [SOURCE_PREFILL] = FATE_PREFILL,
                                                   [SOURCE_CORRECTION] = FATE_CORRECTION,
                                                   [SOURCE_BONUS] = FATE_BONUS};
    if (t->source == SOURCE_CORRECTION || t->source == SOURCE_BONUS) {
        if (t->pos < q->committed && !q->open)
            return;
        sequence_open_round(q, e, t->pos)->last = (int8_t)t->source;
    }
    struct scope_column *c = sequence_touch(q, t->pos);
    if (c == NULL)
        return;
    c->token = t->token;
    c->fate = fates[t->source];
    c->round = e->round;
    c->confidence = t->confidence;
    c->exit_layer = t->source == SOURCE_PROMPT ? -1 : (int32_t)q->info->layers;
    commit(q, t->pos);
}

static void
verdict_event(struct scope_sequence *q, const struct verdict_event *v)
{
    if (!q->open || v->candidate < 1 || v->candidate >= VERIFY_NODES || q->node[v->candidate] < 0)
        return;
    struct scope_draft *d = &sequence_newest(q)->drafts[q->node[v->candidate]];
    struct scope_column *c = sequence_touch(q, d->pos);
    if (c == NULL || d->accepted >= 0)
        return;
    d->accepted = v->accepted > 0;
    d->committed = v->committed > 0;
    if (d->accepted && d->committed) {
        c->token = d->token;
        c->fate = FATE_ACCEPTED;
        c->round = sequence_newest(q)->number;
        c->exit_layer = d->exit_layer;
        c->confidence = d->confidence;
        if (!d->main_line && d->pos < q->left_main)
            q->left_main = d->pos;
        commit(q, d->pos);
    } else if (!d->accepted && d->main_line) {
        c->rejected = d->token;
        c->rejected_exit = d->exit_layer;
        if (c->fate == FATE_GHOST)
            c->fate = FATE_REJECTED;
        q->struck[q->n_struck++] = *d; /* at most once per draft, because accepted was -1 */
    }
}

/* ---- any event ---- */

static void
apply_to_sequence(struct scope *s, const struct event *e)
{
    struct scope_member *m = scope_member(s, e->seq);
    if (m == NULL)
        return;
    if (e->type == EVENT_ROUND || e->type == EVENT_TOKEN)
        scope_rejoined(s, m);
    struct scope_sequence *q = m->held;
    if (e->type == EVENT_ROUND)
        scope_count_round(s, m, e);
    if (q == NULL)
        return;
    wrong_paths_event(&q->wrong, e);
    switch (e->type) {
    case EVENT_TOKEN: token_event(s, q, e); break;
    case EVENT_VERDICT: verdict_event(q, &e->verdict); break;
    case EVENT_LAYER: scope_layer_event(s, q, e); break;
    case EVENT_SERIES: scope_series_event(s, q, e); break;
    case EVENT_EXPERTS: scope_experts_event(s, q, e); break;
    case EVENT_ROUND:
        round_event(q, e);
        scope_aggregate_round(s, q);
        break;
    default: break;
    }
    s->now.starved = s->now.starved || q->starved;
    if (q == s->focus)
        scope_take_lengths(s);
}

static void
update_measures(struct scope *s, const struct event *e)
{
    if (s->now.versus == NULL || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_VERSUS))
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
    case EVENT_CONTROL: apply_control(s, e); break;
    case EVENT_TOKEN:
        s->now.progress = NULL;
        apply_to_sequence(s, e);
        break;
    case EVENT_ROUND:
        s->now.end[0] = '\0'; /* the run was extended */
        s->now.round = e->round;
        s->now.emitted += e->round_end.emitted;
        apply_to_sequence(s, e);
        break;
    case EVENT_LAYER:
        s->now.outputs += e->round > 0 && e->layer.model == MODEL_TARGET && e->layer.layer == (int32_t)s->info->layers;
        apply_to_sequence(s, e);
        break;
    case EVENT_VERDICT:
    case EVENT_EXPERTS:
    case EVENT_SERIES: apply_to_sequence(s, e); break;
    case EVENT_PROGRESS:
        s->progress = e->progress;
        s->progress.what[sizeof s->progress.what - 1] = '\0';
        s->now.progress = e->progress.done < 1 ? &s->progress : NULL; /* NAN also ends it */
        break;
    case EVENT_TYPES: break;
    }
    if (e->type == EVENT_ROUND || (e->type == EVENT_TOKEN && s->now.versus == NULL) ||
        (e->type == EVENT_CONTROL && e->control.new_text != NULL))
        update_measures(s, e);
}

void
scope_lost(struct scope *s, uint64_t events)
{
    /* an open round may lack events, so it is dropped; the next complete round is right again */
    s->now.version++;
    s->now.epoch++;
    s->now.lost += events;
    for (uint32_t i = 0; i < s->n_members; i++)
        if (s->members[i]->held != NULL)
            sequence_lost(s->members[i]->held);
    scope_take_lengths(s);
}
