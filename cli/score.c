/* specscope score: forecasts what each drafter gains on finished texts (engine/scoring/scoring.h), and prints the
 * report (engine/tune/score_report.h). */
#include "cli/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/program.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/use.h"
#include "engine/tune/engine_flags.h"
#include "engine/tune/tuner.h"
#include "traces/text_source.h"

#define COLUMNS 100
#define NAME    28 /* columns of a drafter */

struct score_command {
    struct options *o;
    struct engine *engine;
    struct drafts drafts;
    struct texts texts;
    struct score_report *report;             /* owned */
    const struct score_row *row[SCORE_ROWS]; /* (n) in the order of the table: the first ones were scored */
    uint32_t n, scored;
};

static bool
show_progress(void *user, const struct score_report *r)
{
    char line[200];
    (void)user;
    generation_progress((double)r->conversations / r->of, score_progress(r, line, sizeof line));
    return true;
}

/* ---- tables ---- */

static void
print_setting(const struct score_row *row)
{
    char name[400], cut[COLUMNS], rounds[32], interval[40], up_to[12] = "-";
    const size_t used = strlen(score_drafter(row, name, sizeof name));
    snprintf(name + used, sizeof name - used, "%s%s", row->setting[0] != '\0' ? " " : "", row->setting);
    snprintf(rounds, sizeof rounds, isnan(row->all.per_round.se) ? "%.2f" : "%.2f ± %.2f", row->all.per_round.value,
             row->all.per_round.se);
    if (!isnan(row->speedup_at[0]))
        snprintf(up_to, sizeof up_to, "%u", (unsigned)score_up_to(row));
    printf("%6.2f  %13s  %*s%s  %5s  %-9s  %s\n", row->all.speedup.value,
           tune_interval(row->all.speedup, "texts", interval, sizeof interval), 12 - text_width(rounds), "", rounds,
           up_to, row->kind == SCORE_EXACT ? "exact" : "estimated",
           printable_line(cut, COLUMNS - 57, name, strlen(name)));
}

/* Prints the best setting of each drafter; of policies that were named all settings. */
static void
print_drafters(const struct score_command *s)
{
    const struct score_report *r = s->report;
    const bool all = s->o->policies.n > 0;
    char drafter[100];
    printf("\n  x ar   95%% interval  tokens/round  up to  rounds     %s\n", all ? "setting" : "best setting");
    for (uint32_t i = 0; i < s->scored; i++) {
        const struct score_row *row = s->row[i];
        do
            print_setting(row++);
        while (all && row < r->row + r->n && !row->best && row->kind != SCORE_NOT);
    }
    for (uint32_t i = s->scored; i < s->n; i++)
        printf("%s%s: %s\n", i == s->scored ? "not scored:\n  " : "  ",
               score_drafter(s->row[i], drafter, sizeof drafter), s->row[i]->why);
    printf("x ar: forecast speed %s, in multiples of plain decoding (ar)\n"
           "up to: the largest number of sequences at a time at which it still gains, by the costs here; 0: none\n"
           "rounds: exact if they are those of a real run on these texts; else estimated\n",
           r->in_time ? "in time, by the measured costs of steps" : "by the weights that steps read");
}

enum table { BY_CATEGORY, BY_DEPTH, BY_SEQUENCES };

static void
print_heading(const struct score_report *r, enum table table, uint32_t k, int width)
{
    if (table == BY_CATEGORY)
        printf("%*.*s", width, width - 1, r->category[k]);
    else if (table == BY_SEQUENCES && k == 0)
        printf("%*s", width, "here");
    else
        printf("%*u", width, table == BY_DEPTH ? score_depths[k] : score_sequences[k - 1]);
}

/* Prints a number, "-" for none, or "never" for an acceptance that would have to be above 1. */
static void
print_cell(const struct score_row *row, enum table table, uint32_t k, int width)
{
    const bool needed = table == BY_SEQUENCES && k > 0;
    const double value = needed                  ? (double)row->need_at[k - 1]
                         : table == BY_SEQUENCES ? (double)row->acceptance
                         : table == BY_DEPTH     ? row->depth[k].speedup.value
                                                 : row->category[k].speedup.value;
    if (isnan(value) || (needed && value >= 1))
        printf("%*s", width, isnan(value) ? "-" : "never");
    else
        printf("%*.2f", width, value);
}

/* Prints a line for each drafter that was scored, and n columns. */
static void
print_table(const struct score_command *s, const char *title, enum table table, uint32_t n)
{
    char name[100], text[COLUMNS];
    const int width = (COLUMNS - NAME) / (n > 6 ? (int)n : 6);
    printf("\n%s\n%*s", title, NAME, "");
    for (uint32_t k = 0; k < n; k++)
        print_heading(s->report, table, k, width);
    for (uint32_t i = 0; i < s->scored; i++) {
        score_drafter(s->row[i], name, sizeof name);
        printf("\n%-*s", NAME, printable_line(text, NAME - 1, name, strlen(name)));
        for (uint32_t k = 0; k < n; k++)
            print_cell(s->row[i], table, k, width);
    }
    putchar('\n');
}

static void
print_tables(const struct score_command *s)
{
    const struct score_report *r = s->report;
    if (r->n_categories > 1)
        print_table(s, "x ar by category:", BY_CATEGORY, r->n_categories);
    if (s->row[0]->depth[0].tokens < s->row[0]->all.tokens)
        print_table(s, "x ar by the position from which an answer begins:", BY_DEPTH, SCORE_DEPTHS);
    if (r->in_time)
        print_table(s, "Acceptance here, and the acceptance needed to break even with so many sequences at a time:",
                    BY_SEQUENCES, SCORE_SEQUENCES + 1);
}

/* ---- how to use it ---- */

/* Returns the draft model of a row that --drafts found, for --draft; NULL: it is that of the options, or none. The row
 * may be NULL. */
static const char *
draft_of(const struct score_command *s, const struct score_row *row)
{
    for (uint32_t i = 0; i < s->drafts.n && row != NULL; i++)
        if (strcmp(s->drafts.draft[i].label, row->drafter) == 0)
            return s->drafts.draft[i].name;
    return NULL;
}

/* Returns the fastest row whose interval is above 1 and whose policy the engine has; ENGINES: of any policy. NULL: there
 * is none. */
static const struct score_row *
fastest(const struct score_command *s, enum other_engine engine)
{
    for (uint32_t i = 0; i < s->scored; i++)
        if (s->row[i]->all.speedup.verdict == DIFFERENCE_MORE &&
            (engine == ENGINES || policy_named(policy_registry, s->row[i]->preset.policy)->command[engine] != NULL))
            return s->row[i];
    return NULL;
}

static void
print_use(const struct score_command *s)
{
    char text[ENGINE_COMMAND], *rest;
    const char *note = NULL;
    const struct score_row *row = fastest(s, ENGINES);
    if (row == NULL)
        puts("\nNo drafter is clearly faster than plain decoding on these texts. To use plain decoding:");
    else
        printf("\nTo use the fastest setting (%.2f x ar by forecast, %s):\n", row->all.speedup.value,
               tune_interval(row->all.speedup, "texts", text, sizeof text));
    printf("  %s run --policy %s", program_name(), row == NULL ? POLICY_BASELINE : row->preset.policy);
    snprintf(text, sizeof text, "%s", row == NULL ? "" : row->setting);
    for (char *knob = strtok_r(text, " ", &rest); knob != NULL; knob = strtok_r(NULL, " ", &rest))
        use_option("set", knob);
    use_models(s->o, draft_of(s, row));
    for (enum other_engine e = 0; e < ENGINES; e++) {
        if ((row = fastest(s, e)) == NULL)
            continue;
        const struct policy_ops *ops = policy_named(policy_registry, row->preset.policy);
        const struct model *own = s->engine->aux[policy_draft_role(ops->needs)].model;
        struct engine_models models = {s->engine->model->path, draft_of(s, row)};
        if (models.draft == NULL && own != NULL)
            models.draft = own->path;
        printf("%s %s: %s %s\n", engine_names[e], engine_versions[e], row->preset.policy, row->setting);
        engine_flags(e, ops, &row->preset, &models, NULL, 0, text, sizeof text);
        use_indented(text);
        note = engine_folder_note(text) != NULL ? engine_folder_note(text) : note;
    }
    if (note != NULL)
        puts(note);
}

/* ---- the command ---- */

bool
score_texts(struct options *o, struct engine *e, const struct drafts *further, const struct texts *texts, double time_s,
            struct score_report **out, struct err *err)
{
    struct engine_draft drafts[DRAFTS_MOST];
    const char *names[DRAFTS_MOST];
    for (uint32_t i = 0; i < further->n; i++) {
        drafts[i] = further->draft[i].reserve;
        names[i] = further->draft[i].label;
    }
    for (size_t i = 0; i < texts->n && generation_chat_unused(o, e); i++)
        o->chat.on = texts->at[i].messages;
    const struct scoring_options options = {.registry = policy_registry,
                                            .policies = (const char *const *)o->policies.at,
                                            .n_policies = o->policies.n,
                                            .set = o->set,
                                            .n_set = o->command == COMMAND_SCORE ? o->n_set : 0,
                                            .drafts = drafts,
                                            .draft_names = names,
                                            .n_drafts = further->n,
                                            .chat = o->chat,
                                            .ctx = o->ctx,
                                            .time_s = time_s,
                                            .texts = o->texts,
                                            .cancel = generation_interruption(),
                                            .done = show_progress};
    const bool ok = scoring_run(e, texts, &options, out, err);
    generation_progress(0, "");
    return ok;
}

static bool
report(struct score_command *s, struct err *err)
{
    const struct options *o = s->o;
    struct output csv;
    char line[200];
    s->n = score_order(s->report, s->row);
    for (uint32_t i = 0; i < s->n; i++)
        s->scored += s->row[i]->kind != SCORE_NOT;
    if (!output_is_stdout(o->json) && !output_is_stdout(o->csv)) {
        puts(score_progress(s->report, line, sizeof line));
        puts(score_own_text(s->report, line, sizeof line));
        print_drafters(s);
        if (s->scored > 0)
            print_tables(s);
        print_use(s);
    }
    return (o->json == NULL || json_write(score_json(s->report), o->json, err)) &&
           (o->csv == NULL ||
            (output_open(&csv, o->csv, &score_csv_file, err) && output_close(&csv, score_csv(s->report, csv.f), err)));
}

bool
score_main(struct options *o, int *status, struct err *err)
{
    struct score_command s = {.o = o};
    generation_catch_signals();
    o->sampling.top_p = 1;
    if (o->texts == NULL)
        return err_set(err, ERR_USAGE, "which texts? --texts FILE");
    bool ok = outputs_possible(o->json, &score_json_file, o->csv, &score_csv_file, err) &&
              text_source_read(&s.texts, o->texts, err) && generation_engine(o, &s.engine, err) &&
              drafts_open(&s.drafts, s.engine, o->drafts, err);
    if (ok && s.texts.skipped > 0)
        fprintf(stderr, "specscope: %s: %zu conversation%s without an answer, or repeated, skipped\n", o->texts,
                s.texts.skipped, plural(s.texts.skipped));
    if (ok)
        engine_repack(s.engine, generation_interruption());
    ok = ok && score_texts(o, s.engine, &s.drafts, &s.texts, o->time_s, &s.report, err) && report(&s, err);
    free(s.report);
    drafts_close(&s.drafts, s.engine);
    engine_close(s.engine);
    texts_free(&s.texts);
    *status = generation_interrupted() ? command_interrupted() : 0;
    return ok;
}
