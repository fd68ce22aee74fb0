/* The table of supported architectures. An entry contains the differences from Llama. To add an architecture, add a
 * line here and in docs/models.md. A feature that the table cannot express first needs a member in struct model_form
 * (kernels/form.h). */
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch.h"

/* ---- names that differ from Llama's in Hugging Face's files ---- */

static const struct arch_rename gemma2_names[] = {{LAYER_ATTN_POST, "post_attention_layernorm"},
                                                  {LAYER_FFN_NORM, "pre_feedforward_layernorm"},
                                                  {LAYER_FFN_POST, "post_feedforward_layernorm"},
                                                  {LAYER_TENSORS, NULL}};
static const struct arch_rename gemma4_names[] = {{LAYER_ATTN_POST, "post_attention_layernorm"},
                                                  {LAYER_FFN_NORM, "pre_feedforward_layernorm"},
                                                  {LAYER_FFN_POST, "post_feedforward_layernorm"},
                                                  {LAYER_ROUTER, "router.proj"},
                                                  {LAYER_TENSORS, NULL}};
static const struct arch_rename vaultgemma_names[] = {{LAYER_FFN_NORM, "pre_feedforward_layernorm"},
                                                      {LAYER_TENSORS, NULL}};
static const struct arch_rename hyperclovax_names[] = {
    {LAYER_ATTN_POST, "post_norm1"}, {LAYER_FFN_POST, "post_norm2"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename olmo2_names[] = {{LAYER_ATTN_POST, "post_attention_layernorm"},
                                                 {LAYER_FFN_POST, "post_feedforward_layernorm"},
                                                 {LAYER_TENSORS, NULL}};
static const struct arch_rename glm4_names[] = {
    {LAYER_ATTN_POST, "post_self_attn_layernorm"}, {LAYER_FFN_POST, "post_mlp_layernorm"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename starcoder2_names[] = {{LAYER_UP, "mlp.c_fc"},
                                                      {LAYER_DOWN, "mlp.c_proj"},
                                                      {LAYER_BUP, "mlp.c_fc"},
                                                      {LAYER_BDOWN, "mlp.c_proj"},
                                                      {LAYER_TENSORS, NULL}};
static const struct arch_rename phi_names[] = {
    {LAYER_WO, "self_attn.dense"}, {LAYER_BO, "self_attn.dense"}, {LAYER_UP, "mlp.fc1"}, {LAYER_BUP, "mlp.fc1"},
    {LAYER_DOWN, "mlp.fc2"},       {LAYER_BDOWN, "mlp.fc2"},      {LAYER_TENSORS, NULL}};
static const struct arch_rename neox_names[] = {{LAYER_WO, "attention.dense"},
                                                {LAYER_BO, "attention.dense"},
                                                {LAYER_UP, "mlp.dense_h_to_4h"},
                                                {LAYER_BUP, "mlp.dense_h_to_4h"},
                                                {LAYER_DOWN, "mlp.dense_4h_to_h"},
                                                {LAYER_BDOWN, "mlp.dense_4h_to_h"},
                                                {LAYER_TENSORS, NULL}};
static const struct arch_rename hunyuan_names[] = {
    {LAYER_Q_NORM, "self_attn.query_layernorm"}, {LAYER_K_NORM, "self_attn.key_layernorm"}, {LAYER_TENSORS, NULL}};

static const struct arch_rename gpt2_names[] = {
    {LAYER_ATTN_NORM, "ln_1"},  {LAYER_ATTN_NORM_B, "ln_1"}, {LAYER_WO, "attn.c_proj"}, {LAYER_BO, "attn.c_proj"},
    {LAYER_FFN_NORM, "ln_2"},   {LAYER_FFN_NORM_B, "ln_2"},  {LAYER_UP, "mlp.c_fc"},    {LAYER_BUP, "mlp.c_fc"},
    {LAYER_DOWN, "mlp.c_proj"}, {LAYER_BDOWN, "mlp.c_proj"}, {LAYER_TENSORS, NULL}};
/* Older Falcons have one norm before both sublayers, or one before each. The large ones have two parallel norms. */
static const struct arch_rename falcon_names[] = {{LAYER_ATTN_NORM, "input_layernorm"},
                                                  {LAYER_ATTN_NORM, "ln_attn"},
                                                  {LAYER_ATTN_NORM_B, "input_layernorm"},
                                                  {LAYER_ATTN_NORM_B, "ln_attn"},
                                                  {LAYER_FFN_NORM, "post_attention_layernorm"},
                                                  {LAYER_FFN_NORM, "ln_mlp"},
                                                  {LAYER_FFN_NORM_B, "post_attention_layernorm"},
                                                  {LAYER_FFN_NORM_B, "ln_mlp"},
                                                  {LAYER_WO, "self_attention.dense"},
                                                  {LAYER_BO, "self_attention.dense"},
                                                  {LAYER_UP, "mlp.dense_h_to_4h"},
                                                  {LAYER_BUP, "mlp.dense_h_to_4h"},
                                                  {LAYER_DOWN, "mlp.dense_4h_to_h"},
                                                  {LAYER_BDOWN, "mlp.dense_4h_to_h"},
                                                  {LAYER_TENSORS, NULL}};
/* If a layer has two norms, attn_norm is the MLP's and attn_norm_2 is attention's. */
static const struct arch_rename falcon_gguf_names[] = {{LAYER_ATTN_NORM, "attn_norm_2"},
                                                       {LAYER_ATTN_NORM, "attn_norm"},
                                                       {LAYER_ATTN_NORM_B, "attn_norm_2"},
                                                       {LAYER_ATTN_NORM_B, "attn_norm"},
                                                       {LAYER_FFN_NORM, "attn_norm"},
                                                       {LAYER_FFN_NORM_B, "attn_norm"},
                                                       {LAYER_TENSORS, NULL}};
static const struct arch_rename apertus_names[] = {
    {LAYER_ATTN_NORM, "attention_layernorm"}, {LAYER_FFN_NORM, "feedforward_layernorm"}, {LAYER_TENSORS, NULL}};
/* Two names each: of the published files, and of transformers 5. */
static const struct arch_rename mixtral_names[] = {
    {LAYER_ROUTER, "block_sparse_moe.gate"}, {LAYER_ROUTER, "mlp.gate"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename granitemoe_names[] = {
    {LAYER_ROUTER, "block_sparse_moe.router.layer"}, {LAYER_ROUTER, "block_sparse_moe.router"}, {LAYER_TENSORS, NULL}};
#define MAMBA_NAMES                                                                                                    \
    {LAYER_RECURRENT_CONV, "mamba.conv1d"}, {LAYER_RECURRENT_CONV_B, "mamba.conv1d"},                                  \
        {LAYER_RECURRENT_STEP, "=mamba.dt_bias"}, {LAYER_RECURRENT_DECAY, "=mamba.A_log"},                             \
        {LAYER_RECURRENT_SKIP, "=mamba.D"}, {LAYER_RECURRENT_NORM, "mamba.norm"},                                      \
    {                                                                                                                  \
        LAYER_RECURRENT_OUT, "mamba.out_proj"                                                                          \
    }
/* Without experts the MLP has the name of the shared expert. */
static const struct arch_rename granite_hybrid_names[] = {{LAYER_DOWN, "shared_mlp.output_linear"},
                                                          {LAYER_ROUTER, "block_sparse_moe.router.layer"},
                                                          {LAYER_ROUTER, "block_sparse_moe.router"},
                                                          MAMBA_NAMES,
                                                          {LAYER_TENSORS, NULL}};
/* Two names each of the first norms: of the published files, and of transformers 5. */
static const struct arch_rename olmo_hybrid_names[] = {
    {LAYER_ATTN_NORM, "attention_layer_norm"},     {LAYER_ATTN_NORM, "input_layernorm"},
    {LAYER_FFN_NORM, "feedforward_layer_norm"},    {LAYER_FFN_NORM, "post_attention_layernorm"},
    {LAYER_ATTN_POST, "post_attention_layernorm"}, {LAYER_FFN_POST, "post_feedforward_layernorm"},
    {LAYER_RECURRENT_Z, "linear_attn.g_proj"},     {LAYER_RECURRENT_B, "linear_attn.b_proj"},
    {LAYER_RECURRENT_A, "linear_attn.a_proj"},     {LAYER_RECURRENT_NORM, "linear_attn.o_norm"},
    {LAYER_RECURRENT_OUT, "linear_attn.o_proj"},   {LAYER_TENSORS, NULL}};
static const struct arch_rename bamba_names[] = {{LAYER_FFN_NORM, "pre_ff_layernorm"},
                                                 {LAYER_GATE, "feed_forward.gate_proj"},
                                                 {LAYER_BGATE, "feed_forward.gate_proj"},
                                                 {LAYER_UP, "feed_forward.up_proj"},
                                                 {LAYER_BUP, "feed_forward.up_proj"},
                                                 {LAYER_DOWN, "feed_forward.down_proj"},
                                                 {LAYER_BDOWN, "feed_forward.down_proj"},
                                                 MAMBA_NAMES,
                                                 {LAYER_TENSORS, NULL}};
static const struct arch_rename phimoe_names[] = {
    {LAYER_ROUTER, "block_sparse_moe.gate"}, {LAYER_ROUTER, "mlp.router"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename dbrx_names[] = {{LAYER_ATTN_NORM, "norm_attn_norm.norm_1"},
                                                {LAYER_WO, "norm_attn_norm.attn.out_proj"},
                                                {LAYER_FFN_NORM, "norm_attn_norm.norm_2"},
                                                {LAYER_ROUTER, "ffn.router.layer"},
                                                {LAYER_TENSORS, NULL}};
static const struct arch_rename dbrx_gguf_names[] = {{LAYER_FFN_NORM, "attn_output_norm"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename mpt_names[] = {{LAYER_ATTN_NORM, "norm_1"},   {LAYER_WO, "attn.out_proj"},
                                               {LAYER_FFN_NORM, "norm_2"},    {LAYER_UP, "ffn.up_proj"},
                                               {LAYER_DOWN, "ffn.down_proj"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename gpt_oss_names[] = {
    {LAYER_ROUTER, "mlp.router"}, {LAYER_BROUTER, "mlp.router"}, {LAYER_TENSORS, NULL}};
static const struct arch_rename ernie_moe_names[] = {{LAYER_CORRECTION, "=mlp.moe_statics.e_score_correction_bias"},
                                                     {LAYER_TENSORS, NULL}};

static const struct arch_rename lfm2_names[] = {{LAYER_ATTN_NORM, "operator_norm"},
                                                {LAYER_Q_NORM, "self_attn.q_layernorm"},
                                                {LAYER_K_NORM, "self_attn.k_layernorm"},
                                                {LAYER_WO, "self_attn.out_proj"},
                                                {LAYER_RECURRENT_CONV, "conv.conv"},
                                                {LAYER_RECURRENT_OUT, "conv.out_proj"},
                                                {LAYER_FFN_NORM, "ffn_norm"},
                                                {LAYER_GATE, "feed_forward.w1"},
                                                {LAYER_UP, "feed_forward.w3"},
                                                {LAYER_DOWN, "feed_forward.w2"},
                                                {LAYER_ROUTER, "feed_forward.gate"},
                                                {LAYER_CORRECTION, "=feed_forward.expert_bias"},
                                                {LAYER_TENSORS, NULL}};
static const struct arch_rename lfm2_gguf_names[] = {
    {LAYER_RECURRENT_CONV, "shortconv.conv"}, {LAYER_RECURRENT_OUT, "shortconv.out_proj"}, {LAYER_TENSORS, NULL}};

static const struct arch_rename seed_gguf_names[] = {{LAYER_FFN_NORM, "post_attention_norm"}, {LAYER_TENSORS, NULL}};

static const struct arch_names lfm2_ends = {.final_norm = "model.embedding_norm.weight"};
static const struct arch_names phi_ends = {.final_norm = "model.final_layernorm.weight"};
static const struct arch_names neox_ends = {.embedding = "gpt_neox.embed_in.weight",
                                            .final_norm = "gpt_neox.final_layer_norm.weight",
                                            .head = "embed_out.weight",
                                            .layer = "gpt_neox.layers."};
static const struct arch_names gpt2_ends = {.embedding = "transformer.wte.weight",
                                            .positions = "transformer.wpe.weight",
                                            .final_norm = "transformer.ln_f.weight",
                                            .layer = "transformer.h."};
static const struct arch_names falcon_ends = {.embedding = "transformer.word_embeddings.weight",
                                              .final_norm = "transformer.ln_f.weight",
                                              .layer = "transformer.h."};

static const struct arch_names bloom_ends = {.embedding = "transformer.word_embeddings.weight",
                                             .embedding_norm = "transformer.word_embeddings_layernorm.weight",
                                             .final_norm = "transformer.ln_f.weight",
                                             .layer = "transformer.h."};
/* Also used for DBRX. */
static const struct arch_names mpt_ends = {
    .embedding = "transformer.wte.weight", .final_norm = "transformer.norm_f.weight", .layer = "transformer.blocks."};

/* ---- experts ---- */

#define SHARED_EXPERTS                                                                                                 \
    {                                                                                                                  \
        "mlp.shared_experts.gate_proj.weight", "mlp.shared_experts.up_proj.weight",                                    \
            "mlp.shared_experts.down_proj.weight"                                                                      \
    }

static const struct arch_experts mixtral_experts = {.renormalised = true,
                                                    .gguf_renormalised = true,
                                                    .each = {"block_sparse_moe.experts.%u.w1.weight",
                                                             "block_sparse_moe.experts.%u.w3.weight",
                                                             "block_sparse_moe.experts.%u.w2.weight"}};
static const struct arch_experts gemma4_experts = {.renormalised = true,
                                                   .gguf_renormalised = true,
                                                   .gate_up = {"experts.gate_up_proj"},
                                                   .down = {"experts.down_proj"}};
static const struct arch_experts qwen2_experts = {.declares = true};
static const struct arch_experts qwen3_experts = {.declares = true, .gguf_renormalised = true};
static const struct arch_experts qwen3_next_experts = {
    .declares = true, .renormalised = true, .gguf_renormalised = true};
static const struct arch_experts qwen35_experts = {.renormalised = true, .gguf_renormalised = true};
static const struct arch_experts granite_experts = {
    .renormalised = true,
    .gguf_renormalised = true,
    .gate_up = {"block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj"},
    .down = {"block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj"}};
static const struct arch_experts granite_shared_experts = {
    .renormalised = true,
    .gguf_renormalised = true,
    .gate_up = {"block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj"},
    .down = {"block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj"},
    .shared = {"shared_mlp.input_linear.weight", "shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight"}};
static const struct arch_experts phimoe_experts = {.routing = ROUTE_SPARSEMIXER,
                                                   .each = {"block_sparse_moe.experts.%u.w1.weight",
                                                            "block_sparse_moe.experts.%u.w3.weight",
                                                            "block_sparse_moe.experts.%u.w2.weight"}};
static const struct arch_experts dbrx_experts = {
    .renormalised = true,
    .gguf_renormalised = true,
    .stacks = {"ffn.experts.mlp.w1", "ffn.experts.mlp.v1", "ffn.experts.mlp.w2"}};
static const struct arch_experts gpt_oss_experts = {.renormalised = true,
                                                    .gguf_renormalised = true,
                                                    .gate_up = {"mlp.experts.gate_up_proj"},
                                                    .down = {"mlp.experts.down_proj"},
                                                    .gate_up_bias = "mlp.experts.gate_up_proj_bias",
                                                    .down_bias = "mlp.experts.down_proj_bias",
                                                    .crosswise = true};
static const struct arch_experts glm4_experts = {.routing = ROUTE_SIGMOID,
                                                 .declares = true,
                                                 .renormalised = true,
                                                 .gguf_renormalised = true,
                                                 .shared = SHARED_EXPERTS};
static const struct arch_experts lfm2_experts = {.routing = ROUTE_SIGMOID,
                                                 .declares = true,
                                                 .renormalised = true,
                                                 .gguf_renormalised = true,
                                                 .each = {"feed_forward.experts.%u.w1.weight",
                                                          "feed_forward.experts.%u.w3.weight",
                                                          "feed_forward.experts.%u.w2.weight"}};
static const struct arch_experts ernie_experts = {
    .renormalised = true, .gguf_renormalised = true, .shared = SHARED_EXPERTS};

/* ---- the table ---- */

#define QKVO_BIAS (LAYER_QKV_BIAS | 1ull << LAYER_BO)

/* Most converters write 'llama' for Mistral, and all for Mixtral. Qwen 3 has heads of 128 dimensions at every width. */
/* clang-format off */
static const struct arch architectures[] = {
    {.gguf = "llama", .hf = "llama", .may = QKVO_BIAS | LAYER_GATED_MLP_BIAS, .usual_eps = 1e-6,
     .hf_rope = ROPE_HALVES, .experts = &mixtral_experts},
    {.gguf = "mistral", .hf = "mistral", .may = LAYER_QKV_BIAS, .usual_eps = 1e-6, .usual_ctx = 131072,
     .usual_window = 4096,
     .traits = ARCH_WINDOWED, .hf_rope = ROPE_HALVES},
    {.gguf = "qwen2", .hf = "qwen2", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_QKV_BIAS,
     .usual_eps = 1e-6, .usual_ctx = 32768, .traits = ARCH_WINDOWS_LATE},
    {.gguf = "qwen3", .hf = "qwen3", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM,
     .may = LAYER_QKV_BIAS, .usual_head_dim = 128, .usual_eps = 1e-6, .usual_ctx = 32768, .traits = ARCH_WINDOWS_LATE},
    {.gguf = "gemma", .hf = "gemma", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .usual_head_dim = 256,
     .usual_eps = 1e-6, .usual_ctx = 8192, .traits = ARCH_NORMS_LESS_ONE | ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED,
     .form = {.activation = ACT_GELU_TANH}},
    {.gguf = "gemma2", .hf = "gemma2", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_POST_NORMS,
     .usual_head_dim = 256, .usual_eps = 1e-6, .usual_ctx = 8192, .full_every = 2, .usual_window = 4096,
     .traits = ARCH_NORMS_LESS_ONE | ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED | ARCH_WINDOWED,
     .form = {.activation = ACT_GELU_TANH}, .renames = gemma2_names},
    {.gguf = "gemma3", .hf = "gemma3_text", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_POST_NORMS | LAYER_QK_NORM, .usual_head_dim = 256, .usual_heads = 8,
     .usual_kv_heads = 4, .usual_vocab = 262208, .usual_base = 1e6, .usual_eps = 1e-6, .usual_ctx = 131072,
     .full_every = 6,
     .usual_window = 4096, .traits = ARCH_NORMS_LESS_ONE | ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED | ARCH_WINDOWED,
     .form = {.activation = ACT_GELU_TANH, .local_base = 10000}, .renames = gemma2_names},
    {.gguf = "gemma4", .hf = "gemma4_text", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_POST_NORMS | LAYER_QK_NORM | LAYER_BESIDE | LAYER_INPUTS,
     .may = 1ull << LAYER_WV | 1ull << LAYER_OUT_SCALE | QKVO_BIAS, .lacks = 1ull << LAYER_WV,
     .usual_head_dim = 256, .usual_heads = 8, .usual_kv_heads = 4, .usual_vocab = 262144, .usual_base = 1e6,
     .usual_eps = 1e-6, .usual_ctx = 131072, .full_every = 6, .usual_window = 512,
     .traits = ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED | ARCH_WINDOWED | ARCH_KINDS,
     .form = {.activation = ACT_GELU_TANH, .local_base = 10000, .attention_scale = 1, .value_norms = true},
     .renames = gemma4_names, .experts = &gemma4_experts},
    {.gguf = "gemma4", .hf = "gemma4_unified_text", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_POST_NORMS | LAYER_QK_NORM, .may = 1ull << LAYER_WV | 1ull << LAYER_OUT_SCALE | QKVO_BIAS,
     .lacks = 1ull << LAYER_WV, .usual_head_dim = 256, .usual_heads = 8, .usual_kv_heads = 4, .usual_vocab = 262144,
     .usual_base = 1e6, .usual_eps = 1e-6, .usual_ctx = 262144, .full_every = 6, .usual_window = 1024,
     .traits = ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED | ARCH_WINDOWED | ARCH_KINDS,
     .form = {.activation = ACT_GELU_TANH, .local_base = 10000, .attention_scale = 1, .value_norms = true},
     .renames = gemma4_names},
    {.hf = "vaultgemma", .hf_rope = ROPE_HALVES, .usual_head_dim = 256, .usual_eps = 1e-6, .usual_ctx = 8192,
     .full_every = 2, .usual_window = 4096,
     .traits = ARCH_NORMS_LESS_ONE | ARCH_EMBEDDING_BY_WIDTH | ARCH_TIED | ARCH_WINDOWED,
     .form = {.activation = ACT_GELU_TANH}, .renames = vaultgemma_names},
    {.hf = "cwm", .hf_rope = ROPE_HALVES, .may = LAYER_GATED_MLP_BIAS, .usual_head_dim = 128,
     .usual_base = 1e6, .usual_eps = 1e-5, .usual_ctx = 131072, .full_every = 4, .usual_window = 8192,
     .traits = ARCH_WINDOWED | ARCH_FULL_FIRST},
    {.hf = "glm", .hf_rope = ROPE_ADJACENT, .may = LAYER_QKV_BIAS, .usual_eps = 1.5625e-7, .usual_ctx = 131072,
     .usual_part = 0.5, .hf_fused = {.gate_up = "mlp.gate_up_proj"}},
    {.hf = "helium", .hf_rope = ROPE_ADJACENT, .may = LAYER_QKV_BIAS | LAYER_GATED_MLP_BIAS,
     .usual_head_dim = 128, .usual_base = 1e5, .usual_eps = 1e-8, .usual_ctx = 4096},
    {.gguf = "llama", .hf = "internlm3", .may = QKVO_BIAS | LAYER_GATED_MLP_BIAS, .hf_rope = ROPE_HALVES,
     .usual_head_dim = 128, .usual_eps = 1e-5, .usual_ctx = 32768},
    {.gguf = "llama", .hf = "iquestcoder", .may = QKVO_BIAS | LAYER_GATED_MLP_BIAS,
     .hf_rope = ROPE_HALVES, .usual_head_dim = 128, .usual_eps = 1e-5, .usual_ctx = 131072},
    {.hf = "jais2", .hf_rope = ROPE_HALVES, .needs = LAYER_NORM_BIAS, .may = QKVO_BIAS | LAYER_MLP_BIAS,
     .lacks = LAYER_GATED, .usual_eps = 1e-5, .usual_ctx = 8192,
     .form = {.activation = ACT_RELU_SQUARED, .layer_norm = true}},
    {.hf = "hyperclovax", .hf_rope = ROPE_HALVES, .needs = LAYER_POST_NORMS,
     .may = QKVO_BIAS | LAYER_GATED_MLP_BIAS, .usual_eps = 1e-6, .renames = hyperclovax_names},
    {.hf = "flex_olmo", .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .may = QKVO_BIAS,
     .lacks = LAYER_PRE_NORMS, .usual_base = 5e5, .usual_eps = 1e-6, .usual_ctx = 4096, .form = {.whole_norms = true},
     .renames = olmo2_names, .experts = &qwen2_experts},
    {.gguf = "dots1", .hf = "dots1", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | 1ull << LAYER_CORRECTION, .may = QKVO_BIAS, .usual_eps = 1e-6,
     .traits = ARCH_WINDOWED | ARCH_WINDOWS_LATE, .experts = &glm4_experts},
    {.hf = "solar_open", .hf_rope = ROPE_HALVES,
     .needs = 1ull << LAYER_CORRECTION, .may = LAYER_QKV_BIAS, .usual_head_dim = 128, .usual_base = 1e6,
     .usual_eps = 1e-5, .usual_ctx = 131072, .ffn_by_width = 1, .experts = &glm4_experts},
    {.gguf = "phi3", .hf = "phi3", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .usual_eps = 1e-5,
     .usual_ctx = 4096,
     .traits = ARCH_WINDOWED, .hf_fused = {.qkv = "self_attn.qkv_proj", .gate_up = "mlp.gate_up_proj"},
     .gguf_fused = {.qkv = "attn_qkv", .gate_up = "ffn_up"}},
    {.gguf = "smollm3", .hf = "smollm3", .hf_rope = ROPE_HALVES, .usual_eps = 1e-6, .usual_ctx = 32768,
     .unrotated_every = 4,
     .traits = ARCH_TIED},
    {.gguf = "olmo", .hf = "olmo", .hf_rope = ROPE_HALVES, .lacks = LAYER_PRE_NORMS, .usual_eps = 1e-5,
     .traits = ARCH_NORMS_OF_ONES | ARCH_CLIPS, .form = {.layer_norm = true}},
    {.gguf = "olmo2", .hf = "olmo2", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS, .usual_eps = 1e-5,
     .traits = ARCH_WINDOWS_PLAIN, .form = {.whole_norms = true}, .renames = olmo2_names},
    {.hf = "olmo3", .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS,
     .usual_eps = 1e-5, .full_every = 4, .usual_window = 4096, .traits = ARCH_WINDOWED,
     .form = {.whole_norms = true, .local_base = 500000}, .renames = olmo2_names},
    {.gguf = "granite", .hf = "granite", .hf_rope = ROPE_HALVES, .may = QKVO_BIAS, .usual_eps = 1e-6,
     .traits = ARCH_LOGITS_DIVIDED},
    {.gguf = "granitehybrid", .hf = "granitemoehybrid", .hf_rope = ROPE_HALVES, .needs = LAYER_OF_RECURRENT,
     .may = QKVO_BIAS | LAYER_GATED_MLP_BIAS, .usual_eps = 1e-6, .attention_every = UINT32_MAX, .traits = ARCH_LOGITS_DIVIDED,
     .form = {.recurrent = {.kind = RECURRENCE_MAMBA}}, .renames = granite_hybrid_names,
     .hf_fused = {.gate_up = "shared_mlp.input_linear", .recurrent = "mamba.in_proj"},
     .gguf_fused = {.recurrent = "ssm_in"}, .experts = &granite_shared_experts},
    {.hf = "olmo_hybrid", .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM | LAYER_POST_NORMS | LAYER_OF_RECURRENT,
     .may = QKVO_BIAS, .usual_eps = 1e-6, .usual_ctx = 65536, .attention_every = 4, .traits = ARCH_NORMS_BY_KIND,
     .form = {.whole_norms = true, .recurrent = {.norm_eps = 1e-5f}}, .renames = olmo_hybrid_names},
    {.gguf = "granitehybrid", .hf = "bamba", .hf_rope = ROPE_HALVES, .needs = LAYER_OF_RECURRENT,
     .may = QKVO_BIAS | LAYER_GATED_MLP_BIAS, .usual_eps = 1e-5, .usual_ctx = 262144, .usual_part = 0.5, .attention_every = UINT32_MAX,
     .form = {.recurrent = {.kind = RECURRENCE_MAMBA}}, .renames = bamba_names, .hf_names = &phi_ends,
     .hf_fused = {.recurrent = "mamba.in_proj"}},
    {.gguf = "glm4", .hf = "glm4", .hf_rope = ROPE_ADJACENT, .needs = LAYER_POST_NORMS, .may = LAYER_QKV_BIAS,
     .usual_eps = 1.5625e-7, .usual_ctx = 131072, .usual_part = 0.5, .renames = glm4_names, .hf_fused = {.gate_up = "mlp.gate_up_proj"},
     .gguf_fused = {.gate_up = "ffn_up"}},
    {.gguf = "command-r", .hf = "cohere", .hf_rope = ROPE_ADJACENT, .lacks = 1ull << LAYER_FFN_NORM, .usual_eps = 1e-5,
     .usual_ctx = 8192,
     .traits = ARCH_TIED, .form = {.layer_norm = true, .parallel = true}},
    {.gguf = "cohere2", .hf = "cohere2", .hf_rope = ROPE_ADJACENT, .lacks = 1ull << LAYER_FFN_NORM, .usual_eps = 1e-5,
     .usual_ctx = 8192,
     .full_every = 4, .usual_window = 4096, .traits = ARCH_TIED | ARCH_WINDOWED | ARCH_WINDOWS_ROTATE,
     .form = {.layer_norm = true, .parallel = true}},
    {.gguf = "starcoder2", .hf = "starcoder2", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_NORM_BIAS, .may = QKVO_BIAS | LAYER_MLP_BIAS, .lacks = LAYER_GATED, .usual_eps = 1e-5,
     .usual_ctx = 4096,
     .traits = ARCH_WINDOWED | ARCH_TIED, .form = {.activation = ACT_GELU_TANH, .layer_norm = true},
     .renames = starcoder2_names},
    {.gguf = "phi2", .hf = "phi", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = QKVO_BIAS | LAYER_MLP_BIAS | 1ull << LAYER_ATTN_NORM_B, .lacks = LAYER_GATED | 1ull << LAYER_FFN_NORM,
     .usual_eps = 1e-5, .usual_part = 0.5, .form = {.activation = ACT_GELU_TANH, .layer_norm = true, .parallel = true},
     .renames = phi_names, .hf_names = &phi_ends, .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "gptneox", .hf = "gpt_neox", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = QKVO_BIAS | LAYER_MLP_BIAS | LAYER_NORM_BIAS, .lacks = LAYER_GATED, .usual_eps = 1e-5,
     .usual_part = 0.25, .form = {.activation = ACT_GELU, .layer_norm = true, .parallel = true}, .renames = neox_names,
     .hf_names = &neox_ends, .hf_fused = {.qkv = "attention.query_key_value", .by_group = true},
     .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "stablelm", .hf = "stablelm", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_NORM_BIAS,
     .may = LAYER_QKV_BIAS, .usual_eps = 1e-5, .usual_ctx = 4096, .usual_part = 0.25, .form = {.layer_norm = true}},
    {.gguf = "nemotron", .hf = "nemotron", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_NORM_BIAS,
     .may = QKVO_BIAS | LAYER_MLP_BIAS, .lacks = LAYER_GATED, .usual_eps = 1e-5, .usual_ctx = 4096, .usual_part = 0.5,
     .traits = ARCH_NORMS_LESS_ONE, .form = {.activation = ACT_RELU_SQUARED, .layer_norm = true}},
    {.gguf = "arcee", .hf = "arcee", .hf_rope = ROPE_HALVES, .lacks = LAYER_GATED, .usual_eps = 1e-5, .usual_ctx = 4096,
     .form = {.activation = ACT_RELU_SQUARED}},
    {.gguf = "seed_oss", .hf = "seed_oss", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .gguf_renames = seed_gguf_names, .may = QKVO_BIAS | LAYER_MLP_BIAS, .usual_head_dim = 128, .usual_eps = 1e-6,
     .usual_ctx = 524288},
    {.gguf = "ernie4_5", .hf = "ernie4_5", .hf_rope = ROPE_ADJACENT, .usual_head_dim = 128, .usual_eps = 1e-5,
     .usual_ctx = 131072,
     .traits = ARCH_TIED},
    {.gguf = "gpt2", .hf = "gpt2", .needs = QKVO_BIAS | LAYER_MLP_BIAS | LAYER_NORM_BIAS, .lacks = LAYER_GATED,
     .usual_eps = 1e-5, .usual_ctx = 1024, .ffn_by_width = 4, .traits = ARCH_LEARNED | ARCH_COLUMNS | ARCH_TIED,
     .form = {.activation = ACT_GELU_TANH, .layer_norm = true}, .renames = gpt2_names, .hf_names = &gpt2_ends,
     .hf_fused = {.qkv = "attn.c_attn"}, .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "starcoder", .hf = "gpt_bigcode", .needs = QKVO_BIAS | LAYER_MLP_BIAS | LAYER_NORM_BIAS,
     .lacks = LAYER_GATED, .usual_eps = 1e-5, .usual_ctx = 1024, .ffn_by_width = 4,
     .traits = ARCH_LEARNED | ARCH_MULTI_QUERY | ARCH_TIED, .form = {.activation = ACT_GELU_TANH, .layer_norm = true},
     .renames = gpt2_names, .hf_names = &gpt2_ends, .hf_fused = {.qkv = "attn.c_attn", .by_group = true},
     .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "falcon", .hf = "falcon", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = 1ull << LAYER_ATTN_NORM_B, .lacks = LAYER_GATED | 1ull << LAYER_FFN_NORM,
     .may = QKVO_BIAS | LAYER_MLP_BIAS | 1ull << LAYER_FFN_NORM | 1ull << LAYER_FFN_NORM_B, .usual_eps = 1e-5,
     .ffn_by_width = 4, .traits = ARCH_MULTI_QUERY | ARCH_TIED,
     .form = {.activation = ACT_GELU, .layer_norm = true, .parallel = true}, .renames = falcon_names,
     .gguf_renames = falcon_gguf_names, .hf_names = &falcon_ends,
     .hf_fused = {.qkv = "self_attention.query_key_value", .by_group = true}, .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "apertus", .hf = "apertus", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM,
     .may = QKVO_BIAS, .lacks = LAYER_GATED, .usual_eps = 1e-5, .usual_ctx = 65536, .form = {.activation = ACT_XIELU},
     .renames = apertus_names},
    {.gguf = "mistral3", .hf = "ministral3", .hf_rope = ROPE_HALVES, .usual_head_dim = 128, .usual_eps = 1e-5,
     .usual_ctx = 262144,
     .traits = ARCH_WINDOWED},
    {.hf = "ministral", .hf_rope = ROPE_HALVES, .usual_eps = 1e-6, .usual_ctx = 131072, .usual_window = 4096,
     .traits = ARCH_WINDOWED},
    {.gguf = "hunyuan-dense", .hf = "hunyuan_v1_dense", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM, .usual_eps = 1e-5,
     .form = {.late_norms = true}, .renames = hunyuan_names},
    {.gguf = "exaone4", .hf = "exaone4", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS, .usual_eps = 1e-5, .full_every = 4,
     .traits = ARCH_WINDOWED | ARCH_WINDOWS_ROTATE, .renames = olmo2_names},
    {.gguf = "llama", .hf = "mixtral", .hf_rope = ROPE_HALVES, .usual_eps = 1e-5, .usual_ctx = 131072, .traits = ARCH_WINDOWED,
     .renames = mixtral_names, .experts = &mixtral_experts},
    {.gguf = "qwen2moe", .hf = "qwen2_moe", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = 1ull << LAYER_SHARED_MIX, .may = LAYER_QKV_BIAS, .usual_eps = 1e-6, .usual_ctx = 32768, .traits = ARCH_WINDOWS_ODD,
     .experts = &qwen2_experts},
    {.gguf = "qwen3moe", .hf = "qwen3_moe", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM,
     .may = LAYER_QKV_BIAS, .usual_eps = 1e-6, .usual_ctx = 32768, .experts = &qwen3_experts},
    {.gguf = "qwen3next", .hf = "qwen3_next", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT | 1ull << LAYER_SHARED_MIX, .usual_head_dim = 256, .usual_eps = 1e-6,
     .usual_ctx = 32768, .usual_part = 0.25, .attention_every = 4,
     .traits = ARCH_NORMS_LESS_ONE | ARCH_LOOKS_AHEAD | ARCH_NO_MLP, .form = {.output_gate = true},
     .gguf_renames = seed_gguf_names,
     .hf_fused = {.qkvz = "linear_attn.in_proj_qkvz", .ba = "linear_attn.in_proj_ba"},
     .gguf_fused = {.qkvz = "ssm_in", .ba = "ssm_ba"}, .experts = &qwen3_next_experts},
    {.gguf = "qwen35", .hf = "qwen3_5_text", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT, .usual_head_dim = 256, .usual_eps = 1e-6, .usual_ctx = 32768,
     .usual_part = 0.25, .attention_every = 4, .traits = ARCH_NORMS_LESS_ONE | ARCH_LOOKS_AHEAD | ARCH_RECURRENT_TILED,
     .form = {.output_gate = true}, .gguf_renames = seed_gguf_names},
    {.gguf = "qwen35moe", .hf = "qwen3_5_moe_text", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT | 1ull << LAYER_SHARED_MIX, .usual_head_dim = 256, .usual_eps = 1e-6,
     .usual_ctx = 32768, .usual_part = 0.25, .attention_every = 4,
     .traits = ARCH_NORMS_LESS_ONE | ARCH_LOOKS_AHEAD | ARCH_NO_MLP | ARCH_RECURRENT_TILED, .form = {.output_gate = true},
     .gguf_renames = seed_gguf_names, .experts = &qwen35_experts},
    {.gguf = "olmoe", .hf = "olmoe", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_QK_NORM,
     .may = QKVO_BIAS, .usual_eps = 1e-5, .usual_ctx = 4096, .traits = ARCH_CLIPS, .form = {.whole_norms = true},
     .experts = &qwen2_experts},
    {.gguf = "granitemoe", .hf = "granitemoe", .hf_rope = ROPE_HALVES, .may = QKVO_BIAS, .usual_eps = 1e-6,
     .traits = ARCH_LOGITS_DIVIDED, .renames = granitemoe_names, .experts = &granite_experts},
    {.gguf = "granitemoe", .hf = "granitemoeshared", .hf_rope = ROPE_HALVES, .may = QKVO_BIAS, .usual_eps = 1e-6,
     .traits = ARCH_LOGITS_DIVIDED, .renames = granitemoe_names, .experts = &granite_shared_experts},
    {.gguf = "phimoe", .hf = "phimoe", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .needs = LAYER_NORM_BIAS,
     .may = QKVO_BIAS, .usual_base = 1e6, .usual_eps = 1e-5, .usual_ctx = 131072, .traits = ARCH_WINDOWED,
     .form = {.layer_norm = true}, .renames = phimoe_names, .experts = &phimoe_experts},
    {.gguf = "dbrx", .hf = "dbrx", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES, .usual_kv_heads = 1,
     .usual_eps = 1e-5, .usual_ctx = 2048, .traits = ARCH_CLIPS, .form = {.layer_norm = true}, .renames = dbrx_names,
     .gguf_renames = dbrx_gguf_names, .hf_names = &mpt_ends, .hf_fused = {.qkv = "norm_attn_norm.attn.Wqkv"},
     .gguf_fused = {.qkv = "attn_qkv"}, .experts = &dbrx_experts},
    {.gguf = "lfm2", .hf = "lfm2", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT, .usual_base = 1e6, .usual_eps = 1e-5, .usual_ctx = 128000,
     .attention_every = 1, .traits = ARCH_TIED, .form = {.recurrent = {.kind = RECURRENCE_CONV}},
     .renames = lfm2_names, .gguf_renames = lfm2_gguf_names, .hf_names = &lfm2_ends,
     .gguf_final_norm = "token_embd_norm.weight",
     .hf_fused = {.recurrent = "conv.in_proj"}, .gguf_fused = {.recurrent = "shortconv.in_proj"}},
    {.gguf = "lfm2moe", .hf = "lfm2_moe", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = LAYER_QK_NORM | LAYER_OF_RECURRENT, .may = 1ull << LAYER_CORRECTION, .usual_base = 1e6, .usual_eps = 1e-5,
     .usual_ctx = 128000, .attention_every = 1, .traits = ARCH_TIED, .form = {.recurrent = {.kind = RECURRENCE_CONV}},
     .renames = lfm2_names, .gguf_renames = lfm2_gguf_names, .hf_names = &lfm2_ends,
     .gguf_final_norm = "token_embd_norm.weight",
     .hf_fused = {.recurrent = "conv.in_proj"}, .gguf_fused = {.recurrent = "shortconv.in_proj"},
     .experts = &lfm2_experts},
    {.gguf = "bloom", .hf = "bloom", .needs = QKVO_BIAS | LAYER_MLP_BIAS | LAYER_NORM_BIAS, .lacks = LAYER_GATED,
     .usual_eps = 1e-5, .usual_ctx = 2048, .ffn_by_width = 4, .traits = ARCH_USES_ALIBI | ARCH_EMBEDDING_NORM | ARCH_TIED,
     .form = {.activation = ACT_GELU_TANH, .layer_norm = true, .alibi = {.most = 8}}, .renames = falcon_names,
     .hf_names = &bloom_ends, .hf_fused = {.qkv = "self_attention.query_key_value", .by_group = true},
     .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "mpt", .hf = "mpt", .lacks = LAYER_GATED, .usual_eps = 1e-5, .usual_ctx = 2048, .ffn_by_width = 4,
     .traits = ARCH_USES_ALIBI | ARCH_CLIPS | ARCH_TIED,
     .form = {.activation = ACT_GELU, .layer_norm = true, .alibi = {.most = 8}}, .renames = mpt_names,
     .hf_names = &mpt_ends, .hf_fused = {.qkv = "attn.Wqkv"}, .gguf_fused = {.qkv = "attn_qkv"}},
    {.gguf = "gpt-oss", .hf = "gpt_oss", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = QKVO_BIAS | 1ull << LAYER_SINKS | 1ull << LAYER_BROUTER, .usual_head_dim = 64, .usual_eps = 1e-5,
     .usual_ctx = 131072, .full_every = 2, .usual_window = 128, .traits = ARCH_WINDOWED | ARCH_YARN_IN_PART,
     .form = {.activation = ACT_SWIGLU_CLAMPED}, .renames = gpt_oss_names, .gguf_renames = seed_gguf_names,
     .experts = &gpt_oss_experts},
    {.gguf = "glm4moe", .hf = "glm4_moe", .gguf_rope = ROPE_HALVES, .hf_rope = ROPE_HALVES,
     .needs = 1ull << LAYER_CORRECTION, .may = LAYER_QKV_BIAS | LAYER_QK_NORM, .usual_eps = 1e-5, .usual_ctx = 131072,
     .usual_part = 0.5, .traits = ARCH_LOOKS_AHEAD, .gguf_renames = seed_gguf_names, .experts = &glm4_experts},
    {.gguf = "ernie4_5-moe", .hf = "ernie4_5_moe", .hf_rope = ROPE_ADJACENT, .may = 1ull << LAYER_CORRECTION,
     .usual_eps = 1e-5, .usual_ctx = 131072, .traits = ARCH_TIED | ARCH_LOOKS_AHEAD, .renames = ernie_moe_names,
     .experts = &ernie_experts},
};
/* clang-format on */

#define N_ARCHITECTURES (sizeof architectures / sizeof architectures[0])

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

const struct arch *
arch_of_gguf(const char *path, struct slice name, struct err *err)
{
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (architectures[i].gguf != NULL && slice_is(name, architectures[i].gguf))
            return &architectures[i];
    arch_unsupported(path, name, err);
    return NULL;
}

const struct arch *
arch_of_hf(const char *path, const char *model_type, struct err *err)
{
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (strcmp(architectures[i].hf, model_type) == 0)
            return &architectures[i];
    arch_unsupported(path, slice_of(model_type), err);
    return NULL;
}
