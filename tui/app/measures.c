/* The bar at the bottom: the measures of docs/design.md, smoothed over the last METRICS_WINDOW rounds. */
#include "tui/app/bars.h"

#include <math.h>

static void
number(struct bar_item *item, const char *name, int decimals, const char *unit, double value, int rank)
{
    if (isnan(value))
        snprintf(item->text, sizeof item->text, "%s –", name);
    else
        snprintf(item->text, sizeof item->text, "%s %.*f%s", name, decimals, value, unit);
    item->role = isnan(value) ? ROLE_DIM : ROLE_TEXT;
    item->rank = rank;
}

/* Shares of the rounds' work; time spent paused within rounds, and learning passes, beside them, where there are any. */
static void
where_the_time_goes(char *out, size_t size, const struct measures *m)
{
    const bool heads = !isnan(m->heads_share); /* an older trace, or a backend that can't tell */
    int n = snprintf(out, size, "draft %.0f%%", (m->draft_share - (heads ? m->heads_share : 0)) * 100);
    if (heads)
        n += snprintf(out + n, size - (size_t)n, " heads %.0f%%", m->heads_share * 100);
    n +=
        snprintf(out + n, size - (size_t)n, " verify %.0f%% probe %.0f%%", m->verify_share * 100, m->probe_share * 100);
    if (m->wait_share >= 0.005)
        n += snprintf(out + n, size - (size_t)n, " waited %.0f%%", m->wait_share * 100);
    if (m->aside_share >= 0.005)
        snprintf(out + n, size - (size_t)n, " learned %.0f%%", m->aside_share * 100);
}

void
measures_draw(const struct scope *s, const struct canvas *c)
{
    const struct metrics *m = &scope_now(s)->metrics;
    const struct tally window = metrics_window(m);
    const struct measures now = metrics_measures(m, &window);
    struct bar_item item[12] = {0};
    int n = 0;
    number(&item[n++], "tokens/round", 2, "", now.tokens_per_round, 1);
    number(&item[n++], "acceptance", 2, "", now.acceptance_rate, 2);
    number(&item[n++], "eTPL", 3, "", now.etpl, 4);
    number(&item[n++], "discard", 2, "", now.discard_rate, 6);
    number(&item[n++], "predicted", 2, "×", now.predicted, 7);
    number(&item[n], "modelled", 2, "×", now.modelled, 3);
    if (!isnan(now.overhead)) /* measured ÷ modelled; below 1: time that the loads don't explain */
        snprintf(item[n].text, sizeof item[n].text, "measured %.2f of modelled %.2f×", now.overhead, now.modelled);
    n++;
    if (!isnan(now.draft_share)) {
        where_the_time_goes(item[n].text, sizeof item[n].text, &now);
        item[n++].rank = 5;
    }
    if (m->baseline > 0) {
        snprintf(item[n].text, sizeof item[n].text, "ar %.0f tok/s in round %u", (double)m->baseline,
                 (unsigned)m->baseline_round);
        item[n].role = ROLE_DIM;
        item[n++].rank = 8;
    }
    snprintf(item[n].text, sizeof item[n].text, "? help  : command");
    item[n].role = ROLE_DIM;
    item[n].right = true;
    item[n++].rank = 0;
    bar_draw(c, item, n, 3);
}
