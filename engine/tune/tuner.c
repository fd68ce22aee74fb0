#include "engine/tune/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"

#define RECORD_SHARE 0.05 /* of the time, for each of them */
#define HEATS_END    0.75 /* of the time, for all heats */

/* ---- opening and closing ---- */

bool
tuner_open(struct tuner **out, const struct run_info *info, struct err *err)
{
    if ((*out = calloc(1, sizeof **out)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for a race");
    (*out)->info = info;
    return true;
}

static void
forget(struct tuner *t)
{
    race_close(t->race);
    for (uint32_t d = 0; d <= TUNE_DRAFTS; d++)
        for (uint32_t i = 0; i < TUNE_RECORDS_MOST; i++)
            layer_record_close(&t->recorded[d].records[i]);
    for (uint32_t i = 0; i < t->n_prompts; i++) {
        free(t->prompts != NULL ? t->prompts[i] : NULL);
        free(t->categories != NULL ? t->categories[i] : NULL);
        free(t->text != NULL ? t->text[i].tokens : NULL);
    }
    free(t->prompts);
    free(t->categories);
    free(t->text);
    free(t->now.tokens);
    *t = (struct tuner){.info = t->info};
}

void
tuner_close(struct tuner *t)
{
    if (t == NULL)
        return;
    forget(t);
    free(t);
}

/* ---- beginning ---- */

/* Does a change of the setting start a server? */
static bool
is_launched(const struct tuner *t)
{
    return t->speed.start_s > 0;
}

/* Are candidates found by forecasts, which need records of the layers? */
static bool
is_recorded(const struct tuner *t)
{
    return t->greedy && !is_launched(t) && t->n_given == 0;
}

static const struct policy_ops *
ops_of(const struct tuner *t, uint32_t policy)
{
    return policy_named(t->registry, t->info->policies[policy].name);
}

/* Can the policy be a candidate, besides autoregressive decoding? With a draft model from 1 on in `drafts` only if it
 * needs a draft model. */
static bool
is_possible(const struct tuner *t, uint32_t policy, uint32_t draft)
{
    const struct policy_info *info = &t->info->policies[policy];
    const struct policy_ops *ops = ops_of(t, policy);
    const bool needs_met =
        draft == 0 ? info->missing == 0
                   : (info->needs & NEEDS(AUX_DRAFT)) != 0 && (info->needs & ~t->drafts[draft - 1].meets) == 0;
    return ops != NULL && needs_met && t->info->layers >= ops->least_layers && !policy_is_baseline(info->name);
}

/* Returns whether the policy can be a candidate with some draft model. */
static bool
is_possible_somehow(const struct tuner *t, uint32_t policy)
{
    uint32_t d = 0;
    while (d <= t->n_drafts && !is_possible(t, policy, d))
        d++;
    return d <= t->n_drafts;
}

static bool
choose_policies(struct tuner *t, const struct tune_request *r, struct err *err)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct policy_info *info = run_info_policy(t->info, r->policies[i]);
        char needs[POLICY_MISSING];
        if (info == NULL)
            return err_set(err, ERR_USAGE, "cannot race '%.15s': there is no such policy", r->policies[i]);
        if (info->missing != 0 && !is_possible_somehow(t, (uint32_t)(info - t->info->policies)))
            return err_set(err, ERR_USAGE, "cannot race %s: it needs %s", info->name,
                           policy_missing(info->missing, needs));
        t->wanted[info - t->info->policies] = true;
    }
    for (uint32_t i = 0; i < t->info->n_policies; i++) {
        t->wanted[i] = (t->wanted[i] || r->n_policies == 0) && is_possible_somehow(t, i);
        n += t->wanted[i];
    }
    return n > 0 || err_set(err, ERR_USAGE, "cannot race plain decoding alone: name a policy that this model can run");
}

static bool
copy_prompts(struct tuner *t, const struct tune_request *r)
{
    t->prompts = calloc(r->n_prompts, sizeof *t->prompts);
    t->categories = calloc(r->n_prompts, sizeof *t->categories);
    t->text = calloc(r->n_prompts, sizeof *t->text);
    if (t->prompts == NULL || t->categories == NULL || t->text == NULL)
        return false;
    for (; t->n_prompts < r->n_prompts; t->n_prompts++) {
        const struct race_prompt *p = &r->prompts[t->n_prompts];
        t->prompts[t->n_prompts] = strdup(p->text);
        t->categories[t->n_prompts] = strdup(p->category != NULL ? p->category : "");
        if (t->prompts[t->n_prompts] == NULL || t->categories[t->n_prompts] == NULL)
            return t->n_prompts++, false;
    }
    return true;
}

bool
tuner_begin(struct tuner *t, const struct tune_request *r, struct err *err)
{
    if (tuner_running(t))
        return err_set(err, ERR_USAGE, "a race is running; Esc or :tune stop ends it");
    const double least_s = (1 + 2) * TUNE_TOKENS_FEW * r->token_s; /* a first run, and a heat */
    if (r->time_s > 0 && least_s > r->time_s)
        return tune_too_short(r->time_s, &(struct tune_speed){.token_s = r->token_s}, least_s, err);
    forget(t);
    t->registry = r->registry;
    t->time_s = r->time_s;
    t->sampling = r->sampling;
    t->named = r->n_policies > 0;
    t->greedy = !(r->sampling.temperature > 0);
    t->speed.start_s = t->spent_s = r->start_s;
    t->given = r->given;
    t->n_given = r->n_given;
    t->n_drafts = r->n_drafts;
    for (uint32_t i = 0; i < r->n_drafts; i++)
        t->drafts[i] = r->drafts[i];
    t->plan = (struct tune_plan){.tokens = r->tokens, .passes = RACE_PASSES};
    t->speed.run_s = INFINITY;
    t->recorded[0].costs = t->info->costs;
    cost_reset(&t->recorded[0].costs);
    bool ok = choose_policies(t, r, err) && race_open(&t->race, r->prompts, r->n_prompts, r->seed, err);
    ok = ok && (copy_prompts(t, r) || err_set(err, ERR_WORK, "out of memory for prompts"));
    for (uint32_t d = 0; d <= t->n_drafts && is_recorded(t); d++)
        for (uint32_t i = 0; i < (d == 0 ? TUNE_RECORDS_MOST : 1) && ok; i++)
            ok = layer_record_open(&t->recorded[d].records[i], t->info->layers, err);
    if (!ok) {
        forget(t);
        return false;
    }
    t->plan.held_out = t->race->n_held;
    t->plan.block = t->race->n_prompts * RACE_PASSES / 2;
    t->phase = TUNE_RECORDS;
    t->run = TUNE_RUN_DUE;
    return true;
}

/* ---- a run ---- */

/* Returns the draft model of the i-th of the first runs: first the run's own, then one run with each further one. */
static uint32_t
record_draft(uint32_t i)
{
    return i < TUNE_RECORDS_MOST ? 0 : i - TUNE_RECORDS_MOST + 1;
}

static void
begin_run(struct tuner *t)
{
    t->run = TUNE_RUN_GOING;
    t->tally = (struct tally){0};
    t->tested = (struct positions){0};
    t->now.n = 0;
    t->run_us = 0;
}

/* Without memory the texts are not compared. */
static void
add_token(struct tuner *t, token_t token)
{
    if (!array_grow(&t->now.tokens, &t->now_room, t->now.n + 1, sizeof *t->now.tokens))
        return;
    t->now.tokens[t->now.n++] = token;
}

/* Stores the first text of a prompt, and compares later texts with it, as far as both have tokens. */
static void
compare_text(struct tuner *t)
{
    struct tune_text *first = &t->text[t->prompt];
    const uint32_t n = t->now.n < first->n ? t->now.n : first->n;
    if (first->tokens == NULL) {
        *first = t->now;
        t->now = (struct tune_text){NULL, 0};
        t->now_room = 0;
    } else if (memcmp(t->now.tokens, first->tokens, n * sizeof *first->tokens) != 0) {
        t->differing++;
    }
}

/* Takes the speed of the first run, and the least time of a prompt. */
static void
measure(struct tuner *t, double seconds)
{
    const double s = (t->tally.draft_us + t->tally.verify_us) * 1e-6;
    if (t->records_run == 0)
        t->speed.token_s = s / (double)t->tally.emitted;
    t->speed.run_s = fmin(t->speed.run_s, fmax(seconds - s - t->tally.probe_us * 1e-6, 0));
    t->records_run++;
    t->record_due = true;
}

static void
end_run(struct tuner *t)
{
    const double seconds = (double)t->run_us * 1e-6;
    t->run = TUNE_RUN_DUE;
    t->spent_s += seconds;
    t->run_us = 0;
    if (t->tally.emitted == 0) {
        snprintf(t->failed, sizeof t->failed,
                 "the text of prompt %u ends with its first token: leave it out, or give --ignore-eos", t->prompt + 1);
        return;
    }
    if (t->greedy)
        compare_text(t);
    if (t->phase == TUNE_RECORDS) {
        measure(t, seconds);
        return;
    }
    t->raced_s += seconds;
    t->raced++;
    positions_add(&t->positions[t->at], &t->tested);
    tally_add(&t->total[t->at], &t->tally);
    race_took(t->race, (t->tally.draft_us + t->tally.verify_us) * 1e-6 / (double)t->tally.emitted);
}

/* Has the run all tokens that count? */
static bool
is_enough(const struct tuner *t)
{
    const bool slow = t->phase == TUNE_RECORDS && t->time_s > 0 &&
                      (double)t->run_us * 1e-6 > RECORD_SHARE * t->time_s && t->tally.emitted >= TUNE_TOKENS_FEW;
    return slow || t->tally.emitted + 1 >= t->plan.tokens; /* one token came with the prompt */
}

void
tuner_event(struct tuner *t, const struct event *e)
{
    const char *text = e->type == EVENT_CONTROL ? e->control.new_text : NULL;
    struct cost_model *costs = &t->recorded[t->recording].costs;
    if (t->run == TUNE_RUN_ASKED && text != NULL && e->control.kind == RECORDED_RUN && strcmp(text, "prompt") == 0) {
        begin_run(t);
        return;
    }
    if (t->phase == TUNE_RECORDS && text != NULL && e->control.kind == RECORDED_COST &&
        !cost_model_parse(text, costs, NULL))
        *costs = (struct cost_model){0};
    token_t token;
    enum token_source source;
    if (t->run != TUNE_RUN_GOING)
        return;
    t->run_us = e->t_us;
    if (committed_token(&t->committed, e, &token, &source))
        add_token(t, token);
    if (e->type == EVENT_ROUND) {
        const struct tally round = tally_of(&e->round_end);
        tally_add(&t->tally, &round);
        positions_round(&t->tested, &e->round_end);
        if (is_enough(t))
            end_run(t);
    } else if (text != NULL && e->control.kind == RECORDED_END && strncmp(text, "error", 5) == 0) {
        uint32_t candidate = 0, prompt;
        race_next(t->race, &candidate, &prompt);
        const bool next = t->phase == TUNE_HEATS && t->tally.rounds == 0 && race_unable(t->race);
        snprintf(next ? t->unable[candidate] : t->failed, sizeof t->failed, "%s%s",
                 next ? "" : "the race stopped: ", next ? text + strlen("error: ") : text);
        t->spent_s += (double)t->run_us * 1e-6;
        t->run_us = 0;
        t->run = TUNE_RUN_DUE;
    } else if (text != NULL && e->control.kind == RECORDED_END) {
        end_run(t);
    }
}

/* ---- candidates ---- */

/* Appends the settings of a policy with a draft model that can be faster than plain decoding. Of the others the one
 * with the highest ceiling is kept in *hope, or is appended if the policy was named and has no better one. */
static uint32_t
add_entries(struct tuner *t, uint32_t policy, uint32_t draft, struct candidate *entries, uint32_t n,
            struct candidate *hope)
{
    const struct tune_source *r = &t->recorded[draft];
    struct candidate of[CANDIDATES_MOST], best = {.ceiling = 0};
    const uint32_t before = n;
    if (!t->wanted[policy] || !is_possible(t, policy, draft))
        return n;
    const uint32_t found = candidates_of(&t->info->policies[policy], ops_of(t, policy), r->records, r->n, t->info->rho,
                                         cost_known(&r->costs) ? &r->costs : NULL, of);
    for (uint32_t i = 0; i < found; i++) {
        of[i].draft = draft;
        of[i].place = n - before;
        t->plan.hopeless += of[i].ceiling < 1;
        if (!(of[i].ceiling < 1))
            entries[n++] = of[i];
        else if (of[i].ceiling > best.ceiling)
            best = of[i];
    }
    if (n == before && t->named && best.ceiling > 0) {
        entries[n++] = best;
        t->plan.hopeless--;
    } else if (best.ceiling > hope->ceiling) {
        *hope = best;
    }
    return n;
}

/* *least: plain decoding and the best setting of each policy. */
static bool
find_candidates(struct tuner *t, uint32_t *least, struct err *err)
{
    const uint32_t policies = t->info->n_policies, pairs = policies * (t->n_drafts + 1);
    struct candidate *entries = calloc((size_t)pairs * CANDIDATES_MOST, sizeof *entries);
    struct candidate hope = {.ceiling = 0};
    uint32_t n = 0;
    if (entries == NULL)
        return err_set(err, ERR_WORK, "out of memory for candidates");
    for (uint32_t i = 0; i < t->n_given; i++)
        entries[n++] = t->given[i];
    for (uint32_t i = 0; i < pairs && t->n_given == 0; i++)
        n = add_entries(t, i % policies, i / policies, entries, n, &hope);
    if (n == 0 && hope.ceiling > 0) { /* the race confirms its ceiling */
        entries[n++] = hope;
        t->plan.hopeless--;
    }
    candidates_order(entries, n);
    t->candidate[0] = (struct preset){.policy = POLICY_BASELINE};
    t->found = n + 1 < RACE_CANDIDATES ? n + 1 : RACE_CANDIDATES;
    *least = 1;
    for (uint32_t i = 0; i < t->found; i++) {
        if (i > 0) {
            t->candidate[i] = entries[i - 1].preset;
            t->draft[i] = entries[i - 1].draft;
            *least += entries[i - 1].place == 0;
        }
        for (int k = 0; k < SAMPLING_SEED; k++)
            sampling_knob_text(&t->sampling, 0, k, t->candidate[i].sampling[k], sizeof t->candidate[i].sampling[k]);
    }
    free(entries);
    return true;
}

static bool
begin_heats(struct tuner *t, struct err *err)
{
    uint32_t least = 0;
    if (!find_candidates(t, &least, err))
        return false;
    t->plan.candidates = t->found;
    const double left = t->time_s > 0 ? fmax(t->time_s - t->spent_s, 1e-3) : 0;
    if (!tune_plan(&t->plan, least, &t->speed, left)) {
        const double run_s = t->speed.run_s + TUNE_TOKENS_FEW * t->speed.token_s;
        const double heat_s = 2 * (t->plan.block > 1 ? 2 * run_s + t->speed.start_s : run_s);
        if (heat_s > left)
            return tune_too_short(t->time_s, &t->speed, t->spent_s + heat_s, err);
    }
    if (!race_begin(t->race, t->plan.candidates, t->plan.block, err))
        return false;
    t->n_candidates = t->plan.candidates;
    t->phase = TUNE_HEATS;
    return true;
}

/* ---- requests ---- */

/* Returns false if the time is too short. */
static bool
begin_held_out(struct tuner *t)
{
    const double left = t->time_s - t->spent_s, run_s = t->raced_s / t->raced;
    const uint32_t least = TUNE_HELD_LEAST * (t->plan.block > 1 ? t->plan.passes : 1);
    if (t->time_s > 0 && left < TUNE_FINALISTS * least * run_s / 2)
        return false;
    if (t->time_s > 0)
        tune_plan_held_out(&t->plan, run_s, left);
    race_limit_held_out(t->race, t->plan.held_out, t->plan.passes);
    t->phase = TUNE_HELD_OUT;
    return true;
}

/* Returns the number of runs that end within the time for heats; INFINITY without a limit. */
static double
runs_in_time(const struct tuner *t)
{
    return t->time_s > 0 && t->raced > 0 ? (HEATS_END * t->time_s - t->spent_s) / (t->raced_s / t->raced)
                                         : (double)INFINITY;
}

/* Does the time end the heats? Between two heats, the next one must fit. */
static bool
is_late(struct tuner *t)
{
    const uint32_t heat = t->race->heat;
    if (!(t->time_s > 0) || heat == 0)
        return false;
    if (heat < RACE_HEATS)
        return t->spent_s > t->time_s;
    const bool between = heat != t->heat_judged;
    t->heat_judged = heat;
    return runs_in_time(t) <
           (between && heat % race_round(t->race) == 0 ? (race_left(t->race) + 1) * race_round(t->race) : 0);
}

static bool
ask(struct tuner *t, const struct run_host *host, const struct preset *p, uint32_t draft, uint32_t prompt,
    struct err *err)
{
    bool ok = (t->n_drafts == 0 || host->draft(host->user, draft, err)) &&
              host->post(host->user, CONTROL_POLICY, NULL, p->policy, err);
    for (uint32_t i = 0; i < p->n_set && ok; i++)
        ok = host->post(host->user, CONTROL_KNOB, p->set[i].name, p->set[i].text, err);
    t->prompt = prompt;
    t->run = TUNE_RUN_ASKED;
    return ok && host->post(host->user, CONTROL_PROMPT, NULL, t->prompts[prompt], err);
}

/* Returns the policy of the i-th of the first runs: plain decoding, then the one that needs most of the auxiliary
 * models whose predictions its forecasts are made from; plain decoding if none does. The text is the same. */
static const char *
record_policy(const struct tuner *t, uint32_t i)
{
    const char *name = POLICY_BASELINE;
    unsigned needs = 0;
    for (uint32_t p = 0; p < t->info->n_policies && i > 0; p++) {
        const struct policy_ops *ops = t->wanted[p] && is_possible(t, p, record_draft(i)) ? ops_of(t, p) : NULL;
        if (ops == NULL || ops->what_if == NULL || ops->no_what_if != NULL || ops->needs <= needs)
            continue;
        needs = ops->needs;
        name = ops->name;
    }
    return name;
}

/* Keeps the layer record of the run that has ended. */
static void
keep_record(struct tuner *t, const struct run_host *host)
{
    struct tune_source *r = &t->recorded[t->recording];
    const bool due = t->record_due;
    t->record_due = false;
    if (due && is_recorded(t) && host->record(host->user, &r->records[r->n]) &&
        r->records[r->n].n > r->records[r->n].begin)
        r->n++;
}

/* Asks for the next of the first runs. *more: false after the last one. Each draft model has a session of its own. */
static bool
next_record(struct tuner *t, const struct run_host *host, bool *more, struct err *err)
{
    const char *policy_only = probe_mode_names[PROBE_POLICY];
    struct preset run = {.n_set = 0};
    keep_record(t, host);
    while (t->records_run >= TUNE_RECORDS_MOST && t->records_run < TUNE_RECORDS_MOST + t->n_drafts &&
           policy_is_baseline(record_policy(t, t->records_run)))
        t->records_run++; /* no policy that races has forecasts with this draft model */
    const uint32_t draft = record_draft(t->records_run),
                   before = t->records_run < TUNE_RECORDS_MOST ? TUNE_RECORDS_MOST - 1 : TUNE_RECORDS_MOST;
    const bool slow = t->time_s > 0 && t->spent_s > before * RECORD_SHARE * t->time_s,
               begins = t->records_run == 0 || draft > 0;
    *more = t->records_run == 0 || (is_recorded(t) && t->records_run < TUNE_RECORDS_MOST + t->n_drafts && !slow);
    if (is_launched(t))
        return *more ? ask(t, host, &(struct preset){.policy = POLICY_BASELINE}, 0, t->race->prompts[0].index, err)
                     : begin_heats(t, err);
    if (!*more)
        return host->post(host->user, CONTROL_PROBE, NULL, policy_only, err) && begin_heats(t, err);
    if (draft > 0 &&
        !(host->post(host->user, CONTROL_PROBE, NULL, policy_only, err) && host->draft(host->user, draft, err)))
        return false;
    snprintf(run.policy, sizeof run.policy, "%s", record_policy(t, t->records_run));
    t->recording = draft;
    return (!begins || host->post(host->user, CONTROL_PROBE, NULL,
                                  is_recorded(t) ? probe_mode_names[PROBE_ALL] : policy_only, err)) &&
           ask(t, host, &run, draft, t->race->prompts[draft > 0 ? 0 : t->records_run].index, err) &&
           (!begins || !is_recorded(t) || host->post(host->user, CONTROL_COSTS, NULL, NULL, err));
}

static bool
next_run(struct tuner *t, const struct run_host *host, struct err *err)
{
    uint32_t prompt;
    bool more = false;
    if (t->failed[0] != '\0')
        return err_set(err, ERR_WORK, "%s", t->failed);
    if (t->phase == TUNE_RECORDS && (!next_record(t, host, &more, err) || more))
        return more;
    if (t->phase == TUNE_HEATS)
        race_fit(t->race, runs_in_time(t));
    if (t->phase == TUNE_HEATS && is_late(t))
        race_finish_heats(t->race);
    const enum race_phase phase = race_next(t->race, &t->at, &prompt);
    const bool measures = phase != RACE_HELD_OUT || t->phase != TUNE_HEATS || begin_held_out(t);
    if (phase != RACE_OVER && measures)
        return ask(t, host, &t->candidate[t->at], t->draft[t->at], prompt, err);
    t->phase = TUNE_OVER;
    t->run = TUNE_RUN_NONE;
    return true;
}

bool
tuner_next(struct tuner *t, const struct run_host *host, struct err *err)
{
    if (t->run != TUNE_RUN_DUE)
        return true;
    struct err why = {0};
    if (next_run(t, host, &why))
        return true;
    tuner_stop(t);
    snprintf(t->failed, sizeof t->failed, "%.*s", (int)sizeof t->failed - 1, why.text);
    return err_copy(err, &why);
}

void
tuner_stop(struct tuner *t)
{
    if (tuner_running(t))
        t->phase = TUNE_STOPPED;
    t->run = TUNE_RUN_NONE;
}

bool
tuner_running(const struct tuner *t)
{
    return t->phase == TUNE_RECORDS || t->phase == TUNE_HEATS || t->phase == TUNE_HELD_OUT;
}

/* ---- progress ---- */

double
tuner_elapsed_s(const struct tuner *t)
{
    return t->spent_s + (double)t->run_us * 1e-6;
}

/* Returns the runs that are left at most. */
static double
runs_left(const struct tuner *t)
{
    uint32_t all = t->plan.held_out * t->plan.passes, had = 0;
    if (t->phase == TUNE_HELD_OUT)
        had = race_held_out_runs(t->race, &all);
    const double held = (double)TUNE_FINALISTS * (all - had);
    const double heats =
        t->phase == TUNE_HELD_OUT ? 0 : (double)race_left(t->race) * (t->race->n_prompts * RACE_PASSES - t->race->heat);
    return held + heats;
}

double
tuner_left_s(const struct tuner *t)
{
    const double limit = t->time_s > 0 ? fmax(t->time_s - tuner_elapsed_s(t), 0) : (double)INFINITY;
    const double runs_s = t->raced > 0 ? runs_left(t) * t->raced_s / t->raced : (double)INFINITY;
    const double left = fmin(limit, runs_s);
    return !tuner_running(t) || isinf(left) ? (double)NAN : left;
}

double
tuner_done(const struct tuner *t)
{
    const double left = tuner_left_s(t), done = tuner_elapsed_s(t);
    return t->phase == TUNE_OVER ? 1 : isnan(left) || !(done > 0) ? 0 : done / (done + left);
}

const char *
tuner_progress(const struct tuner *t, char *out, size_t n)
{
    uint32_t all, had;
    const char *stopped = t->phase == TUNE_STOPPED ? ", stopped" : "";
    const double s = tuner_elapsed_s(t);
    switch (t->phase) {
    case TUNE_NOTHING: out[0] = '\0'; break;
    case TUNE_RECORDS: snprintf(out, n, "plain decoding · %.0f s", s); break;
    case TUNE_HELD_OUT:
        had = race_held_out_runs(t->race, &all);
        snprintf(out, n, "held-out prompts · %u of %u · %.0f s", had + 1, all, s);
        break;
    case TUNE_OVER: snprintf(out, n, "%u settings · %u heats · %.0f s", t->n_candidates, t->race->heat, s); break;
    default:
        if (t->n_candidates == 0)
            snprintf(out, n, "stopped before the first heat");
        else
            snprintf(out, n, "%u of %u left · heat %u · %.0f s%s", race_left(t->race), t->n_candidates,
                     t->race->heat + 1, s, stopped);
    }
    return out;
}

/* ---- results ---- */

uint32_t
tuner_at(const struct tuner *t)
{
    const bool racing = t->phase == TUNE_HEATS || t->phase == TUNE_HELD_OUT;
    return racing && t->run >= TUNE_RUN_ASKED ? t->at : t->n_candidates;
}

static bool
is_clear(const struct tuner *t, uint32_t candidate)
{
    return race_held_out(t->race, candidate, 0, NULL).verdict == DIFFERENCE_MORE;
}

double
tuner_tokens_per_round(const struct tuner *t, uint32_t candidate)
{
    return (double)t->total[candidate].emitted / (double)t->total[candidate].rounds;
}

uint32_t
tuner_winner(const struct tuner *t)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t finalists[] = {t->race->finalist[RACE_WINNER], t->race->finalist[RACE_RUNNER_UP], 0};
    uint32_t best = finalists[0], done;
    if (race_held_out_runs(t->race, &done) < 2) {
        race_standings(t->race, all);
        return all[0].candidate;
    }
    for (int i = 1; i < TUNE_FINALISTS; i++) {
        const bool clear = is_clear(t, finalists[i]);
        if (clear != is_clear(t, best) ? clear : race_held_out(t->race, finalists[i], best, NULL).value > 1)
            best = finalists[i];
    }
    return best;
}

bool
tuner_clear(const struct tuner *t)
{
    return is_clear(t, tuner_winner(t));
}

const char *
tuner_name(const struct tuner *t, uint32_t candidate, const char *before, char *out, size_t n)
{
    const struct preset *p = &t->candidate[candidate];
    return preset_setting_text(p, run_info_policy(t->info, p->policy), before, out, n);
}

const char *
tuner_draft(const struct tuner *t, uint32_t candidate)
{
    return t->draft[candidate] > 0 ? t->drafts[t->draft[candidate] - 1].name : NULL;
}

const char *
tuner_category(const struct tuner *t, uint32_t wanted)
{
    for (uint32_t i = 0; i < t->n_prompts; i++) {
        bool before = t->categories[i][0] == '\0';
        for (uint32_t j = 0; j < i && !before; j++)
            before = strcmp(t->categories[i], t->categories[j]) == 0;
        if (!before && wanted-- == 0)
            return t->categories[i];
    }
    return NULL;
}

const char *
tuner_engine_command(const struct tuner *t, enum other_engine engine, uint32_t candidate, bool rated, char *out,
                     size_t n)
{
    const struct positions *p = &t->positions[candidate];
    const struct policy_ops *policy = policy_named(t->registry, t->candidate[candidate].policy);
    const struct aux_info *draft = &t->info->aux[policy_draft_role(policy->needs)];
    const bool file = strchr(t->info->model_path, '/') != NULL || strchr(t->info->model_path, ',') == NULL;
    const struct engine_models models = {file && t->info->model_path[0] != '\0' ? t->info->model_path : NULL,
                                         t->draft[candidate] > 0  ? tuner_draft(t, candidate)
                                         : draft->path[0] != '\0' ? draft->path
                                                                  : NULL};
    double rate[POSITIONS];
    const uint32_t rates = rated ? positions_count(p) : 0;
    for (uint32_t i = 0; i < rates; i++) /* of rounds with drafts, as those engines count */
        rate[i] = (double)p->accepted[i] / (double)p->tested[0];
    out[0] = '\0';
    if (!rated || rates > 0)
        engine_flags(engine, policy, &t->candidate[candidate], &models, rate, rates, out, n);
    return out;
}
