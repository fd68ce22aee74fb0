/* Reads config.json's entries and normalises a configuration, with the defaults that transformers has for a
 * model_type. */
#include "engine/model/arch/arch_hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "kernels/tensor.h"

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

/* The entries besides sizes that each architecture's config.json may have, and their defaults, as in transformers 5.
 * Other entries are ignored, as transformers does: an entry of Gemma's has no effect in a Llama's config.json. */

#define RMS   "rope_theta hidden_act num_key_value_heads head_dim rms_norm_eps "
#define LAYER "rope_theta hidden_act num_key_value_heads head_dim layer_norm_eps "
#define QWEN  RMS "use_sliding_window sliding_window=4096 "
#define GEMMA                                                                                                          \
    "rope_theta num_key_value_heads=4 head_dim rms_norm_eps hidden_activation query_pre_attn_scalar=256 "              \
    "sliding_window=4096 layer_types "
#define DELTA                                                                                                          \
    "attention_bias=false partial_rotary_factor layer_types full_attention_interval=4 linear_num_key_heads=16 "        \
    "linear_num_value_heads=32 linear_key_head_dim=128 linear_value_head_dim=128 linear_conv_kernel_dim=4 "
#define LFM2    "rope_theta=1000000 num_key_value_heads=8 norm_eps layer_types conv_L_cache=3 "
#define MAMBA   "mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_conv=4 mamba_expand=2 mamba_conv_bias=true "
#define GRANITE "embedding_multiplier residual_multiplier attention_multiplier=1 logits_scaling "
#define GPT2    "layer_norm_epsilon activation_function scale_attn_weights n_inner "

/* Words separated by blanks: ENTRY, or ENTRY=VALUE with a default in JSON, with ' for ". Words in capitals are flags.
 * BY_KIND: layers with a window have RoPE parameters of their own. ALPHA, MSCALE, GROWS: RoPE's `alpha`, `short_mscale`
 * or `llama_4_scaling_beta` is used. MIXES: there are experts only with `enable_moe_block`, and KV heads of layers without
 * a window only with `attention_k_eq_v`. HYBRID: understand_hybrid(). UNROTATED: without rope_theta layers do not
 * rotate. ADJUSTS: the MLP is narrower than config.json's intermediate_size (LFM2). */
/* clang-format off */
static const struct {
    const char *hf, *entries;
} usual[] = {
    {"llama", RMS "attention_bias=false mlp_bias=false"},
    {"mistral", RMS "sliding_window=4096 num_key_value_heads=8"},
    {"qwen2", QWEN "max_window_layers=28 layer_types num_key_value_heads=32"},
    {"qwen3", QWEN "attention_bias=false max_window_layers=28 layer_types num_key_value_heads=32"},
    {"gemma", "rope_theta num_key_value_heads=16 head_dim rms_norm_eps hidden_act"},
    {"gemma2", GEMMA "final_logit_softcapping=30 attn_logit_softcapping=50"},
    {"gemma3_text", GEMMA "final_logit_softcapping sliding_window_pattern=6 rope_theta=1000000 "
                    "rope_local_base_freq BY_KIND"},
    {"gemma4_text", "head_dim num_key_value_heads=4 rms_norm_eps hidden_activation sliding_window=512 layer_types "
                    "final_logit_softcapping attention_bias=false partial_rotary_factor global_head_dim=512 "
                    "hidden_size_per_layer_input=256 top_k_experts moe_intermediate_size BY_KIND MIXES "
                    "rope_parameters={'full_attention':{'rope_type':'proportional','partial_rotary_factor':0.25,"
                    "'rope_theta':1000000},'sliding_attention':{'rope_type':'default','rope_theta':10000}}"},
    {"gemma4_unified_text", "head_dim num_key_value_heads=4 rms_norm_eps hidden_activation sliding_window=1024 layer_types "
                            "final_logit_softcapping attention_bias=false partial_rotary_factor global_head_dim=512 BY_KIND "
                            "MIXES rope_parameters={'full_attention':{'rope_type':'proportional','partial_rotary_factor':0.25,"
                            "'rope_theta':1000000},'sliding_attention':{'rope_type':'default','rope_theta':10000}}"},
    {"vaultgemma", GEMMA "final_logit_softcapping=30 attn_logit_softcapping=50"},
    {"cwm", RMS "num_key_value_heads=8 sliding_window=8192 layer_types mlp_bias=false rope_theta=1000000 "
            "rope_parameters={'rope_type':'llama3','rope_theta':1000000,'factor':16,'original_max_position_embeddings':8192,"
            "'low_freq_factor':1,'high_freq_factor':4}"},
    {"glm", RMS "attention_bias=true partial_rotary_factor head_dim=128 num_key_value_heads=2"},
    {"helium", RMS "num_key_value_heads=20 qkv_bias=false attention_bias=false mlp_bias=false"},
    {"internlm3", RMS "num_key_value_heads=2 attention_bias=false mlp_bias=false"},
    {"iquestcoder", RMS "num_key_value_heads=8 attention_bias=false mlp_bias=false"},
    {"jais2", LAYER "attention_bias=true mlp_bias=true"},
    {"hyperclovax", RMS "embedding_multiplier residual_multiplier attention_multiplier logits_scaling attention_bias=false "
                    "mlp_bias=false use_post_norm=true"},
    {"flex_olmo", RMS "attention_bias=false num_experts=7 num_local_experts num_experts_per_tok=5 norm_topk_prob=false"},
    {"dots1", RMS "attention_bias=false n_routed_experts num_local_experts num_experts_per_tok moe_intermediate_size=1408 "
              "n_shared_experts n_group=1 topk_group=1 routed_scaling_factor norm_topk_prob=false sliding_window=4096 "
              "max_window_layers=62 layer_types"},
    {"solar_open", RMS "attention_bias=false num_key_value_heads=8 partial_rotary_factor n_routed_experts=128 num_local_experts "
                   "num_experts_per_tok=8 moe_intermediate_size=1280 n_shared_experts=1 n_group=1 topk_group=1 "
                   "routed_scaling_factor norm_topk_prob=true"},
    {"phi3", RMS "sliding_window partial_rotary_factor original_max_position_embeddings=4096"},
    {"smollm3", RMS "rope_theta=2000000 num_key_value_heads=4 use_sliding_window sliding_window layer_types "
                "no_rope_layers no_rope_layer_interval=4"},
    {"olmo", "rope_theta hidden_act num_key_value_heads head_dim"},
    {"olmo2", RMS},
    {"olmo3", RMS "rope_theta=500000 sliding_window=4096 layer_types BY_KIND"},
    {"granite", RMS GRANITE "attention_bias=false"},
    {"granitemoehybrid", RMS GRANITE MAMBA "attention_bias=false layer_types num_local_experts=8 num_experts_per_tok=2 "
                         "shared_intermediate_size=1024 no_rope_layer_interval HYBRID"},
    {"olmo_hybrid", RMS "attention_bias=false layer_types linear_conv_kernel_dim=4 linear_allow_neg_eigval=true "
                    "no_rope_layer_interval UNROTATED"},
    {"bamba", RMS MAMBA "attention_bias=false mlp_bias=false num_key_value_heads=8 partial_rotary_factor=0.5 HYBRID"},
    {"granitemoe", RMS GRANITE "attention_bias=false num_local_experts=8 num_experts_per_tok=2"},
    {"granitemoeshared", RMS GRANITE "attention_bias=false num_local_experts=8 num_experts_per_tok=2 shared_intermediate_size=0"},
    {"phimoe", RMS "attention_bias=false num_key_value_heads=8 sliding_window rope_theta=1000000 num_local_experts=16 "
               "num_experts_per_tok=2 MSCALE"},
    {"dbrx", "rope_theta"},
    {"bloom", "layer_norm_epsilon"},
    {"mpt", "layer_norm_epsilon"},
    {"glm4", RMS "attention_bias=true partial_rotary_factor head_dim=128 num_key_value_heads=2"},
    {"cohere", LAYER "logit_scale=0.0625 rope_theta=500000"},
    {"cohere2", "rope_theta hidden_act num_key_value_heads layer_norm_eps logit_scale=0.0625 sliding_window=4096 "
                "layer_types sliding_window_pattern=4"},
    {"starcoder2", "rope_theta hidden_act num_key_value_heads=2 head_dim norm_epsilon sliding_window "
                   "use_bias=true"},
    {"phi", LAYER "partial_rotary_factor"},
    {"gpt_neox", "rotary_emb_base rotary_pct hidden_act layer_norm_eps use_parallel_residual attention_bias=true"},
    {"stablelm", LAYER "use_qkv_bias=false partial_rotary_factor use_parallel_residual"},
    {"nemotron", "rope_theta hidden_act num_key_value_heads head_dim norm_eps partial_rotary_factor "
                 "attention_bias=false mlp_bias=false"},
    {"arcee", RMS},
    {"seed_oss", RMS "num_key_value_heads=8 attention_bias=true attention_out_bias=false mlp_bias=false"},
    {"ernie4_5", RMS "rope_theta=500000 num_key_value_heads=2"},
    {"gpt2", GPT2},
    {"gpt_bigcode", GPT2 "multi_query"},
    {"falcon", "rope_theta activation layer_norm_epsilon new_decoder_architecture multi_query parallel_attn bias=false "
               "num_kv_heads ffn_hidden_size num_ln_in_parallel_attn"},
    {"apertus", RMS "attention_bias=false rope_theta=12000000 rope_parameters={'rope_type':'llama3','rope_theta':12000000,'factor':8,"
                "'original_max_position_embeddings':8192,'low_freq_factor':1,'high_freq_factor':4}"},
    {"ministral3", RMS "num_key_value_heads=8 sliding_window GROWS rope_parameters={'rope_type':'yarn',"
                   "'rope_theta':1000000,'factor':16,'original_max_position_embeddings':16384,'beta_fast':32,"
                   "'beta_slow':1,'mscale_all_dim':1,'mscale':1,'llama_4_scaling_beta':0.1}"},
    {"ministral", RMS "num_key_value_heads=8 sliding_window=4096 layer_types"},
    {"hunyuan_v1_dense", RMS "ALPHA"},
    {"exaone4", RMS "num_key_value_heads=32 sliding_window=4096 sliding_window_pattern=4 layer_types"},
    {"mixtral", RMS "num_key_value_heads=8 sliding_window rope_theta=1000000 num_local_experts num_experts "
                "num_experts_per_tok=2"},
    {"qwen2_moe", QWEN "num_key_value_heads=16 max_window_layers=28 layer_types num_experts num_experts_per_tok=4 qkv_bias=true "
                  "moe_intermediate_size=1408 shared_expert_intermediate_size=5632 norm_topk_prob"},
    {"qwen3_moe", QWEN "attention_bias=false num_key_value_heads=4 num_experts num_local_experts num_experts_per_tok=8 "
                  "moe_intermediate_size=768 norm_topk_prob"},
    {"qwen3_next", RMS DELTA "num_key_value_heads=2 intermediate_size=5632 num_experts=512 num_local_experts "
                   "num_experts_per_tok=10 moe_intermediate_size=512 shared_expert_intermediate_size=512 norm_topk_prob=true"},
    {"qwen3_5_text", RMS DELTA "num_key_value_heads=4"},
    {"qwen3_5_moe_text", RMS DELTA "num_key_value_heads=2 num_experts=256 num_local_experts num_experts_per_tok=8 "
                         "moe_intermediate_size=512 shared_expert_intermediate_size=512"},
    {"lfm2", LFM2 "block_multiple_of=256 block_ffn_dim_multiplier=1 ADJUSTS"},
    {"lfm2_moe", LFM2 "num_experts=32 num_local_experts num_experts_per_tok=4 moe_intermediate_size=1792 "
                 "routed_scaling_factor norm_topk_prob=true"},
    {"olmoe", RMS "attention_bias=false num_experts num_local_experts num_experts_per_tok=8 norm_topk_prob"},
    {"gpt_oss", RMS "rope_theta=150000 num_key_value_heads=8 sliding_window=128 layer_types num_local_experts "
                "num_experts num_experts_per_tok=4 swiglu_alpha swiglu_limit attention_bias=true rope_parameters={'rope_type':'yarn',"
                "'factor':32,'beta_fast':32,'beta_slow':1,'truncate':false,'original_max_position_embeddings':4096}"},
    {"glm4_moe", RMS "num_key_value_heads=8 partial_rotary_factor n_routed_experts num_local_experts "
                 "num_experts_per_tok=8 moe_intermediate_size=1408 n_shared_experts=1 n_group=1 topk_group=1 "
                 "routed_scaling_factor norm_topk_prob attention_bias=false use_qk_norm=false"},
    {"ernie4_5_moe", RMS "rope_theta=500000 num_key_value_heads=4 moe_num_experts num_experts moe_k=6 "
                     "num_experts_per_tok moe_intermediate_size=1536 moe_num_shared_experts=2"},
};

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

/* Returns the word for an entry, or NULL. If there are several it returns the last, which overrides a macro's. */
static const char *
find_word(const char *words, const char *name)
{
    const size_t n = strlen(name);
    const char *found = NULL;
    for (const char *w = words; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " "))
        if (strncmp(w, name, n) == 0 && (w[n] == '\0' || w[n] == ' ' || w[n] == '='))
            found = w;
    return found;
}

const char *
arch_hf_usual(const char *hf)
{
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strcmp(usual[i].hf, hf) == 0)
            return usual[i].entries;
    return NULL;
}

static bool
arch_hf_has(const char *words, const char *name)
{
    return words == NULL || find_word(words, name) != NULL;
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
arch_hf_switch(const cJSON *config, const char *words, struct arch *arch)
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
    for (size_t i = 0; words != NULL && i < sizeof switches / sizeof switches[0]; i++) {
        const layer_set_t those = switches[i].tensors;
        if (find_word(words, switches[i].name) == NULL)
            continue;
        const bool is_on = cJSON_IsTrue(arch_hf_entry(config, switches[i].name));
        on = is_on ? on | those : on & ~those;
        off = is_on ? off & ~those : off | those;
    }
    if (words != NULL)
        arch->may &= on | ~(BIASES | LAYER_QK_NORM);
    arch->needs &= ~off;
}

/* Deletes entries that the architecture does not list, and adds missing defaults. Returns false if out of memory. */
static bool
arch_hf_fill(cJSON *config, const char *words)
{
    char name[64];
    for (size_t i = 0; i < sizeof kept_words / sizeof kept_words[0]; i++)
        if (find_word(words, kept_words[i]) == NULL)
            cJSON_DeleteItemFromObjectCaseSensitive(config, kept_words[i]);
    for (const char *w = words; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " ")) {
        const size_t len = strcspn(w, " "), n = strcspn(w, " =");
        if (n == len || n >= sizeof name)
            continue;
        memcpy(name, w, n);
        name[n] = '\0';
        if (find_word(words, name) != w || cJSON_GetObjectItemCaseSensitive(config, name) != NULL)
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
pass_over(cJSON *rope, const char *words)
{
    static const struct {
        const char *entry, *word, *other;
    } chosen[] = {{"partial_rotary_factor", "partial_rotary_factor", "rotary_pct"},
                  {"rotary_pct", "", ""},
                  {"alpha", "ALPHA", ""},
                  {"short_mscale", "MSCALE", ""},
                  {"llama_4_scaling_beta", "GROWS", ""}};
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++)
        if (!arch_hf_has(words, chosen[i].word) && !arch_hf_has(words, chosen[i].other))
            cJSON_DeleteItemFromObjectCaseSensitive(rope, chosen[i].entry);
}

static bool
understand_rope(const struct hf_folder *f, cJSON *c, const char *words, struct err *err)
{
    cJSON *scaling = cJSON_DetachItemFromObjectCaseSensitive(c, "rope_scaling"),
          *params = cJSON_DetachItemFromObjectCaseSensitive(c, "rope_parameters");
    bool ok = true;
    if (arch_hf_has(words, "BY_KIND")) {
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
        pass_over(cJSON_GetObjectItemCaseSensitive(c, "rope_parameters"), words);
        pass_over(cJSON_GetObjectItemCaseSensitive(c, ARCH_HF_ROPE_LOCAL), words);
    }
    return ok;
}

/* Gemma 4: deletes numbers that do not apply. Since 5.24 transformers writes the numbers of layers without a window to
 * `per_layer_config`, with an entry for each of these layers. */
static bool
understand_kinds_of_layers(const struct hf_folder *f, cJSON *c, struct err *err)
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
static bool
understand_hybrid(const struct hf_folder *f, cJSON *c, struct err *err)
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

/* Sets the width of LFM2's MLP. */
static bool
understand_width(const struct hf_folder *f, cJSON *c, struct err *err)
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

cJSON *
arch_hf_understood(const struct hf_folder *f, const char *model_type, struct err *err)
{
    const char *words = arch_hf_usual(model_type);
    cJSON *c = cJSON_Duplicate(f->config, true);
    if (c == NULL) {
        no_memory(f, err);
        return NULL;
    }
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(c, "rope_parameters"))) /* null is the same as missing */
        cJSON_DeleteItemFromObjectCaseSensitive(c, "rope_parameters");
    const bool rotates = words == NULL || !arch_hf_has(words, "UNROTATED") ||
                         arch_hf_entry(c, "rope_parameters.rope_theta") != NULL ||
                         arch_hf_entry(c, "rope_theta") != NULL;
    const bool filled = (words == NULL || arch_hf_fill(c, words)) &&
                        (rotates || put(c, "no_rope_layer_interval", cJSON_CreateNumber(1)));
    if (!filled)
        no_memory(f, err);
    const bool hybrid = words != NULL && arch_hf_has(words, "HYBRID");
    const bool mixes = words != NULL && arch_hf_has(words, "MIXES");
    if (filled && (!hybrid || understand_hybrid(f, c, err)) && (!mixes || understand_kinds_of_layers(f, c, err)) &&
        (words == NULL || !arch_hf_has(words, "ADJUSTS") || understand_width(f, c, err)) &&
        understand_rope(f, c, words != NULL ? words : "partial_rotary_factor GROWS ALPHA MSCALE", err))
        return c;
    cJSON_Delete(c);
    return NULL;
}
