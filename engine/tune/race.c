#include "engine/tune/race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define SHARED 2.5 /* the variance of the difference of two finalists' means ÷ its estimate */

/* ---- statistics ---- */

struct mean {
    double value, se; /* se: NAN for fewer than two samples */
    uint32_t n;
};

static struct mean
mean_of_sums(double sum, double squares, uint32_t n)
{
    const double mean = sum / n, variance = fmax(squares / n - mean * mean, 0);
    return (struct mean){n > 0 ? mean : (double)NAN, n > 1 ? sqrt(variance / (n - 1)) : (double)NAN, n};
}

/* Mean and standard error over n prompts, or (category not NULL) those of a category. A prompt's value is the mean of
 * a[i] − b[i] (b: NULL for zeros) over its heats; a and b are sums over these heats. */
static struct mean
mean_of(const struct raced_prompt *prompts, const char *category, const double *a, const double *b, uint32_t n,
        uint32_t heats)
{
    double sum = 0, squares = 0;
    uint32_t counted = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (category != NULL && strcmp(category, prompts[i].category) != 0)
            continue;
        const double x = (a[i] - (b != NULL ? b[i] : 0)) / (heats / n + (i < heats % n));
        counted++;
        sum += x;
        squares += x * x;
    }
    return mean_of_sums(sum, squares, counted);
}

/* `further`: the reach of an interval by another source of variance; NAN: unknown. */
static struct comparison
compare_also(struct mean log_ratio, double further)
{
    struct comparison c = {.value = exp(log_ratio.value), .low = NAN, .high = NAN, .n = log_ratio.n};
    if (log_ratio.n < 2 || isnan(further))
        return c;
    /* differences within rounding count as 0 */
    const double reach = hypot(estimate_quantile(RACE_LEVEL, log_ratio.n - 1) * log_ratio.se, further) + 1e-9;
    c.low = exp(log_ratio.value - reach);
    c.high = exp(log_ratio.value + reach);
    c.verdict = c.low > 1 ? DIFFERENCE_MORE : c.high < 1 ? DIFFERENCE_LESS : DIFFERENCE_NOISE;
    return c;
}

static struct comparison
compare(struct mean log_ratio)
{
    return compare_also(log_ratio, 0);
}

/* ---- prompts ---- */

static uint64_t
hash_of(const char *text, uint64_t seed)
{
    uint64_t hash = seed;
    for (; *text != '\0'; text++) {
        hash ^= (unsigned char)*text;
        splitmix64(&hash);
    }
    return splitmix64(&hash);
}

static int
by_category(const void *a, const void *b)
{
    const struct raced_prompt *x = a, *y = b;
    const int order = strcmp(x->category, y->category);
    return order != 0 ? order : x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Categories alternate, so that the first prompts of a race contain all of them evenly. */
static int
in_turns(const void *a, const void *b)
{
    const struct raced_prompt *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Holds out every third prompt of each category, in the order of their hashes. */
static bool
split(struct race *r, const struct race_prompt *list, uint32_t n)
{
    struct raced_prompt *all = calloc(n, sizeof *all);
    r->prompts = calloc(n, sizeof *r->prompts);
    if (all == NULL || r->prompts == NULL) {
        free(all);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        all[i] = (struct raced_prompt){.hash = hash_of(list[i].text, r->random), .index = i};
        if (list[i].category != NULL)
            strncat(all[i].category, list[i].category, sizeof all[i].category - 1);
    }
    qsort(all, n, sizeof *all, by_category);
    r->n_held = n / 3;
    r->n_prompts = n - r->n_held;
    uint32_t place[2] = {0, 0}, to[2] = {0, r->n_prompts}; /* of the heats, held out */
    for (uint32_t i = 0; i < n; i++) {
        const bool held = i % 3 == 2, first = i == 0 || strcmp(all[i].category, all[i - 1].category) != 0;
        if (first)
            place[0] = place[1] = 0;
        all[i].place = place[held]++;
        r->prompts[to[held]++] = all[i];
    }
    qsort(r->prompts, r->n_prompts, sizeof *all, in_turns);
    qsort(r->prompts + r->n_prompts, r->n_held, sizeof *all, in_turns);
    free(all);
    return true;
}

/* ---- heats ---- */

static bool
is_left(const struct race *r, uint32_t candidate)
{
    return r->of[candidate].dropped == 0;
}

uint32_t
race_round(const struct race *r)
{
    return r->block > 1 ? 2 * r->block : 1;
}

/* Every other heat has the reversed order of the heat before, and so has every block, which begins with the candidate
 * that ran last. Candidate 0 runs in each, because times are compared with its time. */
static void
begin_heat(struct race *r)
{
    uint32_t order[RACE_CANDIDATES], n = 0;
    if (r->block > 1 ? r->heat > 0 : r->heat % 2 == 1) {
        for (uint32_t i = r->in_heat; i-- > 0;)
            if (is_left(r, r->order[i]) || r->order[i] == 0)
                order[n++] = r->order[i];
    } else {
        for (uint32_t i = 0; i < r->n; i++)
            if (is_left(r, i) || i == 0)
                order[n++] = i;
        for (uint32_t i = n; i-- > 1;) {
            const uint32_t other = (uint32_t)(splitmix64(&r->random) % (i + 1)), moved = order[i];
            order[i] = order[other];
            order[other] = moved;
        }
    }
    memcpy(r->order, order, sizeof order);
    r->in_heat = n;
    r->at = 0;
}

/* Returns the advantage of a candidate over another one, or over candidate 0 (NULL), on prompts of one category or
 * (NULL) of all. */
static struct mean
advantage_on(const struct race *r, const char *category, const struct racer *a, const struct racer *b)
{
    const uint32_t n = a->heats < r->n_prompts ? a->heats : r->n_prompts;
    return mean_of(r->prompts, category, a->sample, b != NULL ? b->sample : NULL, n, a->heats);
}

static struct mean
advantage(const struct race *r, const struct racer *a, const struct racer *b)
{
    return advantage_on(r, NULL, a, b);
}

static uint32_t
leader(const struct race *r)
{
    uint32_t best = 0;
    double most = -INFINITY;
    for (uint32_t i = 0; i < r->n; i++) {
        const double mean = advantage(r, &r->of[i], NULL).value;
        if (is_left(r, i) && mean > most) {
            most = mean;
            best = i;
        }
    }
    return best;
}

static void
begin_held_out(struct race *r)
{
    struct race_standing all[RACE_CANDIDATES];
    uint32_t n = 0;
    race_standings(r, all);
    for (uint32_t i = 0; i < r->n && n < RACE_BASE; i++)
        if (r->block == 1 || (all[i].candidate != 0 && all[i].heats > 0))
            r->finalist[n++] = all[i].candidate;
    r->finalist[RACE_BASE] = 0;
    r->n_finalists = all[0].candidate == 0 || all[1].candidate == 0 ? 2 : 3;
    if (r->block > 1)
        r->n_finalists = n + 1;
    r->phase = RACE_HELD_OUT;
    r->at = r->in_block = 0;
}

/* Drops candidates that the leader is significantly faster than. Returns whether a remaining candidate may still be
 * faster than RACE_CLOSE allows. */
static bool
judge(struct race *r)
{
    const uint32_t first = leader(r);
    bool open = false;
    for (uint32_t i = 0; i < r->n; i++) {
        if (!is_left(r, i) || i == first)
            continue;
        const struct mean lead = advantage(r, &r->of[first], &r->of[i]);
        const double reach = estimate_quantile(RACE_LEVEL / r->n, lead.n - 1) * lead.se;
        if (lead.value > reach)
            r->of[i].dropped = r->heat;
        else
            open = open || lead.value + estimate_quantile(RACE_LEVEL, lead.n - 1) * lead.se > log1p(RACE_CLOSE);
    }
    return open;
}

/* Returns the number of runs that each candidate has in the current block. */
static uint32_t
runs_of_block(const struct race *r)
{
    return r->phase == RACE_HELD_OUT && r->block > 1 ? r->n_held : r->block;
}

static void
end_block(struct race *r)
{
    const uint32_t heats = runs_of_block(r);
    for (uint32_t i = 0; i < r->in_heat; i++) {
        struct racer *c = &r->of[r->order[i]];
        const double *base = r->seconds, *own = r->seconds + (size_t)r->order[i] * r->room;
        for (uint32_t k = 0; k < heats; k++)
            c->sample[c->heats++ % r->n_prompts] += log(base[k] / own[k]);
    }
    r->heat += heats;
    const bool whole = r->heat % race_round(r) == 0, open = r->heat < RACE_HEATS || !whole || judge(r);
    if (!open || (whole && r->heat + race_round(r) > r->n_prompts * RACE_PASSES) || race_left(r) == 1)
        begin_held_out(r);
    else
        begin_heat(r);
}

static void
advance(struct race *r)
{
    const uint32_t runs = runs_of_block(r);
    if (++r->in_block < runs)
        return;
    r->in_block = 0;
    r->at++;
    if (r->phase == RACE_RUNS && r->at == r->in_heat) {
        end_block(r);
    } else if (r->phase == RACE_HELD_OUT && r->at == r->n_finalists) {
        r->at = 0;
        for (uint32_t k = 0; k < runs; k++, r->held_at++)
            for (uint32_t i = 0; i < r->n_finalists; i++) {
                const double x = log(r->seconds[(size_t)r->finalist[i] * r->room + k]);
                r->held[i * r->n_held + r->held_at % r->n_held] += x;
                if (r->block > 1)
                    r->pass[i][r->held_at / r->n_held] += x;
            }
        if (r->held_at == r->n_held * r->passes)
            r->phase = RACE_OVER;
    }
}

/* ---- the host's ---- */

bool
race_open(struct race **out, const struct race_prompt *prompts, uint32_t n, uint64_t seed, struct err *err)
{
    if (n < RACE_PROMPTS)
        return err_set(
            err, ERR_USAGE,
            "a race needs at least %d prompts, and there are %u; use a longer list, or none for the bundled one",
            RACE_PROMPTS, n);
    struct race *r = *out = calloc(1, sizeof *r);
    if (r == NULL)
        return err_set(err, ERR_WORK, "out of memory for a race");
    r->random = seed;
    r->passes = RACE_PASSES;
    r->phase = RACE_OVER;
    if (!split(r, prompts, n) || (r->held = calloc((size_t)RACE_FINALISTS * r->n_held, sizeof *r->held)) == NULL) {
        race_close(r);
        *out = NULL;
        return err_set(err, ERR_WORK, "out of memory for a race");
    }
    return true;
}

bool
race_begin(struct race *r, uint32_t candidates, uint32_t block, struct err *err)
{
    r->n = candidates;
    r->block = block;
    r->room = r->block == 1 || r->block > r->n_held ? r->block : r->n_held;
    r->samples = calloc((size_t)candidates * r->n_prompts, sizeof *r->samples);
    r->seconds = calloc((size_t)candidates * r->room, sizeof *r->seconds);
    if (r->samples == NULL || r->seconds == NULL)
        return err_set(err, ERR_WORK, "out of memory for a race");
    for (uint32_t i = 0; i < candidates; i++)
        r->of[i].sample = r->samples + (size_t)i * r->n_prompts;
    r->phase = RACE_RUNS;
    begin_heat(r);
    return true;
}

void
race_close(struct race *r)
{
    if (r == NULL)
        return;
    free(r->prompts);
    free(r->samples);
    free(r->seconds);
    free(r->held);
    free(r);
}

enum race_phase
race_next(const struct race *r, uint32_t *candidate, uint32_t *prompt)
{
    if (r->phase == RACE_RUNS) {
        *candidate = r->order[r->at];
        *prompt = r->prompts[(r->heat + r->in_block) % r->n_prompts].index;
    } else if (r->phase == RACE_HELD_OUT) {
        /* The finalists take turns to be first, in each pass or for each prompt. */
        const uint32_t turn = r->block == 1 ? r->held_at : r->held_at / r->n_held;
        *candidate = r->finalist[(r->at + turn) % r->n_finalists];
        *prompt = r->prompts[r->n_prompts + (r->held_at + r->in_block) % r->n_held].index;
    }
    return r->phase;
}

void
race_took(struct race *r, double seconds)
{
    uint32_t candidate = 0, prompt;
    if (race_next(r, &candidate, &prompt) == RACE_OVER)
        return;
    r->seconds[(size_t)candidate * r->room + r->in_block] = seconds;
    advance(r);
}

bool
race_unable(struct race *r)
{
    const uint32_t candidate = r->phase == RACE_RUNS ? r->order[r->at] : 0;
    if (candidate == 0 || r->block == 1 || r->heat > 0 || r->in_block > 0 || race_left(r) <= 2)
        return false;
    r->of[candidate].dropped = 1;
    r->in_heat--;
    memmove(&r->order[r->at], &r->order[r->at + 1], (r->in_heat - r->at) * sizeof r->order[0]);
    if (r->at == r->in_heat)
        end_block(r);
    return true;
}

static void
halve(struct race *r)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t left = race_left(r), before = r->in_heat;
    race_standings(r, all);
    for (uint32_t i = (left + 1) / 2; i < left; i++)
        r->of[all[i].candidate].dropped = r->heat;
    r->in_heat = 0;
    for (uint32_t i = 0; i < before; i++)
        if (is_left(r, r->order[i]) || r->order[i] == 0)
            r->order[r->in_heat++] = r->order[i];
}

void
race_fit(struct race *r, double runs)
{
    if (r->phase != RACE_RUNS || r->at + r->in_block > 0 || r->heat < RACE_HEATS || r->heat % race_round(r) != 0)
        return;
    for (uint32_t left; (left = race_left(r)) > 2 && runs < left * log2(left) * race_round(r);)
        halve(r);
}

void
race_finish_heats(struct race *r)
{
    if (r->phase == RACE_RUNS)
        begin_held_out(r);
}

void
race_limit_held_out(struct race *r, uint32_t prompts, uint32_t passes)
{
    if (r->held_at > 0 || (r->phase == RACE_HELD_OUT && r->at + r->in_block > 0))
        return;
    r->n_held = prompts < r->n_held ? prompts : r->n_held;
    if (r->block == 1)
        r->passes = passes < RACE_PASSES ? passes : RACE_PASSES;
}

uint32_t
race_held_out_runs(const struct race *r, uint32_t *all)
{
    *all = r->n_held * r->passes;
    return r->held_at;
}

uint32_t
race_left(const struct race *r)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < r->n; i++)
        left += is_left(r, i);
    return left;
}

/* Order of the result: remaining candidates, dropped ones; then by speed, or by the heat in which they
 * were dropped. */
static bool
stands_before(const struct race_standing *a, const struct race_standing *b)
{
    if (a->dropped != b->dropped)
        return a->dropped == 0 || (b->dropped != 0 && a->dropped > b->dropped);
    return a->speed.value > b->speed.value;
}

uint32_t
race_standings(const struct race *r, struct race_standing out[RACE_CANDIDATES])
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct racer *c = &r->of[i];
        const struct race_standing s = {i, c->heats, c->dropped, compare(advantage(r, c, NULL))};
        uint32_t at = i;
        for (; at > 0 && stands_before(&s, &out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = s;
    }
    return r->n;
}

struct comparison
race_speed(const struct race *r, uint32_t candidate, const char *category)
{
    return compare(advantage_on(r, category, &r->of[candidate], NULL));
}

/* Returns the reach of an interval by the variance between starts. The finalists' means of each pass, less what is common
 * to a pass and to a finalist, vary as starts do. Of two finalists, the one that ends a pass also begins the next one,
 * with the same start, so that their difference has a larger variance. */
static double
reach_of_starts(const struct race *r)
{
    const uint32_t n = r->n_finalists, passes = r->held_at / r->n_held, freedom = (n - 1) * (passes - 1);
    double squares = 0, of_pass[RACE_PASSES] = {0}, of[RACE_FINALISTS] = {0}, all = 0;
    if (r->block == 1 || passes < 2)
        return r->block == 1 ? 0 : (double)NAN;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < passes; p++) {
            const double mean = r->pass[i][p] / r->n_held;
            of[i] += mean / passes;
            of_pass[p] += mean / n;
            all += mean / (n * passes);
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < passes; p++) {
            const double x = r->pass[i][p] / r->n_held - of[i] - of_pass[p] + all;
            squares += x * x;
        }
    return estimate_quantile(RACE_LEVEL, freedom) * sqrt((n == 2 ? SHARED : 1) * 2 * squares / freedom / passes);
}

struct comparison
race_held_out(const struct race *r, uint32_t a, uint32_t b, const char *category)
{
    const double *of[2] = {NULL, NULL};
    for (uint32_t i = 0; i < r->n_finalists; i++) {
        of[0] = r->finalist[i] == a ? r->held + (size_t)i * r->n_held : of[0];
        of[1] = r->finalist[i] == b ? r->held + (size_t)i * r->n_held : of[1];
    }
    if (of[0] == NULL || of[1] == NULL)
        return (struct comparison){NAN, NAN, NAN, 0, DIFFERENCE_UNKNOWN};
    double gain[2] = {0, 0}; /* sum, squares */
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_held && i < r->held_at; i++) {
        if (category != NULL && strcmp(category, r->prompts[r->n_prompts + i].category) != 0)
            continue;
        const double x = (of[1][i] - of[0][i]) / (r->held_at / r->n_held + (i < r->held_at % r->n_held));
        n++;
        gain[0] += x;
        gain[1] += x * x;
    }
    return compare_also(mean_of_sums(gain[0], gain[1], n), reach_of_starts(r));
}
