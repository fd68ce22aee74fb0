/* Commands about whole settings: undo and redo, a row of the ledger, presets, command lines. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "base/utf8.h"
#include "policies/registry.h"
#include "tui/app/verbs.h"

/* ---- undo ---- */

static bool
step_back(struct app *app, bool back, struct err *err)
{
    struct followed *run = &app->run;
    const struct change *t;
    uint32_t group = 0;
    if (!verb_only_live(app, "undo a change", err))
        return false;
    for (uint32_t n = 0;; n++) {
        const struct change *next = back ? changes_back(&run->changes) : changes_forth(&run->changes);
        if (n > 0 && (group == 0 || next == NULL || next->group != group))
            return true;
        if (!follow_take_back(run, back, &t, err))
            return false;
        if (t == NULL)
            return err_set(err, ERR_USAGE,
                           back ? "cannot undo: no change of a knob, a policy or a head is left"
                                : "cannot redo: no change was undone");
        group = t->group;
        message_print(&app->message, "%s %s %s", t->name, back ? "back to" : "again", back ? t->before : t->after);
    }
}

bool
run_undo(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    return step_back(app, true, err);
}

bool
run_redo(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    return step_back(app, false, err);
}

/* ---- settings ---- */

/* True if a preset's sampling differs from the requested one. */
static bool
is_other(const struct app *app, const struct preset *p, int knob)
{
    const struct settings *now = &app->run.requested;
    char text[24];
    sampling_knob_text(&now->sampling, now->seed, knob, text, sizeof text);
    return p->sampling[knob][0] != '\0' && strcmp(p->sampling[knob], text) != 0;
}

/* Fails with one line if a part of the preset cannot be set. */
static bool
check(const struct app *app, const struct preset *p, struct err *err)
{
    const struct policy_info *policy = run_info_policy(app->run.info, p->policy);
    if (policy == NULL)
        return err_set(err, ERR_USAGE, "there is no policy '%.15s' here", p->policy);
    for (uint32_t i = 0; i < p->n_set; i++) {
        const int k = policy_knob_index(policy, p->set[i].name);
        double value;
        if (k < 0)
            return err_set(err, ERR_USAGE, "policy %s has no knob '%.15s'", policy->name, p->set[i].name);
        if (!knob_parse(&policy->knobs[k], p->set[i].text, &value, err))
            return false;
    }
    for (int i = 0; i < SAMPLING_KNOBS; i++) {
        double value;
        if (is_other(app, p, i) && !knob_parse(&sampling_knobs[i], p->sampling[i], &value, err))
            return false;
    }
    return true;
}

static bool
apply_all(struct app *app, const struct preset *p, struct err *err)
{
    struct followed *run = &app->run;
    const struct settings *now = &run->requested;
    const struct policy_info *policy = run_info_policy(run->info, p->policy);
    const uint32_t index = (uint32_t)(policy - run->info->policies), seq = follow_seq(run);
    bool ok = now->policy == index || follow_post_of(run, seq, CONTROL_POLICY, NULL, p->policy, 0, err);
    for (uint32_t i = 0; i < p->n_set && ok; i++) {
        const int k = policy_knob_index(policy, p->set[i].name);
        double value = 0;
        knob_parse(&policy->knobs[k], p->set[i].text, &value, NULL);
        ok = value == now->value[index][k] ||
             follow_post_of(run, seq, CONTROL_KNOB, policy->knobs[k].name, p->set[i].text, 0, err);
    }
    const char *head = run->live->ops->head(run->live, now);
    if (ok && p->head[0] != '\0' && head[0] != '\0' && strcmp(head, p->head) != 0)
        ok = follow_post_of(run, seq, CONTROL_HEAD, NULL, p->head, 0, err);
    for (int i = 0; i < SAMPLING_KNOBS && ok; i++)
        ok = !is_other(app, p, i) ||
             follow_post_of(run, seq, CONTROL_KNOB, sampling_knobs[i].name, p->sampling[i], 0, err);
    return ok;
}

/* Posts the differences from the requested settings as one change. */
static bool
apply(struct app *app, const struct preset *p, struct err *err)
{
    if (!verb_only_live(app, "change settings", err) || !check(app, p, err))
        return false;
    changes_group(&app->run.changes, true);
    const bool ok = apply_all(app, p, err);
    changes_group(&app->run.changes, false);
    return ok;
}

/* Returns the named row of the ledger, or the current settings if row is empty. */
static const struct segment *
named(const struct app *app, const char *row, struct err *err)
{
    const struct segments *all = scope_now(app->run.scope)->segments;
    const struct segment *s = row[0] == '\0' ? segments_now(all) : segments_named(all, row);
    if (s == NULL)
        err_set(err, ERR_USAGE, "the ledger has no row '%.15s'", row);
    return s;
}

bool
run_take(struct app *app, const char *rest, struct err *err)
{
    struct preset p;
    const struct segment *s = named(app, rest, err);
    if (rest[0] == '\0')
        return err_set(err, ERR_USAGE, "take which row of the ledger? for example :take C");
    if (s == NULL)
        return false;
    if (!preset_of_segment(&p, s, app->run.info))
        return err_set(err, ERR_USAGE, "row %.20s ran under a policy that is not known here", rest);
    if (!apply(app, &p, err))
        return false;
    message_print(&app->message, "the settings of row %.20s: %.15s", rest, p.policy);
    return true;
}

/* ---- presets ---- */

static bool
has_presets(const struct app *app, struct err *err)
{
    return app->options.presets != NULL ||
           err_set(err, ERR_USAGE, "there is no folder for presets: neither XDG_CONFIG_HOME nor HOME is set");
}

/* Replaces a preset only if the command comes twice, or from a script, which cannot answer a question. */
static bool
write_preset(struct app *app, const struct preset *p, const char *name, struct err *err)
{
    const bool asked = strcmp(app->replaces, name) == 0;
    app->replaces[0] = '\0';
    if (asked || script_running(&app->script) || !preset_exists(app->options.presets, name))
        return preset_write(p, app->options.presets, name, err);
    snprintf(app->replaces, sizeof app->replaces, "%s", name);
    return err_set(err, ERR_USAGE, "there is a preset %s; the same command again replaces it", name);
}

/* "NAME" saves the current settings, "ROW NAME" a row of the ledger. */
static bool
save_preset(struct app *app, const char *rest, struct err *err)
{
    char row[16] = "";
    struct preset p;
    const size_t n = strcspn(rest, " ");
    const char *behind = rest + n + strspn(rest + n, " "), *name = behind[0] != '\0' ? behind : rest;
    if (name[0] == '\0')
        return err_set(err, ERR_USAGE, "save the settings under which name? for example :preset save quick");
    if (name == behind)
        snprintf(row, sizeof row, "%.*s", (int)n, rest);
    const struct segment *s = named(app, row, NULL);
    if (s == NULL)
        return err_set(err, ERR_USAGE,
                       "the ledger has no row '%s'; if '%.60s' is to be the name: a preset's name has no blanks", row,
                       rest);
    if (!preset_of_segment(&p, s, app->run.info))
        return err_set(err, ERR_USAGE, "the policy is not known here");
    if (!write_preset(app, &p, name, err))
        return false;
    message_print(&app->message, "saved: :preset %s brings it back, --preset %s begins with it", name, name);
    return true;
}

static bool
list_presets(struct app *app, struct err *err)
{
    struct preset_names names = {NULL, 0};
    char list[300] = "";
    if (!preset_list(&names, app->options.presets, err))
        return false;
    for (size_t i = 0, used = 0; i < names.n && used + PRESET_NAME + 2 < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? "  " : "", names.name[i]);
    preset_names_free(&names);
    if (list[0] == '\0')
        message_print(&app->message, "there is no preset yet; :preset save NAME makes one");
    else
        message_print(&app->message, "%s", list);
    return true;
}

bool
run_preset(struct app *app, const char *rest, struct err *err)
{
    if (!has_presets(app, err))
        return false;
    if (strncmp(rest, "save", 4) == 0 && (rest[4] == ' ' || rest[4] == '\0'))
        return save_preset(app, rest + 4 + strspn(rest + 4, " "), err);
    if (rest[0] == '\0')
        return list_presets(app, err);
    struct preset p;
    if (!preset_read(&p, app->options.presets, rest, err) || !apply(app, &p, err))
        return false;
    message_print(&app->message, "preset %s: %.15s", rest, p.policy);
    return true;
}

/* ---- command lines ---- */

/* Copies a command line to the clipboard and the file. */
static bool
copy_command(struct app *app, const struct segment *s, const char *prompt, struct err *err)
{
    char *text = shell_command(s, run_info_of(app->run.info, s->seq), prompt,
                               segments_before(scope_now(app->run.scope)->segments, s));
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the command line");
    const char *path = app->options.command_path;
    struct err why = {0};
    const bool copied = clipboard_put(text, strlen(text));
    const bool kept = path != NULL && file_folders_make(path, &why) &&
                      file_replace_text(AT_FDCWD, path, 0600, text, strlen(text), &why);
    if (kept)
        message_print(&app->message, "%s%.300s", copied ? "copied, and in " : "in ", path);
    else
        message_print(&app->message, "%s", text);
    free(text);
    return kept || copied || path == NULL || err_set(err, why.kind, "%s", why.text);
}

bool
run_copy_command(struct app *app, const char *rest, struct err *err)
{
    const struct segment *s = named(app, rest, err);
    return s != NULL && copy_command(app, s, segments_prompt(scope_now(app->run.scope)->segments, s), err);
}

/* ---- :tune, a race of settings ---- */

/* Reads the number of a row of the race's panel, from 1, at the beginning of the text; *rest: the text after it. */
static const struct preset *
read_setting(const struct app *app, const char *text, const char **rest, uint32_t *index, struct err *err)
{
    const struct tuner *t = app->run.sweeping.tuner;
    struct race_standing all[RACE_CANDIDATES];
    char number[16];
    uint64_t n;
    const size_t length = strcspn(text, " ");
    if (t->n_candidates == 0) {
        err_set(err, ERR_USAGE, "there was no race yet; :tune begins one");
        return NULL;
    }
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (!command_number(number, "the race's row", 1, race_standings(t->race, all), &n, err))
        return NULL;
    *rest = text + length + strspn(text + length, " ");
    *index = all[n - 1].candidate;
    return &t->candidate[*index];
}

static bool
save_setting(struct app *app, uint32_t index, const char *name, struct err *err)
{
    const struct tuner *t = app->run.sweeping.tuner;
    char text[160];
    if (!has_presets(app, err) || !write_preset(app, &t->candidate[index], name, err))
        return false;
    message_print(&app->message, "saved %s: :preset %s brings it back, --preset %s begins with it",
                  tuner_name(t, index, " ", text, sizeof text), name, name);
    return true;
}

static bool
copy_setting(struct app *app, const struct preset *p, struct err *err)
{
    struct segment s = *segments_now(scope_now(app->run.scope)->segments);
    const struct policy_info *policy = run_info_policy(app->run.info, p->policy);
    s.policy = (uint32_t)(policy - app->run.info->policies);
    for (uint32_t i = 0; i < p->n_set; i++)
        knob_parse(&policy->knobs[i], p->set[i].text, &s.value[i], NULL);
    return copy_command(app, &s, app_prompt(app), err);
}

static bool
show_run(struct app *app, const char *text, struct err *err)
{
    const char *rest;
    uint32_t index = 0;
    const bool now = strcmp(text, "now") == 0;
    if (!now && read_setting(app, text, &rest, &index, err) == NULL)
        return false;
    if (!sweeping_show(&app->run.sweeping, now ? NULL : &index, err))
        return false;
    app_choose_scope(app);
    app->panes.selection = (struct selection){.follow = true};
    app->screen.dirty = true;
    return true;
}

static bool
begin_race(struct app *app, const char *rest, struct err *err)
{
    const struct app_options *o = &app->options;
    const struct settings *now = &app->run.requested;
    const uint32_t tokens = app->run.info->tokens;
    const char *names[POLICIES_MOST];
    char words[400], *save = NULL;
    struct tune_request request = {.registry = policy_registry,
                                   .policies = names,
                                   .prompts = o->tune_prompts,
                                   .n_prompts = o->n_tune_prompts,
                                   .time_s = TUNE_TIME,
                                   .tokens = tokens > 1 && tokens < TUNE_TOKENS ? tokens : TUNE_TOKENS,
                                   .seed = now->seed,
                                   .sampling = now->sampling};
    if (!follow_accepts(&app->run, err))
        return false;
    if (o->n_tune_prompts == 0)
        return err_set(err, ERR_USAGE,
                       "there is no list of prompts to race over; a server's settings are raced by %s tune",
                       program_name());
    if (scope_now(app->run.scope)->versus != NULL)
        return err_set(err, ERR_USAGE, "a race has one sequence at a time; :versus off ends the two settings");
    if (scope_is_batch(app->run.scope))
        return err_set(err, ERR_USAGE, "a race has one sequence at a time; start %s without --batch", program_name());
    if (snprintf(words, sizeof words, "%s", rest) >= (int)sizeof words)
        return err_set(err, ERR_USAGE, ":tune takes a time such as 5m and names of policies");
    for (char *word = strtok_r(words, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        const double s = tune_time_parse(word);
        if (!isnan(s))
            request.time_s = s;
        else if (request.n_policies < POLICIES_MOST)
            names[request.n_policies++] = word;
    }
    const struct scope_now *scope = scope_now(app->run.scope);
    const struct tally *run = &scope->metrics.total;
    if (run->rounds > 0) /* plain decoding takes no longer than a verification, nor than this policy if that gains */
        request.token_s =
            fmin(run->verify_us / (double)run->rounds, (run->draft_us + run->verify_us) / (double)run->emitted) * 1e-6;
    if (!sweeping_race(&app->run.sweeping, &request, app_prompt(app), !scope->running && scope->end[0] == '\0', o->pace,
                       err))
        return false;
    if (o->chat_unused)
        message_print(&app->message,
                      "the race's prompts go to the model as they are, as this run's do: start %s with "
                      "--chat to use the model's chat template",
                      program_name());
    app_choose_scope(app); /* the runs of an earlier race are gone */
    app->run.ended = false;
    return run_panel(app, "tune", err);
}

bool
run_tune(struct app *app, const char *rest, struct err *err)
{
    char verb[COMMAND_VERB];
    const char *argument, *name;
    uint32_t index;
    if (!follow_live(&app->run))
        return err_set(err, ERR_USAGE,
                       "a replay cannot race settings: it shows the race's runs one after the other, and "
                       "the ledger lists them; start %s MODEL for a race",
                       program_name());
    if (command_split(rest, verb, &argument)) {
        const bool take = strcmp(verb, "take") == 0, saves = strcmp(verb, "save") == 0,
                   copy = strcmp(verb, "copy") == 0;
        if (strcmp(verb, "stop") == 0)
            return verb_stop(app, sweeping_races(&app->run.sweeping), "race is running", "", err);
        if (strcmp(verb, "show") == 0)
            return show_run(app, argument, err);
        if (take || saves || copy) {
            const struct preset *p = read_setting(app, argument, &name, &index, err);
            if (p == NULL)
                return false;
            if (saves || copy)
                return saves ? save_setting(app, index, name, err) : copy_setting(app, p, err);
            char text[120];
            if (!apply(app, p, err))
                return false;
            message_print(&app->message, "%s", tuner_name(app->run.sweeping.tuner, index, " ", text, sizeof text));
            return true;
        }
    }
    return begin_race(app, rest, err);
}

/* ---- :score, drafters on finished texts ---- */

/* Takes the setting of a row of the panel, from 1. */
static bool
take_score(struct app *app, const char *number, struct err *err)
{
    const struct score_row *rows[SCORE_ROWS];
    uint64_t n;
    if (!command_number(number, "the score's row", 1, score_order(&app->run.scorer.shown, rows), &n, err))
        return false;
    const struct score_row *row = rows[n - 1];
    if (row->kind == SCORE_NOT)
        return err_set(err, ERR_USAGE, "%s was not scored: %s", row->preset.policy, row->why);
    bool here = !follow_live(&app->run) || row->drafter[0] == '\0';
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        here = here || strcmp(app->run.info->aux[role].name, row->drafter) == 0;
    if (!here)
        return err_set(err, ERR_USAGE, "this run does not have %s; start with --draft FILE", row->drafter);
    if (!apply(app, &row->preset, err))
        return false;
    message_print(&app->message, "%s %s", row->preset.policy, row->setting);
    return true;
}

bool
run_score(struct app *app, const char *rest, struct err *err)
{
    struct scorer *s = &app->run.scorer;
    struct score_report *report;
    const struct app_options *o = &app->options;
    struct err why;
    if (rest[0] == '\0')
        return err_set(err, ERR_USAGE, "score drafters on which texts? for example :score dialogues.jsonl");
    if (strncmp(rest, "take ", 5) == 0)
        return take_score(app, rest + 5, err);
    if (strcmp(rest, "stop") == 0) {
        atomic_store(&s->cancel, true);
        return s->runs || err_set(err, ERR_USAGE, "no texts are being scored");
    }
    if (!follow_accepts(&app->run, err))
        return false;
    if (score_read_file(rest, &report, &why)) {
        s->shown = *report;
        free(report);
    } else if (o->engine == NULL) { /* a server or a replay shows reports only */
        return err_copy(err, &why);
    } else if (!sweeping_stop(&app->run.sweeping, err) || !scorer_begin(s, app->run.live, o, rest, err)) {
        return false;
    }
    app->panes.view.score = &s->shown;
    return run_panel(app, "score", err);
}

/* ---- a segment as a command line ---- */

static void
put_option(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s ", name);
    put_shell_word(out, value);
}

static void
put_policy(FILE *out, const struct segment *s, const struct run_info *info)
{
    if (s->policy >= info->n_policies)
        return;
    const struct policy_info *p = &info->policies[s->policy];
    put_option(out, "--policy", p->name);
    for (uint32_t k = 0; k < p->n_knobs; k++) {
        char value[32], text[64];
        const double *start = info->start_values;
        if (s->value[k] == p->knobs[k].def && (start == NULL || start[s->policy * POLICY_KNOBS + k] == p->knobs[k].def))
            continue;
        knob_format(&p->knobs[k], s->value[k], value, sizeof value);
        snprintf(text, sizeof text, "%s=%s", p->knobs[k].name, value);
        put_option(out, "--set", text);
    }
    if (s->head[0] != '\0')
        put_option(out, "--head", s->head);
}

static void
put_models(FILE *out, const struct run_info *info)
{
    bool drafts = false;                                   /* there is a --draft */
    for (enum aux_role role = 0; role < AUX_MTP; role++) { /* which needs no option */
        const struct aux_info *aux = &info->aux[role];
        char option[24];
        const bool draft = role != AUX_COMPANION; /* feature drafters are given as draft models */
        snprintf(option, sizeof option, "--%s", aux_names[draft ? AUX_DRAFT : role]);
        if (aux->name[0] == '\0' || (draft && drafts))
            continue;
        put_option(out, option, aux->path[0] != '\0' ? aux->path : aux->name);
        drafts = drafts || draft;
    }
    if (info->accept_head.path[0] != '\0')
        put_option(out, "--accept", info->accept_head.path);
    if (info->profile.path[0] != '\0')
        put_option(out, "--profile", info->profile.path);
    if (info->vocab_counts.path[0] != '\0')
        put_option(out, "--vocab-counts", info->vocab_counts.path);
}

static void
put_sampling(FILE *out, const struct segment *s, const struct run_info *info)
{
    for (int i = 0; i < SAMPLING_KNOBS; i++) {
        char option[16], text[24];
        sampling_knob_text(&s->sampling, s->seed, i, text, sizeof text);
        snprintf(option, sizeof option, "--%s", preset_sampling[i]);
        if (sampling_knob_get(&s->sampling, s->seed, i) != sampling_knobs[i].def ||
            sampling_knob_get(&info->sampling, info->seed, i) != sampling_knobs[i].def)
            put_option(out, option, text);
    }
}

static void
put_switch(FILE *out, const char *name, bool given)
{
    if (given)
        fprintf(out, " %s", name);
}

static void
put_given(FILE *out, const char *name, const char *value)
{
    if (value[0] != '\0')
        put_option(out, name, value);
}

/* Writes the option once for each line of a text. */
static void
put_lines(FILE *out, const char *name, const char *text)
{
    for (const char *line = text; *line != '\0';) {
        char one[ASKED_VARS];
        const size_t n = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s", (int)n, line);
        put_option(out, name, one);
        line += n + (line[n] != '\0');
    }
}

/* Appends backend, threads and other options of the computation. */
static void
put_machine(FILE *out, const struct run_info *info)
{
    const struct asked_info *asked = &info->asked;
    put_given(out, "--heads", asked->no_heads ? "none" : info->exit_heads.path);
    put_lines(out, "--lora", asked->lora);
    put_switch(out, "--exact", info->exact);
    put_switch(out, "--quantize q8_0", asked->quantize);
    put_given(out, "--backend", info->backend);
    put_given(out, "--isa", asked->isa);
    put_given(out, "--gpu", asked->gpu);
    if (asked->threads > 0)
        fprintf(out, " -t %u", (unsigned)asked->threads);
}

/* Writes the turns before the prompt. */
static void
put_messages(FILE *out, const cJSON *turns)
{
    static const char name[] = "messages=";
    char *json = cJSON_GetArraySize(turns) > 0 ? cJSON_PrintUnformatted(turns) : NULL;
    const size_t room = json != NULL ? strlen(json) + sizeof name : 0;
    char *value = json != NULL ? malloc(room) : NULL;
    if (value != NULL) {
        snprintf(value, room, "%s%s", name, json);
        put_option(out, "--chat-var", value);
    }
    free(value);
    cJSON_free(json);
}

static void
put_chat(FILE *out, const struct asked_info *asked, const char *before)
{
    put_switch(out, "--chat", asked->chat);
    put_switch(out, "--chat-special", asked->chat_special);
    cJSON *turns = NULL;
    json_read(&turns, before != NULL ? before : "[]", before != NULL ? strlen(before) : 2);
    const cJSON *first = cJSON_GetArrayItem(turns, 0);
    const bool own = verb_has_system(turns);
    const char *system = own ? cJSON_GetStringValue(cJSON_GetObjectItem(first, "content")) : asked->system;
    if (system != NULL)
        put_option(out, "--system", system);
    put_lines(out, "--chat-var", asked->chat_vars);
    if (own)
        cJSON_DeleteItemFromArray(turns, 0);
    put_messages(out, turns);
    cJSON_Delete(turns);
    put_given(out, "--tools", asked->tools);
    put_given(out, "--chat-template", asked->chat_template);
    put_given(out, "--chat-date", asked->chat_date);
}

static bool
is_server(const struct run_info *info)
{
    return strstr(info->model_path, "://") != NULL;
}

/* Writes the prompt, its template, the context and the number of tokens. */
static void
put_text(FILE *out, const struct segment *s, const struct run_info *info, const char *prompt, const char *before)
{
    const struct asked_info *asked = &info->asked;
    const bool list = s->prompt == 0 && asked->prompts[0] != '\0', one = info->prompts == info->sequences;
    put_chat(out, asked, before);
    put_switch(out, "--ignore-eos", asked->ignore_eos);
    if (!is_server(info))
        fprintf(out, " -c %u", (unsigned)info->ctx);
    if (asked->batch > 0 || (info->sequences > 1 && one)) /* older traces lack the request */
        fprintf(out, " --batch %u", (unsigned)(asked->batch > 0 ? asked->batch : info->sequences));
    fprintf(out, " -n %u", (unsigned)info->tokens);
    if (list)
        put_option(out, "--prompts", asked->prompts);
    else if (prompt != NULL)
        put_option(out, "-p", prompt);
}

char *
shell_command(const struct segment *s, const struct run_info *info, const char *prompt, const char *before)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (out == NULL)
        return NULL;
    fprintf(out, "%s run", program_name());
    if (is_server(info)) {
        put_option(out, "--server", info->model_path);
    } else {
        put_policy(out, s, info);
        put_models(out, info);
        put_machine(out, info);
    }
    put_sampling(out, s, info);
    put_text(out, s, info, prompt, before);
    /* Weights by formula have a shape in the place of a file: "TinyLlama-1.1B,6,0.75". */
    const bool synthetic = strchr(info->model_path, '/') == NULL && strchr(info->model_path, ',') != NULL;
    if (synthetic)
        put_option(out, "--synth", info->model_path);
    else if (info->model_path[0] != '\0' && !is_server(info))
        put_option(out, "--", info->model_path); /* it may begin with '-' */
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
