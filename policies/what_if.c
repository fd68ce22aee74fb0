#include "policies/what_if.h"

#include "kernels/base/rng.h"

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

/* Returns a row whose predictions replace those after a wrong draft. It is the same for every setting that reads
 * layers up to `to` here, so that settings differ only by their own choices. */
static uint32_t
draw_row(const struct layer_record *r, uint32_t row, uint32_t to)
{
    uint64_t random = (uint64_t)(r->first + row) << 32 | r->draw;
    if ((double)(splitmix64(&random) >> 11) * 0x1p-53 >= r->lost)
        return row;
    const uint32_t from = (uint32_t)(splitmix64(&random) % r->n);
    for (uint32_t i = 0; i < r->n; i++)
        if (!layer_word(r, (from + i) % r->n, to)->agrees)
            return (from + i) % r->n;
    return row;
}

/* The row of the record with the predictions of layers up to `to` for the last row. */
static uint32_t
row_of(const struct what_if *w, uint32_t to)
{
    const struct layer_record *r = w->record;
    const uint32_t row = w->at + w->drafted;
    if (!w->wrong)
        return row;
    if (r->loads != NULL)
        r->loads->drawn++;
    return draw_row(r, row, to);
}

const struct layer_word *
what_if_look(struct what_if *w, uint32_t layer)
{
    w->layers += layer;
    w->heads += w->record->head_load;
    w->depth = layer;
    return layer_word(w->record, row_of(w, layer), layer);
}

uint32_t
what_if_until(struct what_if *w, uint32_t to, const struct exit_rule *rule)
{
    const uint32_t row = row_of(w, to);
    bool exits = false;
    w->depth = 0;
    while (w->depth < to && !exits) {
        const uint32_t l = ++w->depth;
        if (rule->threshold[l] > 1)
            continue;
        w->heads += w->record->head_load;
        exits = layer_record_annealed(layer_word(w->record, row, l), rule->temperature[l]) >= rule->threshold[l];
    }
    w->layers += w->depth;
    return exits ? w->depth : 0;
}

void
what_if_propose(struct what_if *w, uint32_t layer, bool no_row)
{
    w->wrong = w->wrong || !layer_word(w->record, w->at + w->drafted, layer)->agrees;
    w->accepted += !w->wrong;
    w->drafted++;
    w->no_row = no_row;
    if (!no_row)
        w->depth = 0;
}

void
what_if_propose_token(struct what_if *w, uint32_t depth, bool right)
{
    w->drafted = depth > w->drafted ? depth : w->drafted;
    w->accepted += right;
    w->wrong = w->accepted < w->drafted;
}

/* Distributes the round's loads over the blocks of its tokens. */
static void
spread(const struct what_if *w, double layers, double heads)
{
    const struct layer_record *r = w->record;
    for (uint32_t i = 0; i < w->emitted && r->loads != NULL; i++) {
        const uint32_t block = (w->at - r->begin + i) * RECORD_BLOCKS / (r->n - r->begin);
        r->loads->layers[block] += layers / w->emitted;
        r->loads->heads[block] += heads / w->emitted;
    }
}

void
what_if_verify(struct what_if *w)
{
    struct tally *t = w->out;
    w->layers += w->record->layers - w->depth; /* the last row is the shallowest of the round */
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
    spread(w, w->layers, w->heads);
}

void
what_if_ask_all(struct what_if *w)
{
    const struct layer_record *r = w->record;
    const uint32_t asked = w->emitted * r->layers, calls = (asked + r->probes - 1) / r->probes;
    w->out->heads += calls * r->layers_load;
    spread(w, 0, calls * r->layers_load);
}
