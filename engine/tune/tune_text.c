/* Texts about a race (tuner.h), for the command and the screen. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "engine/measure/reason.h"
#include "engine/tune/tuner.h"

bool
tune_too_short(double time_s, const struct tune_speed *speed, double needs_s, struct err *err)
{
    char given[16], needs[16], prompt[80] = "";
    if (speed->start_s > 0)
        snprintf(prompt, sizeof prompt, ", %.1f s for a start of the server", speed->start_s);
    if (speed->run_s > 0)
        snprintf(prompt + strlen(prompt), sizeof prompt - strlen(prompt), " and %.1f s for a prompt", speed->run_s);
    return err_set(err, ERR_USAGE,
                   "cannot race in %s: at %.*f tokens/s%s a heat of two settings needs about %s; give more time",
                   tune_time_text(time_s, given, sizeof given), speed->token_s > 0.1 ? 2 : 0, 1 / speed->token_s,
                   prompt, tune_time_text(needs_s, needs, sizeof needs));
}

const char *
tuner_left_out(const struct tuner *t, char *out, size_t n)
{
    const uint32_t late = t->n_candidates > 0 ? t->found - t->n_candidates : 0;
    size_t used = 0;
    uint32_t whole = 0;
    out[0] = '\0';
    if (late > 0)
        used = (size_t)snprintf(out, n, "%u setting%s did not fit into the time", late, plural(late));
    for (uint32_t i = t->n_candidates; late > 0 && i < t->found && used < n; i++) {
        bool other = false; /* a candidate, or one before, has the policy */
        for (uint32_t j = 0; j < i && !other; j++)
            other = strcmp(t->candidate[j].policy, t->candidate[i].policy) == 0;
        if (!other)
            used += (size_t)snprintf(out + used, n - used, "%s %s", whole++ > 0 ? "," : ", among them all of",
                                     t->candidate[i].policy);
    }
    if (t->plan.hopeless > 0 && used < n)
        snprintf(out + used, n - used,
                 "%s%u setting%s would be slower than plain decoding even if every draft were accepted",
                 used > 0 ? "; " : "", t->plan.hopeless, plural(t->plan.hopeless));
    return out;
}

const char *
tuner_extremes(const struct tuner *t, uint32_t candidate, char *out, size_t n)
{
    const char *fastest = NULL, *slowest = NULL, *category;
    double most = -INFINITY, least = INFINITY;
    for (uint32_t i = 0; (category = tuner_category(t, i)) != NULL; i++) {
        const struct comparison c = race_speed(t->race, candidate, category);
        if (c.n > 1 && c.value > most) {
            most = c.value;
            fastest = category;
        }
        if (c.n > 1 && c.value < least) {
            least = c.value;
            slowest = category;
        }
    }
    out[0] = '\0';
    if (fastest != slowest)
        snprintf(out, n, "%.20s %.2f, %.20s %.2f", fastest, most, slowest, least);
    return out;
}

const char *
tune_verdict(struct comparison c)
{
    static const char *const words[] = {"not measured", "within noise of plain decoding", "faster than plain decoding",
                                        "slower than plain decoding"};
    return words[c.verdict];
}

const char *
tune_interval(struct comparison c, const char *of, char *out, size_t n)
{
    if (c.n < RACE_HEATS || isnan(c.low))
        snprintf(out, n, "too few %s", of);
    else
        snprintf(out, n, "%.2f to %.2f", c.low, c.high);
    return out;
}

struct comparison
tuner_speed(const struct tuner *t, uint32_t candidate, bool *held_out)
{
    const struct comparison held = race_held_out(t->race, candidate, 0, NULL);
    *held_out = held.verdict != DIFFERENCE_UNKNOWN;
    return *held_out ? held : race_speed(t->race, candidate, NULL);
}

const char *
tuner_reason(const struct tuner *t, char *out, size_t n)
{
    struct race_standing all[RACE_CANDIDATES];
    char name[300];
    bool held_out;
    race_standings(t->race, all);
    uint32_t best = tuner_winner(t);
    best = best > 0 ? best : all[0].candidate > 0 ? all[0].candidate : all[1].candidate;
    const struct comparison speed = tuner_speed(t, best, &held_out);
    const double tokens = tuner_tokens_per_round(t, best);
    const size_t used =
        (size_t)snprintf(out, n, "%s, the fastest one, emits %.2f tokens in the time of %.2f plain ones",
                         tuner_name(t, best, " ", name, sizeof name), tokens, tokens / speed.value);
    const struct tally *of = &t->total[best];
    const struct tune_source *source = &t->recorded[t->draft[best]];
    const struct policy_info *policy = run_info_policy(t->info, t->candidate[best].policy);
    struct reason_rounds rounds = {.of = *of,
                                   .plain_us = speed.value * (of->draft_us + of->verify_us) / (double)of->emitted,
                                   .model = (policy->needs & NEEDS_DRAFTER) != 0,
                                   .speedup_se = (speed.high - speed.low) / 2 / estimate_reach((double)speed.n - 1)};
    for (uint32_t i = 0; i < t->candidate[best].n_set; i++)
        if (strcmp(t->candidate[best].set[i].name, DRAFT_VOCAB) == 0)
            rounds.draft_vocab = strcmp(t->candidate[best].set[i].text, "0") != 0;
    struct reason why =
        reason_find(&rounds, t->info->layers, t->info->rho, &source->costs, source->n > 0 ? &source->records[0] : NULL);
    struct reason_line line;
    char reason[400];
    if (why.kind == REASON_NONE) /* it is not clearly faster, or it would have been named */
        why.kind = REASON_NOISE;
    reason_print(&why, NULL, NULL, &line);
    if (line.n > 0 && used < n)
        snprintf(out + used, n - used, "; %s", reason_text(&line, reason, sizeof reason));
    return out;
}
