#include "engine/scope/aggregates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/scope/scope_internal.h"

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
    a->positions = (struct positions){0};
    a->rounds = a->forecasts = 0;
    a->low = a->high = NAN;
}

static void
add_drafts(struct aggregates *a, const struct scope_round *r, const struct scope_block *b)
{
    struct step_draft drafts[VERIFY_NODES];
    struct draft_step steps[VERIFY_NODES];
    uint32_t n = 0;
    for (; n < r->n_drafts && n < VERIFY_NODES; n++) {
        const struct scope_draft *d = &r->drafts[n];
        const float forecast = scope_block_confidence(b, d->pos);
        a->forecasts += isnan(forecast) ? 0 : 1;
        drafts[n] = (struct step_draft){d->parent, d->candidate, d->exit_layer,
                                        isnan(forecast) ? d->confidence : forecast, d->accepted};
    }
    n = draft_steps(drafts, n, steps);
    for (uint32_t i = 0; i < n; i++)
        draft_counts_add(&a->drafts, &steps[i]);
}

/* Counts the predictions of both heads at a committed position. */
static void
add_position(struct aggregates *a, const struct scope *s, const struct scope_sequence *q, const struct scope_column *c)
{
    const token_t final = scope_final_of(s, q, c);
    if (final == TOKEN_NONE || !sequence_holds_cells(q, c->pos))
        return;
    const bool both = q->cells[1] != NULL && scope_setting_of(s, q->seq)->now.head != HEADS_POLICY;
    const struct scope_cell *lens = sequence_cells(q, 0, c->pos), *trained = both ? sequence_cells(q, 1, c->pos) : lens;
    for (uint32_t l = 1; l < s->info->layers; l++) {
        if (!lens[l].known || !trained[l].known)
            continue;
        a->asked[l]++;
        a->spurious[0][l] += event_spurious(lens[l].token, lens[l].confidence, final, c->threshold);
        a->spurious[1][l] += both && event_spurious(trained[l].token, trained[l].confidence, final, c->threshold);
    }
}

static void
add_round(struct aggregates *a, const struct scope *s, const struct scope_sequence *q, const struct scope_round *r)
{
    const float t = r->end.threshold;
    add_drafts(a, r, ring_at(&q->blocks, r->number));
    positions_round(&a->positions, &r->end);
    a->rounds++;
    a->low = isnan(t) ? a->low : fminf(a->low, t); /* fminf ignores NAN */
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

uint32_t
draft_steps(const struct step_draft *drafts, uint32_t n, struct draft_step *out)
{
    uint32_t depth[VERIFY_NODES] = {0}; /* by candidate; 0: none */
    bool passed[VERIFY_NODES] = {true}; /* this candidate and all before it were accepted */
    uint32_t steps = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct step_draft *d = &drafts[i];
        if (d->candidate < 1 || d->candidate >= VERIFY_NODES || d->parent < 0 || d->parent >= d->candidate ||
            (d->parent > 0 && depth[d->parent] == 0) || depth[d->candidate] > 0)
            continue;
        const uint32_t at = depth[d->parent];
        depth[d->candidate] = at + 1;
        passed[d->candidate] = passed[d->parent] && d->accepted > 0;
        if (at == steps)
            out[steps++] = (struct draft_step){.depth = at + 1, .accepted = INT8_MIN};
        struct draft_step *step = &out[at];
        step->tried = step->tried || (d->accepted >= 0 && passed[d->parent]);
        if (step->accepted == INT8_MIN || (d->accepted > 0 && step->accepted < 1)) {
            step->exit_layer = d->exit_layer;
            step->confidence = d->confidence;
        }
        step->accepted = d->accepted > step->accepted ? d->accepted : step->accepted;
    }
    return steps;
}

bool
draft_counts_open(struct draft_counts *c, uint32_t layers)
{
    *c = (struct draft_counts){.layers = layers, .accepted = calloc(2 * ((size_t)layers + 1), sizeof *c->accepted)};
    if (c->accepted == NULL)
        return false;
    c->others = c->accepted + layers + 1;
    return true;
}

void
draft_counts_close(struct draft_counts *c)
{
    free(c->accepted);
    *c = (struct draft_counts){0};
}

void
draft_counts_reset(struct draft_counts *c)
{
    uint64_t *accepted = c->accepted, *others = c->others;
    memset(accepted, 0, 2 * ((size_t)c->layers + 1) * sizeof *accepted);
    *c = (struct draft_counts){.layers = c->layers, .accepted = accepted, .others = others};
}

void
draft_counts_add(struct draft_counts *c, const struct draft_step *s)
{
    c->steps++;
    if (s->exit_layer < 1 || (uint32_t)s->exit_layer > c->layers)
        c->elsewhere++;
    else
        (s->accepted == 1 ? c->accepted : c->others)[s->exit_layer]++;
    if (s->tried)
        calibration_add(&c->calibration, (double)s->confidence, s->accepted == 1);
    if (s->depth > DRAFT_DEPTHS || s->accepted < 0)
        return;
    struct depth_counts *at = &c->depth[s->depth];
    at->verified++;
    at->accepted += s->accepted == 1;
    at->tried += s->tried;
    at->passed += s->tried && s->accepted == 1;
    c->deepest = s->depth > c->deepest ? s->depth : c->deepest;
}

uint64_t
draft_counts_most(const struct draft_counts *c)
{
    uint64_t most = 0;
    for (uint32_t l = 1; l <= c->layers; l++)
        most = c->accepted[l] + c->others[l] > most ? c->accepted[l] + c->others[l] : most;
    return most;
}

void
share_interval(uint64_t n, uint64_t of, double *low, double *high)
{
    const double z = 1.959963985, trials = (double)of;
    *low = 0;
    *high = 1;
    if (of == 0)
        return;
    const double share = (double)n / trials, shrink = 1 + z * z / trials;
    const double middle = (share + z * z / (2 * trials)) / shrink;
    const double half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / shrink;
    *low = fmax(0, middle - half);
    *high = fmin(1, middle + half);
}

/* -1: not within [0, 1] */
static int
calibration_bin(double confidence)
{
    if (!(confidence >= 0 && confidence <= 1))
        return -1;
    const int bin = (int)(confidence * CALIBRATION_BINS);
    return bin < CALIBRATION_BINS ? bin : CALIBRATION_BINS - 1;
}

void
calibration_add(struct calibration *c, double confidence, int right)
{
    const int bin = calibration_bin(confidence);
    if (bin < 0)
        return;
    c->n[bin]++;
    c->right[bin] += right != 0;
    c->confidence[bin] += confidence;
    c->all++;
}

double
calibration_error(const struct calibration *c)
{
    double sum = 0;
    for (int i = 0; i < CALIBRATION_BINS; i++)
        sum += fabs((double)c->right[i] - c->confidence[i]);
    return c->all > 0 ? sum / (double)c->all : (double)NAN;
}
