#include "cli/bench/bench_passes.h"

#include <math.h>
#include <string.h>

struct estimate
bench_tokens_per_s(const struct bench *b, const struct lane *lane)
{
    struct ratio_sums sums = {0};
    for (uint32_t p = 0; p < b->passes; p++)
        ratio_add(&sums, lane->pass[p].tokens, lane->pass[p].s);
    return ratio_estimate(&sums);
}

struct estimate
bench_ratio(const struct bench *b, const struct lane *lane, const struct lane *other)
{
    struct ratio_sums sums = {0};
    for (uint32_t p = 0; p < b->passes; p++) {
        const struct pass *x = &lane->pass[p], *y = &other->pass[p];
        if (x->tokens > 0 && y->tokens > 0)
            ratio_add(&sums, y->s * x->tokens / y->tokens, x->s);
    }
    return ratio_estimate(&sums);
}

bool
bench_is_ahead(const struct bench *b, const struct lane *lane, const struct lane *other)
{
    return estimate_compare(bench_ratio(b, lane, other)).verdict == DIFFERENCE_MORE;
}

#define NAMED 3 /* at most; more are counted */

const char *
bench_standing(const struct bench *b, const struct lane *lane, char *out, size_t n)
{
    char names[NAMED * sizeof lane->point] = "";
    unsigned near = 0, others = 0;
    out[0] = '\0';
    for (size_t i = 0; i < b->n_lanes; i++) {
        const struct lane *other = &b->lanes[i];
        if (other == lane || strcmp(other->policy, lane->policy) != 0)
            continue;
        others++;
        if (bench_is_ahead(b, lane, other))
            continue;
        const size_t used = strlen(names);
        if (near++ < NAMED)
            snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", other->point);
    }
    if (others == 0)
        return out;
    if (b->passes < 2)
        snprintf(out, n, "; one pass has no interval");
    else if (near == 0)
        snprintf(out, n, "; faster than each other point");
    else if (near <= NAMED)
        snprintf(out, n, "; no clear difference from %s", names);
    else
        snprintf(out, n, "; no clear difference from %u others", near);
    return out;
}
