#include "tui/scope/aggregates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tui/scope/scope_internal.h"

bool
aggregates_open(struct aggregates *a, uint32_t layers)
{
    *a = (struct aggregates){.low = NAN, .high = NAN};
    a->asked = calloc(3 * ((size_t)layers + 1), sizeof *a->asked);
    if (a->asked == NULL || !draft_counts_open(&a->drafts, layers)) {
        aggregates_close(a);
        return false;
    }
    a->spurious[0] = a->asked + layers + 1;
    a->spurious[1] = a->spurious[0] + layers + 1;
    return true;
}

void
aggregates_close(struct aggregates *a)
{
    draft_counts_close(&a->drafts);
    free(a->asked);
    *a = (struct aggregates){0};
}

void
aggregates_reset(struct aggregates *a)
{
    memset(a->asked, 0, 3 * ((size_t)a->drafts.layers + 1) * sizeof *a->asked);
    draft_counts_reset(&a->drafts);
    a->rounds = 0;
    a->low = a->high = NAN;
}

static void
add_drafts(struct aggregates *a, const struct scope_round *r)
{
    struct step_draft drafts[VERIFY_NODES];
    struct draft_step steps[VERIFY_NODES];
    uint32_t n = 0;
    for (; n < r->n_drafts && n < VERIFY_NODES; n++) {
        const struct scope_draft *d = &r->drafts[n];
        drafts[n] = (struct step_draft){d->parent, d->candidate, d->exit_layer, d->confidence, d->accepted};
    }
    n = draft_steps(drafts, n, steps);
    for (uint32_t i = 0; i < n; i++)
        draft_counts_add(&a->drafts, &steps[i]);
}

/* What heads said of a position that stays. */
static void
add_position(struct aggregates *a, const struct scope *s, const struct scope_sequence *q, const struct scope_column *c)
{
    const token_t final = scope_final_of(s, q, c);
    if (final == TOKEN_NONE || !sequence_holds_cells(q, c->pos))
        return;
    const float threshold = isnan(c->threshold) ? 0.5f : c->threshold;
    const bool both = q->cells[1] != NULL && scope_setting_of(s, q->seq)->now.head != HEADS_POLICY;
    const struct scope_cell *lens = sequence_cells(q, 0, c->pos), *trained = both ? sequence_cells(q, 1, c->pos) : lens;
    for (uint32_t l = 1; l < s->info->layers; l++) {
        if (!lens[l].known || !trained[l].known)
            continue;
        a->asked[l]++;
        a->spurious[0][l] += lens[l].token != final && lens[l].confidence >= threshold;
        a->spurious[1][l] += both && trained[l].token != final && trained[l].confidence >= threshold;
    }
}

static void
add_round(struct aggregates *a, const struct scope *s, const struct scope_sequence *q, const struct scope_round *r)
{
    const float t = r->end.threshold;
    add_drafts(a, r);
    a->rounds++;
    a->low = isnan(t) ? a->low : fminf(a->low, t); /* of NAN and a number the number */
    a->high = isnan(t) ? a->high : fmaxf(a->high, t);
    const struct scope_column *c;
    for (uint32_t i = 0; i < r->end.emitted && (c = sequence_column(q, r->first_pos + i)) != NULL; i++)
        add_position(a, s, q, c);
}

void
scope_aggregate_round(struct scope *s, const struct scope_sequence *q)
{
    const struct scope_round *r = sequence_round(q, 0);
    const struct segment *now = segments_at(s->segments, 0);
    struct scope_setting *of = &s->setting[scope_side(s, q->seq)];
    if (r == NULL || !r->whole)
        return;
    for (uint32_t back = 1; now != NULL && !segment_concerns(now, q->seq); back++)
        now = segments_at(s->segments, back);
    if (now != NULL && now->number != of->segment) {
        of->segment = now->number;
        aggregates_reset(&of->of_segment);
    }
    add_round(&of->of_segment, s, q, r);
    add_round(&of->of_run, s, q, r);
}

const struct aggregates *
scope_run_aggregates(const struct scope *s)
{
    return &scope_setting_of(s, s->focus->seq)->of_run;
}

const struct aggregates *
scope_segment_aggregates(const struct scope *s)
{
    return &scope_setting_of(s, s->focus->seq)->of_segment;
}

void
scope_aggregate(const struct scope *s, uint32_t first, uint32_t last, struct aggregates *a)
{
    const struct scope_round *r;
    aggregates_reset(a);
    for (uint32_t back = 0; (r = scope_round(s, back)) != NULL && r->number >= first; back++)
        if (r->whole && r->number <= last)
            add_round(a, s, s->focus, r);
}
