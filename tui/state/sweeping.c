#include "tui/state/sweeping.h"
#include "kernels/base/plural.h"

#include <string.h>

bool
sweeping_open(struct sweeping *sw, struct session *session, const struct run_info *info, struct err *err)
{
    *sw = (struct sweeping){.session = session};
    return session == NULL || sweep_open(&sw->sweep, info, err);
}

void
sweeping_close(struct sweeping *sw)
{
    sweep_close(sw->sweep);
    sw->sweep = NULL;
}

/* ---- posted controls ---- */

static bool
post(struct sweeping *sw, enum control_kind kind, const char *name, const char *text, struct err *err)
{
    struct control c = {.kind = kind, .text = text};
    if (name != NULL)
        snprintf(c.name, sizeof c.name, "%s", name);
    return session_post(sw->session, &c, err);
}

static bool
post_knob(void *user, const char *name, const char *text, struct err *err)
{
    struct sweeping *sw = user;
    return post(sw, CONTROL_KNOB, name, text, err);
}

static bool
post_run(void *user, const char *prompt, struct err *err)
{
    return post(user, prompt != NULL ? CONTROL_PROMPT : CONTROL_RESTART, NULL, prompt, err);
}

static bool
post_policy(void *user, const char *name, struct err *err)
{
    struct sweeping *sw = user;
    return post(sw, CONTROL_POLICY, NULL, name, err);
}

static bool
post_pace(struct sweeping *sw, double pace, struct err *err)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", pace);
    return post(sw, CONTROL_PACE, NULL, text, err);
}

static bool
as_it_was(struct sweeping *sw, struct err *err)
{
    return (!(sw->pace > 0) || post_pace(sw, sw->pace, err)) &&
           (!sw->paused || post(sw, CONTROL_PAUSE, NULL, NULL, err));
}

/* ---- its course ---- */

bool
sweeping_begin(struct sweeping *sw, const char *grid, char *const *prompts, size_t n_prompts,
               const struct segments *all, bool paused, double pace, struct err *err)
{
    bool over;
    if (!sweep_begin(sw->sweep, grid, prompts, n_prompts, all, err))
        return false;
    sw->pace = pace;
    sw->paused = paused;
    return (!(pace > 0) || post_pace(sw, 0, err)) && sweeping_continue(sw, &over, err) &&
           post(sw, CONTROL_RESUME, NULL, NULL, err);
}

void
sweeping_event(struct sweeping *sw, const struct event *e)
{
    if (sw->sweep != NULL)
        sweep_event(sw->sweep, e);
}

bool
sweeping_continue(struct sweeping *sw, bool *over, struct err *err)
{
    const struct run_host host = {.user = sw, .knob = post_knob, .run = post_run, .policy = post_policy};
    *over = false;
    if (sw->sweep == NULL || sweep_state(sw->sweep) != SWEEP_DUE)
        return true;
    const bool ok = sweep_next(sw->sweep, &host, err);
    *over = !sweeping_now(sw);
    return (!*over || as_it_was(sw, ok ? err : NULL)) && ok;
}

bool
sweeping_stop(struct sweeping *sw, struct err *err)
{
    const struct run_host host = {.user = sw, .knob = post_knob, .run = post_run, .policy = post_policy};
    if (!sweeping_now(sw))
        return true;
    const bool ok = sweep_stop(sw->sweep, &host, err);
    return as_it_was(sw, ok ? err : NULL) && ok;
}

bool
sweeping_now(const struct sweeping *sw)
{
    return sw->sweep != NULL && sweep_running(sw->sweep);
}

bool
sweeping_disturbed_by(enum control_kind kind)
{
    switch (kind) {
    case CONTROL_KNOB:
    case CONTROL_POLICY:
    case CONTROL_HEAD:
    case CONTROL_PROMPT:
    case CONTROL_RESTART:
    case CONTROL_EXTEND:
    case CONTROL_BASELINE:
    case CONTROL_VERSUS:
    case CONTROL_PACE: return true;
    default: return false;
    }
}

void
sweeping_summary(const struct sweeping *sw, char *out, size_t n)
{
    const struct knob_sweep *s = sw->sweep;
    uint32_t best, near;
    char text[160], others[64];
    const uint32_t done = sweep_done(s), all = sweep_points(s);
    int used =
        snprintf(out, n, done < all ? "the sweep has %u of %u points" : "the sweep has its %u points", done, all);
    if (used < 0 || (size_t)used >= n || !sweep_best(s, SWEEP_SPEED, &best, &near))
        return;
    const struct estimate e = sweep_estimate(s, best, SWEEP_SPEED);
    sweep_text(s, best, text, sizeof text);
    snprintf(others, sizeof others, near == 0 ? "clearly" : "no clear difference from %u other%s", near, plural(near));
    snprintf(out + used, n - (size_t)used, "; fastest at %s: %.*f ±%.*f tokens/s, %s", text, e.value < 99.5 ? 1 : 0,
             e.value, e.se < 9.95 ? 1 : 0, e.se, others);
}
