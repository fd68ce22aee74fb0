/* specscope tune: finds the fastest setting for a model, a machine and a kind of text. It runs the tuner
 * (engine/tune/tuner.h) on a session without a screen, and prints its result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/plural.h"
#include "base/program.h"
#include "cli/drafts.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "cli/score.h"
#include "cli/tune_server.h"
#include "cli/use.h"
#include "engine/scope/scope.h"
#include "engine/tune/results.h"
#include "engine/tune/tuner.h"
#include "policies/registry.h"
#include "traces/text_source.h"

#define SHOWN       12  /* rows of the table */
#define PROGRESS_US 2e5 /* between two lines of progress */

#define TEXTS_PROMPTS 60   /* of a race, at most */
#define TEXTS_GIVEN   4    /* settings that race, at most */
#define TEXTS_SHARE   0.25 /* of the time, for scoring */

struct tune {
    const struct options *o;
    struct engine *engine;
    struct prompt_list list;
    struct race_prompt *prompts; /* (list.n) owned; its texts are in the list */
    struct tuner *tuner;         /* NULL before the session's first event */
    struct scope *scope;         /* of the runs whose layers are recorded, */
    struct scope *beside;        /* and of those with another draft model; NULL: none */
    struct live *live;           /* owned; tuner and scope use its description */
    struct tune_server server;   /* with --launch; else all 0 */
    struct texts texts; /* with --texts: of these the first `scored`, and the prompts of the others are raced */
    size_t scored;
    struct candidate given[TEXTS_GIVEN]; /* (n_given) the settings that score best */
    uint32_t n_given;
    bool planned; /* print_plan() was called */
    struct drafts drafts;
    uint32_t draft;              /* of the next run, from 1 on in `drafts`; 0: the engine's own */
    struct live *other;          /* with this draft model, which the engine has as long as the session exists; owned */
    struct event_reader *reader; /* of `other` */
    bool failed;
    bool untraced; /* its trace stopped */
    double progress_us;
    struct err err;
};

/* ---- the owner of the tuner ---- */

static bool
post(void *user, enum control_kind kind, const char *name, const char *text, struct err *err)
{
    const struct tune *t = user;
    struct control c = {.kind = kind, .text = text};
    if (name != NULL)
        snprintf(c.name, sizeof c.name, "%s", name);
    struct live *live = t->draft > 0 ? t->other : t->live;
    return live->ops->post(live, &c, err);
}

static void
close_other(struct tune *t)
{
    if (t->draft == 0)
        return;
    if (t->reader != NULL)
        event_reader_close(t->reader);
    scope_close(t->beside);
    t->beside = NULL;
    live_close(t->other);
    engine_draft_swap(t->engine, &t->drafts.draft[t->draft - 1].reserve);
    t->reader = NULL;
    t->other = NULL;
    t->draft = 0;
}

static bool
open_other(struct tune *t, uint32_t draft, struct err *err)
{
    struct session_options o = generation_options(t->o);
    o.policy = POLICY_BASELINE;
    o.prompt = t->list.texts[0];
    o.prompt_len = strlen(o.prompt);
    o.stay = true;
    engine_draft_swap(t->engine, &t->drafts.draft[draft - 1].reserve);
    t->draft = draft;
    return session_open(&t->other, t->engine, &o, err) &&
           ((t->reader = event_reader_open(t->other->ops->log(t->other))) != NULL ||
            err_set(err, ERR_WORK, "out of memory for events")) &&
           (t->tuner->phase != TUNE_RECORDS || scope_open(&t->beside, t->other->ops->info(t->other), err)) &&
           t->other->ops->start(t->other, err);
}

/* One session generates at a time: the first one is paused while another one runs. */
static bool
take_draft(void *user, uint32_t draft, struct err *err)
{
    struct tune *t = user;
    if (draft == t->draft)
        return true;
    if (t->draft == 0 && !post(t, CONTROL_PAUSE, NULL, NULL, err))
        return false;
    while (t->draft == 0 && !t->live->ops->resting(t->live) && !generation_interrupted())
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    close_other(t);
    return draft > 0 ? open_other(t, draft, err) : post(t, CONTROL_RESUME, NULL, NULL, err);
}

static bool
take_record(void *user, struct layer_record *record)
{
    const struct tune *t = user;
    return scope_record(t->draft > 0 ? t->beside : t->scope, record) == NULL;
}

static bool
begin(struct tune *t, struct err *err)
{
    struct tune_draft drafts[TUNE_DRAFTS];
    for (uint32_t i = 0; i < t->drafts.n; i++)
        drafts[i] =
            (struct tune_draft){t->drafts.draft[i].name,
                                NEEDS(AUX_DRAFT) | (t->drafts.draft[i].reserve.accept != NULL ? NEEDS_ACCEPT_HEAD : 0)};
    const struct tune_request request = {.registry = t->o->launch != NULL ? t->server.registry : policy_registry,
                                         .policies = (const char *const *)t->o->policies.at,
                                         .n_policies = t->o->policies.n,
                                         .prompts = t->prompts,
                                         .n_prompts = (uint32_t)t->list.n,
                                         .drafts = drafts,
                                         .n_drafts = t->drafts.n,
                                         .time_s = t->o->time_s,
                                         .tokens = t->o->tokens,
                                         .seed = t->o->seed,
                                         .given = t->given,
                                         .n_given = t->n_given,
                                         .start_s = t->server.start_s,
                                         .sampling = t->o->sampling};
    return tuner_open(&t->tuner, t->live->ops->info(t->live), err) &&
           scope_open(&t->scope, t->live->ops->info(t->live), err) && tuner_begin(t->tuner, &request, err) &&
           t->live->ops->post(t->live, &(struct control){.kind = CONTROL_RACE, .n = 1}, err);
}

/* "[########............]  42% 14 of 23 left - heat 6 - 41 s; at most 3m left; fastest: sd k=4, 1.52 x ar" */
static void
show_progress(struct tune *t)
{
    const double now = clock_fine_us(), left = tuner_left_s(t->tuner);
    char line[300], name[60], time[16];
    if (now - t->progress_us < PROGRESS_US)
        return;
    t->progress_us = now;
    size_t used = strlen(tuner_progress(t->tuner, line, sizeof line));
    if (!isnan(left))
        used += (size_t)snprintf(line + used, sizeof line - used, "; at most %s left",
                                 tune_time_text(left, time, sizeof time));
    if (t->tuner->n_candidates > 0 && t->tuner->race->heat > 0) {
        const uint32_t first = tuner_winner(t->tuner);
        bool held_out;
        snprintf(line + used, sizeof line - used, "; fastest: %s, %.2f x ar",
                 tuner_name(t->tuner, first, " ", name, sizeof name), tuner_speed(t->tuner, first, &held_out).value);
    }
    generation_progress(tuner_done(t->tuner), line);
}

/* "6 settings race, 5 prompts after each start of the server, which takes 4s; about 4m at least" */
static void
print_plan(struct tune *t)
{
    char start[16], needs[16];
    t->planned = true;
    fprintf(stderr,
            "specscope: %u settings race, %u prompts after each start of the server, which takes %s; about %s "
            "at least\n",
            t->tuner->n_candidates, t->tuner->plan.block, tune_time_text(t->server.start_s, start, sizeof start),
            tune_time_text(tuner_elapsed_s(t->tuner) + t->tuner->plan.needs_s, needs, sizeof needs));
}

static void
handle_event(void *user, const struct event *e)
{
    struct tune *t = user;
    const struct run_host host = {.user = t, .post = post, .record = take_record, .draft = take_draft};
    bool ok = !t->failed && (t->tuner != NULL || begin(t, &t->err));
    if (!ok || !tuner_running(t->tuner)) {
        if (!ok && !t->failed)
            post(t, CONTROL_QUIT, NULL, NULL, NULL);
        t->failed = !ok;
        return;
    }
    if (t->tuner->phase == TUNE_RECORDS)
        scope_event(t->scope, e);
    tuner_event(t->tuner, e);
    if (t->o->launch != NULL && !t->planned && t->tuner->n_candidates > 0)
        print_plan(t);
    show_progress(t);
    /* The session ends a run of its own before the first request. */
    ok = tuner_next(t->tuner, &host, &t->err);
    while (ok && t->draft > 0 && tuner_running(t->tuner) && !generation_interrupted()) {
        const struct event *of_other = event_reader_next(t->reader);
        if (of_other == NULL) {
            event_reader_wait(t->reader, 100);
            continue;
        }
        if (t->beside != NULL)
            scope_event(t->beside, of_other);
        tuner_event(t->tuner, of_other);
        show_progress(t);
        ok = tuner_next(t->tuner, &host, &t->err);
    }
    t->failed = !ok;
    if (!ok || !tuner_running(t->tuner) || generation_interrupted()) {
        close_other(t);
        post(t, CONTROL_QUIT, NULL, NULL, NULL);
    }
}

/* Runs the race to its end, or until it is interrupted. */
static bool
race(struct tune *t, struct err *err)
{
    struct generation g = {.engine = t->engine,
                           .session = generation_options(t->o),
                           .trace = t->o->trace,
                           .bounds = t->o->trace_bounds,
                           .trace_first = true,
                           .event = handle_event,
                           .user = t};
    struct outcome out;
    g.session.policy = POLICY_BASELINE;
    g.session.prompt = t->list.texts[0];
    g.session.prompt_len = strlen(t->list.texts[0]);
    g.session.stay = true;
    bool ok = t->o->launch != NULL ? tune_server_open(&t->server, t->o, t->list.texts[0], &t->live, err)
                                   : session_open(&t->live, t->engine, &g.session, err);
    g.live = t->live;
    ok = ok && generate(&g, &out, err);
    generation_progress(0, "");
    t->untraced = ok && out.untraced;
    if (ok)
        outcome_free(&out);
    if (t->failed)
        *err = t->err;
    return ok && !t->failed;
}

/* ---- texts ---- */

/* Reads the texts. With --prompts all are scored. Else every second one is, and the list gets the prompts of the
 * others. */
static bool
read_texts(struct tune *t, struct err *err)
{
    if (!text_source_read(&t->texts, t->o->texts, err))
        return false;
    t->scored = t->list.n > 0 ? t->texts.n : t->texts.n / 2;
    for (size_t i = 0; i < t->scored && t->list.n == 0; i++) {
        const struct conversation raced = t->texts.at[i];
        t->texts.at[i] = t->texts.at[2 * i + 1];
        t->texts.at[2 * i + 1] = raced;
    }
    for (size_t i = t->scored; i < t->texts.n && t->list.n < TEXTS_PROMPTS; i++) {
        const struct conversation *c = &t->texts.at[i];
        if (c->exchange[0].prompt != NULL && !prompts_add(&t->list, c->exchange[0].prompt, c->category))
            return err_set(err, ERR_WORK, "out of memory for prompts");
    }
    return true;
}

/* Takes the fastest settings by forecast: those whose interval reaches that of the first one. Settings with the same
 * forecast are taken once, because two policies may have the same rounds. */
static void
take_scored(struct tune *t, const struct score_report *r)
{
    const struct score_row *rows[SCORE_ROWS];
    const uint32_t n = score_order(r, rows);
    for (uint32_t i = 0; i < n && t->n_given < TEXTS_GIVEN; i++) {
        const struct score_row *row = rows[i];
        const struct comparison first = rows[0]->all.speedup, c = row->all.speedup;
        if (row->kind == SCORE_NOT || (t->n_given > 0 && !(c.high >= first.low)))
            break;
        if (t->n_given > 0 && fabs(t->given[t->n_given - 1].forecast / c.value - 1) < 1e-4)
            continue;
        struct candidate *to = &t->given[t->n_given++];
        *to = (struct candidate){.preset = row->preset, .forecast = c.value, .ceiling = NAN};
        for (uint32_t d = 0; d < t->drafts.n; d++)
            if (strcmp(t->drafts.draft[d].label, row->drafter) == 0)
                to->draft = d + 1;
    }
}

static bool
score(struct tune *t, struct options *o, struct err *err)
{
    struct texts texts = t->texts;
    struct score_report *r = NULL;
    texts.n = t->scored;
    if (!score_texts(o, t->engine, &t->drafts, &texts, o->time_s * TEXTS_SHARE, &r, err))
        return false;
    take_scored(t, r);
    if (o->time_s > 0) /* the rest is for the race */
        o->time_s = fmax(o->time_s - r->seconds, 1);
    fprintf(stderr,
            "specscope: %u conversation%s scored in %.0f s; the race has the %u fastest setting%s by forecast\n",
            (unsigned)r->conversations, plural(r->conversations), r->seconds, (unsigned)t->n_given, plural(t->n_given));
    free(r);
    return t->n_given > 0 ||
           err_set(err, ERR_USAGE, "%s: no setting has a forecast on these texts; leave out --texts", o->texts);
}

/* ---- the report ---- */

/* "  1.52   1.46 to 1.58" */
static void
print_speed(struct comparison c, const char *of)
{
    char interval[40];
    if (isnan(c.value))
        printf("%6s  %15s", "-", "-");
    else
        printf("%6.2f  %15s", c.value, tune_interval(c, of, interval, sizeof interval));
}

/* Writes the setting, and its draft model if --drafts found it. */
static const char *
title(const struct tuner *t, uint32_t candidate, char *out, size_t n)
{
    const char *draft = tuner_draft(t, candidate);
    const size_t used = strlen(tuner_name(t, candidate, " ", out, n));
    if (draft != NULL)
        snprintf(out + used, n - used, " with %s", draft);
    return out;
}

static void
print_standings(const struct tuner *t)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t n = race_standings(t->race, all);
    char name[700], time[16];
    printf("%u settings raced in %u heats, %s\n", n, t->race->heat,
           tune_time_text(tuner_elapsed_s(t), time, sizeof time));
    if (tuner_left_out(t, name, sizeof name)[0] != '\0')
        printf("not raced: %s\n", name);
    puts("\n rank   x ar   95% interval  heats  setting");
    for (uint32_t i = 0; i < n && i < SHOWN; i++) {
        const struct race_standing *s = &all[i];
        printf("%5u ", i + 1);
        print_speed(s->speed, "heats");
        printf("  %5u  %s", s->heats, title(t, s->candidate, name, sizeof name));
        if (s->heats == 0)
            printf(" (does not run: %s)", t->unable[s->candidate]);
        else if (s->dropped > 0)
            printf(" (dropped in heat %u)", s->dropped);
        putchar('\n');
    }
    if (n > SHOWN)
        printf("  ... %u slower settings; --json FILE contains them\n", n - SHOWN);
    printf("x ar: speed in multiples of plain autoregressive decoding (ar)\n"
           "heats: runs of the setting, each on a prompt; intervals of rows with different heats are not comparable\n"
           "dropped: from heat %d on, settings that the fastest one is significantly faster than, by a paired test on\n"
           "  the same prompts, and the slower half when the time is too short for all; ar still runs in each heat\n"
           "setting: a policy and the knobs that differ from its defaults; %s --list-policies describes them\n",
           RACE_HEATS, program_name());
}

static void
print_held_out(const struct tuner *t, uint32_t candidate)
{
    char name[700];
    const char *category;
    const struct comparison c = race_held_out(t->race, candidate, 0, NULL);
    fputs("      ", stdout);
    print_speed(c, "prompts");
    printf("  %s: %s\n", title(t, candidate, name, sizeof name), tune_verdict(c));
    for (uint32_t i = 0; (category = tuner_category(t, i)) != NULL; i++) {
        struct comparison of = race_held_out(t->race, candidate, 0, category);
        const bool held_out = of.n >= RACE_HEATS;
        if (of.n == c.n)
            continue;
        of = held_out ? of : race_speed(t->race, candidate, category);
        fputs("      ", stdout);
        print_speed(of, "prompts");
        printf("    %s%s: %s\n", category, held_out ? "" : " (in the heats)",
               of.n < RACE_HEATS ? "too few prompts for a verdict" : tune_verdict(of));
    }
}

/* "1.02 x ar on held-out prompts, 0.88 to 1.18" */
static const char *
speed_text(const struct tuner *t, uint32_t candidate, char *out, size_t n)
{
    bool held_out;
    const struct comparison c = tuner_speed(t, candidate, &held_out);
    char interval[40];
    snprintf(out, n, "%.2f x ar %s, %s", c.value, held_out ? "on held-out prompts" : "in the heats only",
             tune_interval(c, held_out ? "prompts" : "heats", interval, sizeof interval));
    return out;
}

/* Returns the setting to use: the winner if it is clearly faster than plain decoding, else this. */
static uint32_t
advised(const struct tuner *t)
{
    return tuner_clear(t) ? tuner_winner(t) : 0;
}

static void
print_commands(const struct tune *t, uint32_t candidate)
{
    char text[ENGINE_COMMAND];
    if (candidate == 0)
        puts("\nTo use plain decoding:");
    else
        printf("\nTo use the fastest setting (%s):\n", speed_text(t->tuner, candidate, text, sizeof text));
    if (t->o->launch != NULL) {
        printf("  %s\n", tune_server_command(&t->server, &t->tuner->candidate[candidate], text, sizeof text));
        return;
    }
    if (t->o->save != NULL) {
        printf("  %s", program_name());
        use_option("preset", t->o->save);
        use_models(t->o, tuner_draft(t->tuner, candidate));
    }
    printf("  %s --policy %s", program_name(), tuner_name(t->tuner, candidate, " --set ", text, sizeof text));
    for (int k = 0; k < SAMPLING_SEED && t->o->sampling.temperature > 0; k++)
        use_option(preset_sampling[k], t->tuner->candidate[candidate].sampling[k]);
    use_models(t->o, tuner_draft(t->tuner, candidate));
    if (t->o->save == NULL)
        puts("  The commands run and bench take the same options. With --save NAME, tune also saves them as a preset,\n"
             "  which --preset NAME selects.");
}

/* Returns the first candidate of the race's ranking whose policy the engine has and which is clearly faster than plain
 * decoding; 0: there is none. The winner comes before all. */
static uint32_t
best_of_engine(const struct tuner *t, enum other_engine engine)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t n = race_standings(t->race, all), winner = tuner_winner(t);
    bool held_out;
    for (uint32_t i = 0; i <= n; i++) {
        const uint32_t c = i == 0 ? winner : all[i - 1].candidate;
        if (policy_named(policy_registry, t->candidate[c].policy)->command[engine] != NULL &&
            tuner_speed(t, c, &held_out).verdict == DIFFERENCE_MORE)
            return c;
    }
    return 0;
}

static void
print_engines(const struct tuner *t)
{
    char text[ENGINE_COMMAND], name[700], speed[80];
    const char *note = NULL;
    puts("\nThe fastest setting that other engines have (docs/engines.md lists the differences):");
    for (enum other_engine e = 0; e < ENGINES; e++) {
        const uint32_t best = best_of_engine(t, e);
        printf("%s %s: ", engine_names[e], engine_versions[e]);
        if (best == 0) {
            printf("none of the settings that it has is clearly faster than plain decoding here\n");
            continue;
        }
        printf("%s%s, here %s\n", title(t, best, name, sizeof name),
               best == tuner_winner(t) ? "" : ", not the fastest one of the race, which it does not have",
               speed_text(t, best, speed, sizeof speed));
        tuner_engine_command(t, e, best, false, text, sizeof text);
        note = engine_folder_note(text) != NULL ? engine_folder_note(text) : note;
        use_indented(text);
        tuner_engine_command(t, e, best, true, text, sizeof text);
        if (text[0] != '\0' && strncmp(text, "no equivalent", 13) != 0) {
            puts("  and to measure its speed at the acceptance found here:");
            use_indented(text);
        }
    }
    if (note != NULL)
        puts(note);
}

/* Adds the speeds of a candidate, over all prompts (category NULL) or those of a category. */
static void
speeds_json(cJSON *row, const struct race *r, uint32_t candidate, const char *category)
{
    const struct comparison raced = race_speed(r, candidate, category), held = race_held_out(r, candidate, 0, category);
    json_number(row, "times_ar", raced.value);
    json_number(row, "low", raced.low);
    json_number(row, "high", raced.high);
    if (held.verdict == DIFFERENCE_UNKNOWN)
        return;
    json_number(row, "held_out_times_ar", held.value);
    json_number(row, "held_out_low", held.low);
    json_number(row, "held_out_high", held.high);
    cJSON_AddStringToObject(row, "verdict", tune_verdict(held));
}

static cJSON *
settings_json(const struct tuner *t)
{
    struct race_standing all[RACE_CANDIDATES];
    const char *category;
    const uint32_t n = race_standings(t->race, all);
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++) {
        const struct preset *p = &t->candidate[all[i].candidate];
        cJSON *row = cJSON_CreateObject(), *set = NULL;
        cJSON_AddItemToArray(list, row);
        cJSON_AddStringToObject(row, "policy", p->policy);
        cJSON_AddBoolToObject(row, "fastest", all[i].candidate == tuner_winner(t));
        if (tuner_draft(t, all[i].candidate) != NULL)
            cJSON_AddStringToObject(row, "draft", tuner_draft(t, all[i].candidate));
        set = cJSON_AddObjectToObject(row, "set");
        for (uint32_t k = 0; k < p->n_set; k++)
            cJSON_AddStringToObject(set, p->set[k].name, p->set[k].text);
        json_number(row, "heats", all[i].heats);
        json_number(row, "dropped_in_heat", all[i].dropped > 0 ? all[i].dropped : (double)NAN);
        speeds_json(row, t->race, all[i].candidate, NULL);
        cJSON *categories = cJSON_AddObjectToObject(row, "categories");
        for (uint32_t k = 0; (category = tuner_category(t, k)) != NULL; k++)
            speeds_json(cJSON_AddObjectToObject(categories, category), t->race, all[i].candidate, category);
    }
    return list;
}

static cJSON *
json_of(const struct tune *command)
{
    const struct tuner *t = command->tuner;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddItemToObject(j, "settings", settings_json(t));
    if (command->o->launch != NULL) {
        char text[ENGINE_COMMAND];
        const struct preset *p = &t->candidate[advised(t)];
        cJSON_AddStringToObject(j, "command", tune_server_command(&command->server, p, text, sizeof text));
        return j;
    }
    cJSON *engines = cJSON_AddObjectToObject(j, "engines");
    for (enum other_engine e = 0; e < ENGINES; e++) {
        char text[ENGINE_COMMAND];
        const uint32_t best = tuner_clear(t) ? best_of_engine(t, e) : 0;
        if (best == 0)
            continue;
        cJSON *one = cJSON_AddObjectToObject(engines, engine_names[e]);
        cJSON_AddStringToObject(one, "version", engine_versions[e]);
        cJSON_AddStringToObject(one, "setting", title(t, best, text, sizeof text));
        cJSON_AddStringToObject(one, "command", tuner_engine_command(t, e, best, false, text, sizeof text));
        cJSON_AddStringToObject(one, "at_this_acceptance", tuner_engine_command(t, e, best, true, text, sizeof text));
    }
    return j;
}

static const struct file_kind csv_file = {.what = "settings of specscope tune as CSV", .begins = "rank,policy,"};

static void
csv_comparison(FILE *out, struct comparison c)
{
    const double values[] = {c.value, c.low, c.high};
    for (int i = 0; i < 3; i++)
        fprintf(out, isnan(values[i]) ? "," : ",%.9g", values[i]);
}

/* Writes a line of a setting, over all prompts (category NULL) or those of a category. */
static void
csv_line(FILE *out, const struct tuner *t, uint32_t rank, const struct race_standing *s, const char *category)
{
    const struct race *r = t->race;
    const char *draft = tuner_draft(t, s->candidate);
    const struct comparison held = race_held_out(r, s->candidate, 0, category);
    char name[700];
    fprintf(out, "%u,%s,", rank, t->candidate[s->candidate].policy);
    const char *knobs = strchr(tuner_name(t, s->candidate, " ", name, sizeof name), ' ');
    results_csv_text(out, knobs != NULL ? knobs + 1 : "");
    fputc(',', out);
    results_csv_text(out, draft != NULL ? draft : "");
    fputc(',', out);
    results_csv_text(out, category != NULL ? category : "");
    csv_comparison(out, race_speed(r, s->candidate, category));
    fprintf(out, ",%u,", s->heats);
    if (s->dropped > 0)
        fprintf(out, "%u", s->dropped);
    csv_comparison(out, held);
    fprintf(out, ",%s\r\n", held.verdict != DIFFERENCE_UNKNOWN ? tune_verdict(held) : "");
}

static bool
write_csv(const struct tuner *t, const char *path, struct err *err)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t n = race_standings(t->race, all);
    const char *category;
    struct output output;
    if (!output_open(&output, path, &csv_file, err))
        return false;
    FILE *out = output.f;
    fputs("rank,policy,params,draft,category,times_ar,low,high,heats,dropped_in_heat,"
          "held_out_times_ar,held_out_low,held_out_high,verdict\r\n",
          out);
    for (uint32_t i = 0; i < n; i++) {
        csv_line(out, t, i + 1, &all[i], NULL);
        for (uint32_t k = 0; (category = tuner_category(t, k)) != NULL; k++)
            csv_line(out, t, i + 1, &all[i], category);
    }
    return output_close(&output, true, err);
}

/* Writes the preset; without one, checks that it can be written. */
static bool
save(const char *name, const struct preset *p, struct err *err)
{
    char folder[1024];
    if (name == NULL)
        return true;
    if (config_path(folder, sizeof folder, "presets") == NULL)
        return err_set(err, ERR_USAGE, "--save %.60s: neither XDG_CONFIG_HOME nor HOME is set", name);
    return p != NULL ? preset_write(p, folder, name, err) : preset_possible(folder, name, err);
}

static void
print_report(const struct tune *t)
{
    const struct race *r = t->tuner->race;
    uint32_t all;
    print_standings(t->tuner);
    if (race_held_out_runs(r, &all) >= 2) {
        printf("\nOn %u held-out prompts, which took no part in the race%s:\n",
               (unsigned)race_held_out(r, r->finalist[RACE_WINNER], 0, NULL).n,
               t->tuner->phase == TUNE_OVER ? "" : " (interrupted)");
        if (r->finalist[RACE_WINNER] != 0)
            print_held_out(t->tuner, r->finalist[RACE_WINNER]);
        if (r->finalist[RACE_RUNNER_UP] != 0)
            print_held_out(t->tuner, r->finalist[RACE_RUNNER_UP]);
    } else {
        printf("\n%s: nothing was measured on held-out prompts\n",
               t->tuner->phase == TUNE_OVER ? "the time was over" : "interrupted");
    }
    if (!tuner_clear(t->tuner)) {
        char why[800];
        printf("\nNo setting is clearly faster than plain decoding here, so none is named for use:\n%s.\n"
               "A longer race (--time) on a quiet machine narrows the intervals. The verdict on a category is about "
               "texts\n"
               "like its own: --prompts FILE races over yours.\n",
               tuner_reason(t->tuner, why, sizeof why));
    }
    print_commands(t, advised(t->tuner));
    if (tuner_clear(t->tuner) && t->o->launch == NULL)
        print_engines(t->tuner);
    if (t->tuner->differing > 0 && t->o->launch != NULL)
        printf("\n%u of %u runs differ from other settings' text of the same prompt.\n", t->tuner->differing,
               t->tuner->raced);
}

static bool
report(const struct tune *t, struct err *err)
{
    if (t->tuner->n_candidates == 0 || t->tuner->race->heat == 0)
        return err_set(err, ERR_CANCELLED, "interrupted before a heat was complete");
    bool ok = save(t->o->save, &t->tuner->candidate[advised(t->tuner)], err);
    if (!output_is_stdout(t->o->json) && !output_is_stdout(t->o->csv))
        print_report(t);
    ok = ok && (t->o->json == NULL || json_write(json_of(t), t->o->json, err)) &&
         (t->o->csv == NULL || write_csv(t->tuner, t->o->csv, err));
    if (ok && t->tuner->differing > 0 && t->o->launch == NULL)
        return err_set(err, ERR_WORK, "%u runs differ from other settings' text of the same prompt; that is a bug here",
                       t->tuner->differing);
    return ok;
}

static bool
read_prompts(struct tune *t, struct err *err)
{
    const size_t *n = &t->list.n;
    bool ok = t->o->prompts_file != NULL ? prompts_read(t->o->prompts_file, &t->list, err)
                                         : t->o->texts != NULL || generation_tune_prompts(t->o, &t->list, err);
    ok = ok && (t->o->texts == NULL || read_texts(t, err));
    if (ok && *n < RACE_PROMPTS)
        return err_set(
            err, ERR_USAGE,
            "a race needs at least %d prompts, and there are %zu; use a longer list, or none for the bundled one",
            RACE_PROMPTS, *n);
    if (!ok || (t->prompts = calloc(*n, sizeof *t->prompts)) == NULL)
        return ok ? err_set(err, ERR_WORK, "out of memory for prompts") : false;
    for (size_t i = 0; i < *n; i++)
        t->prompts[i] = (struct race_prompt){t->list.texts[i], t->list.categories[i]};
    return true;
}

bool
tune_main(struct options *o, int *status, struct err *err)
{
    struct tune t = {.o = o};
    generation_catch_signals();
    if (o->server.url != NULL)
        return err_set(
            err, ERR_USAGE,
            "--server: no server turns its speculation off for one request, so its setting has nothing to be "
            "compared with; give the command that starts it, --launch 'COMMAND {flags}'");
    bool ok = outputs_possible(o->json, &results_json_file, o->csv, &csv_file, err) && save(o->save, NULL, err) &&
              read_prompts(&t, err) && (o->launch != NULL || generation_engine(o, &t.engine, err)) &&
              (t.engine == NULL || drafts_open(&t.drafts, t.engine, o->drafts, err));
    if (ok && t.engine != NULL && generation_chat_unused(o, t.engine)) {
        o->chat.on = true;
        fputs("specscope: prompts go through the model's chat template, as with --chat\n", stderr);
    }
    if (ok && t.engine != NULL)
        engine_repack(t.engine, NULL);
    ok = ok && (t.engine == NULL || o->texts == NULL || score(&t, o, err));
    if (ok) {
        ok = race(&t, err);
        if (t.tuner != NULL)
            tuner_stop(t.tuner);
        ok = ok && (t.tuner != NULL || err_set(err, ERR_CANCELLED, "interrupted")) && report(&t, err);
    }
    scope_close(t.scope);
    tuner_close(t.tuner);
    free(t.prompts);
    prompts_free(&t.list);
    texts_free(&t.texts);
    live_close(t.live);
    tune_server_close(&t.server);
    drafts_close(&t.drafts, t.engine);
    engine_close(t.engine);
    *status = generation_interrupted() ? command_interrupted() : t.untraced ? 1 : 0;
    return ok;
}
