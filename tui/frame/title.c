/* The line at the top: what runs, how, and how fast. */
#include "engine/base/plural.h"
#include "engine/base/printable.h"
#include "tui/frame/bars.h"
#include "tui/scope/batch.h"
#include "tui/scope/window.h"

#include <math.h>
#include <string.h>

#define NARROW 60 /* columns below which the title has the policy's name and tokens/s, without words around them */

static const char *
state_of(const struct followed *f, enum role *role)
{
    const char *end = scope_now(f->scope)->end;
    *role = ROLE_WARN;
    if (!follow_live(f)) {
        const struct replay_status status = replay_status(f->source->replay);
        *role = status.playing ? ROLE_OK : ROLE_WARN;
        if (status.follows)
            return status.playing ? "● following" : "‖ following, paused";
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

/* How far it was compared: what came after that is not known to be so. */
static void
add_lossless(struct bar *bar, const struct metrics *m)
{
    const unsigned long long compared = m->compared, generated = metrics_generated(m);
    switch (m->lossless) {
    case LOSSLESS_UNKNOWN: bar_add(bar, ROLE_DIM, 6, false, "lossless –"); break;
    case LOSSLESS_SAMPLED: bar_add(bar, ROLE_DIM, 6, false, "lossless: sampled"); break;
    case LOSSLESS_NO: bar_add(bar, ROLE_ERROR, 0, false, "NOT lossless ✗"); break;
    case LOSSLESS_YES:
        if (compared == 0)
            bar_add(bar, ROLE_OK, 6, false, "lossless ✓");
        else if (compared < generated)
            bar_add(bar, ROLE_DIM, 6, false, "lossless ✓ %llu of %llu", compared, generated);
        else
            bar_add(bar, ROLE_OK, 6, false, "lossless ✓ %llu", compared);
    }
}

/* Whether the policy helps on the window's text: by the measured speedup, else by the weights read, which is what it saves at
 * best. Not in the first rounds, and not where nothing is drafted. */
static void
add_gain(struct bar *bar, const struct metrics *m, const struct window_measures *window)
{
    enum { ROUNDS = 8 };
    const double speedup = window->speedup.value, fewer = window->of.modelled, gain = isnan(speedup) ? fewer : speedup;
    if (window->with.tokens_per_round.n < ROUNDS || m->total.drafted == 0 || isnan(fewer))
        return;
    if (gain < 1.05)
        bar_add(bar, ROLE_WARN, 3, false, "no gain on this text");
    else if (fewer >= 1.1)
        bar_add(bar, ROLE_OK, 6, false, "%.1f× fewer weights read", fewer);
}

/* " ±6", with as many decimals; "" where it isn't known. */
static const char *
spread(char *out, size_t n, double se, int decimals)
{
    if (isnan(se))
        return "";
    snprintf(out, n, " ±%.*f", decimals, se);
    return out;
}

static bool
is_slowed(const struct followed *f, const struct metrics *m, const struct measures *now)
{
    return follow_live(f) && scope_now(f->scope)->running && scope_now(f->scope)->end[0] == '\0' && m->pace > 0 &&
           now->tokens_per_s > (double)m->pace;
}

/* Speeds: with learning passes beside those without, where there are any. A speedup is of a baseline of this
 * prompt while the machine was as it is now. */
static void
add_speed(struct bar *bar, const struct followed *f, const struct metrics *m, const struct window_measures *window,
          bool narrow)
{
    const struct estimate speed = window->with.tokens_per_s, speedup = window->speedup;
    const struct measures *now = &window->of;
    const bool learned = now->aside_share >= 0.005;
    const int places = speed.value < 10 ? 1 : 0;
    char se[24], all_in[32] = "", shown[32] = "";
    if (learned)
        snprintf(all_in, sizeof all_in, ", %.*f all in", places, now->tokens_per_s_all_in);
    if (narrow) { /* the number alone */
        if (!isnan(speed.value))
            bar_add(bar, ROLE_TITLE, 1, true, "%.*f tok/s", places, speed.value);
        return;
    }
    if (is_slowed(f, m, now))
        snprintf(shown, sizeof shown, "%.3g/s shown · ", (double)m->pace);
    if (!isnan(speed.value))
        bar_add(bar, ROLE_TITLE, 2, true, "%s%.*f%s %s%s", shown, places, speed.value,
                spread(se, sizeof se, speed.se, places), shown[0] != '\0' ? "engine" : "tok/s", all_in);
    if (!isnan(speedup.value) && learned)
        bar_add(bar, ROLE_TITLE, 4, true, "%.2f%s× ar, %.2f all in", speedup.value,
                spread(se, sizeof se, speedup.se, 2), now->speedup_all_in);
    else if (!isnan(speedup.value))
        bar_add(bar, ROLE_TITLE, 4, true, "%.2f%s× ar", speedup.value, spread(se, sizeof se, speedup.se, 2));
    else
        bar_add(bar, m->baseline > 0 ? ROLE_TITLE : ROLE_DIM, 8, true, "–× ar");
}

void
title_draw(const struct followed *f, const struct canvas *c, struct clicks *clicks)
{
    const struct run_info *info = scope_info(f->scope);
    const struct metrics *m = &scope_now(f->scope)->metrics;
    const struct window_measures window = scope_window_measures(f->scope);
    struct bar bar = {0};

    bar_add(&bar, ROLE_TITLE, 9, false, "specscope");
    char runs_on[sizeof info->isa + 8], name[48], helper[48] = "";
    const char *machine = strcmp(info->backend, "cpu") == 0 || info->isa[0] == '\0' ? info->backend : info->isa;
    const int shown =
        (int)strcspn(machine, ","); /* a GPU, as its backend describes it; then comes how it holds the model */
    if (machine == info->isa)
        snprintf(runs_on, sizeof runs_on, " · %.*s", shown, machine);
    else if (machine[0] != '\0')
        snprintf(runs_on, sizeof runs_on, " · %.*s×%u", shown, machine, (unsigned)info->threads);
    else
        runs_on[0] = '\0'; /* nobody said */
    printable_text(info->model_name, strlen(info->model_name), name, sizeof name);
    const char *draft = scope_model_used(f->scope, MODEL_DRAFT) ? info->helpers[HELPER_DRAFT].name : "";
    if (draft[0] != '\0')
        printable_text(draft, strlen(draft), helper, sizeof helper);
    bar_add(&bar, ROLE_TEXT, 5, false, "%s%s%s · %u layer%s%s", name, draft[0] != '\0' ? " + " : "", helper,
            (unsigned)info->layers, plural(info->layers), runs_on);
    const bool narrow = c->cols < NARROW;
    bar_add(&bar, ROLE_FOCUS, narrow ? 2 : 1, false, "%s%s", narrow ? "" : "policy ", scope_policy(f->scope)->name);
    if (follow_live(f))
        bar.item[bar.n - 1].line = "policy";
    enum role role;
    const char *state = state_of(f, &role), *replay = strstr(state, "replay, ");
    if (narrow && replay != NULL)
        bar_add(&bar, role, 0, false, "%.*s%s", (int)(replay - state), state, replay + strlen("replay, "));
    else
        bar_add(&bar, role, 0, false, "%s", state);
    const struct scope_batch batch = scope_batch(f->scope);
    if (scope_is_batch(f->scope))
        bar_add(&bar, ROLE_TITLE, 1, false, "seq %u of %u", (unsigned)scope_focus(f->scope) + 1,
                (unsigned)(batch.tiles + batch.waiting));
    const struct sampling *sampling = scope_sampling(f->scope, NULL);
    if (sampling->temperature > 0)
        bar_add(&bar, ROLE_TEXT, 7, false, "T %.3g", (double)sampling->temperature);
    else
        bar_add(&bar, ROLE_TEXT, 7, false, "greedy");
    if (!scope_is_batch(f->scope))
        add_gain(&bar, m, &window);
    add_lossless(&bar, m);
    add_speed(&bar, f, m, &window, narrow);
    bar_add(&bar, ROLE_TEXT, 3, true, "round %u", (unsigned)scope_now(f->scope)->round);
    bar_draw(&bar, c, clicks);
}
