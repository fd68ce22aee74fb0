/* What an architecture's configuration has besides sizes, as transformers 5 has it: the entries of config.json that count, and
 * what is meant where one is missing. Others that are there are passed over, as transformers does: a Llama stays a Llama whatever a
 * Gemma's entry in its config.json says. */
#include <stdlib.h>
#include <string.h>

#include "engine/arch/arch_hf.h"

#define RMS   "rope_theta hidden_act num_key_value_heads head_dim rms_norm_eps "
#define LAYER "rope_theta hidden_act num_key_value_heads head_dim layer_norm_eps "
#define QWEN  RMS "use_sliding_window sliding_window=4096 "
#define GEMMA                                                                                                          \
    "rope_theta num_key_value_heads=4 head_dim rms_norm_eps hidden_activation query_pre_attn_scalar=256 "              \
    "sliding_window=4096 layer_types "
#define GRANITE "embedding_multiplier residual_multiplier attention_multiplier=1 logits_scaling "
#define GPT2    "layer_norm_epsilon activation_function scale_attn_weights n_inner "

/* Words between blanks: ENTRY, or ENTRY=VALUE, JSON with ' for ". Of what is in capitals BY_KIND says that layers with a window turn in
 * a way of their own, ALPHA that RoPE's `alpha` counts, MSCALE that its `short_mscale` does, GROWS that its `llama_4_scaling_beta` does;
 * ATTENTION_ONLY that other members of the family have layers of state space, or experts. */
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
    {"phi3", RMS "sliding_window partial_rotary_factor original_max_position_embeddings=4096"},
    {"smollm3", RMS "rope_theta=2000000 num_key_value_heads=4 use_sliding_window sliding_window layer_types "
                "no_rope_layers no_rope_layer_interval=4"},
    {"olmo", "rope_theta hidden_act num_key_value_heads head_dim"},
    {"olmo2", RMS},
    {"olmo3", RMS "rope_theta=500000 sliding_window=4096 layer_types BY_KIND"},
    {"granite", RMS GRANITE "attention_bias=false"},
    {"granitemoehybrid", RMS GRANITE "attention_bias=false layer_types num_local_experts=8 shared_intermediate_size=1024 "
                         "no_rope_layer_interval ATTENTION_ONLY"},
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

/* Entries that mean something to this program, and count only where an architecture has them. */
static const char *const chosen[] = {
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

/* The word for an entry, or NULL; its value follows a "=". Of several the last, which counts against a macro's. */
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

bool
arch_hf_has(const char *words, const char *name)
{
    return words == NULL || find_word(words, name) != NULL;
}

/* VALUE of a word, as JSON. */
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

#define BIASES (LAYER_QKV_BIAS | 1u << LAYER_BO | LAYER_MLP_BIAS | 1u << LAYER_BGATE)

void
arch_hf_switch(const cJSON *config, const char *words, struct arch *arch)
{
    static const struct {
        const char *name;
        uint32_t tensors;
    } switches[] = {{"use_bias", BIASES},
                    {"bias", BIASES},
                    {"attention_bias", LAYER_QKV_BIAS | 1u << LAYER_BO},
                    {"attention_out_bias", 1u << LAYER_BO},
                    {"qkv_bias", LAYER_QKV_BIAS},
                    {"use_qkv_bias", LAYER_QKV_BIAS},
                    {"mlp_bias", LAYER_MLP_BIAS | 1u << LAYER_BGATE},
                    {"use_qk_norm", LAYER_QK_NORM}};
    uint32_t on = 0, off = 0;
    for (size_t i = 0; words != NULL && i < sizeof switches / sizeof switches[0]; i++) {
        const uint32_t those = switches[i].tensors;
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

bool
arch_hf_fill(cJSON *config, const char *words)
{
    char name[64];
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++)
        if (find_word(words, chosen[i]) == NULL)
            cJSON_DeleteItemFromObjectCaseSensitive(config, chosen[i]);
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
