/* Reads config.json's quantization_config, finds the packed weights of a folder, and unpacks them. */
#include "engine/model/arch/packed.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch_hf.h"
#include "engine/model/memory.h"
#include "kernels/tensor.h"

#define NAME_SIZE 256

/* ---- quantization_config ---- */

static bool
refuse_way(const struct hf_folder *f, const char *what, struct err *err)
{
    return err_set(err, ERR_WORK,
                   "%s: its weights are packed as %s, which is not supported; FP8, MXFP4, GPTQ, AWQ, "
                   "compressed-tensors and bitsandbytes' 4 bits are; take the folder in BF16 or F16, or a GGUF file",
                   f->path, what);
}

static uint32_t
number_or(const cJSON *o, const char *name, const char *other, uint32_t otherwise)
{
    double v = 0;
    const cJSON *entry = arch_hf_entry(o, name);
    if (entry == NULL && other != NULL)
        entry = arch_hf_entry(o, other);
    return arch_hf_kind(entry, &v) == VALUE_WHOLE && v >= 0 && v <= INT32_MAX ? (uint32_t)v : otherwise;
}

static const char *
text_or(const cJSON *o, const char *name, const char *otherwise)
{
    const cJSON *v = arch_hf_entry(o, name);
    return cJSON_IsString(v) ? v->valuestring : otherwise;
}

static void
read_block(const cJSON *sizes, struct packing_setting *s)
{
    double rows = 0, cols = 0;
    if (cJSON_GetArraySize(sizes) == 2 && arch_hf_kind(cJSON_GetArrayItem(sizes, 0), &rows) == VALUE_WHOLE &&
        arch_hf_kind(cJSON_GetArrayItem(sizes, 1), &cols) == VALUE_WHOLE && rows >= 1 && cols >= 1 &&
        rows <= INT32_MAX && cols <= INT32_MAX) {
        s->block_rows = (uint32_t)rows;
        s->block_cols = (uint32_t)cols;
    }
}

/* compressed-tensors: the settings of the first group apply to all weights. */
static bool
read_compressed(const struct hf_folder *f, const cJSON *q, struct packing_setting *s, struct err *err)
{
    const cJSON *groups = arch_hf_entry(q, "config_groups"), *first = groups != NULL ? groups->child : NULL;
    const cJSON *weights = arch_hf_entry(first, "weights");
    const char *format = text_or(q, "format", text_or(first, "format", "?"));
    char shown[40], what[80];
    s->bits = number_or(weights, "num_bits", NULL, 0);
    s->group = number_or(weights, "group_size", NULL, 0);
    const bool naive = strcmp(format, "naive-quantized") == 0,
               floats = strcmp(text_or(weights, "type", "?"), "float") == 0;
    if ((naive || strcmp(format, "int-quantized") == 0) && !floats && s->bits == 8) {
        s->kind = PACKING_BYTES;
        return true;
    }
    if ((naive || strcmp(format, "float-quantized") == 0) && s->bits == 8) {
        s->kind = PACKING_FP8;
        read_block(arch_hf_entry(weights, "block_structure"), s);
        return true;
    }
    snprintf(what, sizeof what, "compressed-tensors' %s", printable_line(shown, sizeof shown, format, strlen(format)));
    s->kind = PACKING_COMPRESSED;
    return (strcmp(format, "pack-quantized") == 0 && (s->bits == 4 || s->bits == 8)) || refuse_way(f, what, err);
}

static bool
one_of(const char *text, const char *const *names)
{
    while (*names != NULL && strcasecmp(text, *names) != 0)
        names++;
    return *names != NULL;
}

static bool
by_gptqmodel(const cJSON *q)
{
    const cJSON *names = arch_hf_entry(arch_hf_entry(q, "meta"), "quantizer"), *name;
    bool by = cJSON_IsString(names) && strstr(names->valuestring, "gptqmodel") != NULL;
    cJSON_ArrayForEach(name, names) by = by || (cJSON_IsString(name) && strstr(name->valuestring, "gptqmodel") != NULL);
    return by;
}

/* In files of GPTQ's first version, GPTQModel stores zeros of 3 bits less constants other than 1, so they are not
 * supported. With symmetric quantisation the zero is in the middle, and the stored zeros are ignored. */
static bool
read_gptq(const cJSON *q, struct packing_setting *s)
{
    static const char *const known[] = {"gptq", "gptq_v2", NULL};
    const char *format = text_or(q, "checkpoint_format", "gptq");
    s->kind = PACKING_GPTQ;
    s->zeros_as_they_are = strcmp(format, "gptq_v2") == 0;
    const bool odd_zeros = s->bits == 3 && !s->zeros_as_they_are;
    s->zeros_in_the_middle = odd_zeros && cJSON_IsTrue(arch_hf_entry(q, "sym"));
    return one_of(format, known) && ((s->bits >= 2 && s->bits <= 4) || s->bits == 8) &&
           !cJSON_IsTrue(arch_hf_entry(q, "is_marlin_format")) &&
           (!odd_zeros || s->zeros_in_the_middle || !by_gptqmodel(q));
}

/* The versions "exllama" and "ipex" have the layout of "gemm". */
static bool
read_awq(const cJSON *q, struct packing_setting *s)
{
    static const char *const columns[] = {"gemm", "exllama", "ipex", NULL}, *const rows[] = {"gemv", NULL};
    const char *version = text_or(q, "version", "gemm");
    s->kind = one_of(version, rows) ? PACKING_AWQ_ROWS : PACKING_AWQ;
    return s->bits == 4 && (s->kind == PACKING_AWQ_ROWS || one_of(version, columns));
}

/* AutoRound uses the layouts of GPTQ or AWQ; packing_format is the layout. */
static bool
read_auto_round(const cJSON *q, struct packing_setting *s)
{
    static const char *const first[] = {"auto_round:auto_gptq", "auto_round:gptq", NULL},
                             *const second[] = {"auto_round", NULL},
                             *const awq[] = {"auto_round:auto_awq", "auto_round:awq", NULL};
    const char *format = text_or(q, "packing_format", "auto_round:gptq");
    const bool as_awq = one_of(format, awq);
    if (!as_awq && !one_of(format, first) && !one_of(format, second))
        return false;
    const bool known = as_awq ? read_awq(q, s) : read_gptq(q, s);
    s->zeros_as_they_are = one_of(format, second);
    return known;
}

static bool
read_setting(const struct hf_folder *f, struct packing_setting *s, struct err *err)
{
    const cJSON *q = arch_hf_entry(f->config, "quantization_config");
    *s = (struct packing_setting){.kind = PACKING_NONE};
    if (q == NULL)
        return true;
    const char *method = text_or(q, "quant_method", "?");
    s->bits = number_or(q, "bits", "w_bit", 0);
    s->group = number_or(q, "group_size", "q_group_size", 0); /* -1: all inputs; number_or() returns 0 for it */
    if (strcmp(method, "compressed-tensors") == 0)
        return read_compressed(f, q, s, err);
    if (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0) {
        s->kind = PACKING_FP8;
        read_block(arch_hf_entry(q, "weight_block_size"), s);
        return true;
    }
    if (strcmp(method, "mxfp4") == 0) {
        s->kind = PACKING_MXFP4;
        return true;
    }
    const char *of = "";
    bool known = false;
    if (strcmp(method, "gptq") == 0) {
        known = read_gptq(q, s);
        of = text_or(q, "checkpoint_format", "");
    } else if (strcmp(method, "awq") == 0) {
        known = read_awq(q, s);
        of = text_or(q, "version", "gemm");
    } else if (strcmp(method, "auto-round") == 0 || strcmp(method, "intel/auto-round") == 0) {
        known = read_auto_round(q, s);
        of = text_or(q, "packing_format", "");
    } else if (strcmp(method, "bitsandbytes") == 0) {
        s->kind = PACKING_BNB4;
        known = cJSON_IsTrue(arch_hf_entry(q, "load_in_4bit")) || cJSON_IsTrue(arch_hf_entry(q, "_load_in_4bit"));
        s->bits = known ? 4 : 8;
    }
    char shown[40], more[48], what[128];
    snprintf(what, sizeof what, "'%s' (%" PRIu32 " bits%s%s)",
             printable_line(shown, sizeof shown, method, strlen(method)), s->bits, of[0] != '\0' ? ", " : "",
             printable_line(more, sizeof more, of, strlen(of)));
    return known || refuse_way(f, what, err);
}

/* ---- the weights ---- */

static const struct packing_way {
    const char *codes, *weight; /* endings of the names of the codes and of the weight */
    bool (*plan)(struct packed_job *);
    bool (*unpack)(const struct packed_job *, unsigned char *out);
    const char *name;
} ways[] = {
    [PACKING_FP8] = {".weight", ".weight", packed_fp8_plan, packed_fp8_unpack, "FP8"},
    [PACKING_GPTQ] = {".qweight", ".weight", packed_integers_plan, packed_integers_unpack, "GPTQ"},
    [PACKING_AWQ] = {".qweight", ".weight", packed_integers_plan, packed_integers_unpack, "AWQ"},
    [PACKING_AWQ_ROWS] = {".qweight", ".weight", packed_integers_plan, packed_integers_unpack, "AWQ"},
    [PACKING_COMPRESSED] = {".weight_packed", ".weight", packed_integers_plan, packed_integers_unpack,
                            "compressed-tensors"},
    [PACKING_BYTES] = {".weight", ".weight", packed_integers_plan, packed_integers_unpack, "compressed-tensors"},
    [PACKING_MXFP4] = {"_blocks", "", packed_mxfp4_plan, packed_mxfp4_unpack, "MXFP4"},
    [PACKING_BNB4] = {".weight", ".weight", packed_bnb4_plan, packed_bnb4_unpack, "bitsandbytes"},
};

static bool
is_packed(const struct packing_setting *s, const struct safetensor *t)
{
    const char *ending = ways[s->kind].codes;
    const size_t len = strlen(t->name), n = strlen(ending);
    return len > n && len < NAME_SIZE / 2 && strcmp(t->name + len - n, ending) == 0 &&
           (s->kind != PACKING_FP8 || strncmp(t->dtype, "F8_", 3) == 0) &&
           (s->kind != PACKING_BYTES || strcmp(t->dtype, "I8") == 0) &&
           (s->kind != PACKING_BNB4 || strcmp(t->dtype, "U8") == 0);
}

static struct packed_job
job_of(const struct model *m, const struct hf_folder *f, const struct packing_setting *s, bool exact,
       const struct safetensor *codes, struct err *err)
{
    return (struct packed_job){.model = m,
                               .folder = f,
                               .setting = s,
                               .stem = codes->name,
                               .stem_len = (int)(strlen(codes->name) - strlen(ways[s->kind].codes)),
                               .exact = exact,
                               .codes = codes,
                               .err = err};
}

/* Marks the other tensors of a packed weight as used: scales, also of activations, zeros and sizes. A bias is marked
 * only if all its bytes are 0, as GPTQ's tools write one for models without biases. */
static void
mark_pieces(struct packed *p, const struct packed_job *j)
{
    static const char *const endings[] = {"weight_scale_inv",
                                          "weight_scale",
                                          "scales",
                                          "qzeros",
                                          "g_idx",
                                          "weight_shape",
                                          "input_scale",
                                          "weight_zero_point",
                                          "weight_g_idx",
                                          "output_scale",
                                          "k_scale",
                                          "v_scale",
                                          "input_scale_ub",
                                          "activation_scale",
                                          "bias",
                                          "_scales",
                                          "weight.absmax",
                                          "weight.quant_map",
                                          "weight.nested_absmax",
                                          "weight.nested_quant_map",
                                          "weight.quant_state.bitsandbytes__nf4",
                                          "weight.quant_state.bitsandbytes__fp4"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const struct safetensor *t = packed_piece(j, endings[i]);
        bool zeros = true;
        for (uint64_t b = 0; t != NULL && b < t->bytes && strcmp(endings[i], "bias") == 0; b++)
            zeros = zeros && t->data[b] == 0;
        if (t != NULL && zeros)
            p->pieces[hf_folder_find(j->folder, t->name) - j->folder->tensors] = true;
    }
}

static bool
unpack(struct packed *p, struct model *m, const struct packed_job *j, bool glance)
{
    struct packed_weight *w = &p->weights[p->n_weights];
    unsigned char *data = blocks_take(&m->blocks, 1, (size_t)j->rows * tensor_row_bytes(j->type, j->cols));
    const char *ending = ways[j->setting->kind].weight;
    const uint32_t planes = j->planes > 0 ? j->planes : 1;
    const size_t name_size = (size_t)j->stem_len + strlen(ending) + 1;
    w->name = malloc(name_size);
    p->n_weights += w->name != NULL;
    if (data == NULL || w->name == NULL)
        return err_set(j->err, ERR_WORK, "%s: out of memory unpacking weights", j->folder->path);
    snprintf(w->name, name_size, "%.*s%s", j->stem_len, j->stem, ending);
    w->tensor = (struct arch_tensor){.data = data,
                                     .type_name = tensor_type_name(j->type),
                                     .type = j->type,
                                     .rows = j->rows / planes,
                                     .cols = j->cols,
                                     .planes = j->planes,
                                     .index = (size_t)(hf_folder_find(j->folder, j->codes->name) - j->folder->tensors)};
    m->unpacked_of[j->type] += (uint64_t)j->rows * j->cols;
    mark_pieces(p, j);
    return glance || ways[j->setting->kind].unpack(j, data);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct packed_weight *)a)->name, ((const struct packed_weight *)b)->name);
}

/* Plans all weights before it unpacks any, so that it fails early if they do not fit into memory. */
static bool
unpack_all(struct packed *p, struct model *m, const struct hf_folder *f, const struct packing_setting *s,
           const struct packed_options *o, struct err *err)
{
    struct packed_job *jobs = calloc(f->n_tensors + 1, sizeof *jobs);
    size_t n = 0;
    uint64_t bytes = 0;
    char need[24], there[24];
    bool ok = jobs != NULL || err_set(err, ERR_WORK, "%s: out of memory", f->path);
    for (size_t i = 0; ok && i < f->n_tensors; i++)
        if (is_packed(s, f->tensors[i])) {
            jobs[n] = job_of(m, f, s, o->exact, f->tensors[i], err);
            ok = ways[s->kind].plan(&jobs[n]);
            bytes += ok ? jobs[n].rows * (uint64_t)tensor_row_bytes(jobs[n].type, jobs[n].cols) : 0;
            n++;
        }
    if (ok && bytes > o->room)
        ok = err_set(err, ERR_WORK, "%s: unpacked its weights take %s, but %s of memory are available%s", f->path,
                     memory_text(need, bytes), memory_text(there, o->room), o->exact ? "; leave --exact out" : "");
    p->weights = ok ? calloc(n + 1, sizeof *p->weights) : NULL;
    ok = ok && (p->weights != NULL || err_set(err, ERR_WORK, "%s: out of memory", f->path));
    for (size_t i = 0; ok && i < n; i++)
        ok = unpack(p, m, &jobs[i], o->glance);
    free(jobs);
    if (ok)
        qsort(p->weights, p->n_weights, sizeof *p->weights, by_name);
    return ok;
}

bool
packed_open(struct packed **out, struct model *m, const struct hf_folder *f, const struct packed_options *o,
            struct err *err)
{
    struct packing_setting setting;
    *out = NULL;
    if (!read_setting(f, &setting, err))
        return false;
    if (setting.kind == PACKING_NONE)
        return true;
    struct packed *p = calloc(1, sizeof *p);
    bool *pieces = calloc(f->n_tensors + 1, sizeof *pieces);
    if (p == NULL || pieces == NULL) {
        free(p);
        free(pieces);
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    }
    p->pieces = pieces;
    if (!unpack_all(p, m, f, &setting, o, err)) {
        packed_close(p);
        return false;
    }
    m->packing = ways[setting.kind].name;
    *out = p;
    return true;
}

void
packed_close(struct packed *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n_weights; i++)
        free(p->weights[i].name);
    free(p->weights);
    free(p->pieces);
    free(p);
}

const struct arch_tensor *
packed_find(const struct packed *p, const char *name)
{
    const struct packed_weight wanted = {.name = (char *)name};
    const struct packed_weight *w =
        p == NULL || p->n_weights == 0 ? NULL : bsearch(&wanted, p->weights, p->n_weights, sizeof *p->weights, by_name);
    return w == NULL ? NULL : &w->tensor;
}
