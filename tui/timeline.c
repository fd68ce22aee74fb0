/* The time line of a replay: where it is, how fast it goes, and a track to drag along. */
#include "tui/app_state.h"

#include <math.h>

#define TRACK_LEFT  34 /* columns before the track */
#define TRACK_RIGHT 18 /* and behind it */

void
timeline_draw(const struct app *app, const struct canvas *c)
{
    const struct replay_status status = replay_status(app->source->replay);
    const int track = c->cols - TRACK_LEFT - TRACK_RIGHT;
    char speed[16];
    if (status.speed >= 1)
        snprintf(speed, sizeof speed, "×%.0f", status.speed);
    else
        snprintf(speed, sizeof speed, "×1/%.0f", 1 / status.speed);
    canvas_print(c, 0, 1, status.playing ? ROLE_OK : ROLE_WARN, "%s %7.2f / %.2f s  %s",
                 canvas_glyph(c, status.playing ? "▶" : "⏸", status.playing ? ">" : "="), (double)status.t_us / 1e6,
                 (double)status.duration_us / 1e6, speed);
    const double at = status.duration_us == 0 ? 0 : (double)status.t_us / (double)status.duration_us;
    if (track >= 8)
        canvas_slider(c, 0, TRACK_LEFT, track, at, NAN, ROLE_KNOB);
    canvas_print(c, 0, c->cols - TRACK_RIGHT + 2, ROLE_TEXT, "round %llu/%llu", (unsigned long long)status.round,
                 (unsigned long long)status.rounds);
}

double
timeline_fraction(const struct app *app, int x)
{
    const int track = app->layout.timeline.cols - TRACK_LEFT - TRACK_RIGHT;
    if (track < 8 || x < TRACK_LEFT || x >= TRACK_LEFT + track)
        return NAN;
    const double at = (double)(x - TRACK_LEFT - 1) / (track - 3);
    return fmin(fmax(at, 0), 1);
}
