/* The bars above and below the panels. */
#include "tui/app/bars.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "tui/panels/landscape.h"

/* ---- items ---- */

#define BAR_ITEMS 24

/* Items are shown whole or not at all: if there is no room, those with the highest `rank` are dropped first. An item
 * with `least` columns is cut to these before any other is dropped. */
struct bar {
    struct bar_item {
        char text[128];
        enum role role;
        int rank;
        int least;        /* columns; 0: the item is not cut */
        bool right;       /* from the right end */
        bool joined;      /* to the item before it, with one column between them; shown only with that item */
        const char *line; /* the ':' line that a click runs; NULL: none */
    } item[BAR_ITEMS];
    int n;
};

#define GAP    3 /* columns between items */
#define JOINED 1 /* columns between an item and one joined to it */

__attribute__((format(printf, 5, 6))) static void
bar_add(struct bar *bar, enum role role, int rank, bool right, const char *format, ...)
{
    if (bar->n == BAR_ITEMS)
        return;
    struct bar_item *item = &bar->item[bar->n++];
    *item = (struct bar_item){.role = role, .rank = rank, .right = right};
    va_list args;
    va_start(args, format);
    vsnprintf(item->text, sizeof item->text, format, args);
    va_end(args);
}

static int
least_width(const struct bar_item *item)
{
    const int width = text_width(item->text);
    return item->least > 0 && item->least < width ? item->least : width;
}

/* Decides which items are shown; returns the columns that are left. */
static int
bar_choose(const struct bar *bar, int cols, bool shown[BAR_ITEMS])
{
    const struct bar_item *items = bar->item;
    bool tried[BAR_ITEMS] = {false};
    int room = cols - 2 + GAP;
    for (;;) { /* the most important item that has not been tried */
        int next = -1;
        for (int i = 0; i < bar->n; i++)
            if (!tried[i] && (next < 0 || items[i].rank < items[next].rank))
                next = i;
        if (next < 0)
            return room;
        tried[next] = true;
        const bool joined = items[next].joined;
        const int width = least_width(&items[next]) + (joined ? JOINED : GAP);
        shown[next] = width <= room && (!joined || shown[next - 1]);
        room -= shown[next] ? width : 0;
    }
}

static void
bar_draw(const struct bar *bar, const struct canvas *c, struct clicks *clicks)
{
    const struct bar_item *items = bar->item;
    bool shown[BAR_ITEMS] = {false};
    const int room = bar_choose(bar, c->cols, shown);
    int left = 1, right = c->cols - 1;
    for (int i = 0; i < bar->n; i++) {
        if (!shown[i] || items[i].right)
            continue;
        left -= items[i].joined ? GAP - JOINED : 0;
        const int used = canvas_word(c, 0, left, least_width(&items[i]) + (items[i].least > 0 ? room : 0),
                                     items[i].role, MARK_NONE, items[i].text);
        if (items[i].line != NULL)
            clicks_add(clicks, c, 0, left, used, items[i].line);
        left += used + GAP;
    }
    for (int i = bar->n - 1; i >= 0; i--) {
        if (!shown[i] || !items[i].right)
            continue;
        right -= text_width(items[i].text);
        canvas_text(c, 0, right, items[i].role, items[i].text);
        right -= GAP;
    }
}

/* ---- the title: model, settings and speed ---- */

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

/* Adds whether the run is lossless, with the number of compared tokens: later ones were not compared. */
static void
add_lossless(struct bar *bar, const struct metrics *m)
{
    const unsigned long long compared = m->compared, generated = metrics_generated(m);
    switch (m->lossless) {
    case LOSSLESS_UNKNOWN: bar_add(bar, ROLE_DIM, 6, false, "lossless –"); break;
    case LOSSLESS_SAMPLED: bar_add(bar, ROLE_DIM, 6, false, "lossless: sampled"); break;
    case LOSSLESS_NO: bar_add(bar, ROLE_ERROR, 0, false, "NOT lossless ✗"); break;
    case LOSSLESS_YES: /* the user asked for it */
        if (compared == 0)
            bar_add(bar, ROLE_OK, 4, false, "lossless ✓");
        else if (compared < generated)
            bar_add(bar, ROLE_DIM, 4, false, "lossless ✓ %llu of %llu", compared, generated);
        else
            bar_add(bar, ROLE_OK, 4, false, "lossless ✓ %llu", compared);
    }
}

/* The forecast in time of the present setting of the sequence in focus; NAN: there is none. */
static double
forecast_in_time(const struct scope *s, const struct landscape *l)
{
    const bool known = l != NULL && l->tokens > 0 && l->now.in_time && l->seq == scope_focus(s) &&
                       strcmp(l->policy, scope_policy(s)->name) == 0;
    return known ? (double)l->now.speedup : (double)NAN;
}

#define LEAST_REASON 20          /* columns */
#define HELP_GAIN    "help gain" /* explains the numbers of a reason */

/* Adds whether the policy helps on the window's text: by the measured speedup, or else by the forecast in time, or else
 * by the modelled one, which is the most that it can gain. It is green only if a time confirms it. There is no answer
 * in the first rounds or without drafts. */
static void
add_gain(struct bar *bar, const struct scope *s, const struct landscape *l, const struct reason *reason,
         const struct window_measures *window)
{
    enum { ROUNDS = 8 };
    const double fewer = window->of.modelled,
                 time = isnan(window->speedup.value) ? forecast_in_time(s, l) : window->speedup.value;
    if (window->with.tokens_per_round.n < ROUNDS || scope_now(s)->metrics.total.drafted == 0 || isnan(fewer))
        return;
    if ((isnan(time) ? fewer : time) < REASON_GAINS) {
        const bool known = reason->kind != REASON_NONE;
        bar_add(bar, ROLE_WARN, 3, false, "%s", known ? reason_verdict(reason) : "no gain as it is set");
        bar->item[bar->n - 1].line = HELP_GAIN;
    }
    if ((isnan(time) ? fewer : time) >= REASON_GAINS && fewer >= 1.1)
        bar_add(bar, isnan(time) ? ROLE_TEXT : ROLE_OK, 6, false, "%.1f× fewer weights read", fewer);
}

/* Writes " ±6" with `decimals` decimals; "": unknown. */
static const char *
spread(char *out, size_t n, double se, int decimals)
{
    if (isnan(se))
        return "";
    snprintf(out, n, " ±%.*f", decimals, se);
    return out;
}

/* "~": the speedup's baseline was measured at another time. */
static const char *
approximate(struct estimate speedup)
{
    return isnan(speedup.se) ? "~" : "";
}

static bool
is_slowed(const struct followed *f, const struct metrics *m, const struct measures *now)
{
    return follow_live(f) && scope_now(f->scope)->running && scope_now(f->scope)->end[0] == '\0' && m->pace > 0 &&
           now->tokens_per_s > (double)m->pace;
}

/* Draws the speeds, with and without learning passes if there are any. A speedup needs a baseline of this prompt,
 * measured in the present conditions; if that was at another time, the speedup is approximate. */
static void
add_speed(struct bar *bar, const struct followed *f, const struct metrics *m, const struct window_measures *window,
          bool narrow)
{
    const struct estimate speed = window->with.tokens_per_s, speedup = window->speedup;
    const struct measures *now = &window->of;
    const bool learned = now->learning_share >= 0.005;
    const int places = speed.value < 10 ? 1 : 0;
    char se[24], all_in[32] = "", shown[32] = "";
    if (learned)
        snprintf(all_in, sizeof all_in, ", %.*f all in", places, now->tokens_per_s_all_in);
    if (narrow) {
        if (!isnan(speed.value))
            bar_add(bar, ROLE_TITLE, 1, true, "%.*f tok/s", places, speed.value);
        return;
    }
    if (is_slowed(f, m, now))
        snprintf(shown, sizeof shown, "%.3g/s shown · ", (double)m->pace);
    if (!isnan(speed.value))
        bar_add(bar, ROLE_TITLE, 2, true, "%s%.*f%s %s%s", shown, places, speed.value,
                spread(se, sizeof se, speed.se, places), shown[0] != '\0' ? "engine" : "tok/s", all_in);
    if (learned)
        snprintf(all_in, sizeof all_in, ", %.2f all in", now->speedup_all_in);
    if (!isnan(speedup.value))
        bar_add(bar, isnan(speedup.se) ? ROLE_DIM : ROLE_TITLE, 4, true, "%s%.2f%s× ar%s", approximate(speedup),
                speedup.value, spread(se, sizeof se, speedup.se, 2), all_in);
    else
        bar_add(bar, m->baseline > 0 ? ROLE_TITLE : ROLE_DIM, 8, true, "–× ar");
}

#define LEAST_NAME 12 /* columns of the model's name */

/* Adds the model, and where it runs. */
static void
add_model(struct bar *bar, const struct followed *f)
{
    const struct run_info *info = scope_info(f->scope);
    char runs_on[sizeof info->isa + 16], name[48], aux[48] = "";
    const char *machine = strcmp(info->backend, "cpu") == 0 || info->isa[0] == '\0' ? info->backend : info->isa;
    const unsigned threads = follow_live(f) ? f->live->ops->threads(f->live) : info->threads;
    const int shown =
        (int)strcspn(machine, ","); /* a GPU's name; after the comma the backend describes the model's place */
    if (machine == info->isa)
        snprintf(runs_on, sizeof runs_on, " · %.*s", shown, machine);
    else if (machine[0] != '\0')
        snprintf(runs_on, sizeof runs_on, " · %.*s×%u", shown, machine, threads);
    else
        runs_on[0] = '\0'; /* unknown */
    printable_text(info->model_name, strlen(info->model_name), name, sizeof name);
    const char *draft = "";
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (role != AUX_COMPANION && scope_model_used(f->scope, LAYERS_OF(role)))
            draft = info->aux[role].name;
    if (draft[0] != '\0')
        printable_text(draft, strlen(draft), aux, sizeof aux);
    const char *host = info->layers <= 1 ? strstr(info->isa, " at ") : NULL; /* "0.5.0 at 127.0.0.1:8080" */
    if (host != NULL)
        bar_add(bar, ROLE_TEXT, 5, false, "%s %.*s", info->backend, (int)(host - info->isa), info->isa);
    bar_add(bar, ROLE_TEXT, 5, false, "%s%s%s%s", host != NULL ? "· " : "", name, draft[0] != '\0' ? " + " : "", aux);
    bar->item[bar->n - 1].joined = host != NULL;
    bar->item[bar->n - 1].least = LEAST_NAME;
    if (host != NULL)
        bar_add(bar, ROLE_TEXT, 5, false, "· %s", host + strlen(" at "));
    else
        bar_add(bar, ROLE_TEXT, 5, false, "· %u layer%s%s", (unsigned)info->layers, plural(info->layers), runs_on);
    bar->item[bar->n - 1].joined = true;
    if (threads < info->threads && machine != info->isa) {
        bar_add(bar, ROLE_WARN, 8, false, "of %u (faster)", (unsigned)info->threads);
        bar->item[bar->n - 1].joined = true;
    }
}

void
title_draw(const struct followed *f, const struct landscape *l, const struct reason *reason, const struct canvas *c,
           struct clicks *clicks)
{
    const struct metrics *m = &scope_now(f->scope)->metrics;
    const struct window_measures window = scope_window_measures(f->scope);
    struct bar bar = {0};

    bar_add(&bar, ROLE_TITLE, 9, false, "specscope");
    add_model(&bar, f);
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
        add_gain(&bar, f->scope, l, reason, &window);
    add_lossless(&bar, m);
    add_speed(&bar, f, m, &window, narrow);
    bar_add(&bar, ROLE_TEXT, 3, true, "round %u", (unsigned)scope_now(f->scope)->round);
    bar_draw(&bar, c, clicks);
}

/* ---- the measures of the window (docs/methods.md, Measures) ---- */

static void
number(struct bar *bar, int rank, const char *name, double value, int decimals, const char *unit)
{
    if (isnan(value))
        bar_add(bar, ROLE_DIM, rank, false, "%s –", name);
    else
        bar_add(bar, ROLE_TEXT, rank, false, "%s %.*f%s", name, decimals, value, unit);
}

/* Draws the shares of the rounds' time, and the times of pauses and learning passes, if there are any. */
static void
where_the_time_goes(char *out, size_t size, const struct measures *m)
{
    const bool heads = !isnan(m->heads_share); /* NAN in older traces and of backends that do not measure it */
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
    if (m->learning_share >= 0.005)
        snprintf(out + n, size - (size_t)n, " learned %.0f%%", m->learning_share * 100);
}

/* Draws the forecast of the present setting, in time or by weights, and the measured speedup. */
static void
add_forecast(struct bar *bar, const struct scope *s, const struct landscape *l, const struct window_measures *window)
{
    const struct measures *now = &window->of;
    const double forecast = forecast_in_time(s, l);
    if (!isnan(forecast)) {
        if (isnan(window->speedup.value))
            bar_add(bar, ROLE_TEXT, 3, false, "forecast %.2f×", forecast);
        else
            bar_add(bar, ROLE_TEXT, 3, false, "forecast %.2f× measured %s%.2f×", forecast, approximate(window->speedup),
                    window->speedup.value);
        if (!isnan(now->modelled))
            bar_add(bar, ROLE_DIM, 6, false, "modelled %.2f×", now->modelled);
    } else if (!isnan(now->overhead)) { /* measured ÷ modelled; below 1: time that reading weights does not explain */
        bar_add(bar, ROLE_TEXT, 3, false, "measured %s%.2f of modelled %.2f×", approximate(window->speedup),
                now->overhead, now->modelled);
    } else {
        number(bar, 3, "modelled", now->modelled, 2, "×");
    }
}

#define LONG_PREFILL 1e6 /* microseconds that a user notices */

void
measures_draw(const struct scope *s, const struct landscape *l, const struct canvas *c)
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
    const bool work = !isnan(m->rho) || m->total.layers > 0; /* the source tells the rounds' work */
    if (work)
        number(&bar, 4, "eTPL", now.etpl, 3, "");
    number(&bar, 6, "discard", now.discard_rate, 2, "");
    if (work)
        number(&bar, 7, "eq. 5", now.predicted, 2, "×");
    if (work)
        add_forecast(&bar, s, l, &window);
    if (m->prefill_us >= LONG_PREFILL) {
        char prompt[64];
        bar_add(&bar, ROLE_TEXT, 5, false, "%s", metrics_prefill_text(m, prompt, sizeof prompt));
    }
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
reason_draw(const struct reason_line *line, const struct canvas *c, struct clicks *clicks)
{
    struct bar bar = {0};
    bool any = false; /* remedies before */
    for (uint32_t i = 0; i < line->n; i++) {
        const bool remedy = line->part[i].command[0] != '\0';
        const int rank = i == 0 ? 0 : !remedy ? 2 : any ? 3 : 1;
        any = any || remedy;
        bar_add(&bar, remedy ? ROLE_KEY : i == 0 ? ROLE_WARN : ROLE_DIM, rank, false, "%s", line->part[i].text);
        bar.item[bar.n - 1].line = remedy ? line->part[i].command : HELP_GAIN;
        if (i == 0 && text_width(line->part[i].text) > c->cols - 2)
            bar.item[bar.n - 1].least = LEAST_REASON;
    }
    bar_draw(&bar, c, clicks);
}

void
device_draw(const struct scope *s, const struct canvas *c)
{
    const int left = 1 + canvas_text(c, 0, 1, ROLE_DIM, "device ");
    canvas_text(c, 0, left, ROLE_TEXT, scope_now(s)->device);
}

/* ---- the time line ---- */

#define TRACK_LEFT  34 /* columns before the track */
#define TRACK_RIGHT 22 /* columns after it */

struct track {
    const struct followed *run;
    int columns;
    uint64_t run_us, duration_us; /* of a replay; 0: the context is the track */
};

static int
place_mark(const void *user, const struct segment *s)
{
    const struct track *t = user;
    if (t->duration_us > 0)
        return TRACK_LEFT + 1 +
               (int)lrint(fmin((double)(t->run_us + s->t_us) / (double)t->duration_us, 1) * (t->columns - 3));
    const struct scope_round *r = scope_round_numbered(t->run->scope, s->first_round);
    if (r == NULL || t->run->info->ctx == 0)
        return -1;
    return TRACK_LEFT + (int)((uint64_t)r->first_pos * (uint64_t)t->columns / t->run->info->ctx);
}

static void
draw_marks(const struct followed *f, const struct canvas *c, int track, uint64_t run_us, uint64_t duration_us)
{
    const struct track t = {.run = f, .columns = track, .run_us = run_us, .duration_us = duration_us};
    struct marks marks;
    if (f->ahead != NULL) { /* later marks are faint */
        marks_find(&marks, f->scope, f->ahead, place_mark, &t);
        marks_draw(&marks, f->scope, c, 0, TRACK_LEFT + track - 1, ROLE_DIM);
    }
    marks_find(&marks, f->scope, NULL, place_mark, &t);
    marks_draw(&marks, f->scope, c, 0, TRACK_LEFT + track - 1, ROLE_LINE);
}

/* Draws the notes at the time of their writing, or in a live run at the token that they describe. */
static void
draw_notes(const struct followed *f, const struct canvas *c, int track, uint64_t run_us, uint64_t duration_us)
{
    const struct scope_note *note = scope_now(f->scope)->notes;
    const uint32_t ctx = f->info->ctx;
    for (uint32_t i = 0; i < scope_now(f->scope)->n_notes; i++) {
        const double at = duration_us > 0 ? (double)(run_us + note[i].t_us) / (double)duration_us
                          : ctx > 0       ? (double)note[i].pos / ctx
                                          : 0;
        canvas_text(c, 0, TRACK_LEFT + (int)lrint(fmin(at, 1) * (track - 1)), ROLE_FOCUS, "▾");
    }
}

static void
draw_replay(const struct followed *f, const struct canvas *c, int track)
{
    const struct replay_status status = replay_status(f->source->replay);
    char speed[16];
    if (status.speed >= 1)
        snprintf(speed, sizeof speed, "×%.0f", status.speed);
    else
        snprintf(speed, sizeof speed, "×1/%.0f", 1 / status.speed);
    canvas_print(c, 0, 1, status.playing ? ROLE_OK : ROLE_WARN, "%s %7.2f / %.2f s  %s", status.playing ? "►" : "‖",
                 (double)status.t_us / 1e6, (double)status.duration_us / 1e6, speed);
    const double at = status.duration_us == 0 ? 0 : (double)status.t_us / (double)status.duration_us;
    canvas_slider(c, 0, TRACK_LEFT, track, at, NAN, ROLE_KNOB);
    draw_marks(f, c, track, status.run_us, status.duration_us);
    draw_notes(f, c, track, status.run_us, status.duration_us);
    canvas_print(c, 0, c->cols - TRACK_RIGHT + 2, ROLE_TEXT, "round %llu/%llu", (unsigned long long)status.round,
                 (unsigned long long)status.rounds);
}

static void
draw_live(const struct followed *f, const struct canvas *c, int track)
{
    /* Counts committed tokens only: drafts come and go, and the pending token has no row yet. */
    const uint32_t ctx = f->info->ctx, committed = scope_now(f->scope)->committed;
    const uint32_t length = committed < ctx ? committed : ctx;
    canvas_print(c, 0, 1, ROLE_DIM, "  %7.2f s", (double)f->run_us / 1e6);
    canvas_bar(c, 0, TRACK_LEFT, track, ctx == 0 ? 0 : (double)length / ctx, ROLE_DIM);
    draw_marks(f, c, track, 0, 0);
    draw_notes(f, c, track, 0, 0);
    canvas_print(c, 0, c->cols - TRACK_RIGHT + 2, ROLE_DIM, "context %u/%u", (unsigned)length, (unsigned)ctx);
}

void
timeline_draw(const struct followed *f, const struct canvas *c)
{
    const int track = c->cols - TRACK_LEFT - TRACK_RIGHT;
    if (follow_live(f))
        draw_live(f, c, track);
    else
        draw_replay(f, c, track);
}

double
timeline_fraction(const struct followed *f, int cols, int x)
{
    const int track = cols - TRACK_LEFT - TRACK_RIGHT;
    if (follow_live(f) || x < TRACK_LEFT || x >= TRACK_LEFT + track)
        return NAN;
    const double at = (double)(x - TRACK_LEFT - 1) / (track - 3);
    return fmin(fmax(at, 0), 1);
}

/* ---- the key bar ---- */

/* Adds the keys that every user needs first, always at the same place. */
static void
add_always(struct key_row *bar, const struct panes *p, const struct followed *run)
{
    const bool live = follow_live(run),
               moves = live ? scope_now(run->scope)->running : replay_status(run->source->replay).playing;
    if (!run->scorer.runs &&
        (!live || scope_now(run->scope)->end[0] == '\0')) /* Space does not continue a text that has ended */
        key_row_pairs(bar, 0, moves ? "Space pause" : live ? "Space resume" : "Space play");
    if (p->layout.tab_bar.rows == 0) /* tabs show their digits */
        key_row_pairs(bar, 0, "1…9 panel");
    key_row_pairs(bar, 0, "? help  q quit");
    bar->parts = true;
}

/* Adds the hidden panels; the titles of the others show their digits. */
static void
add_panels(struct key_row *bar, const struct panes *p)
{
    for (int i = 0; i < p->n; i++) {
        char digit[2];
        if (p->layout.panel[i].rows == 0 && panes_digit(p, i, digit))
            key_row_add(bar, 4, ROLE_DIM, digit, panel_registry[i]->name);
    }
}

static void
add_run(struct key_row *bar, const struct followed *run)
{
    static const struct {
        const char *end, *say, *pairs, *more; /* before the panel's keys, and if there is room beside them */
    } ends[] = {
        {"eos", "the text has ended", "x extend  F next prompt", "r again  p new prompt  e export"},
        {"batch", "all sequences have ended", "x more", "r again  e export"},
        {"tokens", "all tokens are generated", "x more  F next prompt", "r again  p new prompt  e export"},
        {"context", "the context is full", "F next prompt", "r again  p new prompt  e export"},
    };
    const char *end = scope_now(run->scope)->end;
    if (run->scorer.runs)
        return;
    if (!follow_live(run)) {
        key_row_pairs(bar, 6, "n round  . token  <> speed");
        return;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(end, ends[i].end) == 0) {
            key_row_add(bar, 1, ROLE_WARN, "", ends[i].say);
            key_row_pairs(bar, 1, ends[i].pairs);
            key_row_pairs(bar, 5, ends[i].more);
            key_row_pairs(bar, 7, "b baseline  P policy");
            return;
        }
    key_row_pairs(bar, 6, "n round  . token  b baseline  P policy");
    key_row_pairs(bar, 7, "p prompt  e export");
}

void
key_bar_draw(const struct panes *p, const struct followed *run, const struct canvas *c, struct clicks *clicks)
{
    struct key_row bar = {.n = 0};
    const bool over = follow_live(run) && scope_now(run->scope)->end[0] != '\0';
    add_always(&bar, p, run);
    if (over) /* the user waits for the end of the text */
        add_run(&bar, run);
    const struct scope_note *note =
        p->selection.follow ? NULL : scope_note_at(run->scope, scope_focus(run->scope), p->selection.pos);
    if (note != NULL) /* of the token under the cursor */
        key_row_add(&bar, 1, ROLE_WARN, "", note->text);
    bar.parts = true;
    const struct panel_ops *panel = panel_registry[p->focus];
    if (!run->scorer.runs || strcmp(panel->name, "score") == 0) /* keys of other panels may change the run */
        key_row_pairs(&bar, 3, panel->brief_now != NULL ? panel->brief_now(&p->view) : panel->brief);
    bar.parts = true;
    if (!over)
        add_run(&bar, run);
    key_row_pairs(&bar, 2, ": command");
    bar.parts = true;
    if (p->layout.tab_bar.rows == 0)
        add_panels(&bar, p);
    key_row_draw(&bar, c, clicks);
}
