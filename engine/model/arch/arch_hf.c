/* Reads a model from a Hugging Face folder: contains the names of config.json's numbers and of the tensors. */
#include "engine/model/arch/arch_hf.h"

#include <inttypes.h>
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
number(const struct arch_source *s, enum arch_number which, const char *name, double *out)
{
    const struct hf_folder *f = folder_of(s);
    const cJSON *rope = arch_hf_entry(f->config, "rope_parameters");
    const cJSON *v = which == ARCH_ROPE_BASE ? arch_hf_entry(rope, name) : NULL; /* takes precedence */
    if (which == ARCH_KV_HEADS && multi_query(s)) {
        *out = 1;
        return VALUE_WHOLE;
    }
    for (const char *at = arch_numbers[which][LAYER_NAMED_HF]; v == NULL && *at != '\0'; at += strspn(at, " ")) {
        char one[64];
        const size_t n = strcspn(at, " ");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        at += n;
        if (which != ARCH_ROPE_BASE || rope == NULL || strchr(one, '.') == NULL) /* not attn_config.rope_theta */
            v = arch_hf_entry(f->config, one);
    }
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
    bool *used = blocks_take(&m->blocks, s.n_tensors + 1, sizeof *used);
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
    return ok && arch_hf_read_rope(m, f, arch, err) && arch_take_xielu(&taking) &&
           arch_read_tensors(m, &s, is_tied(f, &s), used, err);
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

/* ---- EAGLE-3 heads and block drafters ---- */

static const char *
head_class(const struct hf_folder *f)
{
    const char *kind = cJSON_GetStringValue(cJSON_GetArrayItem(arch_hf_entry(f->config, "architectures"), 0));
    return kind != NULL ? kind : "";
}

const char *
arch_hf_head(const struct hf_folder *f)
{
    if (strcasestr(head_class(f), "eagle3") != NULL)
        return "eagle3";
    return strcasestr(head_class(f), "dflash") != NULL || strcasestr(head_class(f), "dspark") != NULL ? "dflash" : NULL;
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

/* Returns the entry of a drafter: at the top, or in the objects that z-lab, SpecForge and speculators write. */
static const cJSON *
head_entry(const cJSON *config, const char *name)
{
    static const char *const objects[] = {"dflash_config", "dspark_config", NULL, "eagle_config",
                                          "transformer_layer_config"};
    const cJSON *v = NULL;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0] && v == NULL; i++)
        v = arch_hf_entry(objects[i] != NULL ? arch_hf_entry(config, objects[i]) : config, name);
    return v;
}

/* Reads the layers whose features the drafter reads. The ids that vLLM and speculators write, at the top, are those of
 * the layers whose inputs are read. Those in the object of SpecForge, and the target_layer_ids of z-lab and DeepSpec,
 * are of layers whose outputs are read. Both are counted from 0; DeepSpec's -1 is the embedding. */
static bool
read_head_layers(const struct hf_folder *f, struct arch_head *h, struct err *err)
{
    const char *name = h->is_block ? "aux_hidden_state_layer_ids" : "eagle_aux_hidden_state_layer_ids";
    const cJSON *layers = arch_hf_entry(f->config, name), *one;
    const uint32_t after = layers == NULL;
    if (layers == NULL) {
        name = h->is_block ? "target_layer_ids" : name;
        layers = head_entry(f->config, name);
    }
    if (layers != NULL &&
        !(cJSON_IsArray(layers) && cJSON_GetArraySize(layers) >= 1 && cJSON_GetArraySize(layers) <= MODEL_FEATURES))
        return err_set(err, ERR_WORK, "%s: config.json's '%s' should list one to %d layers; " REMEDY, f->path, name,
                       MODEL_FEATURES);
    cJSON_ArrayForEach(one, layers)
    {
        if (!cJSON_IsNumber(one) ||
            !(one->valuedouble >= (h->is_block && after > 0 ? -1 : 0) && one->valuedouble < INT32_MAX))
            return err_set(err, ERR_WORK,
                           "%s: config.json's '%s' contains an entry that is not the number of a layer; " REMEDY,
                           f->path, name);
        h->layer[h->layers++] = (uint32_t)(one->valuedouble + after);
    }
    return true;
}

static bool
read_eagle_form(const struct hf_folder *f, struct arch_head *h, struct err *err)
{
    *h = (struct arch_head){.norms_features = cJSON_IsTrue(head_entry(f->config, "norm_before_fc")),
                            .norms_each = cJSON_IsTrue(head_entry(f->config, "fc_norm")),
                            .input_normed = cJSON_IsTrue(head_entry(f->config, "norm_before_residual")),
                            .output_normed = cJSON_IsTrue(head_entry(f->config, "norm_output")),
                            .norm = "input_norm.weight",
                            .feature_norm = "layers.0.hidden_norm.weight"};
    return read_head_layers(f, h, err);
}

/* Fails if the drafter's form is known and not supported. */
static bool
refuse_block_forms(const struct hf_folder *f, struct err *err)
{
    static const char *const others[] = {"dflash2", "gemma4", "deepseek"};
    static const struct {
        const char *name;
        bool supported;
    } switches[] = {{"shift_label", false}, {"rope_is_neox_style", true}};
    const char *kind = head_class(f), *type = cJSON_GetStringValue(arch_hf_entry(f->config, "speculators_model_type")),
               *markov = cJSON_GetStringValue(head_entry(f->config, "markov_head_type"));
    char shown[40];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcasestr(kind, others[i]) != NULL)
            return err_set(err, ERR_WORK, "%s: is a '%s', a block drafter of a form that is not supported", f->path,
                           printable_line(shown, sizeof shown, kind, strlen(kind)));
    if (type != NULL && strcmp(type, "dflash") != 0 && strcmp(type, "dspark") != 0)
        return err_set(err, ERR_WORK,
                       "%s: is a '%s' of speculators; of its block drafters dflash and dspark are supported", f->path,
                       printable_line(shown, sizeof shown, type, strlen(type)));
    if (markov != NULL && strcmp(markov, "vanilla") != 0)
        return err_set(err, ERR_WORK, "%s: its Markov head is of the kind '%s', which is not supported; vanilla is",
                       f->path, printable_line(shown, sizeof shown, markov, strlen(markov)));
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        const cJSON *v = head_entry(f->config, switches[i].name);
        if (cJSON_IsBool(v) && cJSON_IsTrue(v) != switches[i].supported)
            return err_set(err, ERR_WORK, "%s: config.json's '%s' is %s, which is not supported", f->path,
                           switches[i].name, switches[i].supported ? "false" : "true");
    }
    return true;
}

/* Reads a whole number of 32 bits; missing: `otherwise`. */
static bool
read_block_number(const struct hf_folder *f, const char *name, uint32_t otherwise, uint32_t *out, struct err *err)
{
    double v = otherwise;
    const enum arch_value kind = arch_hf_kind(head_entry(f->config, name), &v);
    if ((kind != VALUE_WHOLE && kind != VALUE_MISSING) || !(v >= 0 && v <= UINT32_MAX))
        return err_set(err, ERR_WORK, "%s: config.json's '%s' should be a whole number; " REMEDY, f->path, name);
    *out = (uint32_t)v;
    return true;
}

/* DeepSpec's drafters predict the first draft in the block's first row; z-lab's do not, nor do those of speculators
 * without sample_from_anchor, as vLLM and llama.cpp read them. */
static bool
read_block_form(const struct hf_folder *f, struct arch_head *h, struct err *err)
{
    static const char w1[] = "markov_head.markov_w1.weight";
    const cJSON *anchor = head_entry(f->config, "sample_from_anchor");
    *h = (struct arch_head){.is_block = true,
                            .feature_norm = "hidden_norm.weight",
                            .markov = "markov_head.markov_",
                            .confidence = "confidence_head.proj"};
    h->from_anchor = cJSON_IsBool(anchor)
                         ? cJSON_IsTrue(anchor)
                         : arch_hf_entry(f->config, "speculators_model_type") == NULL &&
                               (strcasestr(head_class(f), "dspark") != NULL || hf_folder_find(f, w1) != NULL);
    return refuse_block_forms(f, err) && read_head_layers(f, h, err) &&
           read_block_number(f, "block_size", 16, &h->block, err) &&
           read_block_number(f, "mask_token_id", UINT32_MAX, &h->mask, err);
}

/* Decides in which layers rows of a block attend to later rows. If config.json does not say so, those with a window do
 * not, unless speculators' sliding_window_non_causal is true (as in z-lab's code and vLLM). */
static void
read_causality(const struct model *m, const struct hf_folder *f, struct arch_head *h)
{
    struct layer_desc *layers = (struct layer_desc *)m->desc.layers; /* allocated by arch_make_layers() */
    const cJSON *said = head_entry(f->config, "is_causal");
    said = said != NULL ? said : head_entry(f->config, "causal");
    const bool windows =
        !cJSON_IsBool(said) && m->desc.window > 0 && !cJSON_IsTrue(head_entry(f->config, "sliding_window_non_causal"));
    bool all = windows;
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        all = all && !layers[l].form.sees_all;
    h->causal = cJSON_IsTrue(said) || all;
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        layers[l].form.causal = windows && !all && !layers[l].form.sees_all;
}

/* Entries of block drafters that have other names in models. */
static bool
rename_entries(cJSON *c, const cJSON *config)
{
    static const char *const names[][2] = {{"swa_window_size", "sliding_window"},
                                           {"final_logit_softcapping", "final_logit_softcapping"},
                                           {"output_multiplier", "logit_scale"},
                                           {"input_embedding_scale", "embedding_multiplier"}};
    bool ok = true;
    if (cJSON_IsTrue(head_entry(config, "use_swa"))) {
        cJSON_DeleteItemFromObjectCaseSensitive(c, "layer_types");
        cJSON_DeleteItemFromObjectCaseSensitive(c, "use_sliding_window");
        ok = cJSON_AddTrueToObject(c, "use_sliding_window") != NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cJSON *v = cJSON_Duplicate(head_entry(config, names[i][0]), true);
        cJSON_DeleteItemFromObjectCaseSensitive(v != NULL ? c : NULL, names[i][1]);
        ok = (v == NULL || cJSON_AddItemToObject(c, names[i][1], v)) && ok;
    }
    return ok;
}

/* Returns the configuration of the drafter's layers as that of a model; speculators nests it. The caller deletes it.
 * NULL: out of memory. */
static cJSON *
head_config(const struct hf_folder *f, bool is_block)
{
    const cJSON *inner = arch_hf_entry(f->config, "transformer_layer_config");
    cJSON *c = cJSON_Duplicate(cJSON_IsObject(inner) ? inner : f->config, true);
    static const char *const foreign[] = {"architectures", "model_type", "layer_types", "use_sliding_window"};
    for (size_t i = 0; c != NULL && i < (is_block ? 2 : sizeof foreign / sizeof foreign[0]); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(c, foreign[i]);
    if (c == NULL || !is_block || rename_entries(c, f->config))
        return c;
    cJSON_Delete(c);
    return NULL;
}

/* Reads a drafter from a folder whose config.json has been normalised; `f` has the original one. */
static bool
read_head(struct model *m, const struct hf_folder *layers, const struct hf_folder *f, struct arch_head *h,
          const struct arch *arch, const struct model *target, struct err *err)
{
    struct arch_names names = hf_names;
    remove_part(names.embedding);
    remove_part(names.final_norm);
    remove_part(names.layer);
    names.computable[COMPUTABLE] = "t2d";
    const struct hf_source file = {layers, NULL};
    const struct arch_source s = source_of(&file, arch, &names, head_tensor);
    bool *used = blocks_take(&m->blocks, s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    const struct arch_taking taking = {.model = m, .source = &s, .used = used, .err = err};
    m->desc.rope = arch_rope(arch, LAYER_NAMED_HF);
    if (!arch_read_numbers(m, &s, err) || !arch_make_layers(m, &s, err) || !arch_hf_form(m, layers, arch, err) ||
        !arch_hf_read_rope(m, layers, arch, err))
        return false;
    if (h->is_block)
        read_causality(m, f, h);
    return arch_take_head(&taking, h, target);
}

bool
arch_read_hf_head(struct model *m, const struct hf_folder *f, const struct model *target, struct err *err)
{
    const bool is_block = strcmp(arch_hf_head(f), arch_block.gguf) == 0;
    const struct arch *arch = is_block ? &arch_block : arch_of_hf(f->path, "llama", err);
    struct arch_head h;
    struct hf_folder layer = *f;
    if (arch == NULL || !(is_block ? read_block_form(f, &h, err) : read_eagle_form(f, &h, err)))
        return false;
    const cJSON *width = head_entry(f->config, "target_hidden_size");
    if (cJSON_IsNumber(width) && width->valuedouble >= 1 && width->valuedouble <= INT32_MAX)
        h.target_width = (uint32_t)width->valuedouble;
    cJSON *config = layer.config = head_config(f, is_block);
    layer.config = config != NULL ? arch_hf_understood(&layer, arch, err) : NULL;
    cJSON_Delete(config);
    if (layer.config == NULL)
        return config != NULL ? false : err_set(err, ERR_WORK, "%s: out of memory for config.json", f->path);
    struct arch this = *arch;
    arch_hf_switch(layer.config, &this);
    this.may |= arch->may & LAYER_QK_NORM; /* no entry switches them on */
    const bool ok = read_head(m, &layer, f, &h, &this, target, err);
    cJSON_Delete(layer.config);
    return ok;
}
