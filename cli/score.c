/* specscope score: forecasts what each drafter gains on finished texts (engine/scoring/scoring.h), and prints the
 * report (engine/tune/score_report.h). */
#include "cli/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/program.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/use.h"
#include "engine/tune/engine_flags.h"

#define COLUMNS 100
#define NAME    28   /* columns of a drafter */
#define COMMAND 8192 /* bytes */

struct score_command {
    struct options *o;
    struct engine *engine;
    struct drafts drafts;
    struct texts texts;
    struct score_report *report;           /* owned */
    uint32_t order[SCORE_ROWS], n, scored; /* rows of the table; those of them that were scored are first */
};

/* ---- progress ---- */

static bool
show_progress(void *user, const struct score_report *r)
{
    struct winsize size = {.ws_col = 0};
    char line[200];
    (void)user;
    if (!isatty(STDERR_FILENO))
        return true;
    text_ascii((char *)score_progress(r, line, sizeof line));
    const int cols = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
    fprintf(stderr, "\r%.*s\x1b[K", cols - 1, line);
    return true;
}

/* ---- tables ---- */

/* Writes the policy and the knobs that differ from its defaults on this model. */
static const char *
setting_text(const struct score_command *s, const struct score_row *row, const char *before, char *out, size_t n)
{
    const struct model *m = s->engine->model;
    const struct model_info facts = {m->desc.n_layers, m->desc.width, m->desc.vocab, m->rho, s->engine->profile};
    struct policy p;
    out[0] = '\0';
    if (policy_open(&p, policy_named(policy_registry, row->preset.policy), &facts, &s->o->sampling, NULL))
        preset_setting_text(&row->preset, &p.info, before, out, n);
    policy_close(&p);
    return out;
}

/* "1.46 to 1.58", or "-" without an interval */
static const char *
interval_text(struct comparison c, char *out, size_t n)
{
    snprintf(out, n, isnan(c.low) ? "-" : "%.2f to %.2f", c.low, c.high);
    return out;
}

static void
print_setting(const struct score_command *s, const struct score_row *row)
{
    char setting[COMMAND], name[COMMAND], cut[COLUMNS], rounds[32], interval[32], drafter[100], up_to[12];
    setting_text(s, row, " ", setting, sizeof setting);
    snprintf(name, sizeof name, "%s%s", score_drafter(row, drafter, sizeof drafter), setting + strcspn(setting, " "));
    snprintf(rounds, sizeof rounds, isnan(row->all.per_round.se) ? "%.2f" : "%.2f ± %.2f", row->all.per_round.value,
             row->all.per_round.se);
    snprintf(up_to, sizeof up_to, "%u", (unsigned)score_up_to(row));
    printf("%6.2f  %13s  %*s%s  %5s  %-9s  %s\n", row->all.speedup.value,
           interval_text(row->all.speedup, interval, sizeof interval), 12 - text_width(rounds), "", rounds,
           isnan(row->acceptance) ? "-" : up_to, row->kind == SCORE_EXACT ? "exact" : "estimated",
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
        const struct score_row *row = &r->row[s->order[i]];
        do
            print_setting(s, row++);
        while (all && row < r->row + r->n && !row->best && row->kind != SCORE_NOT);
    }
    for (uint32_t i = s->scored; i < s->n; i++)
        printf("%s%s: %s\n", i == s->scored ? "not scored:\n  " : "  ",
               score_drafter(&s->report->row[s->order[i]], drafter, sizeof drafter), s->report->row[s->order[i]].why);
    printf("x ar: forecast speed %s, in multiples of plain decoding (ar)\n"
           "up to: sequences at a time at which it is still faster, by the costs here; 0: none; -: no drafts\n"
           "rounds: exact if they are those of a real run on these texts; else estimated\n",
           s->report->in_time ? "in time, by the measured costs of steps" : "by the weights that steps read");
}

enum table { BY_CATEGORY, BY_DEPTH, BY_SEQUENCES };

/* Writes "1.52", "-" for nothing, or "never" for an acceptance that would have to be above 1. */
static const char *
cell(const struct score_row *row, enum table table, uint32_t column, char *out, size_t n)
{
    const struct score_part *part = table == BY_DEPTH ? &row->depth[column] : &row->category[column];
    double value = part->speedup.value;
    if (table == BY_SEQUENCES)
        value = (double)(column == 0 ? row->acceptance : row->need_at[column - 1]);
    else if (part->tokens == 0)
        value = NAN;
    snprintf(out, n, isnan(value) ? "-" : table == BY_SEQUENCES && column > 0 && value >= 1 ? "never" : "%.2f", value);
    return out;
}

/* Prints a line for each drafter that was scored and a column for each heading, in several parts if they are many. */
static void
print_table(const struct score_command *s, const char *title, enum table table, const char *const *heading, uint32_t n)
{
    char name[100], text[COLUMNS];
    const int width = table == BY_CATEGORY ? 12 : 9;
    const uint32_t most = (uint32_t)((COLUMNS - NAME) / width);
    for (uint32_t from = 0; from < n; from += most) {
        const uint32_t end = n - from > most ? from + most : n;
        printf("\n%s\n%*s", title, NAME, "");
        for (uint32_t k = from; k < end; k++)
            printf("%*.*s", width, width - 1, heading[k]);
        for (uint32_t i = 0; i < s->scored; i++) {
            const struct score_row *row = &s->report->row[s->order[i]];
            score_drafter(row, name, sizeof name);
            printf("\n%-*s", NAME, printable_line(text, NAME - 1, name, strlen(name)));
            for (uint32_t k = from; k < end; k++)
                printf("%*s", width, cell(row, table, k, text, sizeof text));
        }
        putchar('\n');
    }
}

static void
print_tables(const struct score_command *s)
{
    static const char *const depths[] = {"from 0", "1024", "4096", "16384"}, *const needs[] = {"here", "1", "2",
                                                                                               "4",    "8", "16",
                                                                                               "32",   "64"};
    const struct score_report *r = s->report;
    const char *categories[SCORE_CATEGORIES];
    uint32_t deep = 0;
    bool costs = false;
    for (uint32_t i = 0; i < r->n_categories; i++)
        categories[i] = r->category[i];
    for (uint32_t i = 0; i < SCORE_DEPTHS; i++)
        deep += r->row[s->order[0]].depth[i].tokens > 0;
    if (r->n_categories > 1)
        print_table(s, "x ar by category:", BY_CATEGORY, categories, r->n_categories);
    if (deep > 1)
        print_table(s, "x ar by the position at which an answer begins:", BY_DEPTH, depths, SCORE_DEPTHS);
    for (uint32_t i = 0; i < s->scored; i++)
        costs = costs || !isnan(r->row[s->order[i]].need_at[0]);
    if (costs)
        print_table(s, "Share of accepted drafts here, and the one that is needed with so many sequences at a time:",
                    BY_SEQUENCES, needs, SCORE_SEQUENCES + 1);
}

/* ---- how to use it ---- */

/* Returns the draft model of a row, for --draft; NULL: it is that of the options, or none. */
static const char *
draft_of(const struct score_command *s, const struct score_row *row)
{
    for (uint32_t i = 0; i < s->drafts.n; i++)
        if (row->drafter[0] != '\0' && strncmp(s->drafts.draft[i].name, row->drafter, sizeof row->drafter - 1) == 0)
            return s->drafts.draft[i].name;
    return NULL;
}

/* Returns the fastest row, of those that draft and that another engine has, whose interval is above 1; NULL: there is
 * none. */
static const struct score_row *
fastest(const struct score_command *s, enum other_engine engine)
{
    for (uint32_t i = 0; i < s->scored; i++) {
        const struct score_row *row = &s->report->row[s->order[i]];
        if (row->all.speedup.verdict == DIFFERENCE_MORE && !isnan(row->acceptance) &&
            (engine == ENGINES || policy_named(policy_registry, row->preset.policy)->command[engine] != NULL))
            return row;
    }
    return NULL;
}

static void
print_use(const struct score_command *s)
{
    char text[COMMAND], interval[32];
    const char *note = NULL;
    const struct score_row *best = fastest(s, ENGINES);
    if (best == NULL) {
        printf("\nNo drafter is clearly faster than plain decoding on these texts. To use plain decoding:\n  %s run "
               "--policy ar",
               program_name());
        use_models(s->o, NULL);
        return;
    }
    printf("\nTo use the fastest setting (%.2f x ar by forecast, %s):\n  %s run --policy %s", best->all.speedup.value,
           interval_text(best->all.speedup, interval, sizeof interval), program_name(),
           setting_text(s, best, " --set ", text, sizeof text));
    use_models(s->o, draft_of(s, best));
    for (enum other_engine e = 0; e < ENGINES; e++) {
        const struct score_row *row = fastest(s, e);
        if (row == NULL)
            continue;
        const struct policy_ops *ops = policy_named(policy_registry, row->preset.policy);
        const struct aux_model *own = &s->engine->aux[(ops->needs & NEEDS(AUX_EAGLE)) != 0 ? AUX_EAGLE : AUX_DRAFT];
        const struct engine_models models = {s->engine->model->path, draft_of(s, row) != NULL ? draft_of(s, row)
                                                                     : own->found             ? own->model->path
                                                                                              : s->o->aux[AUX_DRAFT]};
        printf("%s %s: %s\n", engine_names[e], engine_versions[e], setting_text(s, row, " ", text, sizeof text));
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
        names[i] = further->draft[i].name;
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
    if (isatty(STDERR_FILENO))
        fputs("\r\x1b[K", stderr);
    return ok || generation_interrupted() || err->kind != ERR_CANCELLED
               ? ok
               : err_set(err, ERR_USAGE, "the time was over before a conversation was read; give more --time");
}

static bool
report(struct score_command *s, struct err *err)
{
    const struct options *o = s->o;
    struct output csv;
    char line[200];
    bool ok = true;
    s->n = score_order(s->report, s->order);
    while (s->scored < s->n && s->report->row[s->order[s->scored]].kind != SCORE_NOT)
        s->scored++;
    if (!output_is_stdout(o->json) && !output_is_stdout(o->csv)) {
        puts(score_progress(s->report, line, sizeof line));
        puts(score_own_text(s->report, line, sizeof line));
        print_drafters(s);
        if (s->scored > 0)
            print_tables(s);
        print_use(s);
    }
    if (o->json != NULL) {
        cJSON *j = score_json(s->report);
        ok = j != NULL ? json_write(j, o->json, err) : err_set(err, ERR_WORK, "%s: out of memory", o->json);
        cJSON_Delete(j);
    }
    return ok && (o->csv == NULL || (output_open(&csv, o->csv, &score_csv_file, err) &&
                                     output_close(&csv, score_csv(s->report, csv.f), err)));
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
              texts_read(&s.texts, o->texts, err) && generation_engine(o, &s.engine, err) &&
              (o->drafts == NULL || drafts_open(&s.drafts, s.engine, o->drafts, err));
    if (ok && s.texts.skipped > 0)
        fprintf(stderr, "specscope: %s: %zu conversation%s without an answer, or repeated, skipped\n", o->texts,
                s.texts.skipped, plural(s.texts.skipped));
    if (ok && o->drafts != NULL)
        drafts_print(&s.drafts, o->drafts);
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
