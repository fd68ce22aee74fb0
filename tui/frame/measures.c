/* The bar at the bottom: the window that all numbers on the screen are of, and its measures (docs/methods.md, Measures). */
#include "tui/frame/bars.h"
#include "tui/scope/window.h"

#include <math.h>

static void
number(struct bar *bar, int rank, const char *name, double value, int decimals, const char *unit)
{
    if (isnan(value))
        bar_add(bar, ROLE_DIM, rank, false, "%s –", name);
    else
        bar_add(bar, ROLE_TEXT, rank, false, "%s %.*f%s", name, decimals, value, unit);
}

/* Shares of the rounds' work; time spent paused within rounds, and learning passes, beside them, where there are any. */
static void
where_the_time_goes(char *out, size_t size, const struct measures *m)
{
    const bool heads = !isnan(m->heads_share); /* an older trace, or a backend that can't tell */
    const double share[] = {m->draft_share - (heads ? m->heads_share : 0), m->verify_share, m->probe_share,
                            heads ? m->heads_share : 0};
    int percent[4];
    metrics_percents(share, percent, 4);
    int n = snprintf(out, size, "draft %d%%", percent[0]);
    if (heads)
        n += snprintf(out + n, size - (size_t)n, " heads %d%%", percent[3]);
    n += snprintf(out + n, size - (size_t)n, " verify %d%% probe %d%%", percent[1], percent[2]);
    if (m->wait_share >= 0.005)
        n += snprintf(out + n, size - (size_t)n, " waited %.0f%%", m->wait_share * 100);
    if (m->aside_share >= 0.005)
        snprintf(out + n, size - (size_t)n, " learned %.0f%%", m->aside_share * 100);
}

void
measures_draw(const struct scope *s, const struct canvas *c)
{
    const struct metrics *m = &scope_now(s)->metrics;
    const struct window_measures window = scope_window_measures(s);
    const struct measures now = window.of;
    const struct estimate length = window.with.tokens_per_round;
    struct bar bar = {0};
    char name[32];
    scope_window_name(s, name, sizeof name);
    bar_add(&bar, ROLE_KEY, 0, false, "%s:", name);
    if (isnan(length.se))
        number(&bar, 1, "tokens/round", now.tokens_per_round, 2, "");
    else
        bar_add(&bar, ROLE_TEXT, 1, false, "tokens/round %.2f ±%.2f", length.value, length.se);
    number(&bar, 2, "acceptance", now.acceptance_rate, 2, "");
    number(&bar, 4, "eTPL", now.etpl, 3, "");
    number(&bar, 6, "discard", now.discard_rate, 2, "");
    number(&bar, 7, "eq. 5", now.predicted, 2, "×");
    if (!isnan(now.overhead)) /* measured ÷ modelled; below 1: time that the loads don't explain */
        bar_add(&bar, ROLE_TEXT, 3, false, "measured %.2f of modelled %.2f×", now.overhead, now.modelled);
    else
        number(&bar, 3, "modelled", now.modelled, 2, "×");
    if (!isnan(now.draft_share)) {
        char shares[96];
        where_the_time_goes(shares, sizeof shares, &now);
        bar_add(&bar, ROLE_TEXT, 5, false, "%s", shares);
    }
    if (m->baseline > 0)
        bar_add(&bar, ROLE_DIM, 8, false, "ar %.0f tok/s in round %u%s", (double)m->baseline,
                (unsigned)m->baseline_round,
                isnan(metrics_baseline(m).value) ? m->pace > 0 ? ", not slowed" : ", slowed" : "");
    bar_draw(&bar, c, NULL);
}

void
device_draw(const struct scope *s, const struct canvas *c)
{
    const int left = 1 + canvas_text(c, 0, 1, ROLE_DIM, "device ");
    canvas_text(c, 0, left, ROLE_TEXT, scope_now(s)->device);
}
