#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "traces/escape.h"
#include "traces/run_json.h"

#define MAX_POLICIES 64u
#define MAX_CHOICES  64u
#define MAX_LAYERS   4096u

/* Every get_… reports the first thing that is wrong, and then does nothing any more. */
struct parse {
    const char *name; /* of the file */
    struct err *err;
    bool ok;
    char *choice_text;         /* the next free byte of run_info.choice_memory, */
    const char **choice_names; /* and the next free pointer */
};

static bool
refuse(struct parse *p, const char *key, const char *what)
{
    if (p->ok)
        err_set(p->err, ERR_WORK, "%s: \"%s\" %s", p->name, key, what);
    p->ok = false;
    return false;
}

static const cJSON *
get(struct parse *p, const cJSON *from, const char *key, cJSON_bool (*is)(const cJSON *), const char *what)
{
    const cJSON *item = p->ok ? cJSON_GetObjectItemCaseSensitive(from, key) : NULL;
    if (item == NULL)
        refuse(p, key, "is missing");
    else if (!is(item))
        refuse(p, key, what);
    return p->ok ? item : NULL;
}

static const cJSON *
get_object(struct parse *p, const cJSON *from, const char *key)
{
    return get(p, from, key, cJSON_IsObject, "is not an object");
}

static const cJSON *
get_array(struct parse *p, const cJSON *from, const char *key, uint32_t most, uint32_t *n)
{
    const cJSON *array = get(p, from, key, cJSON_IsArray, "is not an array");
    int size = cJSON_GetArraySize(array);
    if (size < 0 || (unsigned)size > most)
        refuse(p, key, "has too many elements");
    *n = p->ok ? (uint32_t)size : 0;
    return p->ok ? array : NULL;
}

/* Unescaped, in memory of the caller; NULL: refused. */
static char *
get_bytes(struct parse *p, const cJSON *from, const char *key, size_t *n)
{
    const cJSON *item = get(p, from, key, cJSON_IsString, "is not a string");
    if (item == NULL)
        return NULL;
    size_t len = strlen(item->valuestring);
    char *text = malloc(len + 1);
    if (text == NULL)
        refuse(p, key, "does not fit into memory");
    else if (!trace_unescape(text, n, item->valuestring, len))
        refuse(p, key, "has a backslash that escapes nothing");
    else if (memchr(text, '\0', *n) != NULL)
        refuse(p, key, "holds a NUL byte");
    else
        return text;
    free(text);
    return NULL;
}

static void
get_string(struct parse *p, const cJSON *from, const char *key, char *out, size_t size)
{
    size_t n;
    char *text = get_bytes(p, from, key, &n);
    if (text == NULL)
        return;
    if (n >= size)
        refuse(p, key, "is too long");
    else
        memcpy(out, text, n + 1);
    free(text);
}

/* A name to be shown: whatever a terminal could take amiss becomes '?'. */
static void
get_label(struct parse *p, const cJSON *from, const char *key, char *out, size_t size)
{
    get_string(p, from, key, out, size);
    make_printable(out, strlen(out));
}

static double
get_real(struct parse *p, const cJSON *from, const char *key)
{
    const cJSON *item = get(p, from, key, cJSON_IsNumber, "is not a number");
    double value = item != NULL ? item->valuedouble : 0;
    if (!isfinite(value))
        refuse(p, key, "is not a finite number");
    return p->ok ? value : 0;
}

static uint64_t
get_whole(struct parse *p, const cJSON *from, const char *key, uint64_t least, uint64_t most)
{
    double value = get_real(p, from, key);
    if (p->ok && (value != floor(value) || value < (double)least || value > (double)most))
        refuse(p, key, "is not a whole number in its range");
    return p->ok ? (uint64_t)value : least;
}

static uint32_t
get_u32(struct parse *p, const cJSON *from, const char *key, uint32_t least, uint32_t most)
{
    return (uint32_t)get_whole(p, from, key, least, most);
}

static uint64_t
get_u64(struct parse *p, const cJSON *from, const char *key, int base)
{
    char text[40] = "", *end = text;
    get_string(p, from, key, text, sizeof text);
    errno = 0;
    uint64_t value = strtoull(text, &end, base);
    if (p->ok &&
        (errno != 0 || text[0] == '\0' || *end != '\0' || text[strspn(text, "0123456789abcdefABCDEF")] != '\0'))
        refuse(p, key, "is not a whole number in a string");
    return value;
}

static unsigned
get_name(struct parse *p, const cJSON *from, const char *key, const char *const *names, unsigned n)
{
    char text[40] = "";
    get_string(p, from, key, text, sizeof text);
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    refuse(p, key, "is none of the names it can be");
    return 0;
}

/* ---- declarations ---- */

/* Room for all choices of all knobs: pointers first, then what they point to. Loose, but bounded by the file's size. */
static bool
reserve_choices(struct parse *p, const cJSON *policies, struct run_info *run)
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
        return refuse(p, "policies", "do not fit into memory");
    p->choice_names = (const char **)run->choice_memory;
    p->choice_text = (char *)run->choice_memory + n * sizeof(char *);
    return true;
}

static void
get_choices(struct parse *p, const cJSON *from, struct knob *k)
{
    uint32_t n;
    const cJSON *choices = get_array(p, from, "choices", MAX_CHOICES, &n), *name;
    if (p->ok && (n == 0 || k->max != (double)n - 1))
        refuse(p, "choices", "are not as many as the knob's bounds say");
    if (!p->ok)
        return;
    k->choices = p->choice_names;
    cJSON_ArrayForEach(name, choices)
    {
        if (!cJSON_IsString(name) || strlen(name->valuestring) > 31) {
            refuse(p, "choices", "are not short strings");
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
get_knob(struct parse *p, const cJSON *from, struct knob *k, double *start)
{
    get_label(p, from, "name", k->name, sizeof k->name);
    get_label(p, from, "symbol", k->symbol, sizeof k->symbol);
    get_label(p, from, "help", k->help, sizeof k->help);
    k->kind = (enum knob_kind)get_name(p, from, "kind", knob_kind_names, KNOB_CHOICE + 1);
    k->min = get_real(p, from, "min");
    k->max = get_real(p, from, "max");
    k->step = get_real(p, from, "step");
    k->def = get_real(p, from, "default");
    *start = get_real(p, from, "start");
    if (k->kind == KNOB_CHOICE)
        get_choices(p, from, k);
    struct err why;
    if (p->ok && !knob_valid(k, &why))
        refuse(p, "knobs", why.text);
    if (p->ok && !(*start >= k->min && *start <= k->max))
        refuse(p, "start", "is outside the knob's bounds");
}

static void
get_series(struct parse *p, const cJSON *from, struct series *s)
{
    get_label(p, from, "key", s->key, sizeof s->key);
    get_label(p, from, "title", s->title, sizeof s->title);
    s->form = (enum series_form)get_name(p, from, "form", series_form_names, SERIES_FORMS);
    s->rows = (int)get_u32(p, from, "rows", 1, 1u << 20);
    s->cols = (int)get_u32(p, from, "cols", 1, 1u << 20);
    struct err why;
    if (p->ok && !series_valid(s, &why))
        refuse(p, "series", why.text);
}

static void
get_policy(struct parse *p, const cJSON *from, struct policy_info *policy, double *start)
{
    get_label(p, from, "name", policy->name, sizeof policy->name);
    get_label(p, from, "title", policy->title, sizeof policy->title);
    get_label(p, from, "paper", policy->paper, sizeof policy->paper);
    const cJSON *item;
    uint32_t n;
    const cJSON *knobs = get_array(p, from, "knobs", POLICY_KNOBS, &n);
    cJSON_ArrayForEach(item, knobs)
    {
        get_knob(p, item, &policy->knobs[policy->n_knobs], &start[policy->n_knobs]);
        if (p->ok && policy_knob_index(policy, policy->knobs[policy->n_knobs].name) >= 0)
            refuse(p, "knobs", "have one name twice");
        if (!p->ok)
            return;
        policy->n_knobs++;
    }
    const cJSON *all = get_array(p, from, "series", POLICY_SERIES, &n);
    cJSON_ArrayForEach(item, all)
    {
        get_series(p, item, &policy->series[policy->n_series]);
        if (!p->ok)
            return;
        policy->n_series++;
    }
}

static void
get_policies(struct parse *p, const cJSON *root, struct run_info *run)
{
    uint32_t n;
    const cJSON *policies = get_array(p, root, "policies", MAX_POLICIES, &n), *item;
    if (p->ok && n == 0)
        refuse(p, "policies", "is empty");
    if (!p->ok || !reserve_choices(p, policies, run))
        return;
    run->policies = calloc(n, sizeof *run->policies);
    run->start_values = calloc((size_t)n * POLICY_KNOBS, sizeof *run->start_values);
    if (run->policies == NULL || run->start_values == NULL) {
        refuse(p, "policies", "do not fit into memory");
        return;
    }
    cJSON_ArrayForEach(item, policies)
    {
        uint32_t i = run->n_policies;
        get_policy(p, item, &run->policies[i], run->start_values + (size_t)i * POLICY_KNOBS);
        if (p->ok && (run->policies[i].name[0] == '\0' || run_info_policy(run, run->policies[i].name) != NULL))
            refuse(p, "policies", "have a name twice, or none");
        if (!p->ok)
            return;
        run->n_policies++;
    }
    if (run_info_policy(run, run->policy) == NULL)
        refuse(p, "policy", "is none of the declared policies");
}

/* ---- the whole ---- */

/* Older traces have none, and so have runs without. */
static void
get_helper(struct parse *p, const cJSON *root, const char *role, struct helper_info *helper)
{
    if (cJSON_GetObjectItemCaseSensitive(root, role) == NULL)
        return;
    const cJSON *at = get_object(p, root, role);
    get_string(p, at, "path", helper->path, sizeof helper->path);
    get_label(p, at, "name", helper->name, sizeof helper->name);
    helper->hash = get_u64(p, at, "hash", 16);
}

static void
get_trained(struct parse *p, const cJSON *root, const char *key, struct trained_info *file)
{
    if (cJSON_GetObjectItemCaseSensitive(root, key) == NULL)
        return;
    const cJSON *at = get_object(p, root, key);
    get_string(p, at, "path", file->path, sizeof file->path);
    file->hash = get_u64(p, at, "hash", 16);
}

static void
get_run(struct parse *p, const cJSON *root, struct run_info *run)
{
    get_label(p, root, "specscope", run->version, sizeof run->version);
    get_label(p, root, "started", run->started, sizeof run->started);

    const cJSON *model = get_object(p, root, "model");
    get_string(p, model, "path", run->model_path, sizeof run->model_path);
    get_label(p, model, "name", run->model_name, sizeof run->model_name);
    get_label(p, model, "architecture", run->arch, sizeof run->arch);
    get_label(p, model, "types", run->types, sizeof run->types);
    run->layers = get_u32(p, model, "layers", 1, MAX_LAYERS);
    run->width = get_u32(p, model, "width", 1, UINT32_MAX);
    run->heads = get_u32(p, model, "heads", 1, UINT32_MAX);
    run->kv_heads = get_u32(p, model, "kv_heads", 1, UINT32_MAX);
    run->ffn = get_u32(p, model, "ffn", 1, UINT32_MAX);
    run->vocab = get_u32(p, model, "vocab", 1, INT32_MAX);
    run->parameters = get_u64(p, model, "parameters", 10);
    run->model_hash = get_u64(p, model, "hash", 16);
    run->rho = get_real(p, model, "rho");
    if (run->rho < 0)
        refuse(p, "rho", "is negative");

    for (enum helper_role role = 0; role < HELPERS; role++)
        get_helper(p, root, helper_names[role], &run->helpers[role]);
    get_trained(p, root, "accept_head", &run->accept_head);
    get_trained(p, root, "profile", &run->profile);

    get_label(p, root, "backend", run->backend, sizeof run->backend);
    get_label(p, root, "isa", run->isa, sizeof run->isa);
    get_label(p, root, "host", run->host, sizeof run->host);
    run->threads = get_u32(p, root, "threads", 0, UINT32_MAX);
    run->exact = cJSON_IsTrue(get(p, root, "exact", cJSON_IsBool, "is neither true nor false"));
    run->ctx = get_u32(p, root, "ctx", 1, INT32_MAX);
    run->tokens = get_u32(p, root, "tokens", 0, UINT32_MAX);
    run->prompt = get_bytes(p, root, "prompt", &run->prompt_len);

    const cJSON *sampling = get_object(p, root, "sampling");
    run->sampling.temperature = (float)get_real(p, sampling, "temperature");
    run->sampling.top_k = get_u32(p, sampling, "top_k", 0, UINT32_MAX);
    run->sampling.top_p = (float)get_real(p, sampling, "top_p");
    run->seed = get_u64(p, root, "seed", 10);

    get_label(p, root, "policy", run->policy, sizeof run->policy);
    get_policies(p, root, run);
}

bool
run_json_parse(const char *name, const char *text, size_t len, struct run_info *run, uint64_t *closed_event,
               struct err *err)
{
    memset(run, 0, sizeof *run);
    *closed_event = 0;
    struct parse p = {.name = name, .err = err, .ok = true};
    cJSON *root = cJSON_ParseWithLength(text, len);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return err_set(err, ERR_WORK, "%s is not a JSON object, so this is no trace (or a damaged one)", name);
    }
    run->format = get_u32(&p, root, "format", 1, UINT32_MAX);
    if (p.ok && run->format > TRACE_FORMAT) {
        err_set(err, ERR_WORK, "%s: written in trace format %u by a newer specscope; this one reads up to format %d",
                name, run->format, TRACE_FORMAT);
        p.ok = false;
    }
    get_run(&p, root, run);
    if (p.ok && cJSON_GetObjectItemCaseSensitive(root, "closed_event") != NULL)
        *closed_event = get_whole(&p, root, "closed_event", 0, (uint64_t)1 << 53);
    cJSON_Delete(root);
    if (!p.ok)
        run_info_free(run);
    return p.ok;
}
