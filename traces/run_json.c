/* Prints and parses run.json with the same tables of fields (json_fields.h). Members that were added later, or that
 * other writers may leave out, are not needed. */
#include "traces/run_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_fields.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "traces/schema.h"

#define MAX_CHOICES 64
#define MOST_EXACT  ((uint64_t)1 << 53) /* the largest whole number that a JSON number stores exactly */

static const char *const knob_kind_names[KNOB_CHOICE + 1] = {"real", "integer", "choice"};
static const char *const trace_layer_names[TRACE_LAYERS_OFF + 1] = {"all", "some", "off"};

/* ---- the tables ---- */

#define OF struct aux_info
static const struct field aux_fields[] = {FIELD_PLAIN(NEEDED, "path", TEXT, path),
                                          FIELD_PLAIN(NEEDED, "name", LABEL, name),
                                          FIELD_PLAIN(NEEDED, "hash", HASH, hash),
                                          FIELD_BOUNDED(USUAL, "layers", layers, 0, RUN_LAYERS_MOST),
                                          FIELD_PLAIN(IF_SET, "pass_load", REAL, pass_load),
                                          FIELD_PLAIN(IF_SET, "head_load", REAL, head_load),
                                          FIELD_PLAIN(IF_SET, "accept_load", REAL, accept_load),
                                          FIELD_END};
#undef OF

#define OF struct trained_info
static const struct field trained_fields[] = {FIELD_PLAIN(NEEDED, "path", TEXT, path),
                                              FIELD_PLAIN(NEEDED, "hash", HASH, hash), FIELD_END};
#undef OF

#define OF struct asked_info
static const struct field asked_fields[] = {FIELD_PLAIN(IF_SET, "chat", FLAG, chat),
                                            FIELD_PLAIN(IF_SET, "chat_special", FLAG, chat_special),
                                            FIELD_PLAIN(IF_SET, "ignore_eos", FLAG, ignore_eos),
                                            FIELD_PLAIN(IF_SET, "quantize", FLAG, quantize),
                                            FIELD_PLAIN(IF_SET, "no_heads", FLAG, no_heads),
                                            FIELD_PLAIN(IF_SET, "system", OWNED, system),
                                            FIELD_PLAIN(IF_SET, "chat_vars", TEXT, chat_vars),
                                            FIELD_PLAIN(IF_SET, "lora", TEXT, lora),
                                            FIELD_PLAIN(IF_SET, "tools", TEXT, tools),
                                            FIELD_PLAIN(IF_SET, "chat_template", TEXT, chat_template),
                                            FIELD_PLAIN(IF_SET, "chat_date", LABEL, chat_date),
                                            FIELD_PLAIN(IF_SET, "isa", LABEL, isa),
                                            FIELD_PLAIN(IF_SET, "gpu", LABEL, gpu),
                                            FIELD_PLAIN(IF_SET, "prompts", TEXT, prompts),
                                            FIELD_BOUNDED(IF_SET, "batch", batch, 1, INT32_MAX),
                                            FIELD_BOUNDED(IF_SET, "threads", threads, 1, INT32_MAX),
                                            FIELD_END};
#undef OF

static bool
leaves_out_some(const void *bounds)
{
    return ((const struct trace_bounds *)bounds)->layers == TRACE_LAYERS_SOME;
}

#define OF struct trace_bounds
static const struct field bounds_fields[] = {
    FIELD_BOUNDED(IF_SET, "max_bytes", bytes, 0, MOST_EXACT),
    FIELD_NAMED(USUAL, "layers", layers, trace_layer_names, TRACE_LAYERS_OFF),
    {"every", FIELD_WHOLE, FIELD_USUAL, FIELD_AT(OF, every), 0, UINT32_MAX, NULL, NULL, leaves_out_some},
    FIELD_END};
#undef OF

#define OF struct sampling
static const struct field sampling_fields[] = {FIELD_PLAIN(NEEDED, "temperature", REAL, temperature),
                                               FIELD_BOUNDED(USUAL, "top_k", top_k, 0, UINT32_MAX),
                                               FIELD_PLAIN(USUAL, "top_p", REAL, top_p), FIELD_END};
#undef OF

#define OF struct run_info
static const struct field model_fields[] = {FIELD_PLAIN(USUAL, "path", TEXT, model_path),
                                            FIELD_PLAIN(NEEDED, "name", LABEL, model_name),
                                            FIELD_PLAIN(USUAL, "architecture", LABEL, arch),
                                            FIELD_PLAIN(USUAL, "types", LABEL, types),
                                            FIELD_BOUNDED(NEEDED, "layers", layers, 1, RUN_LAYERS_MOST),
                                            FIELD_PLAIN(IF_SET, "layer_kinds", LABEL, layer_kinds),
                                            FIELD_BOUNDED(IF_SET, "width", width, 1, UINT32_MAX),
                                            FIELD_BOUNDED(IF_SET, "heads", heads, 1, UINT32_MAX),
                                            FIELD_BOUNDED(IF_SET, "kv_heads", kv_heads, 1, UINT32_MAX),
                                            FIELD_BOUNDED(IF_SET, "ffn", ffn, 1, UINT32_MAX),
                                            FIELD_BOUNDED(IF_SET, "experts", experts, 1, RUN_EXPERTS_MOST),
                                            FIELD_BOUNDED(IF_SET, "experts_used", experts_used, 1, RUN_EXPERTS_MOST),
                                            FIELD_BOUNDED(NEEDED, "vocab", vocab, 1, INT32_MAX),
                                            FIELD_PLAIN(USUAL, "parameters", DECIMAL, parameters),
                                            FIELD_PLAIN(USUAL, "hash", HASH, model_hash),
                                            FIELD_PLAIN(IF_SET, "rho", REAL, rho),
                                            FIELD_END};

#define AUX_FIELD(role, name) FIELD_STRUCT(IF_SET, name, aux[AUX_##role], aux_fields),
static const struct field run_fields[] = {
    FIELD_BOUNDED(NEEDED, "format", format, 1, UINT32_MAX),
    FIELD_PLAIN(USUAL, "specscope", LABEL, version),
    FIELD_PLAIN(USUAL, "started", LABEL, started),
    {"model", FIELD_OBJECT, FIELD_NEEDED, 0, sizeof(struct run_info), 0, 0, NULL, model_fields, NULL},
    AUX_ROLES(AUX_FIELD) FIELD_STRUCT(IF_SET, "accept_head", accept_head, trained_fields),
    FIELD_STRUCT(IF_SET, "profile", profile, trained_fields),
    FIELD_STRUCT(IF_SET, "exit_heads", exit_heads, trained_fields),
    FIELD_STRUCT(IF_SET, "vocab_counts", vocab_counts, trained_fields),
    FIELD_PLAIN(IF_SET, "vocab_last", LABEL, vocab_last),
    FIELD_STRUCT(USUAL, "asked", asked, asked_fields),
    FIELD_PLAIN(USUAL, "backend", LABEL, backend),
    FIELD_PLAIN(USUAL, "isa", LABEL, isa),
    FIELD_PLAIN(USUAL, "host", LABEL, host),
    FIELD_BOUNDED(USUAL, "threads", threads, 0, UINT32_MAX),
    FIELD_PLAIN(USUAL, "exact", FLAG, exact),
    FIELD_BOUNDED(NEEDED, "ctx", ctx, 1, INT32_MAX),
    FIELD_BOUNDED(USUAL, "tokens", tokens, 0, UINT32_MAX),
    FIELD_BOUNDED(USUAL, "sequences", sequences, 1, INT32_MAX),
    FIELD_BOUNDED(USUAL, "prompts", prompts, 1, INT32_MAX),
    FIELD_PLAIN(NEEDED, "prompt", OWNED, prompt),
    FIELD_STRUCT(NEEDED, "sampling", sampling, sampling_fields),
    FIELD_PLAIN(USUAL, "seed", DECIMAL, seed),
    FIELD_STRUCT(IF_SET, "trace", trace, bounds_fields),
    FIELD_PLAIN(NEEDED, "policy", LABEL, policy),
    FIELD_PLAIN(IF_SET, "cut", FLAG, cut), /* written by run_json_close() */
    FIELD_END};
#undef OF

#define OF struct policy_info
static const struct field policy_fields[] = {FIELD_PLAIN(NEEDED, "name", LABEL, name),
                                             FIELD_PLAIN(USUAL, "title", LABEL, title),
                                             FIELD_PLAIN(USUAL, "paper", LABEL, paper), FIELD_END};
#undef OF

struct started_knob {
    struct knob knob;
    double start;
};

#define OF struct started_knob
static const struct field knob_fields[] = {
    FIELD_PLAIN(NEEDED, "name", LABEL, knob.name), FIELD_PLAIN(NEEDED, "symbol", LABEL, knob.symbol),
    FIELD_PLAIN(NEEDED, "help", LABEL, knob.help), FIELD_NAMED(NEEDED, "kind", knob.kind, knob_kind_names, KNOB_CHOICE),
    FIELD_PLAIN(NEEDED, "min", REAL, knob.min),    FIELD_PLAIN(NEEDED, "max", REAL, knob.max),
    FIELD_PLAIN(NEEDED, "step", REAL, knob.step),  FIELD_PLAIN(NEEDED, "default", REAL, knob.def),
    FIELD_PLAIN(NEEDED, "start", REAL, start),     FIELD_END};
#undef OF

#define OF struct series
static const struct field series_fields[] = {FIELD_PLAIN(NEEDED, "key", LABEL, key),
                                             FIELD_PLAIN(NEEDED, "title", LABEL, title),
                                             FIELD_NAMED(NEEDED, "form", form, series_form_names, SERIES_FORMS - 1),
                                             FIELD_BOUNDED(NEEDED, "rows", rows, 1, 1 << 20),
                                             FIELD_BOUNDED(NEEDED, "cols", cols, 1, 1 << 20),
                                             FIELD_END};
#undef OF

/* ---- printing ---- */

static void
print_knob(bool *ok, cJSON *to, const struct started_knob *k)
{
    fields_print(ok, to, knob_fields, k);
    if (k->knob.kind != KNOB_CHOICE)
        return;
    cJSON *choices = field_add_array(ok, to, "choices");
    for (int i = 0; i <= (int)k->knob.max; i++) /* constants of the program, or checked */
        field_add_item(ok, choices, cJSON_CreateString(k->knob.choices[i]));
}

static void
print_policy(bool *ok, cJSON *to, const struct policy_info *policy, const double *start)
{
    fields_print(ok, to, policy_fields, policy);
    cJSON *needs = field_add_array(ok, to, "needs");
    for (unsigned i = 0; i < NEEDS_KINDS; i++)
        if ((policy->needs & NEEDS(i)) != 0)
            field_add_item(ok, needs, cJSON_CreateString(need_names[i]));
    cJSON *knobs = field_add_array(ok, to, "knobs");
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        const struct started_knob k = {policy->knobs[i], start != NULL ? start[i] : policy->knobs[i].def};
        print_knob(ok, field_add_item(ok, knobs, cJSON_CreateObject()), &k);
    }
    cJSON *series = field_add_array(ok, to, "series");
    for (uint32_t i = 0; i < policy->n_series; i++)
        fields_print(ok, field_add_item(ok, series, cJSON_CreateObject()), series_fields, &policy->series[i]);
}

static void
print_costs(bool *ok, cJSON *to, const struct cost_model *costs)
{
    cJSON *json = cost_known(costs) ? cost_model_json(costs) : NULL;
    if (cost_known(costs) && !(json != NULL && cJSON_AddItemToObject(to, "cost", json)))
        *ok = false;
}

bool
run_json_print(const struct run_info *info, char **text, struct err *err)
{
    struct run_info run = *info;
    run.sequences += run.sequences == 0;
    run.prompts += run.prompts == 0;
    bool ok = true;
    cJSON *root = cJSON_CreateObject();
    fields_print(&ok, root, run_fields, &run);
    print_costs(&ok, root, &run.costs);
    cJSON *policies = field_add_array(&ok, root, "policies");
    for (uint32_t i = 0; i < run.n_policies; i++)
        print_policy(&ok, field_add_item(&ok, policies, cJSON_CreateObject()), &run.policies[i],
                     run.start_values != NULL ? run.start_values + (size_t)i * POLICY_KNOBS : NULL);
    char *json = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    *text = json != NULL ? strdup(json) : NULL; /* memory of malloc(), also if cJSON has other hooks */
    cJSON_free(json);
    return *text != NULL || err_set(err, ERR_WORK, "out of memory for a trace's " RUN_JSON);
}

/* ",\n\t"lines":\t{"tokens.csv": 12, …}" */
static int
print_lines(const struct trace_end *e, char *out, size_t size)
{
    int used = 0;
    for (unsigned i = 0; i < TABLES; i++)
        if (e->lines[i] != LINES_NOT_SAID)
            used += snprintf(out + used, size - (size_t)used, "%s\"%s\": %" PRIu64,
                             used == 0 ? ",\n\t\"lines\":\t{" : ", ", trace_tables[i].file, e->lines[i]);
    if (used > 0)
        used += snprintf(out + used, size - (size_t)used, "}");
    return used;
}

bool
run_json_close(const char *text, const struct trace_end *e, bool cut, char **closed, struct err *err)
{
    const char *before = strstr(text, ",\n\t\"closed_event\":"), *end = strrchr(text, '}');
    if (before != NULL) /* a member of this program: it and the lines are the last members */
        end = before;
    size_t n = end == NULL ? 0 : (size_t)(end - text);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    size_t size = n + RUN_JSON_END;
    *closed = malloc(size);
    if (*closed == NULL)
        return err_set(err, ERR_WORK, "out of memory for a trace's " RUN_JSON);
    int used = snprintf(*closed, size, "%.*s", (int)n, text);
    if (cut)
        used += snprintf(*closed + used, size - (size_t)used, ",\n\t\"cut\":\ttrue");
    if (e->closed_event > 0) {
        used += snprintf(*closed + used, size - (size_t)used, ",\n\t\"closed_event\":\t%" PRIu64, e->closed_event);
        used += print_lines(e, *closed + used, size - (size_t)used);
    }
    snprintf(*closed + used, size - (size_t)used, "\n}\n");
    return true;
}

/* ---- parsing ---- */

struct choice_memory { /* the unused part of run_info.choice_memory */
    const char **names;
    char *text;
};

/* Reserves room for all choices of all knobs: pointers first, then the names. An upper bound, limited by the file's
 * size. */
static bool
reserve_choices(struct fields *p, const cJSON *policies, struct run_info *run, struct choice_memory *memory)
{
    size_t n = 0, bytes = 0;
    const cJSON *policy, *knob, *name;
    cJSON_ArrayForEach(policy, policies) cJSON_ArrayForEach(knob, cJSON_GetObjectItemCaseSensitive(policy, "knobs"))
        cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(knob, "choices"))
    {
        n++;
        bytes += cJSON_IsString(name) ? strlen(name->valuestring) + 1 : 0;
    }
    run->choice_memory = malloc(n * sizeof(char *) + bytes + 1);
    if (run->choice_memory == NULL)
        return field_refuse(p, "policies", "do not fit into memory");
    *memory = (struct choice_memory){run->choice_memory, (char *)run->choice_memory + n * sizeof(char *)};
    return true;
}

static void
parse_choices(struct fields *p, const cJSON *from, struct knob *k, struct choice_memory *memory)
{
    const cJSON *choices = field_array(p, from, "choices", true, MAX_CHOICES), *name;
    if (p->ok && (choices->child == NULL || k->max != (double)cJSON_GetArraySize(choices) - 1))
        field_refuse(p, "choices", "are not as many as the knob's bounds require");
    if (!p->ok)
        return;
    k->choices = memory->names;
    cJSON_ArrayForEach(name, choices)
    {
        if (!cJSON_IsString(name) || strlen(name->valuestring) > 31) {
            field_refuse(p, "choices", "are not short strings");
            return;
        }
        size_t size = strlen(name->valuestring) + 1;
        memcpy(memory->text, name->valuestring, size);
        make_printable(memory->text, size - 1);
        *memory->names++ = memory->text;
        memory->text += size;
    }
}

static void
parse_knob(struct fields *p, const cJSON *from, struct started_knob *k, struct choice_memory *memory)
{
    struct err why;
    fields_parse(p, from, knob_fields, k);
    if (p->ok && k->knob.kind == KNOB_CHOICE)
        parse_choices(p, from, &k->knob, memory);
    if (p->ok && !knob_valid(&k->knob, &why))
        field_refuse(p, "knobs", why.text);
    if (p->ok && !(k->start >= k->knob.min && k->start <= k->knob.max))
        field_refuse(p, "start", "is outside the knob's bounds");
}

static unsigned
need_named(const cJSON *name)
{
    unsigned i = 0;
    while (i < NEEDS_KINDS && !(cJSON_IsString(name) && strcmp(name->valuestring, need_names[i]) == 0))
        i++;
    return i;
}

static void
parse_policy(struct fields *p, const cJSON *from, struct policy_info *policy, double *start,
             struct choice_memory *memory)
{
    struct err why;
    const cJSON *item;
    fields_parse(p, from, policy_fields, policy);
    if (cJSON_GetObjectItemCaseSensitive(from, "title") == NULL)
        memcpy(policy->title, policy->name, sizeof policy->name);
    cJSON_ArrayForEach(item, field_array(p, from, "needs", false, NEEDS_KINDS))
    {
        const unsigned i = need_named(item);
        if (i == NEEDS_KINDS)
            field_refuse(p, "needs", "names something that no policy needs");
        policy->needs |= i < NEEDS_KINDS ? NEEDS(i) : 0;
    }
    cJSON_ArrayForEach(item, field_array(p, from, "knobs", false, POLICY_KNOBS))
    {
        struct started_knob k = {.start = 0};
        parse_knob(p, item, &k, memory);
        if (p->ok && policy_knob_index(policy, k.knob.name) >= 0)
            field_refuse(p, "knobs", "have one name twice");
        if (!p->ok)
            return;
        start[policy->n_knobs] = k.start;
        policy->knobs[policy->n_knobs++] = k.knob;
    }
    cJSON_ArrayForEach(item, field_array(p, from, "series", false, POLICY_SERIES))
    {
        fields_parse(p, item, series_fields, &policy->series[policy->n_series]);
        if (p->ok && !series_valid(&policy->series[policy->n_series], &why))
            field_refuse(p, "series", why.text);
        if (!p->ok)
            return;
        policy->n_series++;
    }
}

static void
parse_policies(struct fields *p, const cJSON *root, struct run_info *run)
{
    struct choice_memory memory = {.names = NULL};
    const cJSON *policies = field_array(p, root, "policies", true, POLICIES_MOST), *item;
    const size_t n = (size_t)cJSON_GetArraySize(policies);
    if (p->ok && n == 0)
        field_refuse(p, "policies", "is empty");
    if (!p->ok || !reserve_choices(p, policies, run, &memory))
        return;
    run->policies = calloc(n, sizeof *run->policies);
    run->start_values = calloc(n * POLICY_KNOBS, sizeof *run->start_values);
    if (run->policies == NULL || run->start_values == NULL) {
        field_refuse(p, "policies", "do not fit into memory");
        return;
    }
    cJSON_ArrayForEach(item, policies)
    {
        const uint32_t i = run->n_policies;
        parse_policy(p, item, &run->policies[i], run->start_values + (size_t)i * POLICY_KNOBS, &memory);
        if (p->ok && (run->policies[i].name[0] == '\0' || run_info_policy(run, run->policies[i].name) != NULL))
            field_refuse(p, "policies", "have a name twice, or none");
        if (!p->ok)
            return;
        run->n_policies++;
    }
    if (run_info_policy(run, run->policy) == NULL)
        field_refuse(p, "policy", "is none of the declared policies");
}

/* The object is that of a `cost` control. */
static void
parse_costs(struct fields *p, const cJSON *root, struct run_info *run)
{
    struct err why;
    const cJSON *costs = cJSON_GetObjectItemCaseSensitive(root, "cost");
    if (p->ok && costs != NULL && !cost_model_read(costs, &run->costs, &why))
        field_refuse(p, "cost", why.text);
}

/* Checks conditions on several fields. */
static void
check_run(struct fields *p, struct run_info *run)
{
    const size_t kinds = strlen(run->layer_kinds);
    if (kinds > 0 && (kinds != run->layers || strspn(run->layer_kinds, "awr") != kinds))
        field_refuse(p, "layer_kinds", "is not a letter a, w or r for each layer");
    if (run->experts_used > run->experts)
        field_refuse(p, "experts_used", "is more than there are experts");
    if (run->rho < 0)
        field_refuse(p, "rho", "is negative");
    run->prompt_len = run->prompt != NULL ? strlen(run->prompt) : 0;
}

static void
parse_end(struct fields *p, const cJSON *root, struct trace_end *end)
{
    struct field lines[TABLES + 1] = {{.key = NULL}};
    for (unsigned i = 0; i < TABLES; i++)
        lines[i] = (struct field){.key = trace_tables[i].file,
                                  .kind = FIELD_WHOLE,
                                  .rule = FIELD_USUAL,
                                  .offset = i * sizeof end->lines[0],
                                  .size = sizeof end->lines[0],
                                  .most = MOST_EXACT};
#define OF struct trace_end
    const struct field fields[] = {FIELD_BOUNDED(NEEDED, "closed_event", closed_event, 0, MOST_EXACT),
                                   FIELD_STRUCT(USUAL, "lines", lines, lines), FIELD_END};
#undef OF
    if (cJSON_GetObjectItemCaseSensitive(root, "closed_event") != NULL)
        fields_parse(p, root, fields, end);
}

bool
run_json_parse(const char *name, const char *text, size_t len, struct run_info *run, struct trace_end *end,
               struct err *err)
{
    *run = (struct run_info){.rho = NAN, .sequences = 1, .prompts = 1, .sampling = {.top_p = 1}};
    *end = (struct trace_end){.closed_event = 0};
    for (unsigned i = 0; i < TABLES; i++)
        end->lines[i] = LINES_NOT_SAID;
    struct fields p = {.name = name, .err = err, .ok = true};
    cJSON *root;
    if (!json_read(&root, text, len))
        return err_set(err, ERR_WORK, "%s: out of memory", name);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return err_set(err, ERR_WORK, "%s is not a JSON object, so this is no trace (or a damaged one)", name);
    }
    const struct field format[] = {run_fields[0], FIELD_END};
    fields_parse(&p, root, format, run);
    if (p.ok && run->format > TRACE_FORMAT) {
        err_set(err, ERR_WORK, "%s: written in trace format %u by a newer specscope; this one reads up to format %d",
                name, run->format, TRACE_FORMAT);
        p.ok = false;
    }
    fields_parse(&p, root, run_fields, run);
    if (p.ok)
        check_run(&p, run);
    parse_costs(&p, root, run);
    parse_policies(&p, root, run);
    parse_end(&p, root, end);
    cJSON_Delete(root);
    if (!p.ok)
        run_info_free(run);
    return p.ok;
}
