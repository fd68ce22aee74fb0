#include "engine/model/trained/sv_profile.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/json_fields.h"
#include "base/json_read.h"
#include "base/program.h"
#include "engine/model/model.h"

static uint32_t
bin_of(const float *edge, uint32_t n_bins, double value)
{
    uint32_t bin = 0;
    while (bin + 1 < n_bins && (double)edge[bin] <= value)
        bin++;
    return bin;
}

static int
by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Edges between values, so that bins hold about as many of the n each; returns how many bins. values are sorted. */
static uint32_t
find_edges(float *values, size_t n, uint32_t most, float *edge)
{
    uint32_t bins = 1;
    qsort(values, n, sizeof *values, by_value);
    for (uint32_t i = 1; i < most; i++) {
        const float value = values[n * i / most];
        if (value > values[0] && (bins == 1 || value > edge[bins - 2]))
            edge[bins++ - 1] = value;
    }
    return bins;
}

/* -Σ p log2 p of counts. */
static double
entropy_of(const uint64_t *count, uint32_t n)
{
    double all = 0, h = 0;
    for (uint32_t i = 0; i < n; i++)
        all += (double)count[i];
    for (uint32_t i = 0; i < n; i++)
        if (count[i] > 0)
            h -= (double)count[i] / all * log2((double)count[i] / all);
    return h;
}

typedef uint64_t histogram[SV_ACCEPTED];

/* Σ over `groups` histograms, each by its share, of what is uncertain in it. */
static double
entropy_given(histogram *of, size_t groups, size_t n)
{
    double h = 0;
    for (size_t g = 0; g < groups; g++) {
        uint64_t own = 0;
        for (uint32_t k = 0; k < SV_ACCEPTED; k++)
            own += of[g][k];
        h += (double)own / (double)n * entropy_of(of[g], SV_ACCEPTED);
    }
    return h;
}

static bool
find_entropy(struct sv_profile *p, const struct sv_observation *o, size_t n)
{
    histogram *by = calloc(1 + 2 * SV_BINS + SV_BINS * SV_BINS, sizeof *by);
    if (by == NULL)
        return false;
    histogram *all = by, *by_s = all + 1, *by_a = by_s + SV_BINS, *by_both = by_a + SV_BINS;
    for (size_t i = 0; i < n; i++) {
        const uint32_t s = bin_of(p->s_edge, p->n_s, (double)o[i].s), a = bin_of(p->a_edge, p->n_a, (double)o[i].a);
        uint32_t k = (uint32_t)((double)o[i].accepted * SV_ACCEPTED);
        k = k < SV_ACCEPTED ? k : SV_ACCEPTED - 1;
        all[0][k]++;
        by_s[s][k]++;
        by_a[a][k]++;
        by_both[s * SV_BINS + a][k]++;
    }
    p->entropy = (struct sv_entropy){.h = entropy_given(all, 1, n),
                                     .given_s = entropy_given(by_s, SV_BINS, n),
                                     .given_a = entropy_given(by_a, SV_BINS, n),
                                     .given_both = entropy_given(by_both, SV_BINS * SV_BINS, n)};
    free(by);
    return true;
}

static bool
in_bounds(const struct sv_observation *o)
{
    return o->s >= 0 && o->s <= 1 && o->a >= 0 && o->a <= 1 && o->accepted >= 0 && o->accepted <= 1;
}

bool
sv_profile_make(struct sv_profile *p, uint32_t n_s, uint32_t n_a, const struct sv_observation *o, size_t n,
                struct err *err)
{
    if (n == 0)
        return err_set(err, ERR_WORK, "a profile needs observations: give more prompts");
    if (n_s < 1 || n_s > SV_BINS || n_a < 1 || n_a > SV_BINS)
        return err_set(err, ERR_USAGE, "a profile has 1 to %d bins of each kind", SV_BINS);
    float *values = malloc(n * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "out of memory for a profile of %zu observations", n);
    for (size_t i = 0; i < n; i++) {
        if (!in_bounds(&o[i])) {
            free(values);
            return err_set(err, ERR_WORK, "observation %zu of a profile is not within [0, 1]", i);
        }
        values[i] = o[i].s;
    }
    p->n_s = find_edges(values, n, n_s, p->s_edge);
    for (size_t i = 0; i < n; i++)
        values[i] = o[i].a;
    p->n_a = find_edges(values, n, n_a, p->a_edge);
    free(values);
    memset(p->count, 0, sizeof p->count);
    memset(p->sum, 0, sizeof p->sum);
    for (size_t i = 0; i < n; i++) {
        const uint32_t s = bin_of(p->s_edge, p->n_s, (double)o[i].s), a = bin_of(p->a_edge, p->n_a, (double)o[i].a);
        p->count[s][a]++;
        p->sum[s][a] += (double)o[i].accepted;
    }
    return find_entropy(p, o, n) || err_set(err, ERR_WORK, "out of memory for a profile");
}

uint32_t
sv_profile_cell(const struct sv_profile *p, double s, double a)
{
    return bin_of(p->s_edge, p->n_s, s) * p->n_a + bin_of(p->a_edge, p->n_a, a);
}

double
sv_profile_accepted(const struct sv_profile *p, double s, double a)
{
    const uint32_t row = bin_of(p->s_edge, p->n_s, s), column = bin_of(p->a_edge, p->n_a, a);
    if (p->count[row][column] > 0)
        return p->sum[row][column] / (double)p->count[row][column];
    double row_sum = 0, row_count = 0, column_sum = 0, column_count = 0;
    for (uint32_t i = 0; i < p->n_a; i++) {
        row_sum += p->sum[row][i];
        row_count += (double)p->count[row][i];
    }
    for (uint32_t i = 0; i < p->n_s; i++) {
        column_sum += p->sum[i][column];
        column_count += (double)p->count[i][column];
    }
    if (!(row_count > 0) || !(column_count > 0))
        return row_count > 0 ? row_sum / row_count : column_count > 0 ? column_sum / column_count : 0;
    return (row_sum / row_count + column_sum / column_count) / 2;
}

double
sv_information_gain(const struct sv_entropy *e)
{
    return e->h > 0 ? (e->h - e->given_both) / e->h : 0;
}

uint64_t
sv_profile_observations(const struct sv_profile *p)
{
    uint64_t n = 0;
    for (uint32_t s = 0; s < p->n_s; s++)
        for (uint32_t a = 0; a < p->n_a; a++)
            n += p->count[s][a];
    return n;
}

/* The profile's file:
 *
 *     {"format": "specscope verification profile 1", "target": {"name": …, "hash": "…", "layers": 3 (of self:3)}, "draft": …, "companion": …,
 *      "sampling": {"temperature": 0, "top_k": 0, "top_p": 1}, "s_edges": [...], "a_edges": [...],
 *      "count": [[by a] by s], "accepted": [[mean A, or null] …], "entropy": {"h": …, "given_s": …, "given_a": …, "given_both": …}} */

#define FORMAT     "specscope verification profile 1"
#define MOST_BYTES (1u << 20)

const struct file_kind sv_profile_file = {.what = "a verification profile of specscope",
                                          .begins = "{\"format\":\"" FORMAT "\""};

#define OF struct sv_profile
#define MODEL(i)                                                                                                       \
    {                                                                                                                  \
        FIELD_PLAIN(NEEDED, "name", LABEL, whose.name[i]), FIELD_PLAIN(NEEDED, "hash", HASH, whose.hash[i]),           \
            FIELD_BOUNDED(IF_SET, "layers", whose.layers[i], 0, 1000000), FIELD_END                                    \
    }
static const struct field models[3][4] = {MODEL(0), MODEL(1), MODEL(2)};
static const struct field sampling_fields[] = {FIELD_REAL_TO(NEEDED, "temperature", whose.temperature, 1000000),
                                               FIELD_BOUNDED(NEEDED, "top_k", whose.top_k, 0, UINT32_MAX),
                                               FIELD_REAL_TO(NEEDED, "top_p", whose.top_p, 1), FIELD_END};
static const struct field entropy_fields[] = {
    FIELD_REAL_TO(NEEDED, "h", entropy.h, 1000000), FIELD_REAL_TO(NEEDED, "given_s", entropy.given_s, 1000000),
    FIELD_REAL_TO(NEEDED, "given_a", entropy.given_a, 1000000),
    FIELD_REAL_TO(NEEDED, "given_both", entropy.given_both, 1000000), FIELD_END};
#undef OF

/* The inner tables have offsets in the whole profile. */
#define PART(key, table)                                                                                               \
    {                                                                                                                  \
        key, FIELD_OBJECT, FIELD_NEEDED, 0, sizeof(struct sv_profile), 0, 0, NULL, table, NULL                         \
    }
static const struct field profile_fields[] = {PART("target", models[0]),       PART("draft", models[1]),
                                              PART("companion", models[2]),    PART("sampling", sampling_fields),
                                              PART("entropy", entropy_fields), FIELD_END};

/* ---- writing ---- */

static bool
add_numbers(cJSON *to, const char *name, const float *values, uint32_t n)
{
    cJSON *list = cJSON_AddArrayToObject(to, name);
    for (uint32_t i = 0; i < n && list != NULL; i++)
        if (!cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i])))
            return false;
    return list != NULL;
}

static bool
add_cells(cJSON *root, const struct sv_profile *p)
{
    cJSON *count = cJSON_AddArrayToObject(root, "count"), *accepted = cJSON_AddArrayToObject(root, "accepted");
    for (uint32_t s = 0; s < p->n_s && count != NULL && accepted != NULL; s++) {
        cJSON *counts = cJSON_CreateArray(), *means = cJSON_CreateArray();
        if (!cJSON_AddItemToArray(count, counts) || !cJSON_AddItemToArray(accepted, means))
            return false;
        for (uint32_t a = 0; a < p->n_a; a++) {
            const double n = (double)p->count[s][a];
            if (!cJSON_AddItemToArray(counts, cJSON_CreateNumber(n)) ||
                !cJSON_AddItemToArray(means, n > 0 ? cJSON_CreateNumber(p->sum[s][a] / n) : cJSON_CreateNull()))
                return false;
        }
    }
    return count != NULL && accepted != NULL;
}

bool
sv_profile_write(const struct sv_profile *p, const char *path, struct err *err)
{
    cJSON *root = cJSON_CreateObject();
    bool made = root != NULL && cJSON_AddStringToObject(root, "format", FORMAT) != NULL;
    fields_print(&made, root, profile_fields, p);
    made = made && add_numbers(root, "s_edges", p->s_edge, p->n_s - 1) &&
           add_numbers(root, "a_edges", p->a_edge, p->n_a - 1) && add_cells(root, p);
    char *json = made ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (json == NULL)
        return err_set(err, ERR_WORK, "out of memory writing %s", path);
    const bool ok = file_replace_text(AT_FDCWD, path, 0666, json, strlen(json), err);
    cJSON_free(json);
    return ok;
}

/* ---- reading ---- */

struct parse {
    const char *path;
    struct err *err;
};

static bool
wrong(const struct parse *p, const char *what)
{
    return err_set(p->err, ERR_WORK, "%s: not a verification profile: %s; make one with `%s train profile`", p->path,
                   what, program_name());
}

/* Edges ascending within [0, 1]; *n_bins one more than there are. */
static bool
read_edges(const struct parse *p, const cJSON *list, float *edge, uint32_t *n_bins)
{
    const int n = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || n >= SV_BINS)
        return wrong(p, "its edges are no list of a sensible length");
    for (int i = 0; i < n; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(item) ||
            !(item->valuedouble >= (i > 0 ? (double)edge[i - 1] : 0) && item->valuedouble <= 1))
            return wrong(p, "its edges do not ascend from 0 to 1");
        edge[i] = (float)item->valuedouble;
    }
    *n_bins = (uint32_t)n + 1;
    return true;
}

static bool
read_cells(const struct parse *p, const cJSON *root, struct sv_profile *to)
{
    const cJSON *count = cJSON_GetObjectItemCaseSensitive(root, "count"),
                *accepted = cJSON_GetObjectItemCaseSensitive(root, "accepted");
    if (cJSON_GetArraySize(count) != (int)to->n_s || cJSON_GetArraySize(accepted) != (int)to->n_s)
        return wrong(p, "its cells are not as many as its bins");
    for (uint32_t s = 0; s < to->n_s; s++) {
        const cJSON *counts = cJSON_GetArrayItem(count, (int)s), *means = cJSON_GetArrayItem(accepted, (int)s);
        if (cJSON_GetArraySize(counts) != (int)to->n_a || cJSON_GetArraySize(means) != (int)to->n_a)
            return wrong(p, "its cells are not as many as its bins");
        for (uint32_t a = 0; a < to->n_a; a++) {
            const cJSON *n = cJSON_GetArrayItem(counts, (int)a), *mean = cJSON_GetArrayItem(means, (int)a);
            if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0 && n->valuedouble <= 1e15) ||
                (n->valuedouble >= 1 && (!cJSON_IsNumber(mean) || !(mean->valuedouble >= 0 && mean->valuedouble <= 1))))
                return wrong(p, "a cell's count or mean makes no sense");
            to->count[s][a] = (uint64_t)n->valuedouble;
            to->sum[s][a] = to->count[s][a] > 0 ? mean->valuedouble * (double)to->count[s][a] : 0;
        }
    }
    return sv_profile_observations(to) > 0 || wrong(p, "nothing was observed");
}

static bool
read_root(const struct parse *p, const cJSON *root, struct sv_profile *to)
{
    const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "format"));
    if (format == NULL || strcmp(format, FORMAT) != 0)
        return wrong(p, "it does not say '" FORMAT "'");
    struct fields fields = {.name = p->path, .err = p->err, .ok = true};
    fields_parse(&fields, root, profile_fields, to);
    return fields.ok && read_edges(p, cJSON_GetObjectItemCaseSensitive(root, "s_edges"), to->s_edge, &to->n_s) &&
           read_edges(p, cJSON_GetObjectItemCaseSensitive(root, "a_edges"), to->a_edge, &to->n_a) &&
           read_cells(p, root, to);
}

bool
sv_profile_parse(struct sv_profile *to, const char *path, const char *json, size_t n, struct err *err)
{
    memset(to, 0, sizeof *to);
    const struct parse p = {path, err};
    cJSON *root;
    if (!json_read(&root, json, n))
        return err_set(err, ERR_WORK, "%s: out of memory", path);
    const bool ok = root != NULL ? read_root(&p, root, to) : wrong(&p, "it is no JSON");
    cJSON_Delete(root);
    snprintf(to->path, sizeof to->path, "%s", path);
    to->hash = hash_bytes(HASH_START, json, n);
    return ok;
}

bool
sv_profile_read(struct sv_profile *to, const char *path, struct err *err)
{
    char *json;
    size_t n;
    if (!file_text(path, MOST_BYTES, &json, &n, err))
        return false;
    const bool ok = sv_profile_parse(to, path, json, n, err);
    free(json);
    return ok;
}
