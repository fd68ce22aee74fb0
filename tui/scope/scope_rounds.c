/* Tokens, verdicts and rounds. */
#include <math.h>

#include "tui/scope/scope_internal.h"

struct scope_column *
scope_touch(struct scope *s, uint32_t pos)
{
    const uint32_t limit = s->info->ctx > 0 ? s->info->ctx : UINT32_MAX / 2;
    if (pos > limit || (s->now.length > SCOPE_POSITIONS && pos < s->now.length - SCOPE_POSITIONS))
        return NULL;
    struct scope_column *c = &s->columns[pos % SCOPE_POSITIONS];
    if (pos >= s->now.length || scope_column(s, pos) == NULL) {
        /* Positions that were skipped must not show what stood in their place long ago. */
        for (uint32_t p = s->now.length; p < pos && p < s->now.length + SCOPE_POSITIONS; p++)
            s->columns[p % SCOPE_POSITIONS].pos = UINT32_MAX;
        *c = (struct scope_column){.pos = pos,
                                   .token = TOKEN_NONE,
                                   .exit_layer = -1,
                                   .confidence = NAN,
                                   .rejected = TOKEN_NONE,
                                   .rejected_exit = -1,
                                   .rejected_confidence = NAN,
                                   .final = TOKEN_NONE,
                                   .threshold = NAN};
        s->now.length = pos >= s->now.length ? pos + 1 : s->now.length;
    }
    return c;
}

static void
forget_from(struct scope *s, uint32_t from)
{
    for (uint32_t p = from; p < s->now.length && p < from + SCOPE_POSITIONS; p++) {
        s->columns[p % SCOPE_POSITIONS].pos = UINT32_MAX;
        if (s->cells_of[p % SCOPE_COLUMNS] == p + 1)
            s->cells_of[p % SCOPE_COLUMNS] = 0;
    }
    s->now.length = from < s->now.length ? from : s->now.length;
}

void
scope_forget_tail(struct scope *s)
{
    forget_from(s, s->now.committed);
}

static void
commit(struct scope *s, uint32_t pos)
{
    if (pos + 1 > s->now.committed)
        s->now.committed = pos + 1;
}

/* ---- rounds ---- */

static struct scope_round *
newest(struct scope *s)
{
    return &s->rounds[(s->n_rounds - 1) % SCOPE_ROUNDS];
}

struct scope_round *
scope_open_round(struct scope *s, const struct event *e, uint32_t pos)
{
    if (s->open && newest(s)->number == e->round)
        return newest(s);
    if (s->open) /* its end was lost */
        s->n_rounds--;
    scope_forget_tail(s);
    s->n_rounds++;
    s->open = true;
    s->base = s->now.committed;
    s->main_tail = 0;
    s->left_main = UINT32_MAX;
    s->n_struck = 0;
    for (int i = 0; i < VERIFY_NODES; i++)
        s->node[i] = -1;
    struct scope_round *r = newest(s);
    *r = (struct scope_round){.number = e->round, .run = e->run, .t_us = e->t_us, .first_pos = pos, .last = ROUND_OPEN};
    r->end.exit_layer = r->end.d_max = r->end.w_max = -1;
    r->end.threshold = NAN;
    return r;
}

struct scope_cell *
scope_cells_at(struct scope *s, int head, uint32_t pos)
{
    return &s->cells[head][(pos % SCOPE_COLUMNS) * ((size_t)s->info->layers + 1)];
}

static void
forget_guesses(struct scope *s, uint32_t pos)
{
    for (int head = 0; head < 2 && s->cells[head] != NULL; head++)
        for (uint32_t l = 1; l <= s->info->layers; l++) {
            struct scope_cell *cell = &scope_cells_at(s, head, pos)[l];
            if (cell->probed_by == PROBED_POLICY)
                cell->known = false;
        }
}

void
scope_round_event(struct scope *s, const struct event *e)
{
    struct scope_round *r = scope_open_round(s, e, s->now.committed);
    r->end = e->round_end;
    r->end.policy[sizeof r->end.policy - 1] = '\0';
    r->end.stop_reason[sizeof r->end.stop_reason - 1] = '\0';
    r->t_us = e->t_us;
    r->whole = true;
    s->open = false;
    s->now.round = e->round;
    const uint32_t from = s->now.committed > SCOPE_POSITIONS && s->base < s->now.committed - SCOPE_POSITIONS
                              ? s->now.committed - SCOPE_POSITIONS
                              : s->base;
    for (uint32_t p = from; p < s->now.committed; p++) {
        if (scope_column(s, p) == NULL)
            continue;
        s->columns[p % SCOPE_POSITIONS].threshold = r->end.threshold;
        /* Beyond where the path left the main line, the drafts' guesses were about another text. */
        if (p > s->left_main && s->cells_of[p % SCOPE_COLUMNS] == p + 1)
            forget_guesses(s, p);
    }
    /* Rejected drafts are looked at until the next round begins; what else is beyond the end of the text is gone. */
    uint32_t tail = s->now.committed;
    for (const struct scope_column *c; (c = scope_column(s, tail)) != NULL && c->fate == FATE_REJECTED;)
        tail++;
    forget_from(s, tail);
}

/* ---- tokens ---- */

static void
take_draft(struct scope *s, const struct event *e)
{
    const struct token_event *t = &e->token;
    if (t->candidate < 1 || t->candidate >= VERIFY_NODES || t->parent < 0 || t->parent >= t->candidate ||
        t->pos < s->now.committed)
        return;
    struct scope_round *r = scope_open_round(s, e, t->pos);
    if (s->node[t->candidate] >= 0 || r->n_drafts >= SCOPE_DRAFTS)
        return;
    struct scope_column *c = scope_touch(s, t->pos);
    if (c == NULL)
        return;
    const bool main_line = t->parent == s->main_tail;
    s->node[t->candidate] = (int32_t)r->n_drafts;
    r->drafts[r->n_drafts++] = (struct scope_draft){.pos = t->pos,
                                                    .token = t->token,
                                                    .parent = t->parent,
                                                    .exit_layer = t->exit_layer,
                                                    .confidence = t->confidence,
                                                    .accepted = -1,
                                                    .committed = -1,
                                                    .main_line = main_line};
    if (!main_line) {
        c->siblings++;
        return;
    }
    s->main_tail = t->candidate;
    c->token = t->token;
    c->fate = FATE_GHOST;
    c->round = e->round;
    c->exit_layer = t->exit_layer;
    c->confidence = t->confidence;
}

void
scope_token_event(struct scope *s, const struct event *e)
{
    const struct token_event *t = &e->token;
    if (t->token < 0 || (uint32_t)t->token >= s->info->vocab)
        return;
    struct event safe = *e;
    if (t->exit_layer < 1 || (uint32_t)t->exit_layer > s->info->layers)
        safe.token.exit_layer = -1;
    scope_need_word(s, t->token);
    if (t->source == SOURCE_DRAFT) {
        take_draft(s, &safe);
        return;
    }
    if ((unsigned)t->source >= TOKEN_SOURCES || t->committed == 0)
        return;
    static const enum fate fates[TOKEN_SOURCES] = {[SOURCE_PROMPT] = FATE_PROMPT,
                                                   [SOURCE_PREFILL] = FATE_PREFILL,
                                                   [SOURCE_CORRECTION] = FATE_CORRECTION,
                                                   [SOURCE_BONUS] = FATE_BONUS};
    if (t->source == SOURCE_CORRECTION || t->source == SOURCE_BONUS) {
        if (t->pos < s->now.committed && !s->open)
            return;
        scope_open_round(s, e, t->pos)->last = (int8_t)t->source;
    }
    struct scope_column *c = scope_touch(s, t->pos);
    if (c == NULL)
        return;
    c->token = t->token;
    c->fate = fates[t->source];
    c->round = e->round;
    c->confidence = t->confidence;
    c->exit_layer = t->source == SOURCE_PROMPT ? -1 : (int32_t)s->info->layers;
    commit(s, t->pos);
}

void
scope_verdict_event(struct scope *s, const struct verdict_event *v)
{
    if (!s->open || v->candidate < 1 || v->candidate >= VERIFY_NODES || s->node[v->candidate] < 0)
        return;
    struct scope_draft *d = &newest(s)->drafts[s->node[v->candidate]];
    struct scope_column *c = scope_touch(s, d->pos);
    if (c == NULL || d->accepted >= 0)
        return;
    d->accepted = v->accepted > 0;
    d->committed = v->committed > 0;
    if (d->accepted && d->committed) {
        c->token = d->token;
        c->fate = FATE_ACCEPTED;
        c->round = newest(s)->number;
        c->exit_layer = d->exit_layer;
        c->confidence = d->confidence;
        if (!d->main_line && d->pos < s->left_main)
            s->left_main = d->pos;
        commit(s, d->pos);
    } else if (!d->accepted && d->main_line) {
        c->rejected = d->token;
        c->rejected_exit = d->exit_layer;
        c->rejected_confidence = d->confidence;
        if (c->fate == FATE_GHOST)
            c->fate = FATE_REJECTED;
        s->struck[s->n_struck++] = *d; /* at most one a draft: accepted was -1 */
    }
}
