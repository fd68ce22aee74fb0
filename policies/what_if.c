#include "policies/what_if.h"

#include <math.h>

#include "base/rng.h"
#include "engine/measure/positions.h"

void
what_if_begin(struct what_if *w, const struct layer_record *record, struct tally *out)
{
    *out = (struct tally){0};
    /* A block drafter has read the whole prompt, the others all but its last row. */
    *w = (struct what_if){.record = record, .out = out, .at = record->begin, .unread = record->draft.role != AUX_BLOCK};
    w->recent = record->base > 0 ? layer_record_recent(record, 0, record->first + record->begin + 1) : 0;
}

bool
what_if_round(struct what_if *w)
{
    const uint32_t at = w->at + w->emitted;
    if (at >= w->record->n)
        return false;
    const struct layer_record *r = w->record;
    const uint32_t left = r->n - 1 - at;
    const uint32_t more = r->base > 0 ? layer_record_recent(r, r->first + w->at + 1, r->first + at + 1) : 0;
    *w = (struct what_if){.record = w->record,
                          .out = w->out,
                          .at = at,
                          .budget = left < VERIFY_NODES - 1 ? left : VERIFY_NODES - 1,
                          .unread = w->unread,
                          .n_rows = 1,
                          .recent = w->recent + more};
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
        if (!layer_prediction(r, (from + i) % r->n, to)->agrees)
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

/* Counts calls of a step. */
static void
what_if_count(struct what_if *w, enum cost_step step, uint32_t rows, double calls)
{
    if (rows > 0)
        cost_add(&w->steps, step, rows, calls, w->record->first + w->at);
}

/* Runs all rows that are less deep to a layer, in one forward pass that each row joins at its own depth. While
 * drafting, the price is that of the last row's pass, with the further cost of the other rows. */
static void
run_rows(struct what_if *w, bool drafting, uint32_t to)
{
    const bool whole = drafting && to > 0 && w->row_depth[w->n_rows - 1] == 0;
    if (whole)
        what_if_count(w, COST_DRAFT_PASS, to, 1);
    for (uint32_t i = w->n_rows; i-- > 0 && w->row_depth[i] < to;) {
        const uint32_t next = i > 0 && w->row_depth[i - 1] < to ? w->row_depth[i - 1] : to, n = w->n_rows - i,
                       layers = next - w->row_depth[i];
        w->row_depth[i] = to;
        if (layers == 0 || (whole && n == 1))
            continue;
        if (!drafting && n == 1 && next == layers) { /* the layers that the drafts ran */
            what_if_count(w, COST_PASS, layers, 1);
            continue;
        }
        what_if_count(w, drafting ? COST_DRAFT_ROWS : COST_LAYER, n, layers);
        if (whole)
            what_if_count(w, COST_DRAFT_ROWS, 1, -(double)layers);
    }
}

/* Returns the share of the vocabulary that a head for drafts computes. */
static double
share_of_head(const struct what_if *w)
{
    const struct layer_record *r = w->record;
    const uint32_t recent = w->recent < DRAFT_RECENT ? w->recent : DRAFT_RECENT;
    return r->base > 0 ? fmin(1, ((double)r->base + recent) / r->rank->vocab) : 1;
}

/* Counts calls of a head for drafts. One over a draft vocabulary costs less by a share of the difference between the
 * whole head and one over a measured number of tokens. */
static void
count_heads(struct what_if *w, bool exits, uint32_t n, double calls)
{
    const bool trained = w->record->trained;
    what_if_count(w,
                  exits     ? (trained ? COST_TRAINED_EXITS : COST_EXITS)
                  : trained ? COST_TRAINED_PROBE
                            : COST_PROBE,
                  n, calls);
    if (w->record->base == 0)
        return;
    const double vocab = w->record->rank->vocab, measured = cost_set_tokens(w->record->rank->vocab);
    const double less = calls * (1 - share_of_head(w)) * vocab / (vocab - measured);
    what_if_count(w, exits ? COST_EXITS : COST_PROBE, n, -less);
    what_if_count(w, exits ? COST_SET_EXITS : COST_SET_PROBE, n, less);
}

/* Returns the loads of a head call at a layer below the last one. */
static double
head_load(const struct what_if *w)
{
    return w->record->head_load - 1 + share_of_head(w);
}

/* Adds a row at depth 0. */
static void
add_row(struct what_if *w)
{
    w->row_depth[w->n_rows++] = 0;
}

const struct layer_prediction *
what_if_inspect(struct what_if *w, uint32_t layer)
{
    w->layers += layer;
    w->heads += head_load(w);
    w->depth = layer;
    w->steps.first += w->steps.passes++ > 0 ? 0 : 1;
    run_rows(w, true, layer);
    count_heads(w, false, 1, 1);
    w->drafts_cell = layer_record_drafts(w->record, row_of(w, layer), layer, w->at);
    return &w->drafts_cell;
}

uint32_t
what_if_until(struct what_if *w, uint32_t to, const struct exit_rule *rule)
{
    const uint32_t row = row_of(w, to);
    bool exits = false;
    uint32_t probes = 0;
    w->depth = 0;
    while (w->depth < to && !exits) {
        const uint32_t l = ++w->depth;
        if (rule->threshold[l] > 1)
            continue;
        const struct layer_prediction cell = layer_record_drafts(w->record, row, l, w->at);
        w->heads += head_load(w);
        probes++;
        exits = layer_record_annealed(&cell, rule->temperature[l]) >= rule->threshold[l];
    }
    w->layers += w->depth;
    w->steps.first += w->steps.passes++ > 0 ? 0 : 1;
    run_rows(w, true, w->depth);
    count_heads(w, true, probes, 1);
    return exits ? w->depth : 0;
}

void
what_if_propose(struct what_if *w, uint32_t layer, bool no_row)
{
    const bool agrees = w->record->accepts || layer_record_drafts(w->record, w->at + w->drafted, layer, w->at).agrees;
    w->wrong = w->wrong || !agrees;
    w->accepted += !w->wrong;
    w->drafted++;
    w->out->exit_layers += layer;
    w->no_row = no_row;
    if (!no_row) {
        w->depth = 0;
        add_row(w);
    }
}

void
what_if_propose_token(struct what_if *w, uint32_t depth, bool right)
{
    w->drafted = depth > w->drafted ? depth : w->drafted;
    w->accepted += right;
    w->wrong = w->accepted < w->drafted;
    add_row(w);
}

#define READ_ROWS 64 /* of a forward pass */

/* The draft model reads the tokens that it has not read. A feature drafter's later passes are on its own output. */
static void
read_tokens(struct what_if *w)
{
    const struct record_drafter *d = &w->record->draft;
    const uint32_t passes = (w->unread + READ_ROWS - 1) / READ_ROWS;
    w->layers += passes * (d->role != AUX_DRAFT && w->drafted > 0 ? d->next_load : d->pass_load);
    if (passes > 0)
        what_if_count(w, COST_DRAFT, (w->unread + passes - 1) / passes, passes);
    w->steps.first_draft += w->drafts ? 0 : 1;
    w->unread = 0;
    w->drafts = true;
}

void
what_if_draft(struct what_if *w)
{
    const struct record_drafter *d = &w->record->draft;
    const bool right = w->record->accepts || (!w->wrong && layer_record_draft_agrees(w->record, w->drafted, w->at));
    read_tokens(w);
    w->heads += d->head_load * share_of_head(w);
    what_if_count(w, COST_DRAFT_HEAD, 1, share_of_head(w));
    what_if_propose_token(w, w->drafted + 1, right);
    w->unread = 1;
}

void
what_if_block(struct what_if *w, uint32_t drafts)
{
    const struct record_drafter *d = &w->record->draft;
    const uint32_t feeds = (w->unread + READ_ROWS - 1) / READ_ROWS;
    w->layers += feeds * d->next_load + d->pass_load;
    w->heads += d->head_load;
    if (feeds > 0)
        what_if_count(w, COST_FEED, (w->unread + feeds - 1) / feeds, feeds);
    what_if_count(w, COST_DRAFT, d->block, 1);
    what_if_count(w, COST_DRAFT_HEAD, drafts, 1);
    w->steps.first_draft += 1;
    w->unread = 0;
    w->drafts = true;
}

double
what_if_follow(struct what_if *w)
{
    const struct record_drafter *d = &w->record->draft;
    w->heads += d->markov_load + d->accept_load;
    what_if_count(w, COST_MARKOV, 1, d->markov ? 1 : 0);
    return d->confidence != NULL ? (double)d->confidence[w->at * d->drafts + w->drafted] : (double)NAN;
}

void
what_if_propose_block(struct what_if *w)
{
    const bool right = w->record->accepts || (!w->wrong && layer_record_draft_agrees(w->record, w->drafted, w->at));
    what_if_propose_token(w, w->drafted + 1, right);
}

/* Returns the acceptance of a wrong draft, drawn from the run's own; the same for every setting. */
static double
draw_rejected(const struct layer_record *r, uint32_t row)
{
    uint64_t random = (uint64_t)(r->first + row) << 32 | r->draw;
    if (r->loads != NULL)
        r->loads->drawn++;
    return r->draft.n_rejected > 0 ? (double)r->draft.rejected[splitmix64(&random) % r->draft.n_rejected] : 0.5;
}

double
what_if_acceptance(struct what_if *w)
{
    const struct record_drafter *d = &w->record->draft;
    const uint32_t row = w->at + w->drafted;
    read_tokens(w);
    w->heads += d->accept_load;
    what_if_count(w, COST_DRAFT_HEAD, 1, d->head_load > 0 ? d->accept_load / d->head_load : 0);
    return w->wrong ? draw_rejected(w->record, row) : (double)d->word[row].acceptance;
}

/* Counts the tokens that the draft model has not read after the round: it keeps the rows of accepted drafts that it has
 * read. A feature drafter drops them, and reads them again with the target's features. */
static void
keep_read(struct what_if *w)
{
    const uint32_t rows = w->record->draft.role != AUX_DRAFT ? 0 : w->drafted - w->unread,
                   kept = w->accepted < rows ? w->accepted : rows;
    w->unread = w->drafts ? w->emitted - kept : w->unread + w->emitted;
}

/* Distributes loads, and the steps counted so far, over the blocks of the round's tokens. */
static void
spread(struct what_if *w, double layers, double heads)
{
    const struct layer_record *r = w->record;
    for (uint32_t i = 0, same; i < w->emitted && r->loads != NULL; i += same) {
        const uint32_t block = (w->at - r->begin + i) * RECORD_BLOCKS / (r->n - r->begin);
        for (same = 1; i + same < w->emitted; same++)
            if ((w->at - r->begin + i + same) * RECORD_BLOCKS / (r->n - r->begin) != block)
                break;
        const double share = (double)same / w->emitted;
        r->loads->layers[block] += layers * share;
        r->loads->heads[block] += heads * share;
        cost_add_all(&r->loads->steps[block], &w->steps, share);
    }
    w->steps = (struct cost_count){0};
}

void
what_if_verify(struct what_if *w)
{
    struct tally *t = w->out;
    w->layers += w->record->layers - w->depth; /* the last row is the shallowest of the round */
    w->heads += 1;
    run_rows(w, false, w->record->layers);
    what_if_count(w, COST_HEAD, w->n_rows, 1);
    w->steps.rounds++;
    w->emitted = w->accepted + !(w->no_row && !w->wrong);
    w->cut = w->drafted == w->budget && w->budget < VERIFY_NODES - 1;
    keep_read(w);
    if (w->record->loads != NULL && w->record->loads->positions != NULL)
        positions_round(w->record->loads->positions,
                        &(struct round_event){
                            .verified = w->drafted, .accepted = w->accepted, .emitted = w->emitted, .reject_rank = -1});
    t->rounds++;
    t->drafted += w->drafted;
    t->verified += w->drafted;
    t->accepted += w->accepted;
    t->emitted += w->emitted;
    t->rejected_rounds += w->wrong;
    t->drafting_rounds += w->drafted > 0;
    t->layers += w->layers;
    t->heads += w->heads;
    spread(w, w->layers, w->heads);
}

void
what_if_ask_all(struct what_if *w)
{
    const struct layer_record *r = w->record;
    const uint32_t asked = w->emitted * r->layers, calls = (asked + r->probes - 1) / r->probes;
    const uint32_t rows = calls > 0 ? (asked + calls - 1) / calls : 0;
    w->out->heads += calls * r->layers_load; /* the last layer's prediction is over all tokens */
    count_heads(w, false, rows, calls * (r->layers - 1.0) / r->layers);
    what_if_count(w, COST_PROBE, rows, (double)calls / r->layers);
    spread(w, 0, calls * r->layers_load);
}
