/* Tokens, verdicts and rounds. */
#include <math.h>

#include "tui/scope/scope_internal.h"

static void
commit(struct scope_sequence *q, uint32_t pos)
{
    if (pos + 1 > q->committed)
        q->committed = pos + 1;
}

/* ---- rounds ---- */

static void
forget_guesses(struct scope_sequence *q, uint32_t pos)
{
    for (enum helper_role role = 0; role < HELPERS; role++)
        helper_cells_forget_guesses(&q->helpers[role], pos);
    for (int head = 0; head < 2 && q->cells[head] != NULL && sequence_holds_cells(q, pos); head++)
        for (uint32_t l = 1; l <= q->info->layers; l++) {
            struct scope_cell *cell = &sequence_cells(q, head, pos)[l];
            if (cell->probed_by == PROBED_POLICY)
                cell->known = false;
        }
}

void
scope_round_event(struct scope_sequence *q, const struct event *e)
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
        /* Beyond where the path left the main line, the drafts' guesses were about another text. */
        if (p > q->left_main)
            forget_guesses(q, p);
    }
    /* Rejected drafts are looked at until the next round begins; what else is beyond the end of the text is gone. */
    uint32_t tail = q->committed;
    for (const struct scope_column *c; (c = sequence_column(q, tail)) != NULL && c->fate == FATE_REJECTED;)
        tail++;
    sequence_forget_from(q, tail);
}

/* ---- tokens ---- */

static void
take_draft(struct scope_sequence *q, const struct event *e)
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
    q->node[t->candidate] = (int32_t)r->n_drafts;
    r->drafts[r->n_drafts++] = (struct scope_draft){.pos = t->pos,
                                                    .token = t->token,
                                                    .parent = t->parent,
                                                    .candidate = t->candidate,
                                                    .exit_layer = t->exit_layer,
                                                    .confidence = t->confidence,
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

void
scope_token_event(struct scope *s, struct scope_sequence *q, const struct event *e)
{
    const struct token_event *t = &e->token;
    if (t->token < 0 || (uint32_t)t->token >= q->info->vocab)
        return;
    struct event safe = *e;
    if (t->exit_layer < 1 || (uint32_t)t->exit_layer > q->info->layers)
        safe.token.exit_layer = -1;
    scope_need_word(s, t->token);
    if (t->source == SOURCE_DRAFT) {
        take_draft(q, &safe);
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

void
scope_verdict_event(struct scope_sequence *q, const struct verdict_event *v)
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
        q->struck[q->n_struck++] = *d; /* at most one a draft: accepted was -1 */
    }
}
