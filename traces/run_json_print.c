#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "traces/escape.h"
#include "traces/run_json.h"

const char *const knob_kind_names[KNOB_CHOICE + 1] = {"real", "integer", "choice"};

const char *const trace_layer_names[TRACE_LAYERS_OFF + 1] = {"all", "some", "off"};

/* cJSON returns NULL when memory ran out, and takes NULL as a place to add to; `ok` remembers that it happened. */
struct print {
    bool ok;
};

static cJSON *
put(struct print *p, cJSON *item)
{
    if (item == NULL)
        p->ok = false;
    return item;
}

static void
put_bytes(struct print *p, cJSON *to, const char *key, const char *bytes, size_t n)
{
    char *text = malloc(ESCAPE_LONGEST * n + 1);
    if (text == NULL) {
        p->ok = false;
        return;
    }
    trace_escape(text, bytes, n);
    put(p, cJSON_AddStringToObject(to, key, text));
    free(text);
}

static void
put_string(struct print *p, cJSON *to, const char *key, const char *text)
{
    put_bytes(p, to, key, text, strlen(text));
}

/* The shortest of the usual forms that reads back as the same double; cJSON's own gives up the last bit. */
static void
put_real(struct print *p, cJSON *to, const char *key, double value)
{
    char text[40];
    for (int digits = 9; digits <= 17; digits += 8) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put(p, cJSON_AddRawToObject(to, key, isfinite(value) ? text : "null"));
}

static void
put_whole(struct print *p, cJSON *to, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put(p, cJSON_AddRawToObject(to, key, text));
}

static void
put_u64(struct print *p, cJSON *to, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put(p, cJSON_AddStringToObject(to, key, text));
}

static cJSON *
put_item(struct print *p, cJSON *array)
{
    cJSON *item = put(p, cJSON_CreateObject());
    if (item != NULL && !cJSON_AddItemToArray(array, item)) {
        cJSON_Delete(item);
        item = put(p, NULL);
    }
    return item;
}

static void
put_knob(struct print *p, cJSON *to, const struct knob *k, double start)
{
    put_string(p, to, "name", k->name);
    put_string(p, to, "symbol", k->symbol);
    put_string(p, to, "help", k->help);
    put_string(p, to, "kind", knob_kind_names[k->kind]);
    put_real(p, to, "min", k->min);
    put_real(p, to, "max", k->max);
    put_real(p, to, "step", k->step);
    put_real(p, to, "default", k->def);
    put_real(p, to, "start", start);
    if (k->kind != KNOB_CHOICE)
        return;
    cJSON *choices = put(p, cJSON_AddArrayToObject(to, "choices"));
    for (int i = 0; i <= (int)k->max; i++) {
        cJSON *name = put(p, cJSON_CreateString(k->choices[i])); /* a constant of the program's, or checked */
        if (name != NULL && !cJSON_AddItemToArray(choices, name)) {
            cJSON_Delete(name);
            p->ok = false;
        }
    }
}

static void
put_needs(struct print *p, cJSON *to, unsigned needs)
{
    cJSON *names = put(p, cJSON_AddArrayToObject(to, "needs"));
    for (unsigned i = 0; i < NEEDS_KINDS; i++) {
        cJSON *name = (needs & NEEDS(i)) != 0 ? put(p, cJSON_CreateString(need_names[i])) : NULL;
        if (name != NULL && !cJSON_AddItemToArray(names, name)) {
            cJSON_Delete(name);
            p->ok = false;
        }
    }
}

static void
put_policy(struct print *p, cJSON *to, const struct policy_info *policy, const double *start)
{
    put_string(p, to, "name", policy->name);
    put_string(p, to, "title", policy->title);
    put_string(p, to, "paper", policy->paper);
    put_needs(p, to, policy->needs);
    cJSON *knobs = put(p, cJSON_AddArrayToObject(to, "knobs"));
    for (uint32_t i = 0; i < policy->n_knobs; i++)
        put_knob(p, put_item(p, knobs), &policy->knobs[i], start != NULL ? start[i] : policy->knobs[i].def);
    cJSON *all = put(p, cJSON_AddArrayToObject(to, "series"));
    for (uint32_t i = 0; i < policy->n_series; i++) {
        const struct series *s = &policy->series[i];
        cJSON *item = put_item(p, all);
        put_string(p, item, "key", s->key);
        put_string(p, item, "title", s->title);
        put_string(p, item, "form", series_form_names[s->form]);
        put_whole(p, item, "rows", (uint64_t)s->rows);
        put_whole(p, item, "cols", (uint64_t)s->cols);
    }
}

static void
put_helper(struct print *p, cJSON *to, const struct helper_info *helper)
{
    char hash[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, helper->hash);
    put_string(p, to, "path", helper->path);
    put_string(p, to, "name", helper->name);
    put_string(p, to, "hash", hash);
    put_whole(p, to, "layers", helper->layers);
}

static void
put_trained(struct print *p, cJSON *root, const char *key, const struct trained_info *file)
{
    if (file->path[0] == '\0')
        return;
    char hash[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, file->hash);
    cJSON *to = put(p, cJSON_AddObjectToObject(root, key));
    put_string(p, to, "path", file->path);
    put_string(p, to, "hash", hash);
}

/* What was not asked for is left out. */
static void
put_asked(struct print *p, cJSON *to, const struct asked_info *asked)
{
    const struct {
        const char *key;
        bool is;
    } switches[] = {{"chat", asked->chat},
                    {"chat_special", asked->chat_special},
                    {"ignore_eos", asked->ignore_eos},
                    {"quantize", asked->quantize},
                    {"no_heads", asked->no_heads}};
    const struct {
        const char *key, *text;
    } texts[] = {{"system", asked->system},
                 {"chat_vars", asked->chat_vars},
                 {"lora", asked->lora},
                 {"tools", asked->tools},
                 {"chat_template", asked->chat_template},
                 {"chat_date", asked->chat_date},
                 {"isa", asked->isa},
                 {"gpu", asked->gpu},
                 {"prompts", asked->prompts},
                 {"policy_state", asked->policy_state}};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (switches[i].is)
            put(p, cJSON_AddBoolToObject(to, switches[i].key, true));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].text != NULL && (texts[i].text[0] != '\0' || texts[i].text == asked->system))
            put_string(p, to, texts[i].key, texts[i].text);
    if (asked->batch > 0)
        put_whole(p, to, "batch", asked->batch);
}

/* What is left out of the trace, if anything. */
static void
put_bounds(struct print *p, cJSON *root, const struct trace_bounds *bounds)
{
    if (bounds->bytes == 0 && bounds->layers == TRACE_LAYERS_ALL)
        return;
    cJSON *to = put(p, cJSON_AddObjectToObject(root, "trace"));
    if (bounds->bytes > 0)
        put_whole(p, to, "max_bytes", bounds->bytes);
    put_string(p, to, "layers", trace_layer_names[bounds->layers]);
    if (bounds->layers == TRACE_LAYERS_SOME)
        put_whole(p, to, "every", bounds->every);
}

static void
put_model(struct print *p, cJSON *model, const struct run_info *run)
{
    char hash[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, run->model_hash);
    put_string(p, model, "path", run->model_path);
    put_string(p, model, "name", run->model_name);
    put_string(p, model, "architecture", run->arch);
    put_string(p, model, "types", run->types);
    put_whole(p, model, "layers", run->layers);
    put_whole(p, model, "width", run->width);
    put_whole(p, model, "heads", run->heads);
    put_whole(p, model, "kv_heads", run->kv_heads);
    put_whole(p, model, "ffn", run->ffn);
    if (run->experts > 0) {
        put_whole(p, model, "experts", run->experts);
        put_whole(p, model, "experts_used", run->experts_used);
    }
    put_whole(p, model, "vocab", run->vocab);
    put_u64(p, model, "parameters", run->parameters);
    put_string(p, model, "hash", hash);
    put_real(p, model, "rho", run->rho);
}

static void
put_run(struct print *p, cJSON *root, const struct run_info *run)
{
    put_whole(p, root, "format", run->format);
    put_string(p, root, "specscope", run->version);
    put_string(p, root, "started", run->started);
    put_model(p, put(p, cJSON_AddObjectToObject(root, "model")), run);
    for (enum helper_role role = 0; role < HELPERS; role++)
        if (run->helpers[role].name[0] != '\0')
            put_helper(p, put(p, cJSON_AddObjectToObject(root, helper_names[role])), &run->helpers[role]);
    put_trained(p, root, "accept_head", &run->accept_head);
    put_trained(p, root, "profile", &run->profile);
    put_trained(p, root, "exit_heads", &run->exit_heads);
    put_asked(p, put(p, cJSON_AddObjectToObject(root, "asked")), &run->asked);

    put_string(p, root, "backend", run->backend);
    put_string(p, root, "isa", run->isa);
    put_string(p, root, "host", run->host);
    put_whole(p, root, "threads", run->threads);
    put(p, cJSON_AddBoolToObject(root, "exact", run->exact));
    cJSON *prefill = put(p, cJSON_AddObjectToObject(root, "prefill"));
    put_whole(p, prefill, "rows", run->prefill.rows);
    put_string(p, prefill, "by", run->prefill.rows > 0 ? run->prefill.by : "rows");
    put_whole(p, root, "ctx", run->ctx);
    put_whole(p, root, "tokens", run->tokens);
    put_whole(p, root, "sequences", run->sequences > 0 ? run->sequences : 1);
    put_whole(p, root, "prompts", run->prompts > 0 ? run->prompts : 1);
    put_bytes(p, root, "prompt", run->prompt != NULL ? run->prompt : "", run->prompt != NULL ? run->prompt_len : 0);

    cJSON *sampling = put(p, cJSON_AddObjectToObject(root, "sampling"));
    put_real(p, sampling, "temperature", (double)run->sampling.temperature);
    put_whole(p, sampling, "top_k", run->sampling.top_k);
    put_real(p, sampling, "top_p", (double)run->sampling.top_p);
    put_u64(p, root, "seed", run->seed);

    put_bounds(p, root, &run->trace);
    put_string(p, root, "policy", run->policy);
    cJSON *policies = put(p, cJSON_AddArrayToObject(root, "policies"));
    for (uint32_t i = 0; i < run->n_policies; i++)
        put_policy(p, put_item(p, policies), &run->policies[i],
                   run->start_values != NULL ? run->start_values + (size_t)i * POLICY_KNOBS : NULL);
}

bool
run_json_print(const struct run_info *run, char **text, struct err *err)
{
    struct print p = {.ok = true};
    cJSON *root = put(&p, cJSON_CreateObject());
    put_run(&p, root, run);
    char *json = p.ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    *text = json != NULL ? strdup(json) : NULL; /* memory of malloc()'s whatever cJSON's hooks are */
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
    if (before != NULL) /* our own: it and the lines are the last members */
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
