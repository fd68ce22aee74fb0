/* The report of scored drafters: its order and texts, its JSON, which is read with the same tables of fields that it is
 * printed with (base/json_fields.h), and its CSV. */
#include "engine/tune/score_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/json_fields.h"
#include "base/json_read.h"
#include "base/plural.h"
#include "engine/tune/results.h"
#include "engine/tune/tuner.h"

#define FORMAT     1 /* of the JSON */
#define FILE_BYTES ((size_t)16 << 20)
#define MOST_EXACT ((uint64_t)1 << 53) /* the largest whole number that a JSON number stores exactly */
#define CSV_BEGINS "policy,drafter,kind,why"

const uint32_t score_depths[SCORE_DEPTHS] = {0, 1024, 4096, 16384};
const uint32_t score_sequences[SCORE_SEQUENCES] = {1, 2, 4, 8, 16, 32, 64};
const struct file_kind score_json_file = {
    .what = "scores of specscope as JSON", .begins = "{\"specscope\":", .holds = {"\"score\":"}};
const struct file_kind score_csv_file = {.what = "scores of specscope as CSV", .begins = CSV_BEGINS ","};

/* ---- order and texts ---- */

/* Descending in the order of the table; NAN: not in it. */
static double
rank_of(const struct score_row *row)
{
    const double speedup = row->all.speedup.value;
    return row->kind == SCORE_NOT ? -1 : row->best && isnan(speedup) ? 0 : row->best ? speedup : (double)NAN;
}

uint32_t
score_order(const struct score_report *r, const struct score_row *out[SCORE_ROWS])
{
    uint32_t n = 0;
    for (const struct score_row *row = r->row; row < r->row + r->n; row++) {
        uint32_t at = n;
        for (; at > 0 && rank_of(row) > rank_of(out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = row;
        n += isnan(rank_of(row)) ? 0 : 1;
    }
    return n;
}

uint32_t
score_up_to(const struct score_row *row)
{
    const struct comparison *c = &row->all.speedup;
    const double surely = isnan(c->low) ? 1 : c->low / c->value;
    for (uint32_t i = SCORE_SEQUENCES; i-- > 0 && row->kind != SCORE_NOT;)
        if ((double)row->speedup_at[i] * surely > 1)
            return score_sequences[i];
    return 0;
}

const char *
score_drafter(const struct score_row *row, char *out, size_t n)
{
    snprintf(out, n, "%s%s%s", row->preset.policy, row->drafter[0] != '\0' ? " " : "", row->drafter);
    return out;
}

const char *
score_verdict(const struct score_row *row)
{
    static const char *const words[] = {"one conversation has no interval", "no clear difference",
                                        "faster than plain decoding", "slower than plain decoding"};
    return row->kind == SCORE_NOT ? row->why : words[row->all.speedup.verdict];
}

const char *
score_progress(const struct score_report *r, char *out, size_t n)
{
    char part[40] = "", left[32] = "", time[16];
    if (r->conversations < r->of)
        snprintf(part, sizeof part, "%s%u of ", r->stopped ? "stopped after " : "", (unsigned)r->conversations);
    if (r->left_s > 0)
        snprintf(left, sizeof left, " · %s left", tune_time_text(r->left_s, time, sizeof time));
    snprintf(out, n, "%s%u conversation%s · %" PRIu64 " tokens read%s", part, (unsigned)r->of, plural(r->of), r->read,
             left);
    return out;
}

const char *
score_own_text(const struct score_report *r, char *out, size_t n)
{
    if (r->own.n == 0)
        snprintf(out, n, "no token was compared with the model's own choice");
    else
        snprintf(out, n, "%.1f%% of the answers' tokens are this model's own%s", r->own.value * 100,
                 r->own.value >= SCORE_OWN ? "" : ": not its own texts, so acceptance is a guess");
    return out;
}

/* ---- JSON ---- */

static const char *const kind_names[] = {"exact", "estimated", "not scored"}, *const verdict_names[] = {
                                                                                  "unknown", "no clear difference",
                                                                                  "faster", "slower"};

#define OF struct score_part
static const struct field part_fields[] = {FIELD_BOUNDED(NEEDED, "conversations", per_round.n, 0, MOST_EXACT),
                                           FIELD_BOUNDED(NEEDED, "tokens", tokens, 0, MOST_EXACT),
                                           FIELD_PLAIN(OR_NULL, "tokens_per_round", REAL, per_round.value),
                                           FIELD_PLAIN(OR_NULL, "tokens_per_round_se", REAL, per_round.se),
                                           FIELD_PLAIN(OR_NULL, "speedup", REAL, speedup.value),
                                           FIELD_PLAIN(OR_NULL, "speedup_low", REAL, speedup.low),
                                           FIELD_PLAIN(OR_NULL, "speedup_high", REAL, speedup.high),
                                           FIELD_NAMED(NEEDED, "verdict", speedup.verdict, verdict_names, 3),
                                           FIELD_END};
#undef OF

#define OF struct preset_knob
static const struct field knob_fields[] = {FIELD_PLAIN(NEEDED, "knob", LABEL, name),
                                           FIELD_PLAIN(NEEDED, "value", LABEL, text), FIELD_END};
#undef OF

#define OF struct score_row
static const struct field row_fields[] = {FIELD_PLAIN(NEEDED, "policy", LABEL, preset.policy),
                                          FIELD_PLAIN(NEEDED, "drafter", LABEL, drafter),
                                          FIELD_NAMED(NEEDED, "kind", kind, kind_names, SCORE_NOT),
                                          FIELD_PLAIN(NEEDED, "why", LABEL, why),
                                          FIELD_PLAIN(USUAL, "params", LABEL, setting),
                                          FIELD_PLAIN(NEEDED, "best", FLAG, best),
                                          FIELD_REAL_TO(OR_NULL, "acceptance", acceptance, 1),
                                          FIELD_END};
/* Element i of these lists is in the arrays, i floats after the first one. */
static const struct field position_fields[] = {FIELD_REAL_TO(OR_NULL, "accepted", accepted[0], 1), FIELD_END};
static const struct field sequence_fields[] = {FIELD_REAL_TO(OR_NULL, "speedup", speedup_at[0], 1000000),
                                               FIELD_REAL_TO(OR_NULL, "need", need_at[0], 1), FIELD_END};
#undef OF

#define OF struct score_report
static const struct field report_fields[] = {FIELD_PLAIN(NEEDED, "model", LABEL, model),
                                             FIELD_PLAIN(NEEDED, "texts", LABEL, texts),
                                             FIELD_BOUNDED(NEEDED, "conversations", conversations, 0, UINT32_MAX),
                                             FIELD_BOUNDED(NEEDED, "of", of, 0, UINT32_MAX),
                                             FIELD_BOUNDED(NEEDED, "answer_tokens", answers, 0, MOST_EXACT),
                                             FIELD_BOUNDED(NEEDED, "tokens_read", read, 0, MOST_EXACT),
                                             FIELD_PLAIN(OR_NULL, "seconds", REAL, seconds),
                                             FIELD_PLAIN(NEEDED, "stopped", FLAG, stopped),
                                             FIELD_PLAIN(NEEDED, "in_time", FLAG, in_time),
                                             FIELD_BOUNDED(NEEDED, "own_compared", own.n, 0, MOST_EXACT),
                                             FIELD_REAL_TO(OR_NULL, "own_share", own.value, 1),
                                             FIELD_PLAIN(OR_NULL, "own_share_se", REAL, own.se),
                                             FIELD_END};
static const struct field category_fields[] = {
    {"name", FIELD_LABEL, FIELD_NEEDED, 0, sizeof(((OF *)0)->category[0]), 0, 0, NULL, NULL, NULL}, FIELD_END};
#undef OF

static void
print_list(bool *ok, cJSON *to, const char *key, const struct field *table, const void *from, size_t size, uint32_t n)
{
    cJSON *list = field_add_array(ok, to, key);
    for (uint32_t i = 0; i < n && *ok; i++)
        fields_print(ok, field_add_item(ok, list, cJSON_CreateObject()), table, (const char *)from + i * size);
}

cJSON *
score_json(const struct score_report *r)
{
    cJSON *j = cJSON_CreateObject();
    bool ok = cJSON_AddNumberToObject(j, "score", FORMAT) != NULL;
    fields_print(&ok, j, report_fields, r);
    print_list(&ok, j, "categories", category_fields, r->category, sizeof *r->category, r->n_categories);
    cJSON *rows = field_add_array(&ok, j, "rows");
    for (const struct score_row *row = r->row; row < r->row + r->n; row++) {
        cJSON *to = field_add_item(&ok, rows, cJSON_CreateObject());
        fields_print(&ok, to, row_fields, row);
        fields_print(&ok, to, part_fields, &row->all);
        print_list(&ok, to, "set", knob_fields, row->preset.set, sizeof *row->preset.set, row->preset.n_set);
        print_list(&ok, to, "categories", part_fields, row->category, sizeof *row->category, r->n_categories);
        print_list(&ok, to, "depths", part_fields, row->depth, sizeof *row->depth, SCORE_DEPTHS);
        print_list(&ok, to, "positions", position_fields, row, sizeof(float), SCORE_POSITIONS);
        print_list(&ok, to, "sequences", sequence_fields, row, sizeof(float), SCORE_SEQUENCES);
    }
    if (ok)
        return j;
    cJSON_Delete(j);
    return NULL;
}

static uint32_t
parse_list(struct fields *p, const cJSON *from, const char *key, const struct field *table, void *to, size_t size,
           int most)
{
    uint32_t n = 0;
    const cJSON *item, *list = field_array(p, from, key, true, most);
    cJSON_ArrayForEach(item, list) fields_parse(p, item, table, (char *)to + n++ * size);
    return n;
}

static void
parse_row(struct fields *p, const cJSON *from, struct score_row *row)
{
    fields_parse(p, from, row_fields, row);
    fields_parse(p, from, part_fields, &row->all);
    row->preset.n_set = parse_list(p, from, "set", knob_fields, row->preset.set, sizeof *row->preset.set, POLICY_KNOBS);
    parse_list(p, from, "categories", part_fields, row->category, sizeof *row->category, SCORE_CATEGORIES);
    parse_list(p, from, "depths", part_fields, row->depth, sizeof *row->depth, SCORE_DEPTHS);
    parse_list(p, from, "positions", position_fields, row, sizeof(float), SCORE_POSITIONS);
    parse_list(p, from, "sequences", sequence_fields, row, sizeof(float), SCORE_SEQUENCES);
}

static void
parse_report(struct fields *p, const cJSON *from, struct score_report *r)
{
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(from, "score"), *row;
    if (!cJSON_IsNumber(format) || format->valuedouble != FORMAT)
        p->ok = err_set(p->err, ERR_USAGE, "%s: not a report that `specscope score --json FILE` writes", p->name);
    fields_parse(p, from, report_fields, r);
    r->n_categories =
        parse_list(p, from, "categories", category_fields, r->category, sizeof *r->category, SCORE_CATEGORIES);
    const cJSON *rows = field_array(p, from, "rows", true, SCORE_ROWS);
    cJSON_ArrayForEach(row, rows) parse_row(p, row, &r->row[r->n++]);
}

bool
score_read_file(const char *path, struct score_report **out, struct err *err)
{
    struct fields p = {.name = path, .err = err, .ok = true};
    char *text;
    size_t n;
    cJSON *j;
    *out = NULL;
    if (!file_text(path, FILE_BYTES, &text, &n, err))
        return false;
    struct score_report *r = calloc(1, sizeof *r);
    if (!json_read(&j, text, n) || r == NULL)
        p.ok = err_set(err, ERR_WORK, "%s: out of memory", path);
    else
        parse_report(&p, j, r);
    if (p.ok)
        *out = r;
    else
        free(r);
    free(text);
    cJSON_Delete(j);
    return p.ok;
}

/* ---- CSV: the members of the JSON ---- */

/* Writes a line for the texts of a category or from a depth on, or the names of the columns. */
static bool
csv_line(FILE *out, bool names, const struct score_row *row, const struct score_part *part, const char *category,
         const char *depth)
{
    cJSON *j = cJSON_CreateObject();
    bool ok = j != NULL;
    fields_print(&ok, j, row_fields, row);
    fields_print(&ok, j, part_fields, part);
    ok = ok && cJSON_AddNumberToObject(j, "up_to_sequences", score_up_to(row)) != NULL &&
         cJSON_AddStringToObject(j, "category", category) != NULL && cJSON_AddRawToObject(j, "depth", depth) != NULL;
    for (cJSON *item = ok ? j->child : NULL; item != NULL; item = item->next) {
        char *text = cJSON_IsString(item) || names ? NULL : cJSON_PrintUnformatted(item);
        if (text == NULL && !names)
            results_csv_text(out, item->valuestring != NULL ? item->valuestring : "");
        else
            fputs(names ? item->string : strcmp(text, "null") == 0 ? "" : text, out);
        fputs(item->next != NULL ? "," : "\r\n", out);
        cJSON_free(text);
    }
    cJSON_Delete(j);
    return ok;
}

bool
score_csv(const struct score_report *r, FILE *out)
{
    static const struct score_row none = {.best = false};
    char depth[12];
    bool ok = csv_line(out, true, &none, &none.all, "", "");
    for (const struct score_row *row = r->row; row < r->row + r->n; row++) {
        ok = csv_line(out, false, row, &row->all, "", "null") && ok;
        for (uint32_t c = 0; c < r->n_categories && row->kind != SCORE_NOT; c++)
            ok = csv_line(out, false, row, &row->category[c], r->category[c], "null") && ok;
        for (uint32_t d = 0; d < SCORE_DEPTHS && row->kind != SCORE_NOT; d++) {
            snprintf(depth, sizeof depth, "%u", (unsigned)score_depths[d]);
            ok = csv_line(out, false, row, &row->depth[d], "", depth) && ok;
        }
    }
    return ok;
}
