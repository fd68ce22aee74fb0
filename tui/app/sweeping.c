#include "tui/app/sweeping.h"

#include <stdlib.h>
#include <string.h>

bool
sweeping_open(struct sweeping *sw, struct live *live, const struct scope *scope, const struct run_info *info,
              struct err *err)
{
    *sw = (struct sweeping){.live = live, .scope = scope};
    return live == NULL || (sweep_open(&sw->sweep, info, err) && tuner_open(&sw->tuner, info, err));
}

static void
drop_run(struct kept_run *run)
{
    if (run->held != NULL)
        event_reader_close(run->held);
    event_log_close(run->log);
    *run = (struct kept_run){NULL, NULL};
}

/* Drops everything that belongs to the last race. */
static void
drop_race(struct sweeping *sw)
{
    for (uint32_t i = 0; i < RACE_CANDIDATES; i++)
        drop_run(&sw->last[i]);
    drop_run(&sw->now);
    scope_close(sw->shown);
    sw->shown = NULL;
    free(sw->prompt);
    sw->prompt = NULL;
}

void
sweeping_close(struct sweeping *sw)
{
    drop_race(sw);
    free(sw->turns);
    sw->turns = NULL;
    sweep_close(sw->sweep);
    tuner_close(sw->tuner);
    sw->sweep = NULL;
    sw->tuner = NULL;
}

/* ---- posted controls ---- */

static bool
post(void *user, enum control_kind kind, const char *name, const char *text, struct err *err)
{
    struct sweeping *sw = user;
    /* the prompt from before, which is posted at the end */
    const bool own = kind == CONTROL_PROMPT && !sweeping_now(sw);
    struct control c = {.kind = kind, .text = text, .before = own ? sw->turns : NULL};
    if (name != NULL)
        snprintf(c.name, sizeof c.name, "%s", name);
    return sw->live->ops->post(sw->live, &c, err);
}

static bool
take_record(void *user, struct layer_record *record)
{
    const struct sweeping *sw = user;
    return scope_record(sw->scope, record) == NULL;
}

static struct run_host
host_of(struct sweeping *sw)
{
    return (struct run_host){.user = sw, .post = post, .record = take_record};
}

static bool
post_pace(struct sweeping *sw, double pace, struct err *err)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", pace);
    return post(sw, CONTROL_PACE, NULL, text, err);
}

static bool
post_race(struct sweeping *sw, bool begins, struct err *err)
{
    return sw->live->ops->post(sw->live, &(struct control){.kind = CONTROL_RACE, .n = begins}, err);
}

static bool
as_it_was(struct sweeping *sw, struct err *err)
{
    return (!(sw->pace > 0) || post_pace(sw, sw->pace, err)) &&
           (!sw->paused || post(sw, CONTROL_PAUSE, NULL, NULL, err));
}

/* ---- its course ---- */

/* Posts the knobs of a policy that differ. */
static bool
restore_policy(struct sweeping *sw, const struct settings *now, uint32_t policy, struct err *err)
{
    const struct policy_info *info = &sw->live->ops->info(sw->live)->policies[policy];
    bool ok = true, chosen = false;
    for (uint32_t k = 0; k < info->n_knobs && ok; k++) {
        char text[32];
        if (now->value[policy][k] == sw->before.value[policy][k])
            continue;
        knob_format(&info->knobs[k], sw->before.value[policy][k], text, sizeof text);
        ok = (chosen || post(sw, CONTROL_POLICY, NULL, info->name, err)) &&
             post(sw, CONTROL_KNOB, info->knobs[k].name, text, err);
        chosen = true;
    }
    return ok;
}

/* Restores the settings from before a race, and the prompt. */
static bool
restore(struct sweeping *sw, struct err *err)
{
    const struct run_info *info = sw->live->ops->info(sw->live);
    struct settings now;
    char probe[PROBE_TEXT_MOST];
    bool ok = post_race(sw, false, err);
    probe_print(sw->before.probe, sw->before.probe_percent, probe);
    sw->live->ops->requested(sw->live, 0, &now);
    for (uint32_t i = 0; i < info->n_policies && ok; i++)
        ok = restore_policy(sw, &now, i, err);
    return ok && post(sw, CONTROL_POLICY, NULL, info->policies[sw->before.policy].name, err) &&
           post(sw, CONTROL_PROBE, NULL, probe, err) &&
           (sw->prompt == NULL || post(sw, CONTROL_PROMPT, NULL, sw->prompt, err));
}

/* Keeps the messages before the present prompt, which runs again at the end. */
static bool
keep_turns(struct sweeping *sw, struct err *err)
{
    const struct segments *all = scope_now(sw->scope)->segments;
    const char *turns = segments_before(all, segments_now(all));
    free(sw->turns);
    sw->turns = turns != NULL ? strdup(turns) : NULL;
    return turns == NULL || sw->turns != NULL || err_set(err, ERR_WORK, "out of memory for the conversation");
}

bool
sweeping_begin(struct sweeping *sw, const char *grid, char *const *prompts, size_t n_prompts, const char *prompt,
               bool paused, double pace, struct err *err)
{
    bool over;
    struct settings now;
    if (sweeping_races(sw))
        return err_set(err, ERR_USAGE, "a race is running; Esc or :tune stop ends it");
    sw->live->ops->requested(sw->live, 0, &now);
    if (!keep_turns(sw, err) || !sweep_begin(sw->sweep, grid, prompts, n_prompts, &now, prompt, err))
        return false;
    sw->raced = false;
    sw->pace = pace;
    sw->paused = paused;
    return (!(pace > 0) || post_pace(sw, 0, err)) && sweeping_continue(sw, &over, err) &&
           post(sw, CONTROL_RESUME, NULL, NULL, err);
}

bool
sweeping_race(struct sweeping *sw, const struct tune_request *request, const char *prompt, bool paused, double pace,
              struct err *err)
{
    bool over;
    char *copy = prompt != NULL ? strdup(prompt) : NULL;
    if (sweep_running(sw->sweep) || (prompt != NULL && copy == NULL)) {
        free(copy);
        return err_set(err, ERR_USAGE,
                       copy == NULL ? "out of memory for a race" : "a sweep is running; Esc or :sweep stop ends it");
    }
    if (!keep_turns(sw, err) || !tuner_begin(sw->tuner, request, err)) {
        free(copy);
        return false;
    }
    drop_race(sw);
    sw->prompt = copy;
    sw->raced = true;
    sw->live->ops->requested(sw->live, 0, &sw->before);
    sw->pace = pace;
    sw->paused = paused;
    return post_race(sw, true, err) && (!(pace > 0) || post_pace(sw, 0, err)) && sweeping_continue(sw, &over, err) &&
           post(sw, CONTROL_RESUME, NULL, NULL, err);
}

/* Begins to keep a run. Without memory it is not kept. */
static void
keep_run(struct kept_run *run)
{
    drop_run(run);
    if (!event_log_open(&run->log, 0, NULL))
        run->log = NULL;
    else if ((run->held = event_reader_open(run->log)) == NULL)
        drop_run(run);
}

void
sweeping_event(struct sweeping *sw, const struct event *e)
{
    if (sw->sweep == NULL)
        return;
    sweep_event(sw->sweep, e);
    const uint32_t at = tuner_at(sw->tuner);
    const bool races = at < sw->tuner->n_candidates,
               begins = e->type == EVENT_CONTROL && e->control.kind == RECORDED_RUN;
    if (begins && races)
        keep_run(&sw->now);
    else if (begins && !sweeping_races(sw) && sw->shown != NULL)
        sweeping_show(sw, NULL, NULL); /* another run shows itself */
    if (sw->now.log != NULL)
        event_log_append(sw->now.log, e);
    tuner_event(sw->tuner, e);
    if (sw->now.log == NULL || tuner_at(sw->tuner) == at)
        return;
    drop_run(&sw->last[at]);
    sw->last[at] = sw->now;
    sw->now = (struct kept_run){NULL, NULL};
}

bool
sweeping_continue(struct sweeping *sw, bool *over, struct err *err)
{
    const struct run_host host = host_of(sw);
    *over = false;
    if (sw->sweep == NULL || (sw->sweep->state != SWEEP_DUE && sw->tuner->run != TUNE_RUN_DUE))
        return true;
    bool ok = true;
    if (!sweeping_races(sw)) {
        ok = sweep_next(sw->sweep, &host, err);
    } else {
        ok = tuner_next(sw->tuner, &host, err);
        if (!sweeping_races(sw))
            ok = restore(sw, ok ? err : NULL) && ok;
    }
    *over = !sweeping_now(sw);
    return (!*over || as_it_was(sw, ok ? err : NULL)) && ok;
}

bool
sweeping_stop(struct sweeping *sw, struct err *err)
{
    const struct run_host host = host_of(sw);
    bool ok = true;
    if (!sweeping_now(sw))
        return true;
    if (sweeping_races(sw)) {
        tuner_stop(sw->tuner);
        ok = restore(sw, err);
    } else {
        ok = sweep_stop(sw->sweep, &host, err);
    }
    return as_it_was(sw, ok ? err : NULL) && ok;
}

bool
sweeping_races(const struct sweeping *sw)
{
    return sw->tuner != NULL && tuner_running(sw->tuner);
}

bool
sweeping_now(const struct sweeping *sw)
{
    return (sw->sweep != NULL && sweep_running(sw->sweep)) || sweeping_races(sw);
}

uint32_t
sweeping_done(const struct sweeping *sw)
{
    const struct race *race = sweeping_races(sw) && sw->tuner->n_candidates > 0 ? sw->tuner->race : NULL;
    return race != NULL ? race->heat : sweeping_races(sw) ? 0 : sweep_done(sw->sweep);
}

/* ---- the last run of a candidate ---- */

/* Adds the tokens' texts of the source's scope: VOCAB events come once for each source. */
static void
add_words(struct scope *to, const struct scope *from, uint32_t vocab)
{
    for (uint32_t i = 0; i < vocab; i++) {
        struct event e = {.type = EVENT_VOCAB, .vocab = {.token = (token_t)i}};
        e.vocab.bytes = scope_bytes(from, (token_t)i, &e.vocab.n_bytes);
        scope_event(to, &e);
    }
}

static void
add_settings(struct scope *to, const struct preset *p)
{
    struct event e = {.type = EVENT_CONTROL,
                      .control = {.kind = RECORDED_POLICY, .old_text = "", .new_text = p->policy}};
    scope_event(to, &e);
    e.control.kind = RECORDED_KNOB;
    for (uint32_t i = 0; i < p->n_set; i++) {
        snprintf(e.control.knob, sizeof e.control.knob, "%s", p->set[i].name);
        e.control.new_text = p->set[i].text;
        scope_event(to, &e);
    }
}

bool
sweeping_show(struct sweeping *sw, const uint32_t *candidate, struct err *err)
{
    const struct event *e;
    struct scope *shown = NULL;
    struct event_reader *reader = NULL;
    if (candidate != NULL && sw->last[*candidate].log != NULL) {
        const struct kept_run *run = &sw->last[*candidate];
        const struct run_info *info = sw->live->ops->info(sw->live);
        if (!scope_open(&shown, info, err) || (reader = event_reader_open(run->log)) == NULL) {
            scope_close(shown);
            return err_set(err, ERR_WORK, "out of memory for a run");
        }
        add_words(shown, sw->scope, info->vocab);
        add_settings(shown, &sw->tuner->candidate[*candidate]);
        while ((e = event_reader_next(reader)) != NULL)
            scope_event(shown, e);
        event_reader_close(reader);
    }
    scope_close(sw->shown);
    sw->shown = shown;
    return true;
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

/* "fastest: sd k=4, 1.54 × ar on held-out prompts, faster than plain decoding" */
static void
race_summary(const struct tuner *t, char *out, size_t n)
{
    char name[120], why[400];
    const struct race *r = t->race;
    uint32_t all;
    if (r == NULL || r->heat == 0) {
        snprintf(out, n, "the race stopped before a heat was complete");
        return;
    }
    if (t->differing > 0) {
        snprintf(out, n, "not lossless: %u runs of the race differ from the text of other settings", t->differing);
        return;
    }
    tuner_name(t, tuner_winner(t), " ", name, sizeof name);
    const struct comparison held = race_held_out(r, tuner_winner(t), 0, NULL);
    if (race_held_out_runs(r, &all) < 2 && t->phase == TUNE_OVER)
        snprintf(out, n, "too little time for held-out prompts; first in the heats: %s, %.2f × ar", name,
                 race_speed(r, tuner_winner(t), NULL).value);
    else if (race_held_out_runs(r, &all) < 2)
        snprintf(out, n, "the race stopped in heat %u; fastest so far: %s", r->heat + 1, name);
    else if (tuner_winner(t) == 0)
        snprintf(out, n, "plain decoding is the fastest: no setting beat it");
    else if (!tuner_clear(t))
        snprintf(out, n, "no setting is clearly faster than plain decoding: %s; a longer race narrows this",
                 tuner_reason(t, why, sizeof why));
    else
        snprintf(out, n, "fastest: %s, %.2f × ar on held-out prompts, %s", name, held.value, tune_verdict(held));
    if (t->phase == TUNE_OVER && tuner_left_out(t, why, sizeof why)[0] != '\0' && strlen(out) + 1 < n)
        snprintf(out + strlen(out), n - strlen(out), "; %s", why);
}

void
sweeping_summary(const struct sweeping *sw, char *out, size_t n)
{
    const struct knob_sweep *s = sw->sweep;
    if (sw->raced) {
        race_summary(sw->tuner, out, n);
        if (sw->paused && strlen(out) + 1 < n)
            snprintf(out + strlen(out), n - strlen(out), "; paused, Space resumes the run from before");
        return;
    }
    uint32_t best, near;
    char text[160], others[64];
    const uint32_t done = sweep_done(s), all = s->n_points;
    int used =
        snprintf(out, n, done < all ? "the sweep has %u of %u points" : "the sweep has its %u points", done, all);
    if (used < 0 || (size_t)used >= n || !sweep_best(s, SWEEP_SPEED, &best, &near))
        return;
    const struct estimate e = sweep_estimate(s, best, SWEEP_SPEED);
    sweep_text(s, best, text, sizeof text);
    sweep_standing(s, SWEEP_SPEED, best, near, others, sizeof others);
    snprintf(out + used, n - (size_t)used, "; fastest at %s: %.*f ±%.*f tokens/s, %s", text, e.value < 99.5 ? 1 : 0,
             e.value, e.se < 9.95 ? 1 : 0, e.se, others);
}
