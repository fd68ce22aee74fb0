#include "tests/rigs/session_promises.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"

static void
broken(struct promises *p, const struct event *e, const char *what)
{
    if (p->out->wrong[0] == '\0')
        snprintf(p->out->wrong, sizeof p->out->wrong, "event %llu, run %u, round %u: %s", (unsigned long long)e->number,
                 (unsigned)e->run, (unsigned)e->round, what);
}

static void
known(struct promises *p, const struct event *e, token_t token)
{
    if (token == TOKEN_NONE)
        return;
    if (token < 0 || (uint32_t)token >= p->vocab || !p->seen[token])
        broken(p, e, "a token id before its VOCAB event");
}

static void
commit(struct promises *p, const struct event *e, token_t token)
{
    struct session_rig_sequence *out = &p->out->sequences[e->seq];
    if (out->n == out->room) {
        size_t room = out->room > 0 ? out->room * 2 : 256;
        token_t *more = realloc(out->tokens, room * sizeof *more);
        if (more == NULL)
            return;
        out->tokens = more;
        out->room = room;
    }
    out->tokens[out->n++] = token;
    p->at->next_pos++;
    p->at->committed++;
}

static void
check_membership(struct promises *p, const struct event *e)
{
    const bool joins = e->control.kind != RECORDED_LEFT;
    if (!(p->batch || p->versus) || p->at->live == joins)
        broken(p, e, "a sequence that joined or left, where there is no batch, or twice");
    p->at->live = joins;
    p->live = joins ? p->live + 1 : p->live - 1;
    if (p->live > (p->versus ? 2 : p->info->sequences))
        broken(p, e, "more sequences at a time than there are lanes");
    p->at->round = p->round;
    p->at->joining = joins;
    p->at->whole = !joins;
    if (!joins)
        snprintf(p->out->sequences[e->seq].left, sizeof p->out->sequences[e->seq].left, "%s", e->control.new_text);
}

static void
check_control(struct promises *p, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (c->applied_round < e->round || e->round > p->round + 1) /* a round may have begun without an event */
        broken(p, e, "a control that was applied before it was asked for, or asked for in a round to come");
    bool known = c->kind != RECORDED_KNOB || sampling_knob_index(c->knob) >= 0;
    for (uint32_t i = 0; i < p->info->n_policies; i++)
        known = known || policy_knob_index(&p->info->policies[i], c->knob) >= 0;
    if (!known)
        broken(p, e, "a change of a knob that no policy has");
    if (c->kind == RECORDED_END)
        snprintf(p->out->end, sizeof p->out->end, "%s", c->new_text);
    p->versus = p->versus || c->kind == RECORDED_VERSUS;
    if (c->kind == RECORDED_STATE)
        p->paused = strcmp(c->new_text, "paused") == 0;
    if (c->kind == RECORDED_JOINED || c->kind == RECORDED_LEFT || c->kind == RECORDED_BACK)
        check_membership(p, e);
}

/* Checks that the rank is that of the correction among the predictions of the layer that the first rejected draft came
 * from. */
static void
check_rank(struct promises *p, const struct event *e)
{
    const struct sequence_promises *q = p->at;
    int32_t child = 1, rank = 0;
    while (child <= (int32_t)q->drafts && q->parent[child] != q->end)
        child++;
    if (!q->own)
        return; /* the text ended within the drafts */
    if (q->correction == TOKEN_NONE || child > (int32_t)q->drafts) {
        if (e->round_end.reject_rank != -1)
            broken(p, e, "a rank where no draft was rejected");
        return;
    }
    if (q->list[child].pos == 0)
        return;
    for (int i = 0; i < PREDICTION_TOP && rank == 0; i++)
        rank = q->list[child].top[i] == q->correction ? i + 1 : 0;
    /* the event lists fewer predictions than are ranked */
    if (rank == 0 ? e->round_end.reject_rank != 0 && e->round_end.reject_rank <= PREDICTION_TOP
                  : e->round_end.reject_rank != rank)
        broken(p, e, "another rank than that of the correction in the drafter's list");
    p->out->ranked++;
}

/* Returns the number of drafts after the last token, if a draft ended the text. Sets *depth to the number of levels of
 * the deepest one after that token. */
static uint32_t
cut_drafts(const struct sequence_promises *q, const struct round_event *r, uint32_t *depth)
{
    const bool draft_ended = !q->own && strcmp(r->stop_reason, "eos") == 0;
    uint32_t n = 0;
    *depth = 0;
    for (uint32_t i = 1; i <= q->drafts && draft_ended; i++)
        if (q->pos[i] >= q->next_pos) {
            *depth = q->pos[i] - q->next_pos + 1 > *depth ? q->pos[i] - q->next_pos + 1 : *depth;
            n++;
        }
    return n;
}

static void
check_round(struct promises *p, const struct event *e)
{
    const struct round_event *r = &e->round_end;
    struct sequence_promises *q = p->at;
    uint32_t depth;
    const uint32_t cut = cut_drafts(q, r, &depth);
    if (r->cut != depth)
        broken(p, e, "a round that says another number of cut drafts");
    if (q->verdicts + cut + (r->drafted - r->verified) != q->drafts)
        broken(p, e, "a round without all verdicts of what it verified");
    if (r->emitted == 0 || r->emitted != q->committed || r->accepted != q->accepted)
        broken(p, e, "a round that says other counts than its tokens and verdicts");
    if (r->accepted > r->verified || r->verified > r->drafted || r->drafted > q->drafts)
        broken(p, e, "a round that accepts more than it verified, or verifies more than it drafted");
    check_rank(p, e);
    p->layers_loaded += (double)r->layers_loaded;
    p->heads_loaded += (double)r->heads_loaded;
    if (++p->lines == p->together && (!(p->layers_loaded >= p->layers - 1e-3) || !(p->heads_loaded >= 1 - 1e-3)))
        broken(p, e, "a round with less work than one verification");
    q->whole = true;
}

static void
check_token(struct promises *p, const struct event *e)
{
    const struct token_event *t = &e->token;
    struct sequence_promises *q = p->at;
    known(p, e, t->token);
    if (t->source == SOURCE_DRAFT) {
        if (q->judged)
            broken(p, e, "a draft after verification began");
        if (t->candidate != (int32_t)++q->drafts || t->parent < 0 || t->parent >= t->candidate)
            broken(p, e, "a draft whose node numbers are not in order");
        if (t->pos < q->next_pos || t->accepted != -1 || t->exit_layer > (int32_t)p->layers ||
            (t->exit_layer < 1 && (t->exit_layer != -1 || t->head != -1)))
            broken(p, e, "a draft with a wrong position, fate or exit layer");
        if (t->candidate > 0 && t->candidate < VERIFY_NODES) {
            const bool of_it = q->heard.pos == t->pos && q->heard.confidence == t->confidence;
            q->draft[t->candidate] = t->token;
            q->parent[t->candidate] = t->parent;
            q->pos[t->candidate] = t->pos;
            q->list[t->candidate] = of_it ? q->heard : (struct layer_event){0};
        }
        return;
    }
    if (t->pos != q->next_pos)
        broken(p, e, "a committed token out of place");
    if (t->source == SOURCE_PROMPT) {
        q->next_pos++;
        return;
    }
    q->judged = q->own = true;
    q->correction = t->source == SOURCE_CORRECTION ? t->token : TOKEN_NONE;
    commit(p, e, t->token);
}

static void
check_layer(struct promises *p, const struct event *e)
{
    const struct layer_event *l = &e->layer;
    known(p, e, l->token);
    if (l->probed_by == PROBED_POLICY)
        p->at->heard = *l;
    for (int i = 0; i < PREDICTION_TOP; i++)
        known(p, e, l->top[i]);
    if (l->layer < 1 || l->layer > (int32_t)run_info_layers(p->info, l->model) ||
        !(l->confidence > 0 && l->confidence <= 1.0001f) || l->entropy < -1e-4f)
        broken(p, e, "a guess with a layer, confidence or entropy that cannot be");
    if (l->probed_by == PROBED_SCOPE &&
        (isnan(l->kl_final) || l->rank_final < 0 || (l->final_agrees < 0 && l->model == MODEL_TARGET)))
        broken(p, e, "the scope's probe without its relation to the final layer");
}

/* Checks the experts of a committed row: each occurs once, the heaviest first. */
static void
check_experts(struct promises *p, const struct event *e)
{
    const struct experts_event *x = &e->experts;
    if (p->info->experts == 0 || x->layer < 1 || x->layer > (int32_t)p->layers || x->n == 0 ||
        x->n > EXPERTS_REPORTED || x->n > p->info->experts_used)
        broken(p, e, "experts of a layer that has none, or of another number");
    for (uint32_t i = 0; i < x->n && i < EXPERTS_REPORTED; i++) {
        if (x->expert[i] >= p->info->experts || (i > 0 && x->weight[i] > x->weight[i - 1]))
            broken(p, e, "an expert that there is not, or a lighter one before a heavier one");
        for (uint32_t k = 0; k < i; k++)
            if (x->expert[k] == x->expert[i])
                broken(p, e, "an expert that is told twice");
    }
    if (!p->at->judged)
        broken(p, e, "experts before what the rows' drafts came to");
}

static void
begin_run(struct promises *p)
{
    p->run++;
    p->versus = false;
    p->round = p->live = 0;
    p->t_us = 0;
    p->out->runs++;
    for (size_t i = 0; i < p->out->n_sequences; i++) {
        p->all[i] = (struct sequence_promises){.whole = true};
        p->out->sequences[i].n = 0;
        p->out->sequences[i].left[0] = '\0';
    }
}

/* Returns whether the event may come between rounds. It then belongs to the next round, which in a versus may be the
 * other sequence's. */
static bool
is_look_back(const struct event *e)
{
    return e->type == EVENT_SERIES || (e->type == EVENT_LAYER && e->layer.probed_by != PROBED_VERIFY);
}

/* Checks the round's number. All sequences count rounds together, and each running sequence has its line in every
 * round. */
static void
check_number(struct promises *p, const struct event *e)
{
    struct sequence_promises *q = p->at;
    if (e->round != p->round) {
        if (e->round != p->round + 1 || (p->round > 0 && p->lines != p->together))
            broken(p, e, "a round that is not the next one, or lines of the last one are missing");
        p->round = e->round;
        p->together = p->batch && !p->versus ? p->live : 1;
        p->layers_loaded = p->heads_loaded = 0;
        p->lines = 0;
    }
    if (e->round != q->round && p->versus && (q->whole || q->joining) && is_look_back(e))
        return;
    if (e->round != q->round) {
        if ((e->round != q->round + 1 && !(p->versus && e->round > q->round)) || !(q->whole || q->joining))
            broken(p, e, "a round that is not the next one, or the last one has no ROUND event");
        q->round = e->round;
        q->joining = false;
        q->drafts = q->verdicts = q->accepted = q->committed = 0;
        q->end = q->judged_last = 0;
        q->correction = TOKEN_NONE;
        q->judged = q->own = q->whole = false;
    } else if (q->whole && q->round > 0) {
        broken(p, e, "something of a round after its ROUND event");
    }
    if (p->paused && q->round > 0 && (e->type == EVENT_TOKEN || e->type == EVENT_VERDICT || e->type == EVENT_ROUND))
        broken(p, e, "work while paused");
}

static void
check_verdict(struct promises *p, const struct event *e)
{
    struct sequence_promises *q = p->at;
    q->verdicts++;
    if (q->own || e->verdict.candidate <= q->judged_last || e->verdict.committed != e->verdict.accepted)
        broken(p, e, "verdicts out of order, after the target's token, or committed without being accepted");
    else if (e->verdict.committed)
        commit(p, e, q->draft[e->verdict.candidate]);
    q->judged_last = e->verdict.candidate;
    q->accepted += e->verdict.accepted == 1;
    q->end = e->verdict.accepted == 1 ? e->verdict.candidate : q->end;
    q->judged = true;
}

void
promises_check(struct promises *p, const struct event *e)
{
    if (e->number != p->number + 1)
        broken(p, e, "numbers are not consecutive");
    p->number = e->number;
    if (e->type == EVENT_CONTROL && e->control.kind == RECORDED_RUN)
        begin_run(p);
    if (e->run != p->run)
        broken(p, e, "a wrong run number");
    if (e->t_us < p->t_us)
        broken(p, e, "time runs backwards");
    p->t_us = e->t_us;
    if (e->seq >= p->out->n_sequences) {
        broken(p, e, "a sequence that there is not");
        return;
    }
    p->at = &p->all[e->seq];
    if (e->type == EVENT_CONTROL)
        check_control(p, e);
    if (e->type == EVENT_CONTROL || e->type == EVENT_PROGRESS)
        return;
    if (e->type != EVENT_VOCAB || !(p->batch || p->versus))
        check_number(p, e);
    switch (e->type) {
    case EVENT_VOCAB:
        if (e->vocab.token < 0 || (uint32_t)e->vocab.token >= p->vocab || p->seen[e->vocab.token])
            broken(p, e, "a VOCAB event for an id out of range or seen before");
        else
            p->seen[e->vocab.token] = 1;
        break;
    case EVENT_TOKEN: check_token(p, e); break;
    case EVENT_VERDICT: check_verdict(p, e); break;
    case EVENT_LAYER: check_layer(p, e); break;
    case EVENT_EXPERTS: check_experts(p, e); break;
    case EVENT_ROUND: check_round(p, e); break;
    default: break;
    }
}
