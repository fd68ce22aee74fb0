/* Sets options from their arguments: numbers, words, and the setters of rows of type OPTION_CALL. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/model/trained/accept_head.h"
#include "engine/model/trained/exit_heads.h"
#include "engine/tune/preset.h"
#include "engine/tune/tuner.h"
#include "policies/registry.h"

/* Conversions from text to the members of struct options, by type. */

static bool
unknown_word(const struct option_row *row, const char *text, struct err *err)
{
    char words[160];
    return err_set(err, ERR_USAGE, "--%s %.32s is not known; there are %s", row->name, text,
                   option_words(row, " and ", words, sizeof words));
}

static bool
set_whole(void *member, const struct option_row *row, const char *text, struct err *err)
{
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < row->least || v > row->most)
        return err_set(err, ERR_USAGE, "--%s %.40s: a whole number from %" PRIu64 " to %" PRIu64 " is wanted",
                       row->name, text, row->least, row->most);
    if (row->size == sizeof(uint32_t))
        *(uint32_t *)member = (uint32_t)v;
    else
        *(uint64_t *)member = v;
    return true;
}

static bool
set_real(void *member, const struct option_row *row, const char *text, struct err *err)
{
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v >= row->low && v <= row->high))
        return err_set(err, ERR_USAGE, "--%s %.40s: a number from %g to %g is wanted", row->name, text, row->low,
                       row->high);
    if (row->size == sizeof(float))
        *(float *)member = (float)v;
    else
        *(double *)member = v;
    return true;
}

const char *
option_words(const struct option_row *row, const char *before_last, char *out, size_t n)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < row->n_words && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%s",
                                 i == 0                  ? ""
                                 : i + 1 == row->n_words ? before_last
                                                         : ", ",
                                 row->words[i]);
    return out;
}

static bool
set_choice(void *member, const struct option_row *row, const char *text, struct err *err)
{
    for (size_t i = 0; i < row->n_words; i++)
        if (strcasecmp(row->words[i], text) == 0) {
            if (row->size == sizeof(bool))
                *(bool *)member = i > 0;
            else
                *(unsigned *)member = (unsigned)i;
            return true;
        }
    return unknown_word(row, text, err);
}

static bool
append(struct option_list *list, const struct option_row *row, const char *text, struct err *err)
{
    if (list->n == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--%s: more than %d of them", row->name, OPTIONS_MOST);
    list->at[list->n++] = text;
    return true;
}

bool
option_set(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    void *member = (char *)o + row->at;
    switch (row->type) {
    case OPTION_SWITCH: *(bool *)member = true; return true;
    case OPTION_TEXT: *(const char **)member = text; return true;
    case OPTION_LIST: return append(member, row, text, err);
    case OPTION_WHOLE: return set_whole(member, row, text, err);
    case OPTION_REAL: return set_real(member, row, text, err);
    case OPTION_CHOICE: return set_choice(member, row, text, err);
    case OPTION_CALL: return row->set(o, row, text, err);
    case OPTION_PRINT:
        row->print(o->command);
        o->finished = true;
        return true;
    }
    return err_set(err, ERR_USAGE, "--%s: an option without a meaning", row->name);
}

const struct option_row *
option_find(const char *name, unsigned commands)
{
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & commands) != 0 && strcmp(option_rows[i].name, name) == 0)
            return &option_rows[i];
    return NULL;
}

void
options_init(struct options *o, enum command command)
{
    *o = (struct options){.command = command,
                          .pace = -1,
                          .backend_options = {.gpu = -1},
                          .plot = {.from = UINT64_MAX, .to = UINT64_MAX, .seq = UINT64_MAX}};
    for (size_t i = 0; i < n_option_rows; i++)
        if ((option_rows[i].commands & command) != 0 && option_rows[i].def != NULL)
            option_set(o, &option_rows[i], option_rows[i].def, NULL); /* a test sets them all */
}

/* ---- setters ---- */

enum { USUAL_BATCH = 8 };
#define TRACE_LEAST ((uint64_t)64 << 10)
#define TRACE_MOST  ((uint64_t)1 << 40)

static bool
copy_prompt(struct options *o, const char *text, size_t len, struct err *err)
{
    if (memchr(text, '\0', len) != NULL)
        return err_set(err, ERR_USAGE, "the prompt holds a NUL byte; is that a text file?");
    char *copy = strndup(text, len);
    if (copy == NULL)
        return err_set(err, ERR_WORK, "out of memory for the prompt");
    free(o->prompt);
    o->prompt = copy;
    o->prompt_len = len;
    return true;
}

bool
set_prompt(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    (void)row;
    return copy_prompt(o, text, strlen(text), err);
}

bool
set_prompt_file(struct options *o, const struct option_row *row, const char *path, struct err *err)
{
    (void)row;
    char *text;
    size_t len;
    if (!file_read(path, &text, &len, err))
        return false;
    while (len > 0 && text[len - 1] == '\n') /* a newline that an editor added at the end is dropped */
        len--;
    const bool ok = copy_prompt(o, text, len, err);
    free(text);
    return ok;
}

bool
set_batch(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    (void)row;
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text)) {
        o->prompts_file = text;
        o->batch = USUAL_BATCH;
        return true;
    }
    o->batch = strlen(text) < 4 ? (uint32_t)strtoul(text, NULL, 10) : BATCH_MOST + 1;
    return (o->batch >= 1 && o->batch <= BATCH_MOST) ||
           err_set(err, ERR_USAGE, "--batch %.20s: 1 to %d sequences at a time, or a file of prompts", text,
                   BATCH_MOST);
}

#define NEAR_MOST 40 /* bytes of a word that may be near another one */

/* Returns the number of letters to insert, delete, replace or swap with the next one (optimal string alignment). */
static size_t
distance(const char *a, const char *b)
{
    size_t d[NEAR_MOST + 1][NEAR_MOST + 1];
    const size_t n = strnlen(a, NEAR_MOST), m = strnlen(b, NEAR_MOST);
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            d[i][j] = i + j;
            if (i == 0 || j == 0)
                continue;
            const size_t one = d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] + 1 : d[i][j - 1] + 1,
                         other = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = one < other ? one : other;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

const char *
option_near(const char *word, const char *const *names, char *out, size_t n)
{
    size_t least = strlen(word) < 3 ? 1 : strlen(word) < 5 ? 2 : 3; /* fewer letters than these differ */
    out[0] = '\0';
    for (size_t i = 0; names[i] != NULL; i++) {
        const size_t d = distance(word, names[i]);
        if (d >= least)
            continue;
        least = d;
        snprintf(out, n, "; did you mean %s?", names[i]);
    }
    return out;
}

bool
set_policy(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    const struct policy_ops *ops = policy_named(policy_registry, name);
    if (!row->repeats && strcmp(name, POLICY_AUTO) == 0) {
        o->policies.n = 1;
        o->policies.at[0] = POLICY_AUTO;
        return true;
    }
    if (ops != NULL && !row->repeats)
        o->policies.n = 0; /* the last one counts */
    if (ops != NULL && o->policies.n < OPTIONS_MOST)
        o->policies.at[o->policies.n++] = ops->name;
    if (ops != NULL)
        return true;
    const char *names[POLICIES_MOST + 1] = {NULL};
    char all[300] = "; there are ", near[48];
    for (size_t i = 0, used = strlen(all); policy_registry[i] != NULL && i < POLICIES_MOST && used < sizeof all; i++) {
        names[i] = policy_registry[i]->name;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const bool is_near = option_near(name, names, near, sizeof near)[0] != '\0';
    return err_set(err, ERR_USAGE, "--policy %.32s is not known%s%s", name, is_near ? near : all,
                   is_near ? "" : "; --list-policies describes them");
}

bool
set_time(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    o->time_s = tune_time_parse(text);
    return !isnan(o->time_s) ||
           err_set(err, ERR_USAGE, "--%s %.32s: a time such as 90s, 5m or 1h is needed", row->name, text);
}

bool
set_knob(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    struct knob_setting k = {0};
    (void)row;
    if (equals == NULL || equals == text || equals[1] == '\0' || (size_t)(equals - text) >= sizeof k.name ||
        strlen(equals + 1) >= sizeof k.text)
        return err_set(err, ERR_USAGE, "--set %.40s: KNOB=VALUE is wanted, as in --set tau=0.6", text);
    memcpy(k.name, text, (size_t)(equals - text));
    memcpy(k.text, equals + 1, strlen(equals + 1) + 1);
    for (size_t i = 0; i < o->n_set; i++)
        if (strcmp(o->set[i].name, k.name) == 0) { /* the last one counts */
            memmove(&o->set[i], &o->set[i + 1], (--o->n_set - i) * sizeof k);
            o->n_config_set -= i < o->n_config_set;
        }
    if (o->n_set == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--set: more than %d settings", OPTIONS_MOST);
    o->set[o->n_set++] = k;
    return true;
}

bool
set_head(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    for (unsigned i = 0; i < HEAD_MODES; i++)
        if (strcmp(name, head_mode_names[i]) == 0) {
            if (!row->repeats)
                o->n_heads_given = 0; /* the last one counts */
            for (size_t k = 0; k < o->n_heads_given; k++)
                if (o->heads_given[k] == i)
                    return true;
            o->heads_given[o->n_heads_given++] = (enum head_mode)i;
            return true;
        }
    return unknown_word(row, name, err);
}

bool
set_head_kind(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    return head_kind_from(name, &o->train.kind) || unknown_word(row, name, err);
}

/* Parses "200M": a number of bytes, KiB, MiB or GiB. */
bool
set_trace_max(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, toupper((unsigned char)*end)) : NULL;
    const int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
    o->trace_bounds.bytes = (uint64_t)n << shift;
    return (text[0] >= '0' && text[0] <= '9' && errno == 0 && (*end == '\0' || (unit != NULL && end[1] == '\0')) &&
            n <= TRACE_MOST >> shift && o->trace_bounds.bytes >= TRACE_LEAST) ||
           err_set(err, ERR_USAGE, "--%s %.40s: a size from 64K to 1024G is wanted, as 200M", row->name, text);
}

bool
set_probe(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    return probe_parse(text, &o->probe, &o->probe_percent) || unknown_word(row, text, err);
}

bool
set_trace_probe(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    static const char *const words[] = {"all", "policy", "off"};
    static const enum trace_layers layers[] = {TRACE_LAYERS_ALL, TRACE_LAYERS_SOME, TRACE_LAYERS_OFF};
    char *end;
    o->trace_bounds.every = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            o->trace_bounds.layers = layers[i];
            return true;
        }
    const unsigned long n = strtoul(text, &end, 10);
    o->trace_bounds.layers = n == 1 ? TRACE_LAYERS_ALL : TRACE_LAYERS_SOME;
    o->trace_bounds.every = (uint32_t)n;
    return (text[0] >= '0' && text[0] <= '9' && *end == '\0' && n >= 1 && n <= 1000000) ||
           err_set(err, ERR_USAGE, "--%s %.32s: all, policy, off, or a number N for every Nth round is wanted",
                   row->name, text);
}

/* "0,1,3" */
bool
set_blocks(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    o->accept.n_blocks = 0;
    for (const char *at = text; o->accept.n_blocks < OPTIONS_MOST;) {
        char *end;
        const unsigned long n = strtoul(at, &end, 10);
        if (end == at || at[0] < '0' || at[0] > '9' || n > ACCEPT_HEAD_BLOCKS || (*end != ',' && *end != '\0'))
            break;
        o->accept.blocks[o->accept.n_blocks++] = (uint32_t)n;
        if (*end == '\0')
            return true;
        at = end + 1;
    }
    return err_set(err, ERR_USAGE, "--%s %.60s: numbers from 0 to %d with commas between them are wanted", row->name,
                   text, ACCEPT_HEAD_BLOCKS);
}

/* ---- chat templates ---- */

bool
set_chat_variable(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    (void)row;
    if (equals == NULL || equals == text)
        return err_set(err, ERR_USAGE, "--chat-var %.40s: NAME=VALUE is wanted, as in --chat-var enable_thinking=false",
                       text);
    const struct slice name = {text, (size_t)(equals - text)};
    size_t i = 0;
    while (i < o->chat.n_variables && slice_compare(o->chat_variables[i].name, name) != 0)
        i++;
    if (i == OPTIONS_MOST)
        return err_set(err, ERR_USAGE, "--chat-var: more than %d variables", OPTIONS_MOST);
    size_t all = strlen(text) + 1;
    for (size_t k = 0; k < o->chat.n_variables; k++)
        all += k == i ? 0 : o->chat_variables[k].name.len + o->chat_variables[k].value.len + 2;
    if (all > ASKED_VARS || strchr(text, '\n') != NULL) /* run.json has room for this much */
        return err_set(err, ERR_USAGE, "--chat-var %.*s: %s", (int)name.len, text,
                       all > ASKED_VARS ? "variables of more than 4000 bytes are not supported"
                                        : "a line break in a value is written \\n, in a JSON string");
    o->chat_variables[i] =
        (struct chat_variable){.name = name, .value = slice_of(equals + 1)}; /* the last one counts */
    o->chat.n_variables += i == o->chat.n_variables;
    return true;
}

/* Reads the file's text; the options own it. */
static bool
read_owned(struct options *o, const char *option, const char *path, char **text, size_t *len, struct err *err)
{
    if (o->n_owned == sizeof o->owned / sizeof *o->owned)
        return err_set(err, ERR_USAGE, "--%s is given too often", option);
    if (!file_read(path, text, len, err))
        return false;
    o->owned[o->n_owned++] = *text;
    return true;
}

bool
set_tools(struct options *o, const struct option_row *row, const char *path, struct err *err)
{
    char *text;
    size_t len;
    if (!read_owned(o, row->name, path, &text, &len, err))
        return false;
    o->chat.tools = text;
    o->chat.tools_path = path;
    return true;
}

bool
set_chat_template(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    char *template;
    size_t len;
    o->chat.name = o->chat.template_path = NULL;
    o->chat.template = (struct slice){0};
    if (strpbrk(text, "/.") == NULL) {
        o->chat.name = text;
        return true;
    }
    if (!read_owned(o, row->name, text, &template, &len, err))
        return false;
    o->chat.template = (struct slice){template, len};
    o->chat.template_path = text;
    return true;
}

bool
set_chat_date(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    struct tm day = {.tm_isdst = -1}, whole;
    (void)row;
    const char *end = strptime(text, "%Y-%m-%d", &day);
    const char *behind = end == NULL || *end == '\0' ? end : strptime(end, " %H:%M", &day);
    whole = day;
    if (behind == NULL || *behind != '\0' || timegm(&whole) == (time_t)-1 || whole.tm_mday != day.tm_mday)
        return err_set(err, ERR_USAGE, "--chat-date %.40s: a day is wanted, as in 2026-03-05, or \"2026-03-05 14:30\"",
                       text);
    o->chat_day = whole;
    o->chat.day = &o->chat_day;
    return true;
}

/* ---- presets ---- */

static bool
take_preset(struct options *o, const struct preset *p, struct err *err)
{
    o->n_set -= o->n_config_set; /* the config file's settings are for the policy there */
    memmove(o->set, o->set + o->n_config_set, o->n_set * sizeof *o->set);
    o->policies.n = 0;
    bool ok = set_policy(o, option_find("policy", o->command), p->policy, err);
    for (uint32_t i = 0; i < p->n_set && ok; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s=%s", p->set[i].name, p->set[i].text);
        ok = set_knob(o, option_find("set", o->command), text, err);
    }
    o->n_config_set = o->n_set; /* a later --policy drops them */
    for (int i = 0; i < SAMPLING_KNOBS && ok; i++)
        ok = p->sampling[i][0] == '\0' ||
             option_set(o, option_find(preset_sampling[i], o->command), p->sampling[i], err);
    return ok && (p->head[0] == '\0' || set_head(o, option_find("head", o->command), p->head, err));
}

bool
set_preset(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    char folder[1024];
    struct preset p;
    struct err inner = {0};
    if (config_path(folder, sizeof folder, "presets") == NULL)
        return err_set(err, ERR_USAGE, "--%s %.60s: neither XDG_CONFIG_HOME nor HOME is set, so there are no presets",
                       row->name, name);
    return (preset_read(&p, folder, name, &inner) && take_preset(o, &p, &inner)) ||
           err_set(err, inner.kind, "--%s %.60s: %.400s", row->name, name, inner.text);
}

static void
print_preset(const char *folder, const char *name)
{
    struct preset p;
    struct err err = {0};
    char safe[4 * sizeof err.text + 1];
    if (!preset_read(&p, folder, name, &err)) {
        printable_text(err.text, strlen(err.text), safe, sizeof safe);
        printf("%-16s cannot be used: %s\n", name, safe);
        return;
    }
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (out == NULL)
        return;
    fputs(p.policy, out);
    for (uint32_t i = 0; i < p.n_set; i++)
        fprintf(out, " %s=%s", p.set[i].name, p.set[i].text);
    if (p.head[0] != '\0')
        fprintf(out, " head=%s", p.head);
    for (int i = 0; i < SAMPLING_KNOBS; i++)
        if (p.sampling[i][0] != '\0')
            fprintf(out, " %s=%s", preset_sampling[i], p.sampling[i]);
    fclose(out);
    printable_text(text, strlen(text), safe, sizeof safe);
    printf("%-16s %s\n", name, safe);
    free(text);
}

void
presets_list(enum command command)
{
    (void)command;
    char folder[1024];
    struct preset_names names = {NULL, 0};
    if (config_path(folder, sizeof folder, "presets") == NULL || !preset_list(&names, folder, NULL) || names.n == 0)
        puts("there is no preset yet; :preset save NAME makes one in the scope");
    for (size_t i = 0; i < names.n; i++)
        print_preset(folder, names.name[i]);
    preset_names_free(&names);
}
