/* The line at the top: what runs, how, and how fast. */
#include "engine/base/printable.h"
#include "tui/app/bars.h"
#include "tui/scope/batch.h"

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
    struct bar bar = {0};

    bar_add(&bar, ROLE_TITLE, 9, false, "specscope");
    char runs_on[sizeof info->backend + sizeof info->isa], name[48], helper[48] = "";
    if (strcmp(info->backend, "cpu") == 0 || info->isa[0] == '\0')
        snprintf(runs_on, sizeof runs_on, "%s×%u", info->backend, (unsigned)info->threads);
    else /* a GPU, as its backend describes it; behind a comma is how it holds the model */
        snprintf(runs_on, sizeof runs_on, "%.*s", (int)strcspn(info->isa, ","), info->isa);
    printable_text(info->model_name, strlen(info->model_name), name, sizeof name);
    const char *draft = scope_model_used(f->scope, MODEL_DRAFT) ? info->helpers[HELPER_DRAFT].name : "";
    if (draft[0] != '\0')
        printable_text(draft, strlen(draft), helper, sizeof helper);
    bar_add(&bar, ROLE_TEXT, 5, false, "%s%s%s · %u layers · %s", name, draft[0] != '\0' ? " + " : "", helper,
            (unsigned)info->layers, runs_on);
    bar_add(&bar, ROLE_FOCUS, 1, false, "policy %s", scope_policy(f->scope)->name);
    enum role role;
    const char *state = state_of(f, &role);
    bar_add(&bar, role, 0, false, "%s", state);
    const struct scope_batch batch = scope_batch(f->scope);
    if (scope_is_batch(f->scope))
        bar_add(&bar, ROLE_TITLE, 1, false, "seq %u of %u", (unsigned)scope_focus(f->scope),
                (unsigned)(batch.tiles + batch.waiting));
    if (info->sampling.temperature > 0)
        bar_add(&bar, ROLE_TEXT, 7, false, "T %.3g", (double)info->sampling.temperature);
    else
        bar_add(&bar, ROLE_TEXT, 7, false, "greedy");
    static const struct {
        const char *text;
        enum role role;
    } lossless[] = {[LOSSLESS_UNKNOWN] = {"lossless –", ROLE_DIM},
                    [LOSSLESS_YES] = {"lossless ✓", ROLE_OK},
                    [LOSSLESS_NO] = {"NOT lossless ✗", ROLE_ERROR},
                    [LOSSLESS_SAMPLED] = {"lossless: sampled", ROLE_DIM}};
    bar_add(&bar, lossless[m->lossless].role, m->lossless == LOSSLESS_NO ? 0 : 6, false, "%s",
            lossless[m->lossless].text);

    const bool learned = now.aside_share >= 0.005; /* then speeds are told with learning passes, too */
    char all_in[32] = "";
    if (learned)
        snprintf(all_in, sizeof all_in, ", %.*f all in", now.tokens_per_s < 10 ? 1 : 0, now.tokens_per_s_all_in);
    if (!isnan(now.tokens_per_s))
        bar_add(&bar, ROLE_TITLE, 2, true, "%.*f tok/s%s", now.tokens_per_s < 10 ? 1 : 0, now.tokens_per_s, all_in);
    if (m->baseline > 0 && learned)
        bar_add(&bar, ROLE_TITLE, 4, true, "%.2f× ar, %.2f all in", now.speedup, now.speedup_all_in);
    else if (m->baseline > 0 && !isnan(now.speedup))
        bar_add(&bar, ROLE_TITLE, 4, true, "%.2f× ar", now.speedup);
    else
        bar_add(&bar, m->baseline > 0 ? ROLE_TITLE : ROLE_DIM, 4, true, "–× ar");
    bar_add(&bar, ROLE_TEXT, 3, true, "round %u", (unsigned)scope_now(f->scope)->round);
    bar_draw(&bar, c);
}
