#include "tui/scope/draft_steps.h"

#include <stdlib.h>
#include <string.h>

uint32_t
draft_steps(const struct step_draft *drafts, uint32_t n, struct draft_step *out)
{
    uint32_t depth[VERIFY_NODES] = {0}; /* of a candidate; 0: not there */
    bool passed[VERIFY_NODES] = {true}; /* it and all before it were accepted */
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
