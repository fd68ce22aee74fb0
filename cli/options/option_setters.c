#include "cli/options/option_setters.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/files.h"
#include "engine/trained/accept_head.h"
#include "engine/trained/exit_heads.h"
#include "kernels/request.h"
#include "policies/policy.h"

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
    while (len > 0 && text[len - 1] == '\n') /* an editor's last newline is not meant */
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

bool
set_policy(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    for (size_t i = 0; policy_registry[i] != NULL; i++)
        if (strcmp(policy_registry[i]->name, name) == 0) {
            if (!row->repeats)
                o->policies.n = 0; /* the last one counts */
            if (o->policies.n < OPTIONS_MOST)
                o->policies.at[o->policies.n++] = policy_registry[i]->name;
            return true;
        }
    return err_set(err, ERR_USAGE, "--policy %.32s is not known; see --list-policies", name);
}

bool
set_time(struct options *o, const struct option_row *row, const char *text, struct err *err)
{
    char *end;
    const double n = strtod(text, &end);
    const double unit = *end == '\0' || strcmp(end, "s") == 0 ? 1
                        : strcmp(end, "m") == 0               ? 60
                        : strcmp(end, "h") == 0               ? 3600
                                                              : 0;
    o->time_s = n * unit;
    return (end != text && o->time_s > 0 && o->time_s < 1e7) ||
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
    return option_unknown_word(row, name, err);
}

bool
set_head_kind(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    return head_kind_from(name, &o->train.kind) || option_unknown_word(row, name, err);
}

bool
set_prefill(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    const bool blas = strcmp(name, "blas") == 0;
    o->backend_options.prompt_rows = blas ? PROMPT_ROWS : 0;
    return blas || strcmp(name, "rows") == 0 || option_unknown_word(row, name, err);
}

/* "200M": bytes, or so many KiB, MiB, GiB. */
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
