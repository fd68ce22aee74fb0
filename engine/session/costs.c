/* Measures the cost model (engine/events/cost_model.h): times the steps of rounds in contexts of their own, with rows
 * of random tokens that are discarded. Row counts take turns, so that each pass finds the caches as other passes leave
 * them. Other work of the machine only adds to a time, so a cost is the lower quartile of the repetitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/clock.h"
#include "base/rng.h"
#include "engine/session/session_internal.h"

#define REPEATS   5
#define MOST_ROWS 64
#define DRAFTS    4                                    /* passes in a row, of each depth */
#define CONTEXT   128                                  /* positions before the measured rows, as in a text */
#define ROWS      (MOST_ROWS + REPEATS * (DRAFTS + 2)) /* of a sequence after its text */
#define FAR       256                                  /* further positions, which show the time of attention */
#define FAR_ROWS  16                                   /* most rows of such a pass; more rows continue the line */
#define GROWTH    3   /* a pass of as many rows as a mean short repetition, over one of one row: an upper prediction */
#define STEPS     140 /* a whole repetition, with its share of the text before it, in steps of one row */
#define LEAST_US  300000.0 /* that a measurement may take, */
#define SHARE     0.02     /* or this share of the run's time */

/* Rows of a short measurement; the other costs are interpolated. */
static const uint32_t few_rows[] = {1, 2, 4, 8, 16, 32, 64};
#define N_FEW (sizeof few_rows / sizeof *few_rows)

struct timing_of { /* a sample for each repetition */
    double us[COST_ARRAYS][COST_ROWS][REPEATS];
    double far[2][COST_ROWS][REPEATS]; /* near and far */
    double draft[REPEATS], round[REPEATS], first[REPEATS];
};

struct bench_rows {
    struct blocks blocks; /* the memory of the following arrays */
    struct context *ctx;
    seq_t seq;
    uint32_t layers, vocab;
    uint64_t random;
    bool trained;          /* layers have trained heads */
    uint32_t set;          /* 1: the set of tokens that is measured; 0: there is none */
    const float *features; /* (MOST_ROWS, …) that a feature drafter's rows read; NULL: none */
    slot_t row[MOST_ROWS];
    struct context_probe probe[MOST_ROWS];
    struct prediction *prediction;  /* (layers + 1, at least MOST_ROWS) */
    float *temperature, *threshold; /* (layers + 1) */
    struct timing_of of;
};

static int
compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A number of few digits, which its text repeats exactly. */
static double
rounded(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.5g", value > 0 ? value : 0);
    return strtod(text, NULL);
}

static double
quartile(const double *sample)
{
    double sorted[REPEATS];
    memcpy(sorted, sample, sizeof sorted);
    qsort(sorted, REPEATS, sizeof *sorted, compare);
    return sorted[REPEATS / 4];
}

/* ---- steps ---- */

/* Any token: rows of one token would share the experts of a mixture. */
static token_t
draw(struct bench_rows *b)
{
    return (token_t)(splitmix64(&b->random) % b->vocab);
}

static bool
append(struct bench_rows *b, seq_t seq, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if ((b->row[i] = context_append(b->ctx, seq, i == 0 ? SLOT_NONE : b->row[i - 1], draw(b))) == SLOT_NONE)
            return false;
    return true;
}

static void
discard(struct bench_rows *b)
{
    if (b->row[0] != SLOT_NONE)
        context_discard(b->ctx, b->row[0]);
}

static bool
advance(struct bench_rows *b, uint32_t n, uint32_t to, double *us)
{
    const double start = clock_fine_us();
    const bool ok = (b->features == NULL || context_feed(b->ctx, b->row, n, b->features)) &&
                    context_advance(b->ctx, b->row, n, to, NULL);
    *us = clock_fine_us() - start;
    return ok;
}

static bool
probe_set(struct bench_rows *b, uint32_t n, uint32_t layer, enum head_choice head, uint32_t set, double *us)
{
    for (uint32_t i = 0; i < n; i++)
        b->probe[i] =
            (struct context_probe){.slot = b->row[i], .layer = layer, .head = head, .temperature = 1, .set = set};
    const double start = clock_fine_us();
    const bool ok = context_predict(b->ctx, b->probe, n, b->prediction);
    *us = clock_fine_us() - start;
    return ok;
}

static bool
probe(struct bench_rows *b, uint32_t n, uint32_t layer, enum head_choice head, double *us)
{
    return probe_set(b, n, layer, head, 0, us);
}

static bool
verify(struct bench_rows *b, uint32_t n, double *us)
{
    struct verify_row rows[MOST_ROWS];
    struct verdict verdict;
    const struct sampling greedy = {.top_p = 1};
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (struct verify_row){
            .parent = (int32_t)i - 1, .token = context_token(b->ctx, b->row[i]), .slot = b->row[i], .q = DIST_NONE};
    const double start = clock_fine_us();
    const bool ok = context_verify(b->ctx, b->seq, rows, n, &greedy, 1, &verdict);
    *us = clock_fine_us() - start;
    return ok;
}

/* ---- repetitions ---- */

/* Of larger numbers of rows every other one is interpolated. */
static bool
is_measured(uint32_t rows)
{
    return rows < 12 || (rows & (rows - 1)) == 0;
}

/* Measures a probe over the set of tokens, if there is one, before probes of the whole head take the caches. */
static bool
set_probe(struct bench_rows *b, uint32_t n, uint32_t layer, uint32_t c, uint32_t rep)
{
    return b->set == 0 || probe_set(b, n, layer, USE_LENS, b->set, &b->of.us[COST_OF_SET_PROBE][c][rep]);
}

/* Passes through all layers, with verifications and probes. */
static bool
whole_passes(struct bench_rows *b, uint32_t rep)
{
    bool ok = true;
    for (uint32_t c = 0; c < COST_ROWS && ok; c++) {
        const uint32_t n = cost_rows[c];
        if (!is_measured(n))
            continue;
        ok = append(b, b->seq, n) && advance(b, n, b->layers, &b->of.us[COST_OF_LAYER][c][rep]) &&
             (b->features != NULL || verify(b, n, &b->of.us[COST_OF_HEAD][c][rep])) &&
             set_probe(b, n, (b->layers + 1) / 2, c, rep) &&
             probe(b, n, (b->layers + 1) / 2, USE_LENS, &b->of.us[COST_OF_PROBE][c][rep]) &&
             (!b->trained || probe(b, n, (b->layers + 1) / 2, USE_TRAINED, &b->of.us[COST_OF_TRAINED_PROBE][c][rep]));
        b->of.us[COST_OF_LAYER][c][rep] /= b->layers;
        discard(b);
    }
    return ok;
}

/* Each number of rows goes through a layer of its own: the rows of a pass are the first ones of the pass before. */
static bool
stairs(struct bench_rows *b, uint32_t rep)
{
    bool ok = append(b, b->seq, MOST_ROWS);
    uint32_t layer = 0;
    for (uint32_t i = N_FEW; i-- > 0 && ok;) {
        uint32_t c = 0;
        while (cost_rows[c] != few_rows[i])
            c++;
        ok = advance(b, few_rows[i], ++layer, &b->of.us[COST_OF_LAYER][c][rep]) &&
             set_probe(b, few_rows[i], layer, c, rep) &&
             probe(b, few_rows[i], layer, USE_LENS, &b->of.us[COST_OF_PROBE][c][rep]) &&
             (!b->trained || probe(b, few_rows[i], layer, USE_TRAINED, &b->of.us[COST_OF_TRAINED_PROBE][c][rep]));
        b->of.us[COST_OF_HEAD][c][rep] = b->of.us[COST_OF_PROBE][c][rep];
    }
    discard(b);
    return ok;
}

/* The fixed cost of a round: an autoregressive step without its pass and head call. */
static bool
fixed_costs(struct bench_rows *b, uint32_t rep, double *step_us)
{
    double pass, head;
    const double start = clock_fine_us();
    const bool ok = append(b, b->seq, 1) && advance(b, 1, b->layers, &pass) && verify(b, 1, &head) &&
                    context_keep(b->ctx, b->seq, b->row, 1);
    *step_us = clock_fine_us() - start;
    b->of.round[rep] = ok ? *step_us - pass - head : 0;
    return ok;
}

/* Continues the line through a sample of the model's depth to the next measured number. */
static void
continue_line(double sample[COST_ROWS][REPEATS], uint32_t c, uint32_t depth, uint32_t rep)
{
    if (cost_rows[c] > depth && c > 0)
        sample[c][rep] += (sample[c][rep] - sample[c - 1][rep]) * (cost_rows[c] - depth) / (depth - cost_rows[c - 1]);
}

/* Probes within passes, after every layer, for each depth. No probability reaches the threshold at this temperature. */
static bool
exits(struct bench_rows *b, uint32_t rep, enum cost_array array)
{
    struct exit_result out = {.probed = b->prediction};
    const struct exit_rule rule = {.temperature = b->temperature,
                                   .threshold = b->threshold,
                                   .head = array == COST_OF_TRAINED_EXITS ? USE_TRAINED : USE_LENS,
                                   .set = array == COST_OF_SET_EXITS ? b->set : 0};
    double(*us)[REPEATS] = b->of.us[array];
    bool ok = true, last = false;
    for (uint32_t c = 0; c < COST_ROWS && ok && !last; c++) {
        const uint32_t depth = cost_rows[c] < b->layers - 1 ? cost_rows[c] : b->layers - 1;
        last = depth == b->layers - 1;
        ok = append(b, b->seq, 1) && context_advance_until(b->ctx, b->row, 1, depth, &rule, &out);
        us[c][rep] = (double)out.probe_ns / 1000;
        continue_line(us, c, depth, rep);
        discard(b);
    }
    return ok;
}

/* The mean pass of autoregressive steps: nothing drafts with all layers. The first one follows other work. */
static bool
step_passes(struct bench_rows *b, double *us)
{
    double pass, head;
    bool ok = true;
    *us = 0;
    for (uint32_t i = 0; i < DRAFTS && ok; i++) {
        ok = append(b, b->seq, 1) && advance(b, 1, b->layers, &pass) && verify(b, 1, &head) &&
             context_keep(b->ctx, b->seq, b->row, 1);
        *us += ok && i > 0 ? pass / (DRAFTS - 1) : 0;
    }
    return ok;
}

/* Passes of single rows through the first layers, one draft after the other, for each depth. */
static bool
draft_passes(struct bench_rows *b, uint32_t rep)
{
    slot_t draft = SLOT_NONE;
    bool ok = true, last = false;
    for (uint32_t c = 0; c < COST_ROWS && ok && !last; c++) {
        const uint32_t depth = cost_rows[c] < b->layers ? cost_rows[c] : b->layers;
        double sum = 0, host = 0, us = 0, head = 0;
        slot_t first = SLOT_NONE;
        last = depth == b->layers;
        if (last) {
            ok = step_passes(b, &b->of.us[COST_OF_PASS][c][rep]);
            continue_line(b->of.us[COST_OF_PASS], c, depth, rep);
            continue;
        }
        for (uint32_t i = 0; i < DRAFTS && ok; i++) {
            const double start = clock_fine_us();
            draft = context_append(b->ctx, b->seq, i == 0 ? SLOT_NONE : draft, draw(b));
            host += clock_fine_us() - start;
            first = i == 0 ? draft : first;
            b->row[0] = draft;
            ok = draft != SLOT_NONE && advance(b, 1, depth, &us) && set_probe(b, 1, depth, 0, rep) &&
                 probe(b, 1, depth, USE_LENS, &head);
            sum += us / DRAFTS;
        }
        b->of.us[COST_OF_PROBE][0][rep] = head; /* after a pass, whose weights took the head's place in the caches */
        if (first != SLOT_NONE)
            context_discard(b->ctx, first);
        b->of.draft[rep] = host / DRAFTS;
        b->of.us[COST_OF_PASS][c][rep] = sum;
        continue_line(b->of.us[COST_OF_PASS], c, depth, rep);
    }
    return ok;
}

/* The further time of a first draft after a verification by the target, over the mean of other drafts. The drafts are
 * rows of `b` up to a layer, in blocks of so many rows. */
static bool
first_draft(struct bench_rows *b, struct bench_rows *target, uint32_t depth, uint32_t block, uint32_t rep)
{
    double us[DRAFTS], head[DRAFTS], unused, rest = 0;
    bool ok = append(target, target->seq, DRAFTS) && advance(target, DRAFTS, target->layers, &unused) &&
              verify(target, DRAFTS, &unused);
    discard(target);
    for (uint32_t i = 0; i < DRAFTS && ok; i++) {
        ok = append(b, b->seq, block) && advance(b, block, depth, &us[i]) && probe(b, block, depth, USE_LENS, &head[i]);
        rest += i > 0 && ok ? (us[i] + head[i]) / (DRAFTS - 1) : 0;
        discard(b);
    }
    b->of.first[rep] = ok ? us[0] + head[0] - rest : 0;
    return ok;
}

static bool
exits_of_all(struct bench_rows *b, uint32_t rep)
{
    return b->layers == 1 || (exits(b, rep, COST_OF_EXITS) && (!b->trained || exits(b, rep, COST_OF_TRAINED_EXITS)) &&
                              (b->set == 0 || exits(b, rep, COST_OF_SET_EXITS)));
}

/* ---- a model ---- */

/* Fills costs that were not measured from their neighbours. */
static void
fill(double us[COST_ROWS])
{
    for (uint32_t i = 1, last = 0; i < COST_ROWS; i++) {
        if (!(us[i] > 0))
            continue;
        for (uint32_t k = last + 1; k < i; k++)
            us[k] = us[last] + (us[i] - us[last]) * (cost_rows[k] - cost_rows[last]) / (cost_rows[i] - cost_rows[last]);
        last = i;
    }
}

static void
round_all(double us[COST_ROWS])
{
    for (uint32_t c = 0; c < COST_ROWS; c++)
        us[c] = rounded(us[c]);
}

static void
take(double us[COST_ROWS], double samples[COST_ROWS][REPEATS])
{
    for (uint32_t c = 0; c < COST_ROWS; c++)
        us[c] = quartile(samples[c]);
    fill(us);
    for (uint32_t c = COST_ROWS - 1; c-- > 0;) /* a larger time was disturbed by other work */
        us[c] = us[c + 1] > 0 ? fmin(us[c], us[c + 1]) : us[c];
    round_all(us);
}

/* Returns the number of positions before the rows of a sequence that is near, or far; 0: the model's context is too
 * short. */
static uint32_t
position_of(const struct model *m, bool far)
{
    const uint32_t rows = ROWS, most = m->ctx_train > rows ? m->ctx_train - rows : 0;
    const uint32_t near = most / 2 < CONTEXT ? most / 2 : CONTEXT;
    return !far ? near : most - near < FAR ? most : near + FAR;
}

/* Opens a context whose rows go up to a layer, 0: the last. It has room for a near and a far sequence. */
static bool
open_rows(struct bench_rows *b, struct engine *e, const struct model *m, struct weights *w, uint32_t depth,
          const atomic_bool *cancel)
{
    const uint32_t rows = ROWS;
    struct context_options limits = {
        .ctx = position_of(m, true) + rows, .spare = position_of(m, false) + rows, .depth = depth, .cancel = cancel};
    limits.sets = b->set = m == e->model && e->ops->draft_set != NULL;
    limits.rank = e->rank.ids;
    b->layers = depth > 0 ? depth : m->desc.n_layers;
    b->vocab = m->desc.vocab;
    b->trained = m == e->model && e->heads != HEAD_LENS;
    const size_t n = (size_t)m->desc.n_layers + 1;
    b->prediction = blocks_take(&b->blocks, n + MOST_ROWS, sizeof *b->prediction);
    b->temperature = blocks_take(&b->blocks, n, sizeof *b->temperature);
    b->threshold = blocks_take(&b->blocks, n, sizeof *b->threshold);
    for (size_t i = 0; !b->blocks.starved && i < n; i++) {
        b->temperature[i] = 3;
        b->threshold[i] = 1;
    }
    return position_of(m, false) > 0 && !b->blocks.starved &&
           context_open(&b->ctx, e->ops, e->backend, w, &m->desc, &limits, NULL) &&
           (b->set == 0 || context_draft_set(b->ctx, b->set, cost_set_tokens(b->vocab), NULL, 0)) &&
           (b->seq = context_sequence(b->ctx)) != SEQ_NONE;
}

static void
close_rows(struct bench_rows *b)
{
    context_close(b->ctx);
    blocks_free(&b->blocks);
    b->ctx = NULL;
}

static bool
read_text(struct bench_rows *b, seq_t seq, uint32_t n)
{
    token_t text[CONTEXT + FAR];
    for (uint32_t i = 0; i < n; i++)
        text[i] = draw(b);
    return context_prefill(b->ctx, seq, text, n, NULL, NULL);
}

/* Passes of some numbers of rows after a near and after a far position. */
static bool
near_and_far(struct bench_rows *b, const seq_t seq[2], uint32_t rep)
{
    bool ok = true;
    for (int far = 0; far < 2; far++)
        for (uint32_t c = 0; cost_rows[c] <= FAR_ROWS && ok; c++) {
            if ((cost_rows[c] & (cost_rows[c] - 1)) != 0)
                continue;
            ok = append(b, seq[far], cost_rows[c]) && advance(b, cost_rows[c], b->layers, &b->of.far[far][c][rep]);
            discard(b);
        }
    return ok;
}

/* The further time of a layer at 1,000 more positions, in the context's layers. The near sequence has `near`
 * positions. */
static bool
measure_attention(struct bench_rows *b, const struct model *m, uint32_t near, double far_us[COST_ROWS])
{
    const uint32_t further = position_of(m, true) - position_of(m, false);
    const seq_t seq[2] = {b->seq, context_sequence(b->ctx)};
    uint32_t c = 0;
    bool ok = seq[1] != SEQ_NONE && read_text(b, seq[1], near + further);
    for (uint32_t rep = 0; rep < REPEATS && ok; rep++)
        ok = near_and_far(b, seq, rep);
    for (; cost_rows[c] <= FAR_ROWS; c++)
        far_us[c] = fmax(0, quartile(b->of.far[1][c]) - quartile(b->of.far[0][c])) / b->layers / further * 1000;
    fill(far_us);
    for (; c < COST_ROWS; c++)
        far_us[c] = far_us[c - 1] * cost_rows[c] / cost_rows[c - 1];
    round_all(far_us);
    return ok;
}

/* The same in the first layer of a large model. */
static bool
measure_attention_in_a_layer(struct bench_rows *b, struct engine *e, const struct model *m, struct weights *w,
                             const atomic_bool *cancel, double far_us[COST_ROWS])
{
    close_rows(b);
    return open_rows(b, e, m, w, 1, cancel) && measure_attention(b, m, 0, far_us);
}

static void
take_all(struct cost_model *out, struct bench_rows *b, bool all)
{
    for (int a = 0; a < COST_ARRAYS; a++)
        take(out->us[a], b->of.us[a]);
    double *lens_exits = out->us[COST_OF_EXITS], *trained_exits = out->us[COST_OF_TRAINED_EXITS];
    double *set_exits = out->us[COST_OF_SET_EXITS];
    const bool set_timed = set_exits[0] > 0;
    const bool timed = lens_exits[0] > 0, trained_timed = trained_exits[0] > 0; /* not in a short measurement */
    for (uint32_t c = 0; c < COST_ROWS; c++) {
        if (!all)
            out->us[COST_OF_PASS][c] = rounded(out->us[COST_OF_LAYER][0] * cost_rows[c]);
        if (!timed)
            lens_exits[c] = rounded(out->us[COST_OF_PROBE][0] * cost_rows[c]);
        if (!trained_timed)
            trained_exits[c] = rounded(out->us[COST_OF_TRAINED_PROBE][0] * cost_rows[c]);
        if (!set_timed)
            set_exits[c] = rounded(out->us[COST_OF_SET_PROBE][0] * cost_rows[c]);
    }
    out->draft = rounded(quartile(b->of.draft));
    out->first = rounded(quartile(b->of.first));
    out->round = rounded(all ? quartile(b->of.round) : fmin(b->of.round[0], b->of.round[1]));
}

/* Returns false if it failed, or would take longer than allowed: then *need_us is above 0. */
static bool
measure_model(struct engine *e, const struct model *m, struct weights *w, double allowed_us, const atomic_bool *cancel,
              struct cost_model *out, double *need_us)
{
    struct bench_rows *b = calloc(1, sizeof *b);
    double step = 0, one_probe = 0;
    bool ok = b != NULL && open_rows(b, e, m, w, 0, cancel);
    *need_us = 0;
    for (uint32_t rep = 0; rep < 2 && ok; rep++) /* the first one warms up */
        ok = fixed_costs(b, rep, &step);
    ok = ok && append(b, b->seq, 1) && advance(b, 1, b->layers, &one_probe) &&
         probe(b, 1, b->layers, USE_LENS, &one_probe);
    if (ok)
        discard(b);
    const double whole = REPEATS * STEPS * step,
                 few = REPEATS * N_FEW * GROWTH * (step / (b != NULL ? b->layers : 1) + one_probe);
    const bool all = whole <= allowed_us;
    if (ok && !all && (few > allowed_us || b->layers < N_FEW)) {
        *need_us = b->layers < N_FEW ? whole : few;
        ok = false;
    }
    if (ok && all) {
        out->context = position_of(m, false);
        ok = read_text(b, b->seq, out->context);
    }
    for (uint32_t rep = 0; rep < REPEATS && ok; rep++)
        ok = all ? fixed_costs(b, rep, &step) && whole_passes(b, rep) && draft_passes(b, rep) && exits_of_all(b, rep) &&
                       first_draft(b, b, (b->layers + 1) / 2, 1, rep)
                 : stairs(b, rep);
    if (ok)
        take_all(out, b, all);
    ok = ok && (all ? measure_attention(b, m, out->context, out->far[COST_FAR_LAYER])
                    : measure_attention_in_a_layer(b, e, m, w, cancel, out->far[COST_FAR_LAYER]));
    if (b != NULL)
        close_rows(b);
    free(b);
    return ok;
}

static void
scale(double us[COST_ROWS], const double of[COST_ROWS], double by)
{
    for (uint32_t i = 0; i < COST_ROWS; i++)
        us[i] = rounded(of[i] * by);
}

/* Passes and head calls of a feature drafter, whose rows read features of the target: any values. */
static bool
fed_passes(struct bench_rows *b, uint32_t values, struct cost_model *out)
{
    double unused;
    b->features = blocks_take(&b->blocks, (size_t)MOST_ROWS * values, sizeof *b->features);
    bool ok = b->features != NULL && append(b, b->seq, MOST_ROWS) && advance(b, MOST_ROWS, b->layers, &unused) &&
              context_keep(b->ctx, b->seq, b->row, MOST_ROWS);
    for (uint32_t rep = 0; rep < REPEATS && ok; rep++)
        ok = whole_passes(b, rep);
    take(out->us[COST_OF_LAYER], b->of.us[COST_OF_LAYER]);
    take(out->us[COST_OF_PROBE], b->of.us[COST_OF_PROBE]);
    return ok;
}

/* Calls of the Markov head on rows whose logits are kept. */
static bool
markov_probe(struct bench_rows *b, uint32_t n, double *us)
{
    for (uint32_t i = 0; i < n; i++) {
        b->probe[i].kept = true;
        b->probe[i].before = draw(b);
    }
    const double start = clock_fine_us();
    const bool ok = context_predict(b->ctx, b->probe, n, b->prediction);
    *us = clock_fine_us() - start;
    return ok;
}

/* Passes, head calls and calls of the Markov head on blocks of some numbers of rows, and rows that are fed. */
static bool
block_passes(struct bench_rows *b, const float *features, bool markov, uint32_t rep)
{
    bool ok = true;
    for (uint32_t c = 0; c < COST_ROWS && ok; c++) {
        const uint32_t n = cost_rows[c];
        if (!is_measured(n))
            continue;
        const double start = clock_fine_us();
        ok = append(b, b->seq, n) && context_feed(b->ctx, b->row, n, features);
        b->of.us[COST_OF_FEED][c][rep] = clock_fine_us() - start;
        discard(b);
        ok = ok && append(b, b->seq, n) && advance(b, n, b->layers, &b->of.us[COST_OF_LAYER][c][rep]) &&
             probe(b, n, b->layers, USE_LENS, &b->of.us[COST_OF_PROBE][c][rep]) &&
             (!markov || markov_probe(b, n, &b->of.us[COST_OF_MARKOV][c][rep]));
        b->of.us[COST_OF_LAYER][c][rep] /= b->layers;
        discard(b);
    }
    return ok;
}

/* The steps of a block drafter, whose committed rows read features of the target: any values. */
static bool
fed_blocks(struct bench_rows *b, const struct drafter_desc *d, struct cost_model *out)
{
    static const enum cost_array arrays[] = {COST_OF_LAYER, COST_OF_PROBE, COST_OF_FEED, COST_OF_MARKOV};
    const float *features = blocks_take(&b->blocks, (size_t)MOST_ROWS * d->features, sizeof *features);
    bool ok = features != NULL && append(b, b->seq, MOST_ROWS) && context_feed(b->ctx, b->row, MOST_ROWS, features) &&
              context_keep(b->ctx, b->seq, b->row, MOST_ROWS);
    for (uint32_t rep = 0; rep < REPEATS && ok; rep++)
        ok = block_passes(b, features, tensor_present(&d->markov_w1), rep);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        take(out->us[arrays[i]], b->of.us[arrays[i]]);
    return ok;
}

bool
engine_drafter_costs(struct engine *e, const struct aux_model *drafter, const atomic_bool *cancel,
                     struct cost_model *out)
{
    const struct model *m = drafter->model;
    const struct drafter_desc *form = m->desc.drafter;
    const uint32_t block = form != NULL && form->block > 0 ? form->block : 1;
    struct bench_rows *both = calloc(2, sizeof *both);
    struct cost_model own = e->costs;
    double unused;
    *out = e->costs;
    memset(out->us[COST_OF_DRAFT], 0, sizeof out->us[COST_OF_DRAFT]);
    bool ok = cost_known(out) && both != NULL &&
              (form != NULL || measure_model(e, m, drafter->weights, INFINITY, cancel, &own, &unused)) &&
              open_rows(&both[0], e, m, drafter->weights, 0, cancel) &&
              open_rows(&both[1], e, e->model, e->weights, 0, cancel) &&
              (form == NULL ||
               (form->block > 0 ? fed_blocks(&both[0], form, &own) : fed_passes(&both[0], form->features, &own)));
    for (uint32_t rep = 0; rep < REPEATS && ok; rep++)
        ok = first_draft(&both[0], &both[1], both[0].layers, block, rep);
    if (ok) {
        scale(out->us[COST_OF_DRAFT], own.us[COST_OF_LAYER], m->desc.n_layers);
        memcpy(out->us[COST_OF_DRAFT_HEAD], own.us[COST_OF_PROBE], sizeof own.us[COST_OF_PROBE]);
        memcpy(out->us[COST_OF_FEED], own.us[COST_OF_FEED], sizeof own.us[COST_OF_FEED]);
        memcpy(out->us[COST_OF_MARKOV], own.us[COST_OF_MARKOV], sizeof own.us[COST_OF_MARKOV]);
        scale(out->far[COST_FAR_DRAFT], own.far[COST_FAR_LAYER], m->desc.n_layers);
        out->first_draft = rounded(quartile(both[0].of.first));
    }
    for (int i = 0; i < 2 && both != NULL; i++)
        close_rows(&both[i]);
    free(both);
    return ok;
}

bool
engine_costs(struct engine *e, double allowed_us, const atomic_bool *cancel, double *need_us)
{
    struct cost_model costs = {.context = 0};
    *need_us = 0;
    if (cost_known(&e->costs))
        return true;
    if (!measure_model(e, e->model, e->weights, allowed_us, cancel, &costs, need_us))
        return false;
    cost_reset(&costs);
    e->costs = costs;
    if (e->aux[AUX_DRAFT].model != NULL)
        engine_drafter_costs(e, &e->aux[AUX_DRAFT], cancel, &e->costs);
    return true;
}

void
session_costs(struct session *s)
{
    char text[COST_TEXT];
    const double run_us = (double)(clock_us() - s->run.start_us);
    double need_us;
    const bool known = engine_costs(s->engine, fmax(LEAST_US, SHARE * run_us), &s->mailbox.cancel, &need_us);
    s->asked.costs = !known && (need_us > 0 || atomic_load(&s->mailbox.cancel)); /* a new run cancels it */
    s->costs_us = s->run.start_us + (uint64_t)(need_us / SHARE); /* when a run has lasted so long that it is allowed */
    s->costs_emitted = known && cost_model_print(&s->engine->costs, text);
    if (s->costs_emitted)
        session_emit_control(s, 0, RECORDED_COST, text);
}
