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
tune_plan_held_out(struct tune_plan *plan, double run_s, double time_s)
{
    const bool blocks = plan->block > 1; /* all passes are necessary (race.h) */
    const uint32_t few = blocks ? TUNE_HELD_LEAST : HELD_OUT_FEW;
    double runs = time_s / (TUNE_FINALISTS * run_s);
    if (!blocks)
        plan->passes = (uint32_t)clamp(runs / plan->held_out, 1, plan->passes);
    else
        runs /= plan->passes;
    plan->held_out = (uint32_t)clamp(runs, plan->held_out < few ? plan->held_out : few, plan->held_out);
}

/* Returns the runs of a candidate before one is dropped. */
static double
heats(const struct tune_plan *p)
{
    return p->block > 1 ? 2.0 * p->block : RACE_HEATS;
}

static double
plan_runs(const struct tune_plan *p)
{
    const uint32_t finalists = p->candidates < TUNE_FINALISTS ? p->candidates : TUNE_FINALISTS;
    return heats(p) * p->candidates + (double)finalists * p->held_out * p->passes;
}

/* Chooses the heats of a block and returns the speed of runs with their share of its start. */
static struct tune_speed
choose_block(struct tune_plan *plan, uint32_t least, const struct tune_speed *speed, double time_s)
{
    struct tune_speed s = *speed;
    double most = plan->block;
    plan->block = 1;
    if (speed->start_s > 0) {
        if (time_s > 0)
            most = fmin(most, (HEATS_SHARE * time_s / least / 2 - s.start_s) / run_time(speed, TOKENS_GOOD));
        plan->block = (uint32_t)clamp(ceil(s.start_s / run_time(speed, plan->tokens)), 2, fmax(most, 2));
        s.run_s += s.start_s / plan->block;
    }
    return s;
}

bool
tune_plan(struct tune_plan *plan, uint32_t least, const struct tune_speed *of, double time_s)
{
    const struct tune_speed started = choose_block(plan, least, of, time_s), *speed = &started;
    const uint32_t all = plan->tokens;
    if (time_s > 0) {
        const double heats_s = HEATS_SHARE * time_s;
        plan->tokens = tokens_for(speed, heats(plan) * plan->candidates, heats_s, TOKENS_GOOD, all);
        plan->candidates =
            (uint32_t)clamp(heats_s / (heats(plan) * run_time(speed, plan->tokens)), least, plan->candidates);
        plan->tokens = tokens_for(speed, heats(plan) * plan->candidates, heats_s, TUNE_TOKENS_FEW, plan->tokens);
        tune_plan_held_out(plan, run_time(speed, plan->tokens), HELD_SHARE * time_s);
        plan->tokens = tokens_for(speed, plan_runs(plan), time_s, TUNE_TOKENS_FEW, plan->tokens);
    }
    const double run_s = run_time(speed, plan->tokens);
    const uint32_t held_least = plan->held_out < TUNE_HELD_LEAST ? plan->held_out : TUNE_HELD_LEAST;
    while (time_s > 0 && plan_runs(plan) * run_s > time_s && (plan->candidates > 2 || plan->held_out > held_least)) {
        const bool long_heats =
            plan->candidates * heats(plan) * run_s > HEATS_SHARE * time_s || plan->held_out == held_least;
        *(long_heats && plan->candidates > 2 ? &plan->candidates : &plan->held_out) -= 1;
    }
    plan->needs_s = plan_runs(plan) * run_s;
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
