/* Reads a model from a Hugging Face folder: contains the names of config.json's numbers and of the tensors. */
#include "engine/model/arch/arch_hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch_tensors.h"
#include "engine/model/arch/packed.h"
#include "kernels/tensor.h"

#define REMEDY     ARCH_HF_REMEDY
#define COMPUTABLE 5 /* names in the table below */

static const struct arch_names hf_names = {
    .numbers =
        {
            [ARCH_LAYERS] = "num_hidden_layers",
            [ARCH_CTX] = "max_position_embeddings",
            [ARCH_WIDTH] = "hidden_size",
            [ARCH_FFN] = "intermediate_size",
            [ARCH_VOCAB] = "vocab_size",
            [ARCH_HEADS] = "num_attention_heads",
            [ARCH_KV_HEADS] = "num_key_value_heads",
            [ARCH_HEAD_DIM] = "head_dim",
            [ARCH_ROPE_BASE] = "rope_theta",
            [ARCH_RMS_EPS] = "rms_norm_eps",
            [ARCH_EXPERTS] = "num_experts",
            [ARCH_NORM_EPS] = "layer_norm_eps",
            [ARCH_ATTENTION_CAP] = "attn_logit_softcapping",
            [ARCH_LOGIT_CAP] = "final_logit_softcapping",
            [ARCH_EMBEDDING_SCALE] = "embedding_multiplier",
            [ARCH_RESIDUAL_SCALE] = "residual_multiplier",
            [ARCH_ATTENTION_SCALE] = "attention_multiplier",
            [ARCH_LOGIT_SCALE] = "logit_scale",
            [ARCH_EXPERTS_USED] = "num_experts_per_tok",
            [ARCH_EXPERT_FFN] = "moe_intermediate_size",
            [ARCH_SHARED_FFN] = "shared_expert_intermediate_size",
            [ARCH_SHARED_EXPERTS] = "n_shared_experts",
            [ARCH_EXPERT_GROUPS] = "n_group",
            [ARCH_GROUPS_USED] = "topk_group",
            [ARCH_EXPERT_SCALE] = "routed_scaling_factor",
            [ARCH_CLIP] = "clip_qkv",
            [ARCH_ALIBI] = "attn_config.alibi_bias_max",
            [ARCH_GLOBAL_HEAD_DIM] = "global_head_dim",
            [ARCH_GLOBAL_KV_HEADS] = "num_global_key_value_heads",
            [ARCH_KV_SHARED] = "num_kv_shared_layers",
            [ARCH_PER_LAYER] = "hidden_size_per_layer_input",
            [ARCH_RECURRENT_KEY_HEADS] = "linear_num_key_heads",
            [ARCH_RECURRENT_VALUE_HEADS] = "linear_num_value_heads",
            [ARCH_RECURRENT_KEY_DIM] = "linear_key_head_dim",
            [ARCH_RECURRENT_VALUE_DIM] = "linear_value_head_dim",
            [ARCH_RECURRENT_TAPS] = "linear_conv_kernel_dim",
            [ARCH_CONV_TAPS] = "conv_L_cache",
        },
    .embedding = "model.embed_tokens.weight",
    .final_norm = "model.norm.weight",
    .head = "lm_head.weight",
    .layer = "model.layers.",
    .naming = LAYER_NAMED_HF,
    .computable = {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias",
                   ".attention.masked_bias"},
    .where = "config.json's",
    .remedy = REMEDY,
};

/* ---- the source ---- */

/* Other names of numbers in some configurations. The first that exists is used. DBRX and MPT have nested objects. */
static const struct {
    enum arch_number which;
    const char *name;
} other_names[] = {
    {ARCH_NORM_EPS, "norm_epsilon"},
    {ARCH_NORM_EPS, "norm_eps"},
    {ARCH_NORM_EPS, "layer_norm_epsilon"},
    {ARCH_ROPE_BASE, "rotary_emb_base"},
    {ARCH_LOGIT_SCALE, "logits_scaling"},
    {ARCH_LAYERS, "n_layer"},
    {ARCH_CTX, "n_positions"},
    {ARCH_WIDTH, "n_embd"},
    {ARCH_WIDTH, "n_embed"},
    {ARCH_FFN, "n_inner"},
    {ARCH_FFN, "ffn_hidden_size"},
    {ARCH_HEADS, "n_head"},
    {ARCH_KV_HEADS, "num_kv_heads"},
    {ARCH_KV_HEADS, "n_head_kv"},
    {ARCH_EXPERTS, "num_local_experts"},
    {ARCH_EXPERTS, "n_routed_experts"},
    {ARCH_EXPERTS, "moe_num_experts"},
    {ARCH_EXPERTS_USED, "moe_k"},
    {ARCH_EXPERTS_USED, "top_k_experts"},
    {ARCH_SHARED_FFN, "shared_intermediate_size"},
    {ARCH_SHARED_EXPERTS, "moe_num_shared_experts"},
    {ARCH_LAYERS, "n_layers"},
    {ARCH_WIDTH, "d_model"},
    {ARCH_HEADS, "n_heads"},
    {ARCH_KV_HEADS, "attn_config.kv_n_heads"},
    {ARCH_CTX, "max_seq_len"},
    {ARCH_CTX, "seq_length"},
    {ARCH_FFN, "ffn_config.ffn_hidden_size"},
    {ARCH_ROPE_BASE, "attn_config.rope_theta"},
    {ARCH_EXPERTS, "ffn_config.moe_num_experts"},
    {ARCH_EXPERTS_USED, "ffn_config.moe_top_k"},
    {ARCH_CLIP, "attn_config.clip_qkv"},
    {ARCH_ATTENTION_SCALE, "attn_config.softmax_scale"},
    {ARCH_RECURRENT_KEY_HEADS, "mamba_n_groups"},
    {ARCH_RECURRENT_VALUE_HEADS, "mamba_n_heads"},
    {ARCH_RECURRENT_KEY_DIM, "mamba_d_state"},
    {ARCH_RECURRENT_VALUE_DIM, "mamba_d_head"},
    {ARCH_RECURRENT_TAPS, "mamba_d_conv"},
};

/* A source's file: a folder, and its unpacked weights. */
struct hf_source {
    const struct hf_folder *folder;
    const struct packed *packed; /* or NULL */
};

static const struct hf_folder *
folder_of(const struct arch_source *s)
{
    return ((const struct hf_source *)s->file)->folder;
}

/* Falcon and StarCoder have one key-value head, whatever other entries contain, unless multi_query is false or
 * new_decoder_architecture is true. */
static bool
multi_query(const struct arch_source *s)
{
    const struct hf_folder *f = folder_of(s);
    return (s->arch->flags & ARCH_MULTI_QUERY) != 0 && !cJSON_IsFalse(arch_hf_entry(f->config, "multi_query")) &&
           !cJSON_IsTrue(arch_hf_entry(f->config, "new_decoder_architecture"));
}

static enum arch_value
number(const struct arch_source *s, const char *name, double *out)
{
    const struct hf_folder *f = folder_of(s);
    const cJSON *v = arch_hf_entry(f->config, name);
    if (strcmp(name, hf_names.numbers[ARCH_KV_HEADS]) == 0 && multi_query(s)) {
        *out = 1;
        return VALUE_WHOLE;
    }
    if (strcmp(name, hf_names.numbers[ARCH_ROPE_BASE]) == 0) { /* rope_parameters takes precedence */
        const cJSON *inner = arch_hf_entry(arch_hf_entry(f->config, "rope_parameters"), name);
        v = inner != NULL ? inner : v;
    }
    const bool rotates =
        arch_hf_entry(f->config, "rope_parameters") != NULL; /* takes precedence over attn_config.rope_theta */
    for (size_t i = 0; v == NULL && i < sizeof other_names / sizeof other_names[0]; i++)
        if (strcmp(name, hf_names.numbers[other_names[i].which]) == 0 &&
            !(rotates && other_names[i].which == ARCH_ROPE_BASE && strchr(other_names[i].name, '.') != NULL))
            v = arch_hf_entry(f->config, other_names[i].name);
    return v != NULL ? arch_hf_kind(v, out) : arch_hf_default(s->arch, name, out);
}

static bool
tensor(const struct arch_source *s, const char *name, struct arch_tensor *out)
{
    const struct hf_folder *f = folder_of(s);
    const struct arch_tensor *unpacked = packed_find(((const struct hf_source *)s->file)->packed, name);
    const struct safetensor *const *at = hf_folder_find(f, name), *t;
    if (unpacked != NULL) {
        *out = *unpacked;
        return true;
    }
    if (at == NULL)
        return false;
    t = *at;
    *out =
        (struct arch_tensor){.data = t->data, .type_name = t->dtype, .type = t->type, .rows = t->rows, .cols = t->cols};
    out->index = (size_t)(at - f->tensors);
    out->planes = t->rows > 0;
    if (t->n_dims == 3) {
        out->planes = t->dims[0];
        out->rows = t->dims[1];
        out->cols = t->dims[2];
    }
    return true;
}

static void
tensor_name(const struct arch_source *s, size_t index, const char **name, size_t *len)
{
    const struct hf_folder *f = folder_of(s);
    *name = f->tensors[index]->name;
    *len = strlen(*name);
}

/* Returns true if the file contains a head that differs from the embedding. As in transformers, such a head is used
 * even if the configuration ties it. */
static bool
has_own_head(const struct arch_source *s)
{
    struct arch_tensor head, embedding;
    if (!s->tensor(s, s->names->head, &head))
        return false;
    if (!s->tensor(s, s->names->embedding, &embedding) || head.type != embedding.type || head.rows != embedding.rows ||
        head.cols != embedding.cols || head.type >= WEIGHT_TYPES || head.rows == 0)
        return true;
    return memcmp(head.data, embedding.data, (size_t)head.rows * tensor_row_bytes(head.type, (size_t)head.cols)) != 0;
}

static bool
is_tied(const struct hf_folder *f, const struct arch_source *s)
{
    struct arch_tensor head;
    const cJSON *tie = arch_hf_entry(f->config, "tie_word_embeddings");
    const bool said = cJSON_IsBool(tie) ? cJSON_IsTrue(tie) : (s->arch->flags & ARCH_TIED) != 0;
    return cJSON_IsFalse(tie) ? false : said ? !has_own_head(s) : !s->tensor(s, s->names->head, &head);
}

/* Removes the first part of a name. */
static void
remove_part(char *name)
{
    const char *point = strchr(name, '.');
    if (point != NULL)
        memmove(name, point + 1, strlen(point));
}

struct arch_names
arch_hf_names(const struct arch *arch)
{
    struct arch_names n = hf_names;
    arch_own_names(arch, &n);
    return n;
}

/* Returns the names of a folder's tensors. In a multimodal model they are the names of its language part, and the
 * vision tensors are ignored. The first part of the names ("transformer.") is removed if the folder's names lack it, as
 * in folders that were saved without the class of the head. */
static struct arch_names
names_of(const struct arch *arch, const struct hf_folder *f)
{
    static const char *const other_parts[] = {"vision_tower.", "vision_model.", "multi_modal_projector.",
                                              "audio_tower.",  "embed_vision.", "embed_audio.",
                                              "visual."};
    struct arch_names n = arch_hf_names(arch);
    const bool usual = strcmp(n.layer, hf_names.layer) == 0 && strcmp(n.final_norm, hf_names.final_norm) == 0;
    if (f->part_of[0] != '\0' && usual) {
        /* the names in transformers' modules, or older ones */
        const bool newer = hf_folder_find(f, "model.language_model.embed_tokens.weight") != NULL;
        const char *part = newer ? "model.language_model" : "language_model.model";
        snprintf(n.embedding, sizeof n.embedding, "%s.embed_tokens.weight", part);
        snprintf(n.final_norm, sizeof n.final_norm, "%s.norm.weight", part);
        snprintf(n.layer, sizeof n.layer, "%s.layers.", part);
        if (hf_folder_find(f, n.head) == NULL)
            snprintf(n.head, sizeof n.head, "language_model.lm_head.weight");
        memcpy(n.computable + COMPUTABLE, other_parts, sizeof other_parts);
    }
    char *const names[] = {n.embedding, n.positions, n.embedding_norm, n.final_norm, n.layer};
    const char *point = strchr(n.embedding, '.');
    if (hf_folder_find(f, n.embedding) == NULL && point != NULL && hf_folder_find(f, point + 1) != NULL)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            remove_part(names[i]);
    return n;
}

static struct arch_source
source_of(const struct hf_source *file, const struct arch *arch, const struct arch_names *names,
          bool (*look)(const struct arch_source *, const char *name, struct arch_tensor *out))
{
    return (struct arch_source){.path = file->folder->path,
                                .arch = arch,
                                .names = names,
                                .file = file,
                                .n_tensors = file->folder->n_tensors,
                                .number = number,
                                .tensor = look,
                                .tensor_name = tensor_name};
}

/* Reads a folder whose config.json has been normalised by arch_hf_understood(). */
static bool
read_understood(struct model *m, const struct hf_folder *f, const struct packed *packed, const struct arch *arch,
                struct err *err)
{
    const struct arch_names names = names_of(arch, f);
    const struct hf_source file = {f, packed};
    const struct arch_source s = source_of(&file, arch, &names, tensor);
    if (f->part_of[0] != '\0' && hf_folder_find(f, names.embedding) == NULL)
        return err_set(err, ERR_WORK, "%s: is a '%s', and the names of its language part's tensors are not supported",
                       f->path, f->part_of);
    bool *used = calloc(s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    if (packed != NULL)
        memcpy(used, packed->pieces, s.n_tensors * sizeof *used);
    const struct arch_taking taking = {.model = m, .source = &s, .used = used, .err = err};
    m->desc.rope = arch_rope(arch, LAYER_NAMED_HF);
    bool ok = arch_read_numbers(m, &s, err) && arch_make_layers(m, &s, err) && arch_read_experts(m, &s, err) &&
              arch_hf_form(m, f, arch, err) && arch_read_recurrent(m, &s, err) &&
              arch_read_kinds(m, &s, (struct layer_desc *)m->desc.layers, err);
    if (ok)
        arch_hf_widen(m, f);
    ok = ok && arch_hf_read_rope(m, f, arch, err) && arch_take_xielu(&taking) &&
         arch_read_tensors(m, &s, is_tied(f, &s), used, err);
    free(used);
    return ok;
}

bool
arch_read_hf(struct model *m, const struct hf_folder *f, const struct packed *packed, struct err *err)
{
    const cJSON *type = arch_hf_entry(f->config, "model_type");
    if (!cJSON_IsString(type))
        return err_set(err, ERR_WORK, "%s: config.json does not say what it is ('model_type'); " REMEDY, f->path);
    const struct arch *arch = arch_of_hf(f->path, type->valuestring, err);
    if (arch == NULL)
        return false;
    snprintf(m->arch, sizeof m->arch, "%s", arch->hf);
    struct hf_folder understood = *f;
    understood.config = arch_hf_understood(f, arch, err);
    if (understood.config == NULL)
        return false;
    struct arch this = *arch;
    arch_hf_switch(understood.config, &this);
    const bool ok = read_understood(m, &understood, packed, &this, err);
    cJSON_Delete(understood.config);
    return ok;
}

/* ---- EAGLE-3 heads ---- */

bool
arch_hf_is_head(const struct hf_folder *f)
{
    const char *kind = cJSON_GetStringValue(cJSON_GetArrayItem(arch_hf_entry(f->config, "architectures"), 0));
    return kind != NULL && strcasestr(kind, "eagle3") != NULL;
}

/* The head's layer has the name "midlayer" (SpecForge, AngelSlim) or is the first of a list (speculators). */
static bool
head_tensor(const struct arch_source *s, const char *name, struct arch_tensor *out)
{
    static const char first[] = "layers.0.", *const prefixes[] = {"", "model."};
    const size_t n = strncmp(name, first, sizeof first - 1) == 0 ? sizeof first - 1 : 0;
    char other[ARCH_NAME_SIZE];
    for (size_t i = 0; i < 2; i++) {
        snprintf(other, sizeof other, "%s%s", prefixes[i], name);
        if (tensor(s, other, out))
            return true;
        snprintf(other, sizeof other, "%smidlayer.%s", prefixes[i], name + n);
        if (n > 0 && tensor(s, other, out))
            return true;
    }
    return false;
}

/* Returns the entry of a head: at the top, or in the object that SpecForge writes. */
static const cJSON *
head_entry(const cJSON *config, const char *name)
{
    const cJSON *v = arch_hf_entry(config, name);
    return v != NULL ? v : arch_hf_entry(arch_hf_entry(config, "eagle_config"), name);
}

/* Reads the layers whose features the head reads. At the top (vLLM, speculators) they are those whose inputs are read; in the
 * object that SpecForge writes they are those whose outputs are read, and both are counted from 0. */
static bool
read_head_layers(const struct hf_folder *f, struct arch_head *h, struct err *err)
{
    static const char name[] = "eagle_aux_hidden_state_layer_ids";
    const cJSON *layers = arch_hf_entry(f->config, name), *one;
    const uint32_t after = layers == NULL;
    if (layers == NULL)
        layers = head_entry(f->config, name);
    if (layers != NULL &&
        !(cJSON_IsArray(layers) && cJSON_GetArraySize(layers) >= 1 && cJSON_GetArraySize(layers) <= MODEL_FEATURES))
        return err_set(err, ERR_WORK, "%s: config.json's '%s' should list one to %d layers; " REMEDY, f->path, name,
                       MODEL_FEATURES);
    cJSON_ArrayForEach(one, layers)
    {
        if (!cJSON_IsNumber(one) || !(one->valuedouble >= 0 && one->valuedouble < INT32_MAX))
            return err_set(err, ERR_WORK,
                           "%s: config.json's '%s' contains an entry that is not the number of a layer; " REMEDY,
                           f->path, name);
        h->layer[h->layers++] = (uint32_t)one->valuedouble + after;
    }
    return true;
}

static bool
read_head_form(const struct hf_folder *f, struct arch_head *h, struct err *err)
{
    const cJSON *width = head_entry(f->config, "target_hidden_size");
    *h = (struct arch_head){.norms_features = cJSON_IsTrue(head_entry(f->config, "norm_before_fc")),
                            .norms_each = cJSON_IsTrue(head_entry(f->config, "fc_norm")),
                            .input_normed = cJSON_IsTrue(head_entry(f->config, "norm_before_residual")),
                            .output_normed = cJSON_IsTrue(head_entry(f->config, "norm_output")),
                            .norm = "input_norm.weight",
                            .feature_norm = "layers.0.hidden_norm.weight"};
    if (cJSON_IsNumber(width) && width->valuedouble >= 1 && width->valuedouble <= INT32_MAX)
        h->target_width = (uint32_t)width->valuedouble;
    return read_head_layers(f, h, err);
}

/* Returns the configuration of the head's layer as that of a Llama; speculators nests it. The caller deletes it. */
static cJSON *
head_config(const struct hf_folder *f)
{
    const cJSON *inner = arch_hf_entry(f->config, "transformer_layer_config");
    cJSON *c = cJSON_Duplicate(cJSON_IsObject(inner) ? inner : f->config, true);
    static const char *const foreign[] = {"architectures", "model_type", "layer_types", "use_sliding_window"};
    for (size_t i = 0; c != NULL && i < sizeof foreign / sizeof foreign[0]; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(c, foreign[i]);
    return c;
}

static bool
read_head(struct model *m, const struct hf_folder *f, const struct arch_head *h, const struct arch *arch,
          const struct model *target, struct err *err)
{
    struct arch_names names = hf_names;
    remove_part(names.embedding);
    remove_part(names.final_norm);
    remove_part(names.layer);
    names.computable[COMPUTABLE] = "t2d";
    const struct hf_source file = {f, NULL};
    const struct arch_source s = source_of(&file, arch, &names, head_tensor);
    bool *used = calloc(s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    const struct arch_taking taking = {.model = m, .source = &s, .used = used, .err = err};
    m->desc.rope = arch_rope(arch, LAYER_NAMED_HF);
    const bool ok = arch_read_numbers(m, &s, err) && arch_make_layers(m, &s, err) && arch_hf_form(m, f, arch, err) &&
                    arch_hf_read_rope(m, f, arch, err) && arch_take_head(&taking, h, target);
    free(used);
    return ok;
}

bool
arch_read_hf_head(struct model *m, const struct hf_folder *f, const struct model *target, struct err *err)
{
    const struct arch *arch = arch_of_hf(f->path, "llama", err);
    struct arch_head h;
    struct hf_folder layer = *f;
    if (arch == NULL || !read_head_form(f, &h, err))
        return false;
    cJSON *config = layer.config = head_config(f);
    layer.config = config != NULL ? arch_hf_understood(&layer, arch, err) : NULL;
    cJSON_Delete(config);
    if (layer.config == NULL)
        return config != NULL ? false : err_set(err, ERR_WORK, "%s: out of memory for config.json", f->path);
    struct arch this = *arch;
    arch_hf_switch(layer.config, &this);
    const bool ok = read_head(m, &layer, &h, &this, target, err);
    cJSON_Delete(layer.config);
    return ok;
}
