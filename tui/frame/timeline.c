/* The time line: of a replay, where it is, how fast it goes, and a track to drag along; of a live run, its time and how
 * full the context is. Both have the same place, so that a live screen and its replay show panels of the same size. */
#include "tui/frame/bars.h"
#include "tui/panels/marks.h"

#include <math.h>

#define TRACK_LEFT  34 /* columns before the track */
#define TRACK_RIGHT 22 /* and behind it */

struct track {
    const struct followed *run;
    int columns;
    uint64_t run_us, duration_us; /* of a replay; 0: the context is the track */
};

static int
place_mark(const void *user, const struct stretch *s)
{
    const struct track *t = user;
    if (t->duration_us > 0)
        return TRACK_LEFT + 1 +
               (int)lrint(fmin((double)(t->run_us + s->t_us) / (double)t->duration_us, 1) * (t->columns - 3));
    for (uint32_t back = 0; back < scope_rounds(t->run->scope); back++) {
        const struct scope_round *r = scope_round(t->run->scope, back);
        if (r->number == s->first_round && t->run->info->ctx > 0)
            return TRACK_LEFT + (int)((uint64_t)r->first_pos * (uint64_t)t->columns / t->run->info->ctx);
    }
    return -1;
}

static void
draw_marks(const struct followed *f, const struct canvas *c, int track, uint64_t run_us, uint64_t duration_us)
{
    const struct track t = {.run = f, .columns = track, .run_us = run_us, .duration_us = duration_us};
    struct marks marks;
    if (f->ahead != NULL) { /* what is still to come is faint */
        marks_find_ahead(&marks, f->scope, f->ahead, place_mark, &t);
        marks_draw(&marks, f->scope, c, 0, TRACK_LEFT + track - 1, ROLE_DIM);
    }
    marks_find(&marks, f->scope, place_mark, &t);
    marks_draw(&marks, f->scope, c, 0, TRACK_LEFT + track - 1, ROLE_LINE);
}

/* Notes where they were written, or in a live run where they are about. */
static void
draw_notes(const struct followed *f, const struct canvas *c, int track, uint64_t run_us, uint64_t duration_us)
{
    const struct scope_note *note;
    const uint32_t n = scope_notes(f->scope, &note), ctx = f->info->ctx;
    for (uint32_t i = 0; i < n; i++) {
        const double at = duration_us > 0 ? (double)(run_us + note[i].t_us) / (double)duration_us
                          : ctx > 0       ? (double)note[i].pos / ctx
                                          : 0;
        canvas_text(c, 0, TRACK_LEFT + (int)lrint(fmin(at, 1) * (track - 1)), ROLE_FOCUS, canvas_glyph(c, "▾", "v"));
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
    canvas_print(c, 0, 1, status.playing ? ROLE_OK : ROLE_WARN, "%s %7.2f / %.2f s  %s",
                 canvas_glyph(c, status.playing ? "►" : "‖", status.playing ? ">" : "="), (double)status.t_us / 1e6,
                 (double)status.duration_us / 1e6, speed);
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
    /* Of what stays: drafts that are verified now come and go, and the pending token has no row yet. */
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
