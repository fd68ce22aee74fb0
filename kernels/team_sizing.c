#include "kernels/team_sizing.h"

#define WINDOW_NS      30000000
#define WINDOW_PASSES  2
#define FIRST_PAUSE_NS 400000000u
#define LAST_PAUSE_NS  1000000000u
#define PAUSE_WINDOWS  6    /* minimum length of a pause, in windows */
#define CROWDED        0.85 /* crowded if the leader runs for less than this share of its passes */
#define FASTER         1.05 /* a new size is kept if it is faster by this factor */

static uint32_t
smaller(uint32_t size)
{
    return size - (size > 4 ? size / 4 : 1);
}

static uint32_t
larger(const struct team_sizing *s)
{
    const uint32_t size = s->size + (s->size / 3 > 1 ? s->size / 3 : 1);
    return size < s->most ? size : s->most;
}

void
team_sizing_open(struct team_sizing *s, uint32_t most)
{
    *s = (struct team_sizing){.most = most, .size = most, .home = most, .pause_ns = FIRST_PAUSE_NS};
}

/* Returns how much faster this window was than the team at its home size, for the kinds of passes in this window. */
static double
faster_than_home(const struct team_sizing *s)
{
    double expected = 0, real = 0;
    for (int i = 0; i < TEAM_PASS_KINDS; i++)
        if (s->kind[i].cost > 0) {
            expected += s->kind[i].cost * s->kind[i].units;
            real += s->kind[i].ns;
        }
    return real > 0 ? expected / real : 1;
}

/* Updates the costs at home from this window, or averages them with the previous ones. */
static void
learn(struct team_sizing *s, bool average)
{
    for (int i = 0; i < TEAM_PASS_KINDS; i++) {
        const double cost = s->kind[i].units > 0 ? s->kind[i].ns / s->kind[i].units : 0;
        if (cost > 0)
            s->kind[i].cost = average && s->kind[i].cost > 0 ? (s->kind[i].cost + cost) / 2 : cost;
    }
}

/* Ends the trial: keeps the new size or restores the previous one. */
static void
judge(struct team_sizing *s, uint64_t now_ns)
{
    const uint64_t least = (uint64_t)(PAUSE_WINDOWS * s->window_ns);
    const bool stays = faster_than_home(s) > FASTER;
    s->pause_ns = stays ? FIRST_PAUSE_NS : 2 * s->pause_ns < LAST_PAUSE_NS ? 2 * s->pause_ns : LAST_PAUSE_NS;
    s->try_ns = now_ns + (s->pause_ns > least ? s->pause_ns : least);
    if (stays) {
        s->home = s->size;
        learn(s, false);
    }
    s->size = s->home;
}

static void
try_another(struct team_sizing *s, bool crowded)
{
    s->larger = s->home < s->most && !(crowded && s->home > 1 && s->larger);
    if (s->larger)
        s->size = larger(s);
    else if (crowded && s->home > 1)
        s->size = smaller(s->size);
}

static void
end_window(struct team_sizing *s, uint64_t now_ns)
{
    if (s->size != s->home) {
        judge(s, now_ns);
    } else {
        learn(s, true);
        if (now_ns >= s->try_ns)
            try_another(s, s->ran_ns < CROWDED * s->window_ns);
    }
    s->window_ns = s->ran_ns = s->passes = 0;
    for (int i = 0; i < TEAM_PASS_KINDS; i++)
        s->kind[i].units = s->kind[i].ns = 0;
}

void
team_sizing_pass(struct team_sizing *s, uint32_t kind, double units, uint64_t took_ns, uint64_t ran_ns, uint64_t now_ns)
{
    const uint32_t k = kind < TEAM_PASS_KINDS ? kind : TEAM_PASS_KINDS - 1;
    s->kind[k].units += units;
    s->kind[k].ns += (double)took_ns;
    s->window_ns += (double)took_ns;
    s->ran_ns += (double)ran_ns;
    if (++s->passes >= WINDOW_PASSES && s->window_ns >= WINDOW_NS)
        end_window(s, now_ns);
}
