/* Commands about settings as a whole: turns taken back, a row of the ledger again, presets, command lines. */
#include "tui/commands/shell_command.h"
#include "tui/commands/verbs.h"
#include "tui/terminal/clipboard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file_replace.h"
#include "engine/events/preset.h"

/* ---- turns ---- */

static bool
turn_back(struct app *app, bool back, struct err *err)
{
    struct followed *run = &app->run;
    const struct turn *t;
    uint32_t group = 0;
    if (!verb_only_live(app, "undo a change", err))
        return false;
    for (uint32_t n = 0;; n++) {
        const struct turn *next = back ? turns_back(&run->turns) : turns_forth(&run->turns);
        if (n > 0 && (group == 0 || next == NULL || next->group != group))
            return true;
        if (!follow_take_back(run, back, &t, err))
            return false;
        if (t == NULL)
            return err_set(err, ERR_USAGE,
                           back ? "cannot undo: no change of a knob, a policy or a head is left"
                                : "cannot redo: no change was undone");
        group = t->group;
        message_say(&app->message, "%s %s %s", t->name, back ? "back to" : "again", back ? t->before : t->after);
    }
}

bool
run_undo(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    return turn_back(app, true, err);
}

bool
run_redo(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    return turn_back(app, false, err);
}

/* ---- settings ---- */

/* Does a preset say of sampling what is not requested? */
static bool
is_other(const struct app *app, const struct preset *p, int knob)
{
    const struct settings *now = &app->run.requested;
    char text[24];
    sampling_knob_text(&now->sampling, now->seed, knob, text, sizeof text);
    return p->sampling[knob][0] != '\0' && strcmp(p->sampling[knob], text) != 0;
}

/* All of it can be set, or a line says what can't. */
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
    bool ok = now->policy == index || follow_set(run, seq, "policy", p->policy, err);
    for (uint32_t i = 0; i < p->n_set && ok; i++) {
        const int k = policy_knob_index(policy, p->set[i].name);
        double value = 0;
        knob_parse(&policy->knobs[k], p->set[i].text, &value, NULL);
        ok = value == now->value[index][k] || follow_set(run, seq, policy->knobs[k].name, p->set[i].text, err);
    }
    const char *head = session_head(run->source->session, now);
    if (ok && p->head[0] != '\0' && head[0] != '\0' && strcmp(head, p->head) != 0)
        ok = follow_set(run, seq, "head", p->head, err);
    for (int i = 0; i < SAMPLING_KNOBS && ok; i++)
        ok = !is_other(app, p, i) || follow_set(run, seq, sampling_knobs[i].name, p->sampling[i], err);
    return ok;
}

/* Posts what differs from what is requested, as one turn. */
static bool
apply(struct app *app, const struct preset *p, struct err *err)
{
    if (!verb_only_live(app, "change settings", err) || !check(app, p, err))
        return false;
    turns_group(&app->run.turns, true);
    const bool ok = apply_all(app, p, err);
    turns_group(&app->run.turns, false);
    return ok;
}

/* The ledger's row, or the settings in force where no row is named. */
static const struct stretch *
named(const struct app *app, const char *row, struct err *err)
{
    const struct stretches *all = scope_stretches(app->run.scope);
    const struct stretch *s = row[0] == '\0' ? stretches_now(all) : stretches_named(all, row);
    if (s == NULL)
        err_set(err, ERR_USAGE, "the ledger has no row '%.15s'", row);
    return s;
}

bool
run_take(struct app *app, const char *rest, struct err *err)
{
    struct preset p;
    const struct stretch *s = named(app, rest, err);
    if (rest[0] == '\0')
        return err_set(err, ERR_USAGE, "take which row of the ledger? for example :take C");
    if (s == NULL)
        return false;
    if (!preset_of_stretch(&p, s, app->run.info))
        return err_set(err, ERR_USAGE, "row %.20s ran under a policy that is not known here", rest);
    if (!apply(app, &p, err))
        return false;
    message_say(&app->message, "the settings of row %.20s: %.15s", rest, p.policy);
    return true;
}

/* ---- presets ---- */

/* "NAME" saves what is in force, "ROW NAME" a row of the ledger. */
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
    const struct stretch *s = named(app, row, NULL);
    if (s == NULL)
        return err_set(err, ERR_USAGE,
                       "the ledger has no row '%s'; if '%.60s' is to be the name: a preset's name has no blanks", row,
                       rest);
    if (!preset_of_stretch(&p, s, app->run.info))
        return err_set(err, ERR_USAGE, "the policy is not known here");
    if (!preset_write(&p, app->options.presets, name, err))
        return false;
    message_say(&app->message, "saved: :preset %s brings it back, --preset %s begins with it", name, name);
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
        message_say(&app->message, "there is no preset yet; :preset save NAME makes one");
    else
        message_say(&app->message, "%s", list);
    return true;
}

bool
run_preset(struct app *app, const char *rest, struct err *err)
{
    if (app->options.presets == NULL)
        return err_set(err, ERR_USAGE, "there is no folder for presets: neither XDG_CONFIG_HOME nor HOME is set");
    if (strncmp(rest, "save", 4) == 0 && (rest[4] == ' ' || rest[4] == '\0'))
        return save_preset(app, rest + 4 + strspn(rest + 4, " "), err);
    if (rest[0] == '\0')
        return list_presets(app, err);
    struct preset p;
    if (!preset_read(&p, app->options.presets, rest, err) || !apply(app, &p, err))
        return false;
    message_say(&app->message, "preset %s: %.15s", rest, p.policy);
    return true;
}

/* ---- command lines ---- */

bool
run_copy_command(struct app *app, const char *rest, struct err *err)
{
    const struct stretch *s = named(app, rest, err);
    if (s == NULL)
        return false;
    const char *prompt = stretches_prompt(scope_stretches(app->run.scope), s);
    char *text = shell_command(s, run_info_of(app->run.info, s->seq), prompt);
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the command line");
    const char *path = app->options.command_path;
    struct err why = {0};
    const bool copied = clipboard_put(text, strlen(text));
    const bool kept = path != NULL && file_replace_text(AT_FDCWD, path, 0600, text, strlen(text), &why);
    if (kept)
        message_say(&app->message, "%s%.300s", copied ? "copied, and in " : "in ", path);
    else
        message_say(&app->message, "%s", text);
    free(text);
    return kept || copied || path == NULL || err_set(err, why.kind, "%s", why.text);
}
