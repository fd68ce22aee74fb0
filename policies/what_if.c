#include "policies/what_if.h"

void
what_if_begin(struct what_if *w, const struct layer_record *record, struct tally *out)
{
    *out = (struct tally){0};
    *w = (struct what_if){.record = record, .out = out, .at = record->begin};
}

bool
what_if_round(struct what_if *w)
{
    const uint32_t at = w->at + w->emitted;
    if (at >= w->record->n)
        return false;
    const uint32_t left = w->record->n - 1 - at;
    *w = (struct what_if){
        .record = w->record, .out = w->out, .at = at, .budget = left < VERIFY_NODES - 1 ? left : VERIFY_NODES - 1};
    return true;
}

bool
what_if_full(const struct what_if *w)
{
    return w->drafted >= w->budget;
}

/* What a layer says of the last row: after a wrong draft it is sure of nothing, and wrong. */
static const struct layer_word *
cell(const struct what_if *w, uint32_t layer)
{
    static const struct layer_word lost; /* p(T) is below 1/6 */
    return w->wrong ? &lost : layer_word(w->record, w->at + w->drafted, layer);
}

const struct layer_word *
what_if_look(struct what_if *w, uint32_t layer)
{
    w->layers += layer;
    w->heads += w->record->head_load;
    w->depth = layer;
    return cell(w, layer);
}

uint32_t
what_if_until(struct what_if *w, uint32_t to, const struct exit_rule *rule)
{
    bool exits = false;
    w->depth = 0;
    while (w->depth < to && !exits) {
        const uint32_t l = ++w->depth;
        if (rule->threshold[l] > 1)
            continue;
        w->heads += w->record->head_load;
        exits = layer_record_annealed(cell(w, l), rule->temperature[l]) >= rule->threshold[l];
    }
    w->layers += w->depth;
    return exits ? w->depth : 0;
}

void
what_if_propose(struct what_if *w, uint32_t layer, bool no_row)
{
    w->wrong = w->wrong || !cell(w, layer)->agrees;
    w->accepted += !w->wrong;
    w->drafted++;
    w->no_row = no_row;
    if (!no_row)
        w->depth = 0;
}

void
what_if_verify(struct what_if *w)
{
    struct tally *t = w->out;
    w->layers += w->record->layers - w->depth; /* no row of the round is less deep than the last one */
    w->heads += 1;
    w->emitted = w->accepted + !(w->no_row && !w->wrong);
    w->cut = w->drafted == w->budget && w->budget < VERIFY_NODES - 1;
    t->rounds++;
    t->drafted += w->drafted;
    t->verified += w->drafted;
    t->accepted += w->accepted;
    t->emitted += w->emitted;
    t->rejected_rounds += w->wrong;
    t->layers += w->layers;
    t->heads += w->heads;
}

void
what_if_ask_all(struct what_if *w)
{
    const struct layer_record *r = w->record;
    const uint32_t asked = w->emitted * r->layers, calls = (asked + r->probes - 1) / r->probes;
    w->out->heads += calls * r->layers_load;
}
