/* The table of supported architectures. To add one, add a line here, a golden model and a row in docs/models.md. A
 * feature that the table cannot express first needs a member in struct model_form (kernels/form.h).
 *
 * A line has GGUF's name, config.json's name, and then the differences from Llama (struct arch). Its third string
 * contains the entries of config.json that the architecture reads, besides sizes, as words:
 *
 *   NAME         the entry is read; other entries are ignored, as in transformers
 *   NAME=VALUE   the same; VALUE (JSON, with ' for ") is added to a config.json without the entry
 *   NAME:VALUE   the default of a number (FOR_ARCH_NUMBERS) that is null or missing under all of its names; such a word
 *                alone does not make the entry one that is read
 *
 * The last of several words for an entry counts. `hf_names` and `gguf_names` are names of tensors that differ from
 * Llama's, as words OURS:NAME. OURS is the name in GGUF files (kernels/layer_tensors.h), or token_embd, position_embd,
 * token_embd_norm, output_norm, output, and blk for the layers. A bias has the name of its matrix or norm. Of several
 * names for a tensor the first that is in the file is used. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch_hf.h"
#include "engine/model/arch/arch_tensors.h"

/* ---- words that several lines share ---- */

/* clang-format off */
#define RMS     "rope_theta hidden_act num_key_value_heads head_dim rms_norm_eps rms_norm_eps:1e-6 "
#define LAYER   "rope_theta hidden_act num_key_value_heads head_dim layer_norm_eps layer_norm_eps:1e-5 "
#define QWEN    RMS "use_sliding_window sliding_window=4096 "
#define GEMMA   "rope_theta num_key_value_heads=4 head_dim rms_norm_eps rms_norm_eps:1e-6 hidden_activation " \
                "query_pre_attn_scalar=256 sliding_window=4096 layer_types "
#define GEMMA4  "num_key_value_heads=4 head_dim rms_norm_eps rms_norm_eps:1e-6 hidden_activation layer_types " \
                "final_logit_softcapping attention_bias=false partial_rotary_factor global_head_dim=512 head_dim:256 " \
                "num_attention_heads:8 vocab_size:262144 rope_theta:1000000 rope_parameters={'full_attention':" \
                "{'rope_type':'proportional','partial_rotary_factor':0.25,'rope_theta':1000000}," \
                "'sliding_attention':{'rope_type':'default','rope_theta':10000}} "
#define DELTA   "attention_bias=false partial_rotary_factor layer_types linear_num_key_heads=16 " \
                "linear_num_value_heads=32 linear_key_head_dim=128 linear_value_head_dim=128 linear_conv_kernel_dim=4 "
#define LFM2    "rope_theta rope_theta:1000000 num_key_value_heads=8 norm_eps layer_norm_eps:1e-5 layer_types " \
                "conv_L_cache=3 "
#define MAMBA   "mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_conv=4 mamba_expand=2 mamba_conv_bias=true "
#define GRANITE "embedding_multiplier residual_multiplier attention_multiplier=1 logits_scaling "
#define GPT2    "layer_norm_epsilon layer_norm_eps:1e-5 activation_function scale_attn_weights n_inner "
#define LLAMA3_ROPE(base, factor) \
                "rope_theta:" base " rope_parameters={'rope_type':'llama3','rope_theta':" base ",'factor':" factor "," \
                "'original_max_position_embeddings':8192,'low_freq_factor':1,'high_freq_factor':4} "
#define MINISTRAL_ROPE \
                "rope_parameters={'rope_type':'yarn','rope_theta':1000000,'factor':16,'mscale_all_dim':1,'mscale':1," \
                "'original_max_position_embeddings':16384,'beta_fast':32,'beta_slow':1,'llama_4_scaling_beta':0.1} "
#define GPT_OSS_ROPE \
                "rope_parameters={'rope_type':'yarn','factor':32,'beta_fast':32,'beta_slow':1,'truncate':false," \
                "'original_max_position_embeddings':4096} "

#define POST_NORM_NAME  "post_attention_norm:post_attention_layernorm "
#define GEMMA_NAMES     POST_NORM_NAME "ffn_norm:pre_feedforward_layernorm "
#define GPT2_NAMES      "attn_norm:ln_1 attn_output:attn.c_proj ffn_norm:ln_2 ffn_up:mlp.c_fc ffn_down:mlp.c_proj " \
                        "token_embd:transformer.wte position_embd:transformer.wpe output_norm:transformer.ln_f " \
                        "blk:transformer.h "
/* Older Falcons have one norm before both sublayers, or one before each. The large ones have two parallel norms; in
 * GGUF files attn_norm is then the MLP's and attn_norm_2 is attention's. */
#define FALCON_NAMES    "attn_norm:input_layernorm attn_norm:ln_attn ffn_norm:post_attention_layernorm ffn_norm:ln_mlp " \
                        "attn_output:self_attention.dense ffn_up:mlp.dense_h_to_4h ffn_down:mlp.dense_4h_to_h " \
                        "token_embd:transformer.word_embeddings output_norm:transformer.ln_f blk:transformer.h "
/* Two names each of the router, and of OLMo hybrid's first norms: of the published files, and of transformers 5. */
#define GRANITE_ROUTER_NAMES "ffn_gate_inp:block_sparse_moe.router.layer ffn_gate_inp:block_sparse_moe.router "
#define MAMBA_NAMES     "ssm_conv1d:mamba.conv1d =ssm_dt.bias:=mamba.dt_bias =ssm_a:=mamba.A_log =ssm_d:=mamba.D " \
                        "ssm_norm:mamba.norm ssm_out:mamba.out_proj "
#define LFM2_NAMES      "attn_norm:operator_norm attn_q_norm:self_attn.q_layernorm attn_k_norm:self_attn.k_layernorm " \
                        "attn_output:self_attn.out_proj ssm_conv1d:conv.conv ssm_out:conv.out_proj ffn_norm:ffn_norm " \
                        "ffn_gate:feed_forward.w1 ffn_up:feed_forward.w3 ffn_down:feed_forward.w2 " \
                        "ffn_gate_inp:feed_forward.gate exp_probs_b:=feed_forward.expert_bias " \
                        "output_norm:model.embedding_norm "
#define LFM2_GGUF_NAMES "ssm_conv1d:shortconv.conv ssm_out:shortconv.out_proj output_norm:token_embd_norm "
#define MPT_ENDS        "token_embd:transformer.wte output_norm:transformer.norm_f blk:transformer.blocks "
#define NORM_NAME       "ffn_norm:post_attention_norm"
/* clang-format on */

/* ---- experts ---- */

/* clang-format off */
#define RENORMALISED .renormalised = true, .gguf_renormalised = true
#define EACH(module) .each = {module ".%u.w1.weight", module ".%u.w3.weight", module ".%u.w2.weight"}
#define GRANITE_STACKS \
    .gate_up = {"block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj"}, \
    .down = {"block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj"}
#define SHARED_EXPERTS \
    .shared = {"mlp.shared_experts.gate_proj.weight", "mlp.shared_experts.up_proj.weight", \
               "mlp.shared_experts.down_proj.weight"}

static const struct arch_experts
    mixtral_experts = {RENORMALISED, EACH("block_sparse_moe.experts")},
    gemma4_experts = {RENORMALISED, .gate_up = {"experts.gate_up_proj"}, .down = {"experts.down_proj"}},
    qwen2_experts = {.declares = true},
    qwen3_experts = {.declares = true, .gguf_renormalised = true},
    qwen3_next_experts = {.declares = true, RENORMALISED},
    qwen35_experts = {RENORMALISED},
    granite_experts = {RENORMALISED, GRANITE_STACKS},
    granite_shared_experts = {RENORMALISED, GRANITE_STACKS, .shared = {"shared_mlp.input_linear.weight",
                              "shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight"}},
    phimoe_experts = {.routing = ROUTE_SPARSEMIXER, EACH("block_sparse_moe.experts")},
    dbrx_experts = {RENORMALISED, .stacks = {"ffn.experts.mlp.w1", "ffn.experts.mlp.v1", "ffn.experts.mlp.w2"}},
    gpt_oss_experts = {RENORMALISED, .gate_up = {"mlp.experts.gate_up_proj"}, .down = {"mlp.experts.down_proj"},
                       .gate_up_bias = "mlp.experts.gate_up_proj_bias", .down_bias = "mlp.experts.down_proj_bias",
                       .crosswise = true},
    glm4_experts = {.routing = ROUTE_SIGMOID, .declares = true, RENORMALISED, SHARED_EXPERTS},
    lfm2_experts = {.routing = ROUTE_SIGMOID, .declares = true, RENORMALISED, EACH("feed_forward.experts")},
    ernie_experts = {RENORMALISED, SHARED_EXPERTS};
/* clang-format on */

/* ---- the table ---- */

#define ONLY(NAME) (1ull << LAYER_##NAME)
#define QKVO_BIAS  (LAYER_QKV_BIAS | ONLY(BO))
#define ALL_BIASES (QKVO_BIAS | LAYER_GATED_MLP_BIAS)
#define GPT_BIASES (QKVO_BIAS | LAYER_MLP_BIAS | LAYER_NORM_BIAS)
#define ARCH_GEMMA (ARCH_NORMS_LESS_ONE | ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED)

#define GEMMA4_LINE                                                                                                    \
    .may = ONLY(WV) | ONLY(OUT_SCALE) | QKVO_BIAS, .lacks = ONLY(WV), .full_every = 6, .adjust = arch_hf_gemma4,       \
    .flags = ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED | ARCH_WINDOWED | ARCH_KINDS,                                         \
    .form = {.activation = ACT_GELU_TANH, .local_base = 10000, .attention_scale = 1, .value_norms = true},             \
    .hf_names = GEMMA_NAMES "ffn_gate_inp:router.proj"

/* Most converters write 'llama' for Mistral, and all for Mixtral. Of several lines with a name in GGUF files the first
 * one reads them. */
/* clang-format off */
const struct arch architectures[] = {
    {"llama", "llama", RMS "attention_bias=false mlp_bias=false", .may = ALL_BIASES, .flags = ARCH_GGUF_ADJACENT,
     .experts = &mixtral_experts},
    {"mistral", "mistral", RMS "sliding_window=4096 num_key_value_heads=8 max_position_embeddings:131072",
     .may = LAYER_QKV_BIAS, .flags = ARCH_GGUF_ADJACENT | ARCH_WINDOWED},
    {"qwen2", "qwen2", QWEN "max_window_layers=28 layer_types num_key_value_heads=32 max_position_embeddings:32768",
     .needs = LAYER_QKV_BIAS, .flags = ARCH_WINDOWS_LATE},
    {"qwen3", "qwen3", QWEN "attention_bias=false max_window_layers=28 layer_types num_key_value_heads=32 "
     "head_dim:128 max_position_embeddings:32768", .needs = LAYER_QK_NORM, .may = LAYER_QKV_BIAS,
     .flags = ARCH_WINDOWS_LATE},
    {"gemma", "gemma", "rope_theta num_key_value_heads=16 head_dim rms_norm_eps hidden_act rms_norm_eps:1e-6 "
     "head_dim:256 max_position_embeddings:8192", .flags = ARCH_GEMMA, .form = {.activation = ACT_GELU_TANH}},
    {"gemma2", "gemma2", GEMMA "final_logit_softcapping=30 attn_logit_softcapping=50 head_dim:256 "
     "max_position_embeddings:8192", .needs = LAYER_POST_NORMS, .full_every = 2, .flags = ARCH_GEMMA | ARCH_WINDOWED,
     .form = {.activation = ACT_GELU_TANH}, .hf_names = GEMMA_NAMES},
    {"gemma3", "gemma3_text", GEMMA "rope_theta:1000000 final_logit_softcapping sliding_window_pattern "
     "rope_local_base_freq head_dim:256 num_attention_heads:8 vocab_size:262208 max_position_embeddings:131072",
     .needs = LAYER_POST_NORMS | LAYER_QK_NORM, .full_every = 6, .flags = ARCH_GEMMA | ARCH_WINDOWED,
     .form = {.activation = ACT_GELU_TANH, .local_base = 10000}, .hf_names = GEMMA_NAMES},
    {"gemma4", "gemma4_text", GEMMA4 "sliding_window=512 hidden_size_per_layer_input=256 top_k_experts "
     "moe_intermediate_size max_position_embeddings:131072",
     .needs = LAYER_POST_NORMS | LAYER_QK_NORM | LAYER_BESIDE | LAYER_INPUTS, GEMMA4_LINE, .experts = &gemma4_experts},
    {"gemma4", "gemma4_unified_text", GEMMA4 "sliding_window=1024 max_position_embeddings:262144",
     .needs = LAYER_POST_NORMS | LAYER_QK_NORM, GEMMA4_LINE},
    {NULL, "vaultgemma", GEMMA "final_logit_softcapping=30 attn_logit_softcapping=50 head_dim:256 "
     "max_position_embeddings:8192", .full_every = 2, .flags = ARCH_GEMMA | ARCH_WINDOWED,
     .form = {.activation = ACT_GELU_TANH}, .hf_names = "ffn_norm:pre_feedforward_layernorm"},
    {NULL, "cwm", RMS LLAMA3_ROPE("1000000", "16") "num_key_value_heads=8 sliding_window=8192 "
     "layer_types mlp_bias=false rms_norm_eps:1e-5 head_dim:128 max_position_embeddings:131072",
     .may = LAYER_GATED_MLP_BIAS, .full_every = 4, .flags = ARCH_WINDOWED | ARCH_FULL_FIRST},
    {NULL, "glm", RMS "attention_bias=true partial_rotary_factor head_dim=128 num_key_value_heads=2 "
     "rms_norm_eps:1.5625e-7 max_position_embeddings:131072", .may = LAYER_QKV_BIAS, .rotated_part = 0.5,
     .flags = ARCH_ADJACENT, .hf_fused = {.gate_up = "mlp.gate_up_proj"}},
    {NULL, "helium", RMS "rope_theta:100000 num_key_value_heads=20 qkv_bias=false attention_bias=false "
     "mlp_bias=false rms_norm_eps:1e-8 head_dim:128 max_position_embeddings:4096",
     .may = LAYER_QKV_BIAS | LAYER_GATED_MLP_BIAS, .flags = ARCH_ADJACENT},
    {"llama", "internlm3", RMS "num_key_value_heads=2 attention_bias=false mlp_bias=false rms_norm_eps:1e-5 "
     "head_dim:128 max_position_embeddings:32768", .may = ALL_BIASES, .flags = ARCH_GGUF_ADJACENT},
    {"llama", "iquestcoder", RMS "num_key_value_heads=8 attention_bias=false mlp_bias=false rms_norm_eps:1e-5 "
     "head_dim:128 max_position_embeddings:131072", .may = ALL_BIASES, .flags = ARCH_GGUF_ADJACENT},
    {NULL, "jais2", LAYER "attention_bias=true mlp_bias=true max_position_embeddings:8192", .needs = LAYER_NORM_BIAS,
     .may = QKVO_BIAS | LAYER_MLP_BIAS, .lacks = LAYER_GATED,
     .form = {.activation = ACT_RELU_SQUARED, .layer_norm = true}},
    {NULL, "hyperclovax", RMS "embedding_multiplier residual_multiplier attention_multiplier logits_scaling "
     "attention_bias=false mlp_bias=false use_post_norm=true", .needs = LAYER_POST_NORMS, .may = ALL_BIASES,
     .hf_names = "post_attention_norm:post_norm1 post_ffw_norm:post_norm2"},
    {NULL, "flex_olmo", RMS "rope_theta:500000 attention_bias=false num_experts=7 num_local_experts "
     "num_experts_per_tok=5 norm_topk_prob=false max_position_embeddings:4096",
     .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .may = QKVO_BIAS, .lacks = LAYER_PRE_NORMS,
     .form = {.whole_norms = true}, .hf_names = POST_NORM_NAME, .experts = &qwen2_experts},
    {"dots1", "dots1", RMS "attention_bias=false n_routed_experts num_local_experts num_experts_per_tok "
     "moe_intermediate_size=1408 n_shared_experts n_group=1 topk_group=1 routed_scaling_factor norm_topk_prob=false "
     "sliding_window=4096 max_window_layers=62 layer_types", .needs = LAYER_QK_NORM | ONLY(CORRECTION),
     .may = QKVO_BIAS, .flags = ARCH_WINDOWED | ARCH_WINDOWS_LATE, .experts = &glm4_experts},
    {NULL, "solar_open", RMS "rope_theta:1000000 attention_bias=false num_key_value_heads=8 partial_rotary_factor "
     "n_routed_experts=128 num_local_experts num_experts_per_tok=8 moe_intermediate_size=1280 n_shared_experts=1 "
     "n_group=1 topk_group=1 routed_scaling_factor norm_topk_prob=true rms_norm_eps:1e-5 head_dim:128 "
     "max_position_embeddings:131072", .needs = ONLY(CORRECTION), .may = LAYER_QKV_BIAS, .ffn_by_width = 1,
     .experts = &glm4_experts},
    {"phi3", "phi3", RMS "sliding_window partial_rotary_factor original_max_position_embeddings=4096 "
     "rms_norm_eps:1e-5 max_position_embeddings:4096", .flags = ARCH_WINDOWED,
     .hf_fused = {.qkv = "self_attn.qkv_proj", .gate_up = "mlp.gate_up_proj"},
     .gguf_fused = {.qkv = "attn_qkv", .gate_up = "ffn_up"}},
    {"smollm3", "smollm3", RMS "rope_theta:2000000 num_key_value_heads=4 use_sliding_window sliding_window "
     "layer_types no_rope_layers no_rope_layer_interval max_position_embeddings:32768", .unrotated_every = 4,
     .flags = ARCH_GGUF_ADJACENT | ARCH_TIED},
    {"olmo", "olmo", "rope_theta hidden_act num_key_value_heads head_dim layer_norm_eps:1e-5",
     .lacks = LAYER_PRE_NORMS, .flags = ARCH_GGUF_ADJACENT | ARCH_NORMS_OF_ONES | ARCH_CLIPS,
     .form = {.layer_norm = true}},
    {"olmo2", "olmo2", RMS "rms_norm_eps:1e-5", .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS,
     .flags = ARCH_WINDOWS_PLAIN, .form = {.whole_norms = true}, .hf_names = POST_NORM_NAME},
    {NULL, "olmo3", RMS "rope_theta:500000 sliding_window=4096 layer_types rms_norm_eps:1e-5",
     .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS, .full_every = 4, .flags = ARCH_WINDOWED,
     .form = {.whole_norms = true, .local_base = 500000}, .hf_names = POST_NORM_NAME},
    {"granite", "granite", RMS GRANITE "attention_bias=false", .may = QKVO_BIAS,
     .flags = ARCH_GGUF_ADJACENT | ARCH_LOGITS_DIVIDED},
    {"granitehybrid", "granitemoehybrid", RMS GRANITE MAMBA "attention_bias=false layer_types num_local_experts=8 "
     "num_experts_per_tok=2 shared_intermediate_size=1024 no_rope_layer_interval", .needs = LAYER_OF_RECURRENT,
     .may = ALL_BIASES, .attention_every = UINT32_MAX, .flags = ARCH_GGUF_ADJACENT | ARCH_LOGITS_DIVIDED,
     .form = {.recurrent = {.kind = RECURRENCE_MAMBA}}, .hf_names = GRANITE_ROUTER_NAMES MAMBA_NAMES
     "ffn_down:shared_mlp.output_linear",
     .hf_fused = {.gate_up = "shared_mlp.input_linear", .recurrent = "mamba.in_proj"},
     .gguf_fused = {.recurrent = "ssm_in"}, .experts = &granite_shared_experts, .adjust = arch_hf_mamba},
    {NULL, "olmo_hybrid", RMS "attention_bias=false layer_types linear_conv_kernel_dim=4 "
     "linear_allow_neg_eigval=true no_rope_layer_interval max_position_embeddings:65536",
     .needs = LAYER_QK_NORM | LAYER_POST_NORMS | LAYER_OF_RECURRENT, .may = QKVO_BIAS, .attention_every = 4,
     .flags = ARCH_NORMS_BY_KIND, .form = {.whole_norms = true, .recurrent = {.norm_eps = 1e-5f}},
     .hf_names = POST_NORM_NAME "attn_norm:attention_layer_norm attn_norm:input_layernorm "
     "ffn_norm:feedforward_layer_norm ffn_norm:post_attention_layernorm attn_gate:linear_attn.g_proj "
     "ssm_beta:linear_attn.b_proj ssm_alpha:linear_attn.a_proj ssm_norm:linear_attn.o_norm "
     "ssm_out:linear_attn.o_proj", .adjust = arch_hf_olmo_hybrid},
    {"granitehybrid", "bamba", RMS MAMBA "attention_bias=false mlp_bias=false num_key_value_heads=8 "
     "partial_rotary_factor rms_norm_eps:1e-5 max_position_embeddings:262144", .needs = LAYER_OF_RECURRENT,
     .may = ALL_BIASES, .rotated_part = 0.5, .attention_every = UINT32_MAX, .flags = ARCH_GGUF_ADJACENT,
     .form = {.recurrent = {.kind = RECURRENCE_MAMBA}}, .hf_names = MAMBA_NAMES "ffn_norm:pre_ff_layernorm "
     "ffn_gate:feed_forward.gate_proj ffn_up:feed_forward.up_proj ffn_down:feed_forward.down_proj "
     "output_norm:model.final_layernorm", .hf_fused = {.recurrent = "mamba.in_proj"}, .adjust = arch_hf_mamba},
    {"glm4", "glm4", RMS "attention_bias=true partial_rotary_factor head_dim=128 num_key_value_heads=2 "
     "rms_norm_eps:1.5625e-7 max_position_embeddings:131072", .needs = LAYER_POST_NORMS, .may = LAYER_QKV_BIAS,
     .rotated_part = 0.5, .flags = ARCH_ADJACENT,
     .hf_names = "post_attention_norm:post_self_attn_layernorm post_ffw_norm:post_mlp_layernorm",
     .hf_fused = {.gate_up = "mlp.gate_up_proj"}, .gguf_fused = {.gate_up = "ffn_up"}},
    {"command-r", "cohere", LAYER "logit_scale=0.0625 rope_theta:500000 max_position_embeddings:8192",
     .lacks = ONLY(FFN_NORM), .flags = ARCH_ADJACENT | ARCH_TIED, .form = {.layer_norm = true, .parallel = true}},
    {"cohere2", "cohere2", "rope_theta hidden_act num_key_value_heads layer_norm_eps logit_scale=0.0625 "
     "sliding_window=4096 layer_types sliding_window_pattern layer_norm_eps:1e-5 max_position_embeddings:8192",
     .lacks = ONLY(FFN_NORM), .full_every = 4,
     .flags = ARCH_ADJACENT | ARCH_TIED | ARCH_WINDOWED | ARCH_WINDOWS_ROTATE,
     .form = {.layer_norm = true, .parallel = true}},
    {"starcoder2", "starcoder2", "rope_theta hidden_act num_key_value_heads=2 head_dim norm_epsilon sliding_window "
     "use_bias=true layer_norm_eps:1e-5 max_position_embeddings:4096", .needs = LAYER_NORM_BIAS,
     .may = QKVO_BIAS | LAYER_MLP_BIAS, .lacks = LAYER_GATED, .flags = ARCH_WINDOWED | ARCH_TIED,
     .form = {.activation = ACT_GELU_TANH, .layer_norm = true}, .hf_names = "ffn_up:mlp.c_fc ffn_down:mlp.c_proj"},
    {"phi2", "phi", LAYER "partial_rotary_factor", .needs = QKVO_BIAS | LAYER_MLP_BIAS | ONLY(ATTN_NORM_B),
     .lacks = LAYER_GATED | ONLY(FFN_NORM), .rotated_part = 0.5,
     .form = {.activation = ACT_GELU_TANH, .layer_norm = true, .parallel = true},
     .hf_names = "attn_output:self_attn.dense ffn_up:mlp.fc1 ffn_down:mlp.fc2 output_norm:model.final_layernorm",
     .gguf_fused = {.qkv = "attn_qkv"}},
    {"gptneox", "gpt_neox", "rotary_emb_base rotary_pct hidden_act layer_norm_eps use_parallel_residual "
     "attention_bias=true layer_norm_eps:1e-5", .needs = GPT_BIASES, .lacks = LAYER_GATED, .rotated_part = 0.25,
     .form = {.activation = ACT_GELU, .layer_norm = true, .parallel = true},
     .hf_names = "attn_output:attention.dense ffn_up:mlp.dense_h_to_4h ffn_down:mlp.dense_4h_to_h "
     "token_embd:gpt_neox.embed_in output_norm:gpt_neox.final_layer_norm output:embed_out blk:gpt_neox.layers",
     .hf_fused = {.qkv = "attention.query_key_value", .by_group = true}, .gguf_fused = {.qkv = "attn_qkv"}},
    {"stablelm", "stablelm", LAYER "use_qkv_bias=false partial_rotary_factor use_parallel_residual "
     "max_position_embeddings:4096", .needs = LAYER_NORM_BIAS, .may = LAYER_QKV_BIAS, .rotated_part = 0.25,
     .form = {.layer_norm = true}},
    {"nemotron", "nemotron", "rope_theta hidden_act num_key_value_heads head_dim norm_eps partial_rotary_factor "
     "attention_bias=false mlp_bias=false layer_norm_eps:1e-5 max_position_embeddings:4096", .needs = LAYER_NORM_BIAS,
     .may = QKVO_BIAS | LAYER_MLP_BIAS, .lacks = LAYER_GATED, .rotated_part = 0.5, .flags = ARCH_NORMS_LESS_ONE,
     .form = {.activation = ACT_RELU_SQUARED, .layer_norm = true}},
    {"arcee", "arcee", RMS "rms_norm_eps:1e-5 max_position_embeddings:4096", .lacks = LAYER_GATED,
     .flags = ARCH_GGUF_ADJACENT, .form = {.activation = ACT_RELU_SQUARED}},
    {"seed_oss", "seed_oss", RMS "num_key_value_heads=8 attention_bias=true attention_out_bias=false mlp_bias=false "
     "head_dim:128 max_position_embeddings:524288", .may = QKVO_BIAS | LAYER_MLP_BIAS, .gguf_names = NORM_NAME},
    {"ernie4_5", "ernie4_5", RMS "rope_theta:500000 num_key_value_heads=2 rms_norm_eps:1e-5 head_dim:128 "
     "max_position_embeddings:131072", .flags = ARCH_ADJACENT | ARCH_TIED},
    {"gpt2", "gpt2", GPT2 "max_position_embeddings:1024", .needs = GPT_BIASES, .lacks = LAYER_GATED, .ffn_by_width = 4,
     .flags = ARCH_LEARNED | ARCH_COLUMNS | ARCH_TIED, .form = {.activation = ACT_GELU_TANH, .layer_norm = true},
     .hf_names = GPT2_NAMES, .hf_fused = {.qkv = "attn.c_attn"}, .gguf_fused = {.qkv = "attn_qkv"}},
    {"starcoder", "gpt_bigcode", GPT2 "multi_query max_position_embeddings:1024", .needs = GPT_BIASES,
     .lacks = LAYER_GATED, .ffn_by_width = 4, .flags = ARCH_LEARNED | ARCH_MULTI_QUERY | ARCH_TIED,
     .form = {.activation = ACT_GELU_TANH, .layer_norm = true}, .hf_names = GPT2_NAMES,
     .hf_fused = {.qkv = "attn.c_attn", .by_group = true}, .gguf_fused = {.qkv = "attn_qkv"}},
    {"falcon", "falcon", "rope_theta activation layer_norm_epsilon new_decoder_architecture multi_query "
     "parallel_attn bias=false num_kv_heads ffn_hidden_size num_ln_in_parallel_attn layer_norm_eps:1e-5",
     .needs = ONLY(ATTN_NORM_B), .may = QKVO_BIAS | LAYER_MLP_BIAS | ONLY(FFN_NORM) | ONLY(FFN_NORM_B),
     .lacks = LAYER_GATED | ONLY(FFN_NORM), .ffn_by_width = 4, .flags = ARCH_MULTI_QUERY | ARCH_TIED,
     .form = {.activation = ACT_GELU, .layer_norm = true, .parallel = true}, .hf_names = FALCON_NAMES,
     .gguf_names = "attn_norm:attn_norm_2 attn_norm:attn_norm ffn_norm:attn_norm",
     .hf_fused = {.qkv = "self_attention.query_key_value", .by_group = true}, .gguf_fused = {.qkv = "attn_qkv"}},
    {"apertus", "apertus", RMS LLAMA3_ROPE("12000000", "8") "attention_bias=false rms_norm_eps:1e-5 "
     "max_position_embeddings:65536", .needs = LAYER_QK_NORM, .may = QKVO_BIAS, .lacks = LAYER_GATED,
     .form = {.activation = ACT_XIELU}, .hf_names = "attn_norm:attention_layernorm ffn_norm:feedforward_layernorm"},
    {"mistral3", "ministral3", RMS MINISTRAL_ROPE "num_key_value_heads=8 sliding_window llama_4_scaling_beta "
     "rms_norm_eps:1e-5 head_dim:128 max_position_embeddings:262144", .flags = ARCH_GGUF_ADJACENT | ARCH_WINDOWED},
    {NULL, "ministral", RMS "num_key_value_heads=8 sliding_window=4096 layer_types max_position_embeddings:131072",
     .flags = ARCH_WINDOWED},
    {"hunyuan-dense", "hunyuan_v1_dense", RMS "alpha rms_norm_eps:1e-5", .needs = LAYER_QK_NORM,
     .form = {.late_norms = true},
     .hf_names = "attn_q_norm:self_attn.query_layernorm attn_k_norm:self_attn.key_layernorm"},
    {"exaone4", "exaone4", RMS "num_key_value_heads=32 sliding_window=4096 sliding_window_pattern layer_types "
     "rms_norm_eps:1e-5", .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS, .full_every = 4,
     .flags = ARCH_WINDOWED | ARCH_WINDOWS_ROTATE, .hf_names = POST_NORM_NAME},
    {"llama", "mixtral", RMS "num_key_value_heads=8 sliding_window rope_theta:1000000 num_local_experts num_experts "
     "num_experts_per_tok=2 rms_norm_eps:1e-5 max_position_embeddings:131072",
     .flags = ARCH_GGUF_ADJACENT | ARCH_WINDOWED,
     .hf_names = "ffn_gate_inp:block_sparse_moe.gate ffn_gate_inp:mlp.gate", .experts = &mixtral_experts},
    {"qwen2moe", "qwen2_moe", QWEN "num_key_value_heads=16 max_window_layers=28 layer_types num_experts "
     "num_experts_per_tok=4 qkv_bias=true moe_intermediate_size=1408 shared_expert_intermediate_size=5632 "
     "norm_topk_prob max_position_embeddings:32768", .needs = ONLY(SHARED_MIX), .may = LAYER_QKV_BIAS,
     .flags = ARCH_WINDOWS_ODD, .experts = &qwen2_experts},
    {"qwen3moe", "qwen3_moe", QWEN "attention_bias=false num_key_value_heads=4 num_experts num_local_experts "
     "num_experts_per_tok=8 moe_intermediate_size=768 norm_topk_prob max_position_embeddings:32768",
     .needs = LAYER_QK_NORM, .may = LAYER_QKV_BIAS, .experts = &qwen3_experts},
    {"qwen3next", "qwen3_next", RMS DELTA "num_key_value_heads=2 intermediate_size=5632 num_experts=512 "
     "num_local_experts num_experts_per_tok=10 moe_intermediate_size=512 shared_expert_intermediate_size=512 "
     "norm_topk_prob=true head_dim:256 max_position_embeddings:32768",
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT | ONLY(SHARED_MIX), .rotated_part = 0.25, .attention_every = 4,
     .flags = ARCH_NORMS_LESS_ONE | ARCH_LOOKS_AHEAD | ARCH_NO_MLP, .form = {.output_gate = true},
     .gguf_names = NORM_NAME, .hf_fused = {.qkvz = "linear_attn.in_proj_qkvz", .ba = "linear_attn.in_proj_ba"},
     .gguf_fused = {.qkvz = "ssm_in", .ba = "ssm_ba"}, .experts = &qwen3_next_experts},
    {"qwen35", "qwen3_5_text", RMS DELTA "num_key_value_heads=4 head_dim:256 max_position_embeddings:32768",
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT, .rotated_part = 0.25, .attention_every = 4,
     .flags = ARCH_NORMS_LESS_ONE | ARCH_LOOKS_AHEAD | ARCH_RECURRENT_TILED, .form = {.output_gate = true},
     .gguf_names = NORM_NAME},
    {"qwen35moe", "qwen3_5_moe_text", RMS DELTA "num_key_value_heads=2 num_experts=256 num_local_experts "
     "num_experts_per_tok=8 moe_intermediate_size=512 shared_expert_intermediate_size=512 head_dim:256 "
     "max_position_embeddings:32768", .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT | ONLY(SHARED_MIX),
     .rotated_part = 0.25, .attention_every = 4,
     .flags = ARCH_NORMS_LESS_ONE | ARCH_LOOKS_AHEAD | ARCH_NO_MLP | ARCH_RECURRENT_TILED,
     .form = {.output_gate = true}, .gguf_names = NORM_NAME, .experts = &qwen35_experts},
    {"olmoe", "olmoe", RMS "attention_bias=false num_experts num_local_experts num_experts_per_tok=8 norm_topk_prob "
     "rms_norm_eps:1e-5 max_position_embeddings:4096", .needs = LAYER_QK_NORM, .may = QKVO_BIAS, .flags = ARCH_CLIPS,
     .form = {.whole_norms = true}, .experts = &qwen2_experts},
    {"granitemoe", "granitemoe", RMS GRANITE "attention_bias=false num_local_experts=8 num_experts_per_tok=2",
     .may = QKVO_BIAS, .flags = ARCH_GGUF_ADJACENT | ARCH_LOGITS_DIVIDED, .hf_names = GRANITE_ROUTER_NAMES,
     .experts = &granite_experts},
    {"granitemoe", "granitemoeshared", RMS GRANITE "attention_bias=false num_local_experts=8 num_experts_per_tok=2 "
     "shared_intermediate_size=0", .may = QKVO_BIAS, .flags = ARCH_GGUF_ADJACENT | ARCH_LOGITS_DIVIDED,
     .hf_names = GRANITE_ROUTER_NAMES, .experts = &granite_shared_experts},
    {"phimoe", "phimoe", RMS "rope_theta:1000000 attention_bias=false num_key_value_heads=8 sliding_window "
     "num_local_experts=16 num_experts_per_tok=2 short_mscale rms_norm_eps:1e-5 max_position_embeddings:131072",
     .needs = LAYER_NORM_BIAS, .may = QKVO_BIAS, .flags = ARCH_WINDOWED, .form = {.layer_norm = true},
     .hf_names = "ffn_gate_inp:block_sparse_moe.gate ffn_gate_inp:mlp.router", .experts = &phimoe_experts},
    {"dbrx", "dbrx", "rope_theta layer_norm_eps:1e-5 num_key_value_heads:1", .flags = ARCH_CLIPS,
     .form = {.layer_norm = true}, .hf_names = MPT_ENDS "attn_norm:norm_attn_norm.norm_1 "
     "attn_output:norm_attn_norm.attn.out_proj ffn_norm:norm_attn_norm.norm_2 ffn_gate_inp:ffn.router.layer",
     .gguf_names = "ffn_norm:attn_output_norm", .hf_fused = {.qkv = "norm_attn_norm.attn.Wqkv"},
     .gguf_fused = {.qkv = "attn_qkv"}, .experts = &dbrx_experts},
    {"lfm2", "lfm2", LFM2 "block_multiple_of=256 block_ffn_dim_multiplier=1 max_position_embeddings:128000",
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT, .attention_every = 1, .flags = ARCH_TIED,
     .form = {.recurrent = {.kind = RECURRENCE_CONV}}, .hf_names = LFM2_NAMES, .gguf_names = LFM2_GGUF_NAMES,
     .hf_fused = {.recurrent = "conv.in_proj"}, .gguf_fused = {.recurrent = "shortconv.in_proj"},
     .adjust = arch_hf_lfm2},
    {"lfm2moe", "lfm2_moe", LFM2 "num_experts=32 num_local_experts num_experts_per_tok=4 moe_intermediate_size=1792 "
     "routed_scaling_factor norm_topk_prob=true max_position_embeddings:128000",
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT, .may = ONLY(CORRECTION), .attention_every = 1, .flags = ARCH_TIED,
     .form = {.recurrent = {.kind = RECURRENCE_CONV}}, .hf_names = LFM2_NAMES, .gguf_names = LFM2_GGUF_NAMES,
     .hf_fused = {.recurrent = "conv.in_proj"}, .gguf_fused = {.recurrent = "shortconv.in_proj"},
     .experts = &lfm2_experts},
    {"bloom", "bloom", "layer_norm_epsilon layer_norm_eps:1e-5", .needs = GPT_BIASES, .lacks = LAYER_GATED,
     .ffn_by_width = 4, .flags = ARCH_USES_ALIBI | ARCH_EMBEDDING_NORM | ARCH_TIED,
     .form = {.activation = ACT_GELU_TANH, .layer_norm = true, .alibi = {.most = 8}}, .hf_names = FALCON_NAMES
     "token_embd_norm:transformer.word_embeddings_layernorm",
     .hf_fused = {.qkv = "self_attention.query_key_value", .by_group = true}, .gguf_fused = {.qkv = "attn_qkv"}},
    {"mpt", "mpt", "layer_norm_epsilon layer_norm_eps:1e-5", .lacks = LAYER_GATED, .ffn_by_width = 4,
     .flags = ARCH_USES_ALIBI | ARCH_CLIPS | ARCH_TIED,
     .form = {.activation = ACT_GELU, .layer_norm = true, .alibi = {.most = 8}}, .hf_names = MPT_ENDS
     "attn_norm:norm_1 attn_output:attn.out_proj ffn_norm:norm_2 ffn_up:ffn.up_proj ffn_down:ffn.down_proj",
     .hf_fused = {.qkv = "attn.Wqkv"}, .gguf_fused = {.qkv = "attn_qkv"}},
    {"gpt-oss", "gpt_oss", RMS GPT_OSS_ROPE "rope_theta:150000 num_key_value_heads=8 sliding_window=128 layer_types "
     "num_local_experts num_experts num_experts_per_tok=4 swiglu_alpha swiglu_limit attention_bias=true "
     "rms_norm_eps:1e-5 head_dim:64 max_position_embeddings:131072", .needs = QKVO_BIAS | ONLY(SINKS) | ONLY(BROUTER),
     .full_every = 2, .flags = ARCH_WINDOWED | ARCH_YARN_IN_PART, .form = {.activation = ACT_SWIGLU_CLAMPED},
     .hf_names = "ffn_gate_inp:mlp.router", .gguf_names = NORM_NAME, .experts = &gpt_oss_experts},
    {"glm4moe", "glm4_moe", RMS "num_key_value_heads=8 partial_rotary_factor n_routed_experts num_local_experts "
     "num_experts_per_tok=8 moe_intermediate_size=1408 n_shared_experts=1 n_group=1 topk_group=1 "
     "routed_scaling_factor norm_topk_prob attention_bias=false use_qk_norm=false rms_norm_eps:1e-5 "
     "max_position_embeddings:131072", .needs = ONLY(CORRECTION), .may = LAYER_QKV_BIAS | LAYER_QK_NORM,
     .rotated_part = 0.5, .flags = ARCH_LOOKS_AHEAD, .gguf_names = NORM_NAME, .experts = &glm4_experts},
    {"ernie4_5-moe", "ernie4_5_moe", RMS "rope_theta:500000 num_key_value_heads=4 moe_num_experts num_experts "
     "moe_k=6 num_experts_per_tok moe_intermediate_size=1536 moe_num_shared_experts=2 rms_norm_eps:1e-5 "
     "max_position_embeddings:131072", .may = ONLY(CORRECTION), .flags = ARCH_ADJACENT | ARCH_TIED | ARCH_LOOKS_AHEAD,
     .hf_names = "exp_probs_b:=mlp.moe_statics.e_score_correction_bias", .experts = &ernie_experts},
};
/* clang-format on */

/* clang-format off */
const struct arch arch_block = {"dflash", "block drafter", RMS "use_sliding_window sliding_window layer_types "
    "attention_bias=false final_logit_softcapping logit_scale embedding_multiplier num_key_value_heads=32 head_dim:128 "
    "max_position_embeddings:32768", .may = LAYER_QK_NORM | QKVO_BIAS};
/* clang-format on */

const size_t n_architectures = sizeof architectures / sizeof architectures[0];

/* What architectures would need that are not supported: model_types and general.architectures, separated by blanks. */
static const struct {
    const char *names, *needs;
} needs[] = {
    {"deepseek_v2 deepseek_v3 deepseek_v32 deepseek2 glm4_moe_lite glm_moe_dsa glm-dsa longcat_flash minicpm3 youtu "
     "mistral4 "
     "sarvam_mla axk1 axk2 kimi_k2",
     "latent attention, which caches a projection of keys and values"},
    {"falcon_h1 falcon-h1", "Mamba-2 and attention side by side in a layer, with multipliers for each part"},
    {"nemotron_h nemotron_h_moe mamba2", "layers of a single sublayer: Mamba-2, attention or an MLP"},
    {"mamba falcon_mamba jamba plamo2 zamba", "Mamba-1 layers, whose states have a decay for each channel"},
    {"zamba2", "an attention block whose weights several Mamba-2 layers share"},
    {"rwkv rwkv6 rwkv7 xlstm recurrent_gemma minimax kimi_linear kimi-linear lara_mini",
     "recurrent layers of another kind"},
    {"lfm3 zaya", "short convolutions of another form"},
    {"gemma3n gemma3n_text", "several residual streams (AltUp)"},
    {"afmoe laguna dory mimo_v2_flash", "gates on the outputs of attention, or values of another size than keys"},
    {"llama4 llama4_text", "attention in chunks, and experts whose inputs are scaled"},
    {"opt xglm biogpt", "positions with an offset or of sines, and ReLU"},
    {"bert roberta t5 bart mbart pegasus marian whisper xlm-roberta electra nomic-bert", "an encoder"},
};

/* Returns whether a list of words, separated by blanks, contains a name. */
static bool
lists(const char *words, struct slice name)
{
    for (const char *w = words; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " "))
        if (name.len > 0 && strcspn(w, " ") == name.len && memcmp(w, name.data, name.len) == 0)
            return true;
    return false;
}

void
arch_unsupported(const char *path, struct slice name, struct err *err)
{
    char shown[48];
    printable_line(shown, sizeof shown, name.data, name.len);
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (lists(needs[i].names, name)) {
            err_set(err, ERR_WORK, "%s: architecture '%s' is not supported: it needs %s (docs/models.md)", path, shown,
                    needs[i].needs);
            return;
        }
    err_set(err, ERR_WORK,
            "%s: architecture '%s' is not supported; Llama, Mistral, Qwen, Gemma, Phi and others are (docs/models.md)",
            path, shown);
}

bool
arch_own_name(const struct arch *a, enum layer_naming naming, const char *name, size_t nth, char out[LAYER_NAME_SIZE])
{
    const char *words = naming == LAYER_NAMED_HF ? a->hf_names : a->gguf_names;
    const size_t n = strlen(name);
    for (const char *w = words != NULL ? words : ""; *w != '\0'; w += strcspn(w, " "), w += strspn(w, " "))
        if (strncmp(w, name, n) == 0 && w[n] == ':' && nth-- == 0) {
            snprintf(out, LAYER_NAME_SIZE, "%.*s", (int)(strcspn(w, " ") - n - 1), w + n + 1);
            return true;
        }
    return false;
}

void
arch_own_names(const struct arch *a, struct arch_names *n)
{
    const struct {
        const char *name, *ending;
        char *out;
    } all[] = {{"token_embd", ".weight", n->embedding},
               {"position_embd", ".weight", n->positions},
               {"token_embd_norm", ".weight", n->embedding_norm},
               {"output_norm", ".weight", n->final_norm},
               {"output", ".weight", n->head},
               {"blk", ".", n->layer}};
    char own[LAYER_NAME_SIZE];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (arch_own_name(a, n->naming, all[i].name, 0, own))
            snprintf(all[i].out, LAYER_NAME_SIZE, "%.*s%s", LAYER_NAME_SIZE - 8, own, all[i].ending);
}

enum rope_layout
arch_rope(const struct arch *a, enum layer_naming naming)
{
    const unsigned adjacent = ARCH_ADJACENT | ARCH_LEARNED | ARCH_USES_ALIBI; /* the last two do not rotate */
    return (a->flags & (naming == LAYER_NAMED_HF ? adjacent : adjacent | ARCH_GGUF_ADJACENT)) != 0 ? ROPE_ADJACENT
                                                                                                   : ROPE_HALVES;
}

const struct arch *
arch_of_gguf(const char *path, struct slice name, struct err *err)
{
    for (size_t i = 0; i < n_architectures; i++)
        if (architectures[i].gguf != NULL && slice_is(name, architectures[i].gguf))
            return &architectures[i];
    arch_unsupported(path, name, err);
    return NULL;
}

const struct arch *
arch_of_hf(const char *path, const char *model_type, struct err *err)
{
    for (size_t i = 0; i < n_architectures; i++)
        if (strcmp(architectures[i].hf, model_type) == 0)
            return &architectures[i];
    arch_unsupported(path, slice_of(model_type), err);
    return NULL;
}
