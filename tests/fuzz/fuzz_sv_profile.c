/* A verification profile's JSON: a profile that is accepted has bins that can be looked up and contain probabilities.
 * Any other is refused in one line. */
#include <math.h>

#include "engine/model/trained/sv_profile.h"
#include "tests/fuzz/fuzz.h"

#define LOOKS 40 /* look-ups along each side of the table */

static void
check_edges(const float *edge, uint32_t n_bins)
{
    MUST(n_bins >= 1 && n_bins <= SV_BINS);
    for (uint32_t i = 0; i + 1 < n_bins; i++)
        MUST(edge[i] >= (i > 0 ? edge[i - 1] : 0) && edge[i] <= 1);
}

static void
check_whose(const struct sv_whose *w)
{
    MUST(w->layers[0] <= 1000000 && w->layers[1] <= 1000000 && w->layers[2] <= 1000000);
    MUST(w->temperature >= 0 && isfinite(w->temperature) && w->top_p >= 0 && w->top_p <= 1);
    for (int i = 0; i < 3; i++)
        MUST(memchr(w->name[i], '\0', sizeof w->name[i]) != NULL && strpbrk(w->name[i], "\n\r\033") == NULL);
}

static void
check_profile(const struct sv_profile *p)
{
    const struct sv_entropy *e = &p->entropy;
    check_whose(&p->whose);
    check_edges(p->s_edge, p->n_s);
    check_edges(p->a_edge, p->n_a);
    MUST(sv_profile_observations(p) > 0 && isfinite(sv_information_gain(e)));
    MUST(e->h >= 0 && e->given_s >= 0 && e->given_a >= 0 && e->given_both >= 0);
    for (int s = 0; s <= LOOKS; s++)
        for (int a = 0; a <= LOOKS; a++) {
            const double x = (double)s / LOOKS, y = (double)a / LOOKS, q = sv_profile_accepted(p, x, y);
            MUST(sv_profile_cell(p, x, y) < p->n_s * p->n_a && q >= 0 && q <= 1 + 1e-12);
        }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_profile p;
    struct err err = {0};
    if (sv_profile_parse(&p, "fuzz", (const char *)data, size, &err))
        check_profile(&p);
    else
        must_refuse(&err);
    return 0;
}

MUTATOR(mutate_json(data, size, max_size, seed));
