/* The line at the top: what runs, how, and how fast. */
#include "engine/base/printable.h"
#include "tui/app/bars.h"

#include <math.h>
#include <string.h>

static const char *
state_of(const struct followed *f, enum role *role)
{
    const char *end = scope_now(f->scope)->end;
    *role = ROLE_WARN;
    if (!follow_live(f)) {
        const struct replay_status status = replay_status(f->source->replay);
        *role = status.playing ? ROLE_OK : ROLE_WARN;
        return status.at_end ? "■ replay, at its end" : status.playing ? "► replay" : "‖ replay, paused";
    }
    if (strncmp(end, "error", 5) == 0) {
        *role = ROLE_ERROR;
        return "✗ failed";
    }
    if (f->baseline_asked)
        return "◌ baseline";
    if (end[0] != '\0')
        return "■ ended";
    if (!scope_now(f->scope)->running)
        return "‖ paused";
    *role = ROLE_OK;
    return "● running";
}

void
title_draw(const struct followed *f, const struct canvas *c)
{
    const struct run_info *info = f->info;
    const struct metrics *m = &scope_now(f->scope)->metrics;
    const struct tally window = metrics_window(m);
    const struct measures now = metrics_measures(m, &window);
    struct bar_item item[10] = {{.text = "specscope", .role = ROLE_TITLE, .rank = 9}};
    int n = 1;

    char runs_on[sizeof info->backend + sizeof info->isa];
    if (strcmp(info->backend, "cpu") == 0 || info->isa[0] == '\0')
        snprintf(runs_on, sizeof runs_on, "%s×%u", info->backend, (unsigned)info->threads);
    else /* a GPU, as its backend describes it; behind a comma is how it holds the model */
        snprintf(runs_on, sizeof runs_on, "%.*s", (int)strcspn(info->isa, ","), info->isa);
    printable_text(info->model_name, strlen(info->model_name), item[n].text, 48);
    const size_t name = strlen(item[n].text);
    snprintf(item[n].text + name, sizeof item[n].text - name, " %s %u layers %s %s", "·", (unsigned)info->layers, "·",
             runs_on);
    item[n].rank = 5;
    n++;
    snprintf(item[n].text, sizeof item[n].text, "policy %s", scope_policy(f->scope)->name);
    item[n].role = ROLE_FOCUS;
    item[n++].rank = 1;
    snprintf(item[n].text, sizeof item[n].text, "%s", state_of(f, &item[n].role));
    item[n++].rank = 0;
    if (info->sampling.temperature > 0)
        snprintf(item[n].text, sizeof item[n].text, "T %.3g", (double)info->sampling.temperature);
    else
        snprintf(item[n].text, sizeof item[n].text, "greedy");
    item[n++].rank = 7;
    static const struct {
        const char *text;
        enum role role;
    } lossless[] = {[LOSSLESS_UNKNOWN] = {"lossless –", ROLE_DIM},
                    [LOSSLESS_YES] = {"lossless ✓", ROLE_OK},
                    [LOSSLESS_NO] = {"NOT lossless ✗", ROLE_ERROR},
                    [LOSSLESS_SAMPLED] = {"lossless: sampled", ROLE_DIM}};
    snprintf(item[n].text, sizeof item[n].text, "%s", lossless[m->lossless].text);
    item[n].role = lossless[m->lossless].role;
    item[n++].rank = m->lossless == LOSSLESS_NO ? 0 : 6;

    if (!isnan(now.tokens_per_s))
        snprintf(item[n].text, sizeof item[n].text, now.tokens_per_s < 10 ? "%.1f tok/s" : "%.0f tok/s",
                 now.tokens_per_s);
    item[n].role = ROLE_TITLE;
    item[n].right = true;
    item[n++].rank = 2;
    if (m->baseline > 0 && !isnan(now.speedup))
        snprintf(item[n].text, sizeof item[n].text, now.aside_share >= 0.005 ? "%.2f× ar, %.2f× all in" : "%.2f× ar",
                 now.speedup, now.speedup_all_in);
    else
        snprintf(item[n].text, sizeof item[n].text, "–× ar");
    item[n].role = m->baseline > 0 ? ROLE_TITLE : ROLE_DIM;
    item[n].right = true;
    item[n++].rank = 4;
    snprintf(item[n].text, sizeof item[n].text, "round %u", (unsigned)scope_now(f->scope)->round);
    item[n].right = true;
    item[n++].rank = 3;
    bar_draw(c, item, n, 3);
}
