/* A segment read: its measures, its name, what changed with it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"
#include "engine/events/segments.h"

struct estimates
segment_estimates(const struct segment *s, const struct run_info *info)
{
    struct round_sums sums = s->sums;
    if (s->joint.rounds > 0)
        round_sums_add(&sums, &s->joint, info->rho);
    return round_sums_estimates(&sums, info->layers, info->rho);
}

struct estimate
segment_speedup(const struct segment *s, const struct run_info *info)
{
    return estimate_quotient(segment_estimates(s, info).tokens_per_s, s->baseline);
}

void
segment_letter(uint32_t number, char out[8])
{
    char reversed[8];
    int n = 0;
    for (uint64_t left = (uint64_t)number + 1; left > 0; left = (left - 1) / 26)
        reversed[n++] = (char)('A' + (left - 1) % 26);
    for (int i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    out[n] = '\0';
}

/* A knob by its symbol, of the policy's or of sampling. */
static const char *
symbol_of(const struct segment *s, const struct run_info *info, const char *name)
{
    const struct policy_info *p = s->policy < info->n_policies ? &info->policies[s->policy] : NULL;
    const int i = p != NULL ? policy_knob_index(p, name) : -1, drawn = sampling_knob_index(name);
    const char *symbol = i >= 0 ? p->knobs[i].symbol : drawn >= 0 ? sampling_knobs[drawn].symbol : "";
    return symbol[0] != '\0' ? symbol : name;
}

static size_t
write_change(const struct segment *s, const struct run_info *info, const struct segment_change *c, bool arrows,
             char *out, size_t n)
{
    const bool named = strcmp(c->name, "policy") != 0, from = arrows && c->before[0] != '\0';
    const int made = snprintf(out, n, "%s%s%s%s%s", named ? symbol_of(s, info, c->name) : "", named ? " " : "",
                              from ? c->before : "", from ? "→" : "", c->after);
    return made < 0 ? 0 : (size_t)made;
}

void
segment_text(const struct segment *s, const struct run_info *info, bool arrows, char *out, size_t n)
{
    static const struct {
        const char *cause, *text;
    } causes[] = {{"start", "start"}, {"restart", "again"}, {"prompt", "new prompt"}};
    size_t used = 0;
    out[0] = '\0';
    if (s->versus)
        used += (size_t)snprintf(out, n, "%u: ", (unsigned)s->seq);
    const size_t begin = used;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (strcmp(s->cause, causes[i].cause) == 0 && (s->n_changes == 0 || i == 2))
            used += (size_t)snprintf(out + used, n - used, "%s", causes[i].text);
    for (uint32_t i = 0; i < s->n_changes && used + 3 < n; i++) {
        if (used > begin)
            used += (size_t)snprintf(out + used, n - used, ", ");
        used += write_change(s, info, &s->change[i], arrows, out + used, n - used);
    }
}
