#include "engine/measure/same_drafts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct counts { /* of a prompt */
    uint32_t n[2][POSITIONS + 1], k[2][POSITIONS + 1];
};

static uint32_t
least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Returns the part of a round that is compared; `at`: tokens before it. */
static struct draft_round
compared(const struct draft_round *r, uint32_t at, uint32_t common)
{
    const uint32_t left = common > at + 1 ? common - 1 - at : 0, drafted = least(least(r->drafted, left), POSITIONS);
    return (struct draft_round){drafted, least(r->accepted, drafted)};
}

static void
count_one(struct same_drafts *s, struct counts *c, int side, uint32_t i, bool success)
{
    c->n[side][i]++;
    c->k[side][i] += success;
    s->n[side][i]++;
    s->k[side][i] += success;
    s->positions = i > s->positions ? i : s->positions;
}

static void
count(struct same_drafts *s, struct counts *c, const struct draft_pair *p, int side)
{
    uint32_t at = 1;
    for (size_t i = 0; i < p->n[side]; i++) {
        const struct draft_round r = compared(&p->rounds[side][i], at, p->common);
        if (at + 1 < p->common) /* there is room for a draft */
            count_one(s, c, side, 0, r.drafted > 0);
        for (uint32_t d = 1; d <= r.drafted && d <= r.accepted + 1; d++)
            count_one(s, c, side, d, d <= r.accepted);
        if (p->rounds[side][i].drafted > s->longest[side])
            s->longest[side] = p->rounds[side][i].drafted;
        at += p->rounds[side][i].accepted + 1;
    }
}

/* Finds the first difference of the rounds of prompt `number`. */
static void
find_difference(struct same_drafts *s, const struct draft_pair *p, size_t number)
{
    static const struct draft_round none;
    uint32_t at = 1;
    for (size_t i = 0; s->equal && at < p->common && (i < p->n[0] || i < p->n[1]); i++) {
        const struct draft_round a = compared(i < p->n[0] ? &p->rounds[0][i] : &none, at, p->common);
        const struct draft_round b = compared(i < p->n[1] ? &p->rounds[1][i] : &none, at, p->common);
        at += a.accepted + 1;
        if (a.drafted == b.drafted && a.accepted == b.accepted)
            continue;
        s->equal = false;
        s->prompt = number;
        s->token = at - a.accepted - 1;
        s->draft = 1 + (a.accepted != b.accepted ? least(a.accepted, b.accepted) : least(a.drafted, b.drafted));
    }
}

static double
log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

double
same_drafts_fisher(uint64_t k0, uint64_t n0, uint64_t k1, uint64_t n1)
{
    const double a = (double)n0, b = (double)n1, k = (double)(k0 + k1), all = log_choose(a + b, k);
    double p = 0;
    for (double x = fmax(0, k - a); x <= (double)k1; x++)
        p += exp(log_choose(b, x) + log_choose(a, k - x) - all);
    return fmin(1, p);
}

/* Returns by how many standard deviations k1 differs from its expectation if both sides accept alike. */
static double
deviation(double k0, double n0, double k1, double n1)
{
    const double n = n0 + n1, k = k0 + k1, variance = n > 1 ? k * (n - k) * n0 * n1 / (n * n * (n - 1)) : 0;
    return variance > 0 ? fabs(k * n1 / n - k1) / sqrt(variance) : 0;
}

/* Exchanges the sides of random prompts, and returns the largest deviation of all positions. */
static double
draw(const struct counts *c, size_t prompts, uint32_t positions, uint64_t *state)
{
    uint64_t n[2][POSITIONS + 1] = {{0}}, k[2][POSITIONS + 1] = {{0}}, bits = 0;
    double most = 0;
    for (size_t i = 0; i < prompts; i++) {
        bits = i % 64 == 0 ? splitmix64(state) : bits >> 1;
        for (int side = 0; side < 2; side++)
            for (uint32_t d = 0; d <= positions; d++) {
                n[side][d] += c[i].n[side ^ (int)(bits & 1)][d];
                k[side][d] += c[i].k[side ^ (int)(bits & 1)][d];
            }
    }
    for (uint32_t d = 0; d <= positions; d++)
        most = fmax(most, deviation((double)k[0][d], (double)n[0][d], (double)k[1][d], (double)n[1][d]));
    return most;
}

static void
test_permutations(struct same_drafts *s, const struct counts *c, size_t prompts, uint64_t seed)
{
    double own[POSITIONS + 1];
    uint32_t as_large[POSITIONS + 1] = {0};
    for (uint32_t d = 0; d <= s->positions; d++)
        own[d] = deviation((double)s->k[0][d], (double)s->n[0][d], (double)s->k[1][d], (double)s->n[1][d]);
    for (int i = 0; i < SAME_DRAFTS_DRAWS; i++) {
        const double most = draw(c, prompts, s->positions, &seed);
        for (uint32_t d = 0; d <= s->positions; d++)
            as_large[d] += most >= own[d] - 1e-9;
    }
    for (uint32_t d = 0; d <= s->positions; d++)
        s->permuted[d] = (1.0 + as_large[d]) / (1.0 + SAME_DRAFTS_DRAWS);
}

/* Holm: the i-th smallest p of m is multiplied by m - i, from i = 0, and is at least the one before it. */
static void
correct(double *p, uint32_t m)
{
    double before = 0;
    bool done[POSITIONS + 1] = {false};
    for (uint32_t i = 0; i < m; i++) {
        uint32_t best = 0;
        while (done[best])
            best++;
        for (uint32_t d = best + 1; d < m; d++)
            if (!done[d] && p[d] < p[best])
                best = d;
        before = p[best] = fmin(1, fmax(before, p[best] * (m - i)));
        done[best] = true;
    }
}

bool
same_drafts(struct same_drafts *s, const struct draft_pair *pairs, size_t n, uint64_t seed, struct err *err)
{
    struct counts *counts = calloc(n > 0 ? n : 1, sizeof *counts);
    *s = (struct same_drafts){.equal = true, .differs_from = -1};
    if (counts == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < n; i++) {
        count(s, &counts[i], &pairs[i], 0);
        count(s, &counts[i], &pairs[i], 1);
        s->prompts += counts[i].n[0][1] + counts[i].n[1][1] > 0;
        find_difference(s, &pairs[i], i);
    }
    for (uint32_t d = 0; d <= s->positions; d++)
        s->fisher[d] = fmin(1, 2 * fmin(same_drafts_fisher(s->k[0][d], s->n[0][d], s->k[1][d], s->n[1][d]),
                                        same_drafts_fisher(s->k[1][d], s->n[1][d], s->k[0][d], s->n[0][d])));
    correct(s->fisher, s->positions + 1);
    test_permutations(s, counts, n, seed);
    for (uint32_t d = s->positions + 1; d-- > 0;) {
        s->p[d] = fmax(s->fisher[d], s->permuted[d]);
        if (s->p[d] < SAME_DRAFTS_LEVEL) {
            s->differs_from = (int)d;
            s->fewer = s->k[1][d] * s->n[0][d] < s->k[0][d] * s->n[1][d];
        }
    }
    free(counts);
    return true;
}
