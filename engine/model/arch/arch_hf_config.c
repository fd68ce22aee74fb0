/* Reads config.json's entries and normalises a configuration, with the defaults that transformers has for a
 * model_type. */
#include "engine/model/arch/arch_hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cJSON *
arch_hf_entry(const cJSON *object, const char *name)
{
    char first[32];
    const char *point = strchr(name, '.');
    if (point != NULL && (size_t)(point - name) < sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(point - name), name);
        const cJSON *part = cJSON_GetObjectItemCaseSensitive(object, first);
        return cJSON_IsObject(part) ? arch_hf_entry(part, point + 1) : NULL;
    }
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(v) ? NULL : v;
}

enum arch_value
arch_hf_kind(const cJSON *v, double *out)
{
    if (v == NULL)
        return VALUE_MISSING;
    if (!cJSON_IsNumber(v) || isnan(v->valuedouble))
        return VALUE_OTHER;
    *out = v->valuedouble;
    return floor(*out) < *out || !(fabs(*out) <= 0x1p53) ? VALUE_REAL : VALUE_WHOLE;
}

/* clang-format off */
/* Entries that this program reads, but only for architectures that list them. */
static const char *const kept_words[] = {
    "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps",
    "hidden_act", "hidden_activation", "activation_function", "activation",
    "attn_logit_softcapping", "final_logit_softcapping", "embedding_multiplier", "residual_multiplier",
    "attention_multiplier", "logit_scale", "logits_scaling", "query_pre_attn_scalar", "scale_attn_weights",
    "use_parallel_residual", "parallel_attn", "new_decoder_architecture",
    "multi_query",
    "sliding_window", "use_sliding_window", "sliding_window_pattern", "max_window_layers", "layer_types",
    "no_rope_layers", "no_rope_layer_interval", "head_dim", "num_key_value_heads", "num_kv_heads", "n_head_kv",
    "rope_theta", "rotary_emb_base", "rope_local_base_freq", "partial_rotary_factor", "rotary_pct",
    "num_experts_per_tok", "moe_k",
    "moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size", "n_shared_experts",
    "moe_num_shared_experts", "n_group", "topk_group", "routed_scaling_factor", "norm_topk_prob",
    "swiglu_alpha", "swiglu_limit", "n_inner", "ffn_hidden_size",
};
/* clang-format on */

/* Returns the word for an entry that is read: the last one, which overrides a macro's. NULL: other architectures read
 * the entry. */
static const char *
find_word(const struct arch *a, const char *name)
{
    const size_t n = strlen(name);
    const char *found = NULL;
    for (const char *w = a->config; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " "))
        if (strncmp(w, name, n) == 0 && (w[n] == '\0' || w[n] == ' ' || w[n] == '='))
            found = w;
    return found;
}

enum arch_value
arch_hf_default(const struct arch *a, const char *name, double *out)
{
    const size_t n = strlen(name);
    enum arch_value kind = VALUE_MISSING;
    for (const char *w = a->config; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " "))
        if (strncmp(w, name, n) == 0 && w[n] == ':') {
            *out = strtod(w + n + 1, NULL);
            kind = floor(*out) < *out ? VALUE_REAL : VALUE_WHOLE;
        }
    return kind;
}

/* Parses a word's VALUE. Returns NULL if it is invalid or if out of memory. */
static cJSON *
value_of(const char *word, size_t len)
{
    char *text = strndup(word, len);
    for (char *c = text; c != NULL && *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    cJSON *v = text != NULL ? cJSON_Parse(text) : NULL;
    free(text);
    return v;
}

#define BIASES (LAYER_QKV_BIAS | 1ull << LAYER_BO | LAYER_GATED_MLP_BIAS)

void
arch_hf_switch(const cJSON *config, struct arch *arch)
{
    static const struct {
        const char *name;
        layer_set_t tensors;
    } switches[] = {{"use_bias", BIASES},
                    {"bias", BIASES},
                    {"attention_bias", LAYER_QKV_BIAS | 1ull << LAYER_BO},
                    {"attention_out_bias", 1ull << LAYER_BO},
                    {"qkv_bias", LAYER_QKV_BIAS},
                    {"use_qkv_bias", LAYER_QKV_BIAS},
                    {"mlp_bias", LAYER_GATED_MLP_BIAS},
                    {"use_qk_norm", LAYER_QK_NORM},
                    {"mamba_conv_bias", 1ull << LAYER_RECURRENT_CONV_B},
                    {"use_post_norm", LAYER_POST_NORMS}};
    layer_set_t on = 0, off = 0;
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        const layer_set_t those = switches[i].tensors;
        if (find_word(arch, switches[i].name) == NULL)
            continue;
        const bool is_on = cJSON_IsTrue(arch_hf_entry(config, switches[i].name));
        on = is_on ? on | those : on & ~those;
        off = is_on ? off & ~those : off | those;
    }
    arch->may &= on | ~(BIASES | LAYER_QK_NORM);
    arch->needs &= ~off;
}

/* Deletes entries that the architecture does not list, and adds missing defaults. Returns false if out of memory. */
static bool
arch_hf_fill(cJSON *config, const struct arch *a)
{
    char name[64];
    for (size_t i = 0; i < sizeof kept_words / sizeof kept_words[0]; i++)
        if (find_word(a, kept_words[i]) == NULL)
            cJSON_DeleteItemFromObjectCaseSensitive(config, kept_words[i]);
    for (const char *w = a->config; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " ")) {
        const size_t len = strcspn(w, " "), n = strcspn(w, " =:");
        if (n == len || w[n] == ':' || n >= sizeof name)
            continue;
        memcpy(name, w, n);
        name[n] = '\0';
        if (find_word(a, name) != w || cJSON_GetObjectItemCaseSensitive(config, name) != NULL)
            continue;
        cJSON *v = value_of(w + n + 1, len - n - 1);
        if (v == NULL || !cJSON_AddItemToObject(config, name, v)) {
            cJSON_Delete(v);
            return false;
        }
    }
    return true;
}

/* ---- normalising a configuration ---- */

#define REMEDY ARCH_HF_REMEDY

static bool
no_memory(const struct hf_folder *f, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: out of memory for config.json", f->path);
}

static bool
has_kinds(const cJSON *rope)
{
    return cJSON_IsObject(arch_hf_entry(rope, "full_attention")) ||
           cJSON_IsObject(arch_hf_entry(rope, "sliding_attention"));
}

/* Sets an entry, and replaces an existing one. Takes ownership of the value; returns false if it is NULL or if out of
 * memory. */
static bool
put(cJSON *object, const char *name, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    if (value != NULL && cJSON_AddItemToObject(object, name, value))
        return true;
    cJSON_Delete(value);
    return false;
}

/* Copies all entries of `from` to `into`, replacing existing ones: rope_scaling takes precedence over
 * rope_parameters. */
static bool
merge(cJSON *into, const cJSON *from)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, from)
    {
        if (!put(into, entry->string, cJSON_Duplicate(entry, true)))
            return false;
    }
    return true;
}

/* Splits RoPE's parameters for layers without and with a window. rope_parameters may have both; rope_scaling applies
 * only to the layers without a window. */
static bool
understand_kinds(const struct hf_folder *f, cJSON *c, const cJSON *params, const cJSON *scaling, struct err *err)
{
    const cJSON *full = arch_hf_entry(params, "full_attention"), *local = arch_hf_entry(params, "sliding_attention");
    if (cJSON_IsObject(scaling) &&
        ((cJSON_IsObject(params) && !cJSON_IsObject(full)) ||
         (arch_hf_entry(scaling, "rope_type") == NULL && arch_hf_entry(scaling, "type") != NULL)))
        return err_set(err, ERR_WORK,
                       "%s: config.json's 'rope_scaling' needs a 'rope_type' and excludes 'rope_parameters'; " REMEDY,
                       f->path);
    cJSON *whole = cJSON_IsObject(full) ? cJSON_Duplicate(full, true) : cJSON_CreateObject();
    cJSON *near = cJSON_IsObject(local) ? cJSON_Duplicate(local, true) : cJSON_CreateObject();
    bool ok = whole != NULL && near != NULL && (!cJSON_IsObject(scaling) || merge(whole, scaling));
    cJSON_DeleteItemFromObjectCaseSensitive(whole, "truncate"); /* transformers does not read it here */
    if (ok)
        ok = put(c, "rope_parameters", whole);
    else
        cJSON_Delete(whole);
    if (!ok)
        cJSON_Delete(near);
    return (ok && put(c, ARCH_HF_ROPE_LOCAL, near)) || no_memory(f, err);
}

/* Deletes RoPE parameters that the architecture does not use. */
static void
pass_over(cJSON *rope, const struct arch *a)
{
    static const char *const names[] = {"rotary_pct", "alpha", "short_mscale", "llama_4_scaling_beta"};
    if (find_word(a, "partial_rotary_factor") == NULL && find_word(a, "rotary_pct") == NULL)
        cJSON_DeleteItemFromObjectCaseSensitive(rope, "partial_rotary_factor");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (find_word(a, names[i]) == NULL)
            cJSON_DeleteItemFromObjectCaseSensitive(rope, names[i]);
}

static bool
understand_rope(const struct hf_folder *f, cJSON *c, const struct arch *a, struct err *err)
{
    cJSON *scaling = cJSON_DetachItemFromObjectCaseSensitive(c, "rope_scaling"),
          *params = cJSON_DetachItemFromObjectCaseSensitive(c, "rope_parameters");
    bool ok = true;
    if (a->form.local_base > 0) {
        ok = understand_kinds(f, c, params, scaling, err);
    } else {
        const cJSON *said =
            scaling != NULL && !cJSON_IsNull(scaling) && (!cJSON_IsObject(scaling) || scaling->child != NULL) ? scaling
                                                                                                              : params;
        if (said != NULL && !cJSON_IsNull(said) && !cJSON_IsObject(said))
            ok = err_set(err, ERR_WORK, "%s: config.json's RoPE scaling is not understood; " REMEDY, f->path);
        else if (has_kinds(said))
            ok = err_set(err, ERR_WORK,
                         "%s: its kinds of layers have different RoPE parameters, which is not supported in a '%s'",
                         f->path, cJSON_GetStringValue(arch_hf_entry(c, "model_type")));
        else if (cJSON_IsObject(said))
            ok = put(c, "rope_parameters", cJSON_Duplicate(said, true)) || no_memory(f, err);
    }
    cJSON_Delete(scaling);
    cJSON_Delete(params);
    if (ok) {
        pass_over(cJSON_GetObjectItemCaseSensitive(c, "rope_parameters"), a);
        pass_over(cJSON_GetObjectItemCaseSensitive(c, ARCH_HF_ROPE_LOCAL), a);
    }
    return ok;
}

/* Gemma 4: deletes numbers that do not apply. Since 5.24 transformers writes the numbers of layers without a window to
 * `per_layer_config`, with an entry for each of these layers. */
bool
arch_hf_gemma4(const struct hf_folder *f, cJSON *c, struct err *err)
{
    static const char *const pairs[][2] = {{"head_dim", "global_head_dim"},
                                           {"num_key_value_heads", "num_global_key_value_heads"}};
    const cJSON *own = arch_hf_entry(c, "per_layer_config");
    if (!cJSON_IsTrue(arch_hf_entry(c, "enable_moe_block")))
        cJSON_DeleteItemFromObjectCaseSensitive(c, "num_experts");
    if (!cJSON_IsTrue(arch_hf_entry(c, "attention_k_eq_v")))
        cJSON_DeleteItemFromObjectCaseSensitive(c, "num_global_key_value_heads");
    for (size_t i = 0; i < 2 && cJSON_IsObject(own); i++) {
        const cJSON *v = own->child != NULL ? arch_hf_entry(own->child, pairs[i][0]) : NULL;
        v = v != NULL ? v : arch_hf_entry(c, pairs[i][0]);
        if (v != NULL && !put(c, pairs[i][1], cJSON_Duplicate(v, true)))
            return no_memory(f, err);
    }
    return true;
}

/* Mamba-2's heads may have the width "auto". In Granite 4 RoPE is used only if position_embedding_type is "rope", and
 * without experts the MLP is the one that other members use as shared expert. */
bool
arch_hf_mamba(const struct hf_folder *f, cJSON *c, struct err *err)
{
    const cJSON *experts = arch_hf_entry(c, "num_local_experts"),
                *shared = arch_hf_entry(c, "shared_intermediate_size");
    const char *positions = cJSON_GetStringValue(arch_hf_entry(c, "position_embedding_type"));
    double width = 0, heads = 1, by = 2;
    arch_hf_kind(arch_hf_entry(c, "hidden_size"), &width);
    arch_hf_kind(arch_hf_entry(c, "mamba_n_heads"), &heads);
    arch_hf_kind(arch_hf_entry(c, "mamba_expand"), &by);
    bool ok = cJSON_IsNumber(arch_hf_entry(c, "mamba_d_head")) ||
              put(c, "mamba_d_head", cJSON_CreateNumber(by * width / heads));
    if (shared != NULL && (positions == NULL || strcmp(positions, "rope") != 0))
        ok = ok && put(c, "no_rope_layer_interval", cJSON_CreateNumber(1));
    if (shared != NULL && !(cJSON_IsNumber(experts) && experts->valuedouble > 0))
        ok = ok && put(c, "intermediate_size", cJSON_Duplicate(shared, true));
    return ok || no_memory(f, err);
}

/* LFM2's MLP is narrower than config.json's intermediate_size. */
bool
arch_hf_lfm2(const struct hf_folder *f, cJSON *c, struct err *err)
{
    const cJSON *own = arch_hf_entry(c, "block_ff_dim"), *by = arch_hf_entry(c, "block_ffn_dim_multiplier");
    double width = 0, of = 1;
    arch_hf_kind(own != NULL ? own : arch_hf_entry(c, "intermediate_size"), &width);
    arch_hf_kind(arch_hf_entry(c, "block_multiple_of"), &of);
    if (!cJSON_IsFalse(arch_hf_entry(c, "block_auto_adjust_ff_dim"))) {
        width = floor(2 * width / 3);
        if (by != NULL)
            width = ceil(floor(by->valuedouble * width) / of) * of;
    }
    return put(c, "intermediate_size", cJSON_CreateNumber(width)) || no_memory(f, err);
}

/* Without rope_theta layers do not rotate. */
bool
arch_hf_olmo_hybrid(const struct hf_folder *f, cJSON *c, struct err *err)
{
    return arch_hf_entry(c, "rope_parameters.rope_theta") != NULL || arch_hf_entry(c, "rope_theta") != NULL ||
           put(c, "no_rope_layer_interval", cJSON_CreateNumber(1)) || no_memory(f, err);
}

cJSON *
arch_hf_understood(const struct hf_folder *f, const struct arch *a, struct err *err)
{
    cJSON *c = cJSON_Duplicate(f->config, true);
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(c, "rope_parameters"))) /* null is the same as missing */
        cJSON_DeleteItemFromObjectCaseSensitive(c, "rope_parameters");
    if (c == NULL || !arch_hf_fill(c, a))
        no_memory(f, err);
    else if ((a->adjust == NULL || a->adjust(f, c, err)) && understand_rope(f, c, a, err))
        return c;
    cJSON_Delete(c);
    return NULL;
}
