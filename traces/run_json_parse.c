#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "traces/escape.h"
#include "traces/json_fields.h"
#include "traces/run_json.h"

#define MAX_POLICIES 64u
#define MAX_CHOICES  64u
#define MAX_LAYERS   4096u

/* ---- declarations ---- */

/* Room for all choices of all knobs: pointers first, then what they point to. Loose, but bounded by the file's size. */
static bool
reserve_choices(struct fields *p, const cJSON *policies, struct run_info *run)
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
    p->choice_names = (const char **)run->choice_memory;
    p->choice_text = (char *)run->choice_memory + n * sizeof(char *);
    return true;
}

static void
get_choices(struct fields *p, const cJSON *from, struct knob *k)
{
    uint32_t n;
    const cJSON *choices = field_array(p, from, "choices", MAX_CHOICES, &n), *name;
    if (p->ok && (n == 0 || k->max != (double)n - 1))
        field_refuse(p, "choices", "are not as many as the knob's bounds say");
    if (!p->ok)
        return;
    k->choices = p->choice_names;
    cJSON_ArrayForEach(name, choices)
    {
        if (!cJSON_IsString(name) || strlen(name->valuestring) > 31) {
            field_refuse(p, "choices", "are not short strings");
            return;
        }
        size_t size = strlen(name->valuestring) + 1;
        memcpy(p->choice_text, name->valuestring, size);
        make_printable(p->choice_text, size - 1);
        *p->choice_names++ = p->choice_text;
        p->choice_text += size;
    }
}

static void
get_knob(struct fields *p, const cJSON *from, struct knob *k, double *start)
{
    field_label(p, from, "name", k->name, sizeof k->name);
    field_label(p, from, "symbol", k->symbol, sizeof k->symbol);
    field_label(p, from, "help", k->help, sizeof k->help);
    k->kind = (enum knob_kind)field_name(p, from, "kind", knob_kind_names, KNOB_CHOICE + 1);
    k->min = field_real(p, from, "min");
    k->max = field_real(p, from, "max");
    k->step = field_real(p, from, "step");
    k->def = field_real(p, from, "default");
    *start = field_real(p, from, "start");
    if (k->kind == KNOB_CHOICE)
        get_choices(p, from, k);
    struct err why;
    if (p->ok && !knob_valid(k, &why))
        field_refuse(p, "knobs", why.text);
    if (p->ok && !(*start >= k->min && *start <= k->max))
        field_refuse(p, "start", "is outside the knob's bounds");
}

static void
get_series(struct fields *p, const cJSON *from, struct series *s)
{
    field_label(p, from, "key", s->key, sizeof s->key);
    field_label(p, from, "title", s->title, sizeof s->title);
    s->form = (enum series_form)field_name(p, from, "form", series_form_names, SERIES_FORMS);
    s->rows = (int)field_u32(p, from, "rows", 1, 1u << 20);
    s->cols = (int)field_u32(p, from, "cols", 1, 1u << 20);
    struct err why;
    if (p->ok && !series_valid(s, &why))
        field_refuse(p, "series", why.text);
}

/* Older traces have none. */
static void
get_needs(struct fields *p, const cJSON *from, unsigned *needs)
{
    uint32_t n;
    const cJSON *name, *names = cJSON_GetObjectItemCaseSensitive(from, "needs");
    if (names == NULL)
        return;
    cJSON_ArrayForEach(name, field_array(p, from, "needs", NEEDS_KINDS, &n))
    {
        unsigned i = 0;
        while (i < NEEDS_KINDS && !(cJSON_IsString(name) && strcmp(name->valuestring, need_names[i]) == 0))
            i++;
        if (i == NEEDS_KINDS)
            field_refuse(p, "needs", "names something that no policy needs");
        else
            *needs |= NEEDS(i);
    }
}

static void
get_policy(struct fields *p, const cJSON *from, struct policy_info *policy, double *start)
{
    field_label(p, from, "name", policy->name, sizeof policy->name);
    p->may_lack = true;
    field_label(p, from, "title", policy->title, sizeof policy->title);
    field_label(p, from, "paper", policy->paper, sizeof policy->paper);
    const bool knobless = field_left_out(p, from, "knobs"), seriesless = field_left_out(p, from, "series");
    p->may_lack = false;
    if (cJSON_GetObjectItemCaseSensitive(from, "title") == NULL)
        memcpy(policy->title, policy->name, sizeof policy->name);
    get_needs(p, from, &policy->needs);
    const cJSON *item;
    uint32_t n;
    const cJSON *knobs = knobless ? NULL : field_array(p, from, "knobs", POLICY_KNOBS, &n);
    cJSON_ArrayForEach(item, knobs)
    {
        get_knob(p, item, &policy->knobs[policy->n_knobs], &start[policy->n_knobs]);
        if (p->ok && policy_knob_index(policy, policy->knobs[policy->n_knobs].name) >= 0)
            field_refuse(p, "knobs", "have one name twice");
        if (!p->ok)
            return;
        policy->n_knobs++;
    }
    const cJSON *all = seriesless ? NULL : field_array(p, from, "series", POLICY_SERIES, &n);
    cJSON_ArrayForEach(item, all)
    {
        get_series(p, item, &policy->series[policy->n_series]);
        if (!p->ok)
            return;
        policy->n_series++;
    }
}

static void
get_policies(struct fields *p, const cJSON *root, struct run_info *run)
{
    uint32_t n;
    const cJSON *policies = field_array(p, root, "policies", MAX_POLICIES, &n), *item;
    if (p->ok && n == 0)
        field_refuse(p, "policies", "is empty");
    if (!p->ok || !reserve_choices(p, policies, run))
        return;
    run->policies = calloc(n, sizeof *run->policies);
    run->start_values = calloc((size_t)n * POLICY_KNOBS, sizeof *run->start_values);
    if (run->policies == NULL || run->start_values == NULL) {
        field_refuse(p, "policies", "do not fit into memory");
        return;
    }
    cJSON_ArrayForEach(item, policies)
    {
        uint32_t i = run->n_policies;
        get_policy(p, item, &run->policies[i], run->start_values + (size_t)i * POLICY_KNOBS);
        if (p->ok && (run->policies[i].name[0] == '\0' || run_info_policy(run, run->policies[i].name) != NULL))
            field_refuse(p, "policies", "have a name twice, or none");
        if (!p->ok)
            return;
        run->n_policies++;
    }
    if (run_info_policy(run, run->policy) == NULL)
        field_refuse(p, "policy", "is none of the declared policies");
}

/* ---- the whole ---- */

/* Older traces have none, and so have runs without. */
static void
get_helper(struct fields *p, const cJSON *root, const char *role, struct helper_info *helper)
{
    if (cJSON_GetObjectItemCaseSensitive(root, role) == NULL)
        return;
    const cJSON *at = field_object(p, root, role);
    field_string(p, at, "path", helper->path, sizeof helper->path);
    field_label(p, at, "name", helper->name, sizeof helper->name);
    helper->hash = field_u64(p, at, "hash", 16);
    if (cJSON_GetObjectItemCaseSensitive(at, "layers") != NULL)
        helper->layers = field_u32(p, at, "layers", 0, MAX_LAYERS);
}

static void
get_trained(struct fields *p, const cJSON *root, const char *key, struct trained_info *file)
{
    if (cJSON_GetObjectItemCaseSensitive(root, key) == NULL)
        return;
    const cJSON *at = field_object(p, root, key);
    field_string(p, at, "path", file->path, sizeof file->path);
    file->hash = field_u64(p, at, "hash", 16);
}

/* Came later than the rest, as what follows. */
static void
get_prefill(struct fields *p, const cJSON *root, struct prefill_info *prefill)
{
    if (cJSON_GetObjectItemCaseSensitive(root, "prefill") == NULL)
        return;
    const cJSON *at = field_object(p, root, "prefill");
    prefill->rows = field_u32(p, at, "rows", 0, INT32_MAX);
    if (prefill->rows > 0)
        field_label(p, at, "by", prefill->by, sizeof prefill->by);
}

static void
get_bounds(struct fields *p, const cJSON *root, struct run_info *run)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(root, "trace");
    run->cut = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "cut"));
    if (at == NULL)
        return;
    if (cJSON_GetObjectItemCaseSensitive(at, "max_bytes") != NULL)
        run->trace.bytes = field_whole(p, at, "max_bytes", 0, (uint64_t)1 << 53);
    if (cJSON_GetObjectItemCaseSensitive(at, "layers") != NULL)
        run->trace.layers = (enum trace_layers)field_name(p, at, "layers", trace_layer_names, TRACE_LAYERS_OFF + 1);
    if (cJSON_GetObjectItemCaseSensitive(at, "every") != NULL)
        run->trace.every = field_u32(p, at, "every", 0, UINT32_MAX);
}

static uint32_t
get_count(struct fields *p, const cJSON *root, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(root, key) != NULL ? field_u32(p, root, key, 1, INT32_MAX) : 1;
}

static void
get_model(struct fields *p, const cJSON *model, struct run_info *run)
{
    field_label(p, model, "name", run->model_name, sizeof run->model_name);
    run->layers = field_u32(p, model, "layers", 1, MAX_LAYERS);
    run->vocab = field_u32(p, model, "vocab", 1, INT32_MAX);
    p->may_lack = true;
    field_string(p, model, "path", run->model_path, sizeof run->model_path);
    field_label(p, model, "architecture", run->arch, sizeof run->arch);
    field_label(p, model, "types", run->types, sizeof run->types);
    run->width = field_u32(p, model, "width", 1, UINT32_MAX);
    run->heads = field_u32(p, model, "heads", 1, UINT32_MAX);
    run->kv_heads = field_u32(p, model, "kv_heads", 1, UINT32_MAX);
    run->ffn = field_u32(p, model, "ffn", 1, UINT32_MAX);
    run->experts = field_u32(p, model, "experts", 1, RUN_EXPERTS_MOST);
    run->experts_used = field_u32(p, model, "experts_used", 1, RUN_EXPERTS_MOST);
    run->parameters = field_u64(p, model, "parameters", 10);
    run->model_hash = field_u64(p, model, "hash", 16);
    run->rho = field_left_out(p, model, "rho") ? NAN : field_real(p, model, "rho");
    p->may_lack = false;
    if (run->experts_used > run->experts)
        field_refuse(p, "experts_used", "is more than there are experts");
    if (run->rho < 0)
        field_refuse(p, "rho", "is negative");
}

static void
get_machine(struct fields *p, const cJSON *root, struct run_info *run)
{
    p->may_lack = true;
    field_label(p, root, "backend", run->backend, sizeof run->backend);
    field_label(p, root, "isa", run->isa, sizeof run->isa);
    field_label(p, root, "host", run->host, sizeof run->host);
    run->threads = field_u32(p, root, "threads", 0, UINT32_MAX);
    if (!field_left_out(p, root, "exact"))
        run->exact = cJSON_IsTrue(field_get(p, root, "exact", cJSON_IsBool, "is neither true nor false"));
    p->may_lack = false;
}

static bool
is_said(const cJSON *from, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(from, key) != NULL;
}

/* Older traces have none; what was not asked for is left out. */
static void
get_asked(struct fields *p, const cJSON *root, struct asked_info *asked)
{
    if (!is_said(root, "asked"))
        return;
    const cJSON *at = field_object(p, root, "asked");
    size_t n;
    asked->chat = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(at, "chat"));
    asked->chat_special = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(at, "chat_special"));
    asked->ignore_eos = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(at, "ignore_eos"));
    asked->quantize = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(at, "quantize"));
    asked->no_heads = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(at, "no_heads"));
    if (is_said(at, "system"))
        asked->system = field_bytes(p, at, "system", &n);
    const struct {
        const char *key;
        char *text;
        size_t size;
    } texts[] = {{"chat_vars", asked->chat_vars, sizeof asked->chat_vars},
                 {"lora", asked->lora, sizeof asked->lora},
                 {"tools", asked->tools, sizeof asked->tools},
                 {"chat_template", asked->chat_template, sizeof asked->chat_template},
                 {"prompts", asked->prompts, sizeof asked->prompts},
                 {"policy_state", asked->policy_state, sizeof asked->policy_state}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_said(at, texts[i].key))
            field_string(p, at, texts[i].key, texts[i].text, texts[i].size);
    if (is_said(at, "chat_date"))
        field_label(p, at, "chat_date", asked->chat_date, sizeof asked->chat_date);
    if (is_said(at, "isa"))
        field_label(p, at, "isa", asked->isa, sizeof asked->isa);
    if (is_said(at, "gpu"))
        field_label(p, at, "gpu", asked->gpu, sizeof asked->gpu);
    if (is_said(at, "batch"))
        asked->batch = field_u32(p, at, "batch", 1, INT32_MAX);
}

static void
get_run(struct fields *p, const cJSON *root, struct run_info *run)
{
    p->may_lack = true;
    field_label(p, root, "specscope", run->version, sizeof run->version);
    field_label(p, root, "started", run->started, sizeof run->started);
    run->tokens = field_u32(p, root, "tokens", 0, UINT32_MAX);
    run->seed = field_u64(p, root, "seed", 10);
    p->may_lack = false;
    get_model(p, field_object(p, root, "model"), run);
    for (enum helper_role role = 0; role < HELPERS; role++)
        get_helper(p, root, helper_names[role], &run->helpers[role]);
    get_trained(p, root, "accept_head", &run->accept_head);
    get_trained(p, root, "profile", &run->profile);
    get_trained(p, root, "exit_heads", &run->exit_heads);
    get_asked(p, root, &run->asked);
    get_machine(p, root, run);
    get_prefill(p, root, &run->prefill);
    get_bounds(p, root, run);
    run->ctx = field_u32(p, root, "ctx", 1, INT32_MAX);
    run->sequences = get_count(p, root, "sequences");
    run->prompts = get_count(p, root, "prompts");
    run->prompt = field_bytes(p, root, "prompt", &run->prompt_len);

    const cJSON *sampling = field_object(p, root, "sampling");
    run->sampling.temperature = (float)field_real(p, sampling, "temperature");
    p->may_lack = true;
    run->sampling.top_k = field_u32(p, sampling, "top_k", 0, UINT32_MAX);
    run->sampling.top_p = field_left_out(p, sampling, "top_p") ? 1 : (float)field_real(p, sampling, "top_p");
    p->may_lack = false;
    field_label(p, root, "policy", run->policy, sizeof run->policy);
    get_policies(p, root, run);
}

static void
get_end(struct fields *p, const cJSON *root, struct trace_end *end)
{
    const uint64_t most = (uint64_t)1 << 53;
    if (cJSON_GetObjectItemCaseSensitive(root, "closed_event") == NULL)
        return;
    end->closed_event = field_whole(p, root, "closed_event", 0, most);
    if (cJSON_GetObjectItemCaseSensitive(root, "lines") == NULL)
        return;
    const cJSON *lines = field_object(p, root, "lines");
    for (unsigned i = 0; i < TABLES; i++)
        if (cJSON_GetObjectItemCaseSensitive(lines, trace_tables[i].file) != NULL)
            end->lines[i] = field_whole(p, lines, trace_tables[i].file, 0, most);
}

bool
run_json_parse(const char *name, const char *text, size_t len, struct run_info *run, struct trace_end *end,
               struct err *err)
{
    memset(run, 0, sizeof *run);
    end->closed_event = 0;
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
    run->format = field_u32(&p, root, "format", 1, UINT32_MAX);
    if (p.ok && run->format > TRACE_FORMAT) {
        err_set(err, ERR_WORK, "%s: written in trace format %u by a newer specscope; this one reads up to format %d",
                name, run->format, TRACE_FORMAT);
        p.ok = false;
    }
    get_run(&p, root, run);
    if (p.ok)
        get_end(&p, root, end);
    cJSON_Delete(root);
    if (!p.ok)
        run_info_free(run);
    return p.ok;
}
