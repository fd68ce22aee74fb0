/* specscope tune: finds the fastest setting for a model, a machine and a kind of text. What-if proposes settings of
 * each policy, a race over the prompts selects the fast ones (engine/events/race.h), and the winner is measured on
 * held-out prompts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/generation/generation.h"
#include "cli/options/option_table.h"
#include "engine/base/utf8.h"
#include "engine/events/candidates.h"
#include "engine/events/engine_flags.h"
#include "engine/events/race.h"
#include "policies/policy.h"
#include "tui/scope/scope.h"

#define SHOWN          20   /* settings in the table, or more to show all that were not dropped */
#define ENGINE_COMMAND 2000 /* bytes */
#define RECORDS        3    /* prompts whose texts are used for the forecasts */
#define HEATS_TIME     0.75 /* of --time; the rest is for the held-out prompts */

struct tune {
    const struct options *o;
    struct engine *engine;
    char **prompts, **categories; /* (n_prompts) owned */
    size_t n_prompts;
    struct race *race;
    struct preset candidate[RACE_CANDIDATES];
    struct policy_memory memory[RACE_CANDIDATES];
    struct positions positions[RACE_CANDIDATES];
    uint32_t n;
    struct outcome_text *text; /* (n_prompts) of the first run on each; owned */
    uint32_t differing;        /* runs with another greedy text */
    double start_us;
    bool progress;
};

/* ---- candidates ---- */

static struct session_options
session_of(struct tune *t, const struct preset *p, uint32_t prompt, struct knob_setting set[POLICY_KNOBS])
{
    struct session_options so = generation_options(t->o);
    so.policy = p->policy;
    for (uint32_t i = 0; i < p->n_set; i++) {
        snprintf(set[i].name, sizeof set[i].name, "%s", p->set[i].name);
        snprintf(set[i].text, sizeof set[i].text, "%s", p->set[i].text);
    }
    so.set = set;
    so.n_set = p->n_set;
    so.prompt = t->prompts[prompt];
    so.prompt_len = strlen(so.prompt);
    return so;
}

/* Records the predictions of all layers on a prompt's text, as the scope shows them. */
static bool
record(struct tune *t, uint32_t prompt, struct layer_record *out, struct err *err)
{
    struct preset plain = {.policy = "ar"};
    struct session_options so = session_of(t, &plain, prompt, NULL);
    struct session *session = NULL;
    struct scope *scope = NULL;
    struct event_reader *reader = NULL;
    so.probe = PROBE_ALL;
    bool ok = session_open(&session, t->engine, &so, err) && scope_open(&scope, session_info(session), err);
    if (ok && ((reader = event_reader_open(session_log(session))) == NULL))
        ok = err_set(err, ERR_WORK, "out of memory for events");
    ok = ok && session_start(session, err);
    for (bool over = !ok; !over && !generation_interrupted();) {
        const struct event *e;
        while ((e = event_reader_next(reader)) != NULL) {
            scope_event(scope, e);
            over = over || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_END);
        }
        if (!over)
            event_reader_wait(reader, 100);
    }
    if (ok && scope_record(scope, out) != NULL)
        out->n = 0; /* no forecasts for this prompt */
    if (reader != NULL)
        event_reader_close(reader);
    session_close(session);
    scope_close(scope);
    return ok;
}

static bool
is_wanted(const struct tune *t, const struct policy_ops *ops)
{
    bool named = t->o->policies.n == 0;
    for (size_t i = 0; i < t->o->policies.n; i++)
        named = named || strcmp(t->o->policies.at[i], ops->name) == 0;
    return named && engine_missing(t->engine, ops->needs) == 0 && strcmp(ops->name, "ar") != 0;
}

/* Adds the policy's candidates while there is room. */
static bool
add_policy(struct tune *t, const struct policy_ops *ops, const struct layer_record *records, uint32_t n,
           struct err *err)
{
    const struct model_desc *d = &t->engine->model->desc;
    const struct model_info model = {d->n_layers, d->width, d->vocab, t->engine->model->rho, t->engine->profile};
    struct preset found[CANDIDATES_MOST];
    struct policy p;
    const bool ok = policy_open(&p, ops, &model, &t->o->sampling, err);
    const uint32_t more = ok ? candidates_of(&p, records, n, t->engine->model->rho, NULL, found) : 0;
    for (uint32_t i = 0; i < more && t->n < RACE_CANDIDATES; i++)
        t->candidate[t->n++] = found[i];
    policy_close(&p);
    return ok;
}

static bool
choose_candidates(struct tune *t, struct err *err)
{
    struct layer_record records[RECORDS] = {{.n = 0}};
    uint32_t n = 0;
    bool ok = true;
    const bool greedy = !(t->o->sampling.temperature > 0);
    for (uint32_t i = 0; greedy && ok && i < RECORDS && i < race_n_prompts(t->race); i++) {
        ok = layer_record_open(&records[n], t->engine->model->desc.n_layers, err) &&
             record(t, race_prompt(t->race, i), &records[n], err);
        if (records[n].n > records[n].begin)
            n++;
        else
            layer_record_close(&records[n]);
    }
    t->candidate[t->n++] = (struct preset){.policy = "ar"};
    for (size_t i = 0; policy_registry[i] != NULL && ok && !generation_interrupted(); i++)
        if (is_wanted(t, policy_registry[i]) && t->engine->model->desc.n_layers >= policy_registry[i]->least_layers)
            ok = add_policy(t, policy_registry[i], records, n, err);
    while (n > 0)
        layer_record_close(&records[--n]);
    return ok &&
           (t->n > 1 || err_set(err, ERR_USAGE, "no policy can run: name one by --policy, or give --draft MODEL"));
}

/* ---- the race ---- */

static double
elapsed_s(const struct tune *t)
{
    return (now_us() - t->start_us) * 1e-6;
}

/* Writes the policy and the knobs that differ from its defaults, which are its first candidate, each knob after `before`. */
static const char *
candidate_name(const struct tune *t, uint32_t candidate, const char *before, char *out, size_t n)
{
    const struct preset *p = &t->candidate[candidate], *defaults = p;
    while (defaults > t->candidate && strcmp(defaults[-1].policy, p->policy) == 0)
        defaults--;
    size_t used = (size_t)snprintf(out, n, "%s", p->policy);
    for (uint32_t i = 0; i < p->n_set && used < n; i++)
        if (strcmp(p->set[i].text, defaults->set[i].text) != 0)
            used += (size_t)snprintf(out + used, n - used, "%s%s=%s", before, p->set[i].name, p->set[i].text);
    return out;
}

static void
show_progress(const struct tune *t, enum race_phase phase)
{
    struct race_standing all[RACE_CANDIDATES];
    char name[60], leader[80] = "";
    race_standings(t->race, all);
    if (race_heat(t->race) > 0)
        snprintf(leader, sizeof leader, "; fastest: %s, %.2f x ar",
                 candidate_name(t, all[0].candidate, " ", name, sizeof name), all[0].speed.value);
    if (phase == RACE_HELD_OUT)
        fprintf(stderr, "\rheld-out prompts%s\x1b[K", leader);
    else
        fprintf(stderr, "\rheat %u: %u of %u settings left, %.0f s%s\x1b[K", race_heat(t->race) + 1, race_left(t->race),
                t->n, elapsed_s(t), leader);
}

/* Keeps the first text of a prompt, and compares later texts with it. */
static void
compare_text(struct tune *t, uint32_t prompt, struct outcome_text *text)
{
    struct outcome_text *first = &t->text[prompt];
    if (first->tokens == NULL) {
        *first = *text;
        text->tokens = NULL;
    } else if (text->n_tokens != first->n_tokens ||
               memcmp(text->tokens, first->tokens, text->n_tokens * sizeof *text->tokens) != 0) {
        t->differing++;
    }
}

/* Runs a candidate and reports its seconds per token to the race: sampled texts may differ in length. */
static bool
run(struct tune *t, uint32_t candidate, uint32_t prompt, struct err *err)
{
    struct knob_setting set[POLICY_KNOBS];
    struct generation g = {.engine = t->engine, .session = session_of(t, &t->candidate[candidate], prompt, set)};
    struct outcome out;
    g.session.memory = &t->memory[candidate];
    if (!generate(&g, &out, err))
        return false;
    const struct tally *total = &out.metrics.total;
    const bool whole = !generation_interrupted(), decoded = total->emitted > 0;
    if (whole && decoded) {
        race_took(t->race, (total->draft_us + total->verify_us) * 1e-6 / (double)total->emitted);
        positions_add(&t->positions[candidate], &out.positions);
        if (!(t->o->sampling.temperature > 0))
            compare_text(t, prompt, &out.texts[0]);
    }
    outcome_free(&out);
    return !whole || decoded ||
           err_set(err, ERR_USAGE,
                   "the text of prompt %u ends with its first token: leave it out, or give --ignore-eos", prompt + 1);
}

static bool
race_all(struct tune *t, struct err *err)
{
    uint32_t candidate, prompt;
    enum race_phase phase;
    bool ok = race_begin(t->race, t->n, err);
    while (ok && !generation_interrupted() && (phase = race_next(t->race, &candidate, &prompt)) != RACE_OVER) {
        if (t->progress)
            show_progress(t, phase);
        if (phase == RACE_RUNS && t->o->time_s > 0 && race_heat(t->race) >= RACE_HEATS &&
            elapsed_s(t) > HEATS_TIME * t->o->time_s)
            race_finish_heats(t->race);
        else
            ok = run(t, candidate, prompt, err);
    }
    if (t->progress)
        fputs("\r\x1b[K", stderr);
    return ok;
}

/* ---- the report ---- */

static const char *
verdict(struct comparison c)
{
    static const char *const words[] = {"not measured", "within noise of plain decoding", "faster than plain decoding",
                                        "slower than plain decoding"};
    return words[c.verdict];
}

/* "  1.52  1.46 to 1.58"; one prompt has no interval. */
static void
print_speed(struct comparison c)
{
    if (isnan(c.low))
        printf("%6.2f               ", c.value);
    else
        printf("%6.2f  %5.2f to %5.2f", c.value, c.low, c.high);
}

static void
print_standings(const struct tune *t)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t n = race_standings(t->race, all);
    char name[200];
    printf("%u settings, %u heats, %.0f s\n\n  x ar   95%% interval   heats  setting\n", n, race_heat(t->race),
           elapsed_s(t));
    for (uint32_t i = 0; i < n && (i < SHOWN || all[i].dropped == 0); i++) {
        const struct race_standing *s = &all[i];
        print_speed(s->speed);
        printf("  %5u  %s", s->heats, candidate_name(t, s->candidate, " ", name, sizeof name));
        if (s->dropped > 0)
            printf(" (dropped in heat %u)", s->dropped);
        putchar('\n');
    }
    if (n > SHOWN && race_left(t->race) < n)
        puts("others were dropped earlier; --json FILE contains all");
}

/* Prints results by category if a category has several held-out prompts. */
static void
print_held_out(const struct tune *t, uint32_t candidate)
{
    char name[200];
    const struct comparison c = race_held_out(t->race, candidate, 0, NULL);
    print_speed(c);
    printf("  %s: %s\n", candidate_name(t, candidate, " ", name, sizeof name), verdict(c));
    for (size_t i = 0; i < t->n_prompts; i++) {
        bool before = t->categories[i][0] == '\0';
        for (size_t j = 0; j < i && !before; j++)
            before = strcmp(t->categories[i], t->categories[j]) == 0;
        const struct comparison of = race_held_out(t->race, candidate, 0, t->categories[i]);
        if (!before && of.n > 1 && of.n < c.n) {
            print_speed(of);
            printf("    %s\n", t->categories[i]);
        }
    }
}

/* name: NULL for an operand; value: NULL if it was not given. */
static void
print_option(const char *name, const char *value)
{
    if (value == NULL)
        return;
    if (name != NULL)
        printf(" --%s", name);
    putchar(' ');
    put_shell_word(stdout, value);
}

/* The command that opens the scope with the candidate's setting, on the same models. */
static void
print_command(const struct tune *t, uint32_t candidate)
{
    char setting[300];
    printf("\nspecscope --policy %s", candidate_name(t, candidate, " --set ", setting, sizeof setting));
    for (enum helper_role role = 0; role < HELPERS; role++)
        print_option(helper_names[role], t->o->helpers[role]);
    print_option("synth", t->o->synth);
    print_option(NULL, t->o->model);
    putchar('\n');
}

/* Returns the setting as another engine's command; rated: with the acceptance rates measured here in place of its
 * drafter. "" if memory runs out. */
static const char *
engine_command(const struct tune *t, enum other_engine engine, uint32_t candidate, bool rated, char *out, size_t room)
{
    const struct positions *p = &t->positions[candidate];
    const struct engine_models models = {t->o->model, t->o->helpers[HELPER_DRAFT]};
    double rate[POSITIONS];
    const uint32_t n = rated ? positions_count(p) : 0;
    for (uint32_t i = 0; i < n; i++) /* of rounds with drafts, as those engines count */
        rate[i] = (double)p->accepted[i] / (double)p->tested[0];
    engine_flags(engine, &t->candidate[candidate], &models, rate, n, out, room);
    return out;
}

static void
print_engines(const struct tune *t, uint32_t candidate)
{
    char text[ENGINE_COMMAND];
    puts("\nIn other engines (docs/engines.md says how they differ):");
    for (enum other_engine e = 0; e < ENGINES; e++) {
        printf("%s %s: %s\n", engine_names[e], engine_versions[e],
               engine_command(t, e, candidate, false, text, sizeof text));
        engine_command(t, e, candidate, true, text, sizeof text);
        if (positions_count(&t->positions[candidate]) > 0 && strncmp(text, "no equivalent", 13) != 0)
            printf("  at this acceptance: %s\n", text);
    }
}

static cJSON *
json_of(const struct tune *t)
{
    struct race_standing all[RACE_CANDIDATES];
    const uint32_t n = race_standings(t->race, all);
    cJSON *j = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(j, "settings");
    for (uint32_t i = 0; i < n; i++) {
        const struct preset *p = &t->candidate[all[i].candidate];
        cJSON *row = cJSON_CreateObject(), *set = NULL;
        cJSON_AddItemToArray(list, row);
        cJSON_AddStringToObject(row, "policy", p->policy);
        set = cJSON_AddObjectToObject(row, "set");
        for (uint32_t k = 0; k < p->n_set; k++)
            cJSON_AddStringToObject(set, p->set[k].name, p->set[k].text);
        json_number(row, "times_ar", all[i].speed.value);
        json_number(row, "low", all[i].speed.low);
        json_number(row, "high", all[i].speed.high);
        json_number(row, "heats", all[i].heats);
        json_number(row, "dropped_in_heat", all[i].dropped > 0 ? all[i].dropped : (double)NAN);
        const struct comparison held = race_held_out(t->race, all[i].candidate, 0, NULL);
        if (held.verdict != DIFFERENCE_UNKNOWN) {
            json_number(row, "held_out_times_ar", held.value);
            json_number(row, "held_out_low", held.low);
            json_number(row, "held_out_high", held.high);
            cJSON_AddStringToObject(row, "verdict", verdict(held));
        }
    }
    uint32_t candidate, prompt;
    if (race_next(t->race, &candidate, &prompt) != RACE_OVER)
        return j;
    cJSON *engines = cJSON_AddObjectToObject(j, "engines");
    for (enum other_engine e = 0; e < ENGINES; e++) {
        char text[ENGINE_COMMAND];
        cJSON *one = cJSON_AddObjectToObject(engines, engine_names[e]);
        cJSON_AddStringToObject(one, "version", engine_versions[e]);
        cJSON_AddStringToObject(one, "command", engine_command(t, e, race_winner(t->race), false, text, sizeof text));
        cJSON_AddStringToObject(one, "at_this_acceptance",
                                engine_command(t, e, race_winner(t->race), true, text, sizeof text));
    }
    return j;
}

static bool
save(const struct tune *t, const struct preset *winner, struct err *err)
{
    char folder[1024];
    if (t->o->save == NULL)
        return true;
    if (config_path(folder, sizeof folder, "presets") == NULL)
        return err_set(err, ERR_USAGE, "--save %.60s: neither XDG_CONFIG_HOME nor HOME is set", t->o->save);
    if (!preset_write(winner, folder, t->o->save, err))
        return false;
    printf("saved: specscope --preset %s\n", t->o->save);
    return true;
}

static bool
report(const struct tune *t, struct err *err)
{
    uint32_t candidate, prompt;
    const bool whole = race_next(t->race, &candidate, &prompt) == RACE_OVER;
    const struct preset *winner = &t->candidate[whole ? race_winner(t->race) : 0];
    if (!results_take_stdout(t->o->json)) {
        print_standings(t);
        if (whole) {
            printf("\nOn %u held-out prompts:\n", race_n_held_out(t->race));
            print_held_out(t, race_winner(t->race));
            if (race_runner_up(t->race) != race_winner(t->race) && race_runner_up(t->race) != 0)
                print_held_out(t, race_runner_up(t->race));
            print_command(t, race_winner(t->race));
            print_engines(t, race_winner(t->race));
        } else {
            puts("\ninterrupted: nothing was measured on held-out prompts");
        }
    }
    bool ok = true;
    if (t->o->json != NULL) {
        cJSON *j = json_of(t);
        ok = json_write(j, t->o->json, err);
        cJSON_Delete(j);
    }
    ok = ok && (!whole || save(t, winner, err));
    if (ok && t->differing > 0)
        return err_set(err, ERR_WORK, "%u runs differ from other settings' text of the same prompt; that is a bug here",
                       t->differing);
    return ok;
}

static bool
read_prompts(struct tune *t, struct err *err)
{
    const bool ok = t->o->prompts_file != NULL
                        ? prompts_read(t->o->prompts_file, &t->prompts, &t->categories, &t->n_prompts, err)
                        : prompts_bundled("prompts-tune", &t->prompts, &t->categories, &t->n_prompts, err);
    struct race_prompt *list = ok ? calloc(t->n_prompts, sizeof *list) : NULL;
    t->text = ok ? calloc(t->n_prompts, sizeof *t->text) : NULL;
    for (size_t i = 0; i < t->n_prompts && list != NULL; i++)
        list[i] = (struct race_prompt){t->prompts[i], t->categories[i]};
    const bool opened =
        list != NULL && t->text != NULL && race_open(&t->race, list, (uint32_t)t->n_prompts, t->o->seed, err);
    free(list);
    return opened || (ok && err->kind == ERR_NONE && err_set(err, ERR_WORK, "out of memory for prompts"));
}

static void
close_tune(struct tune *t)
{
    race_close(t->race);
    for (uint32_t i = 0; i < t->n; i++)
        policy_memory_free(&t->memory[i]);
    for (size_t i = 0; i < t->n_prompts && t->text != NULL; i++)
        free(t->text[i].tokens);
    free(t->text);
    prompts_free(t->prompts, t->n_prompts);
    prompts_free(t->categories, t->n_prompts);
    engine_close(t->engine);
}

bool
tune_main(struct options *o, int *status, struct err *err)
{
    struct tune t = {.o = o, .progress = isatty(STDERR_FILENO), .start_us = now_us()};
    generation_catch_signals();
    bool ok = results_possible(o->json, &results_json_file, err) && read_prompts(&t, err) &&
              generation_engine(o, &t.engine, err);
    if (ok) {
        engine_settle(t.engine, NULL);
        t.start_us = now_us();
        ok = choose_candidates(&t, err) && (generation_interrupted() || race_all(&t, err)) &&
             (race_heat(t.race) > 0 ? report(&t, err)
                                    : err_set(err, ERR_CANCELLED, "interrupted before a heat was complete"));
    }
    close_tune(&t);
    *status = generation_interrupted() ? 130 : 0;
    return ok;
}
