/* The time line: of a replay, where it is, how fast it goes, and a track to drag along; of a live run, its time and how
 * full the context is. Both have the same place, so that a live screen and its replay show panels of the same size. */
#include "tui/app/bars.h"

#include <math.h>

#define TRACK_LEFT  34 /* columns before the track */
#define TRACK_RIGHT 22 /* and behind it */

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
