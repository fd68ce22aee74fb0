/* What a race can do in the time that it is given (tuner.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/tune/tuner.h"

#define TOKENS_GOOD  64  /* of a run, before candidates are given up */
#define HELD_OUT_FEW 6   /* prompts, */
#define HEATS_SHARE  0.6 /* of the time, for three heats of all candidates */
#define HELD_SHARE   0.25
#define BLOCKS       2 /* before a candidate is dropped, where servers are started */

static double
clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double
run_time(const struct tune_speed *speed, uint32_t tokens)
{
    return speed->run_s + tokens * speed->token_s;
}

/* Returns the largest number of tokens in [low, high] with which `runs` runs fit into the time. */
static uint32_t
tokens_for(const struct tune_speed *speed, double runs, double time_s, uint32_t low, uint32_t high)
{
    return (uint32_t)clamp((time_s / runs - speed->run_s) / speed->token_s, low < high ? low : high, high);
}

void
tune_plan_held_out(struct tune_plan *plan, const struct tune_speed *speed, double run_s, double time_s)
{
    double runs = time_s / (TUNE_FINALISTS * run_s);
    if (speed->start_s > 0) /* all passes are necessary (race.h) */
        runs = runs / plan->passes - speed->start_s / run_s;
    else
        plan->passes = (uint32_t)clamp(runs / plan->held_out, 1, plan->passes);
    plan->held_out =
        (uint32_t)clamp(runs, plan->held_out < HELD_OUT_FEW ? plan->held_out : HELD_OUT_FEW, plan->held_out);
}

static uint32_t
finalists(const struct tune_plan *p)
{
    return p->candidates < TUNE_FINALISTS ? p->candidates : TUNE_FINALISTS;
}

/* Returns the runs of a candidate before one is dropped. */
static double
heats(const struct tune_plan *p)
{
    return p->block > 1 ? (double)BLOCKS * p->block : RACE_HEATS;
}

static double
plan_runs(const struct tune_plan *p)
{
    return heats(p) * p->candidates + (double)finalists(p) * p->held_out * p->passes;
}

/* Returns the time of servers' starts in these runs. */
static double
heats_starts(const struct tune_plan *p, const struct tune_speed *speed)
{
    return speed->start_s * BLOCKS * p->candidates;
}

static double
plan_starts(const struct tune_plan *p, const struct tune_speed *speed)
{
    return heats_starts(p, speed) + speed->start_s * finalists(p) * p->passes;
}

static double
heats_time(const struct tune_plan *p, const struct tune_speed *speed)
{
    return p->candidates * heats(p) * run_time(speed, p->tokens) + heats_starts(p, speed);
}

static double
plan_time(const struct tune_plan *p, const struct tune_speed *speed)
{
    return plan_runs(p) * run_time(speed, p->tokens) + plan_starts(p, speed);
}

bool
tune_plan(struct tune_plan *plan, uint32_t least, const struct tune_speed *speed, double time_s)
{
    const uint32_t all = plan->tokens;
    plan->block = speed->start_s > 0 ? (uint32_t)clamp(ceil(speed->start_s / run_time(speed, all)), 2, plan->block) : 1;
    if (time_s > 0) {
        const double heats_s = HEATS_SHARE * time_s;
        plan->tokens =
            tokens_for(speed, heats(plan) * plan->candidates, heats_s - heats_starts(plan, speed), TOKENS_GOOD, all);
        plan->candidates = (uint32_t)clamp(
            heats_s / (heats(plan) * run_time(speed, plan->tokens) + BLOCKS * speed->start_s), least, plan->candidates);
        while (plan->block > 2 && heats_time(plan, speed) > heats_s)
            plan->block--;
        plan->tokens = tokens_for(speed, heats(plan) * plan->candidates, heats_s - heats_starts(plan, speed),
                                  TUNE_TOKENS_FEW, plan->tokens);
        tune_plan_held_out(plan, speed, run_time(speed, plan->tokens), HELD_SHARE * time_s);
        plan->tokens =
            tokens_for(speed, plan_runs(plan), time_s - plan_starts(plan, speed), TUNE_TOKENS_FEW, plan->tokens);
    }
    const uint32_t held_least = plan->held_out < TUNE_HELD_LEAST ? plan->held_out : TUNE_HELD_LEAST,
                   fewest = speed->start_s > 0 ? TUNE_FINALISTS : 2;
    while (plan->block > 2 && time_s > 0 && plan_time(plan, speed) > time_s)
        plan->block--;
    while (time_s > 0 && plan_time(plan, speed) > time_s &&
           (plan->candidates > fewest || plan->held_out > held_least)) {
        const bool long_heats = heats_time(plan, speed) > HEATS_SHARE * time_s || plan->held_out == held_least;
        *(long_heats && plan->candidates > fewest ? &plan->candidates : &plan->held_out) -= 1;
    }
    plan->needs_s = plan_time(plan, speed);
    return !(time_s > 0) || plan->needs_s <= time_s;
}

double
tune_time_parse(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    const double unit = *end == 'h' ? 3600 : *end == 'm' ? 60 : 1;
    end += *end == 'h' || *end == 'm' || *end == 's';
    n *= unit;
    return end != text && *end == '\0' && n > 0 && n < 1e7 ? n : (double)NAN;
}

const char *
tune_time_text(double seconds, char *out, size_t n)
{
    const double whole = ceil(seconds);
    if (whole < 600 && fmod(whole, 60) > 0)
        snprintf(out, n, "%.0fs", whole);
    else
        snprintf(out, n, "%.0fm", ceil(seconds / 60));
    return out;
}
