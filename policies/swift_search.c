#include "policies/swift_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"

#define KAPPA 2.5

uint32_t
search_skipped(uint32_t layers, double ratio)
{
    return layers > 2 ? (uint32_t)floor(2 * (layers - 2) * ratio + 1e-9) : 0;
}

/* Both sublayers of layers that are spread evenly over the depth, in the middles of as many equal parts of it as are
 * needed; of the last one the attention alone where the number is odd. */
static void
initial_set(const struct swift_search *s, bool *set)
{
    const uint32_t layers = s->switches / 2, chosen = (s->skipped + 1) / 2;
    memset(set, 0, s->switches * sizeof *set);
    for (uint32_t k = 0; k < s->skipped; k++)
        set[2 * ((2 * (k / 2) + 1) * layers / (2 * chosen)) + k % 2] = true;
}

bool
search_open(struct swift_search *s, uint32_t layers, uint32_t skipped, uint64_t seed)
{
    const uint32_t n = layers > 2 ? 2 * (layers - 2) : 0;
    *s = (struct swift_search){
        .switches = n, .skipped = skipped, .random = seed, .best_matchness = -1, .last_matchness = -1};
    s->best = calloc(n + 1, sizeof *s->best);
    s->proposed = calloc(n + 1, sizeof *s->proposed);
    s->point = calloc(n + 1, sizeof *s->point);
    s->order = calloc(n + 1, sizeof *s->order);
    if (!gp_open(&s->gp, n) || s->best == NULL || s->proposed == NULL || s->point == NULL || s->order == NULL)
        return false;
    initial_set(s, s->best);
    initial_set(s, s->proposed);
    return true;
}

void
search_close(struct swift_search *s)
{
    gp_close(&s->gp);
    free(s->best);
    free(s->proposed);
    free(s->point);
    free(s->order);
    *s = (struct swift_search){0};
}

enum search_phase
search_phase(const struct swift_search *s, const struct search_limits *limits)
{
    if (s->best_matchness >= limits->target)
        return SEARCH_FOUND;
    if (s->steps >= limits->max_steps)
        return SEARCH_SPENT;
    return s->steps - s->best_step >= limits->patience ? SEARCH_STALE : SEARCH_RUNNING;
}

static uint32_t
below(struct swift_search *s, uint32_t n)
{
    return (uint32_t)(splitmix64(&s->random) % n);
}

static void
random_set(struct swift_search *s)
{
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t i = s->switches - s->skipped; i < s->switches; i++) { /* Floyd's sampling without replacement */
        uint32_t k = below(s, i + 1);
        s->proposed[s->proposed[k] ? i : k] = true;
    }
}

/* The largest values of a point become the skipped set; equal ones in a random order. */
static void
largest_set(struct swift_search *s)
{
    for (uint32_t i = 0; i < s->switches; i++) { /* a random order, made from inside out */
        const uint32_t k = below(s, i + 1);
        s->order[i] = s->order[k];
        s->order[k] = i;
    }
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t left = s->skipped; left > 0; left--) {
        uint32_t at = s->switches;
        for (uint32_t k = 0; k < s->switches; k++) {
            const uint32_t i = s->order[k];
            if (!s->proposed[i] && (at == s->switches || s->point[i] > s->point[at]))
                at = i;
        }
        s->proposed[at] = true;
    }
}

void
search_propose(struct swift_search *s, uint32_t interval)
{
    if (s->steps == 0) {
        initial_set(s, s->proposed);
    } else if (interval > 0 && (s->steps + 1) % interval == 0 && gp_fit(&s->gp)) {
        gp_suggest(&s->gp, KAPPA, &s->random, s->point);
        largest_set(s);
    } else {
        random_set(s);
    }
}

void
search_score(struct swift_search *s, double matchness)
{
    for (uint32_t i = 0; i < s->switches; i++)
        s->point[i] = s->proposed[i] ? 1 : 0;
    gp_add(&s->gp, s->point, matchness);
    s->last_matchness = matchness;
    s->steps++;
    if (matchness > s->best_matchness) {
        memcpy(s->best, s->proposed, s->switches * sizeof *s->best);
        s->best_matchness = matchness;
        s->best_step = s->steps;
    }
}

/* ---- saved ---- */

struct saved_search {
    struct swift_search search; /* its arrays may be gone */
    double sets[];              /* (1 + gp.n, switches) the best set, then the points of the Gaussian process */
};

void *
search_save(const struct swift_search *s)
{
    const size_t points = (size_t)s->gp.n * s->switches;
    struct saved_search *saved = malloc(sizeof *saved + (s->switches + points) * sizeof *saved->sets);
    if (saved == NULL)
        return NULL;
    saved->search = *s;
    for (uint32_t i = 0; i < s->switches; i++)
        saved->sets[i] = s->best[i] ? 1 : 0;
    memcpy(saved->sets + s->switches, s->gp.x, points * sizeof *saved->sets);
    return saved;
}

void
search_load(struct swift_search *s, const void *from)
{
    const struct saved_search *saved = from;
    const struct swift_search *old = &saved->search;
    if (old->switches != s->switches || old->skipped != s->skipped)
        return;
    s->best_matchness = old->best_matchness;
    s->last_matchness = old->last_matchness;
    s->steps = old->steps;
    s->best_step = old->best_step;
    s->random = old->random;
    for (uint32_t i = 0; i < s->switches; i++)
        s->best[i] = saved->sets[i] > 0;
    s->gp.n = 0;
    for (uint32_t i = 0; i < old->gp.n; i++)
        gp_add(&s->gp, saved->sets + (size_t)(1 + i) * s->switches, old->gp.y[i]);
}
