/* Parts of the commands of other engines that do the same as a policy (struct policy_ops). engine/tune/engine_flags.c
 * describes the placeholders, and lists the sources in which the options were read. docs/engines.md explains how the
 * engines differ. */
#pragma once

#define LLAMA     "llama-server -m <target>"
#define VLLM      "vllm serve <target><sampling>"
#define SGLANG    "<rates:k>python3 -m sglang.launch_server --model-path <target>"
#define LOAD      "model = AutoModelForCausalLM.from_pretrained(<target:py>)\n"
#define LOAD_BOTH LOAD "draft = AutoModelForCausalLM.from_pretrained(<draft:py>)\n"
#define DRAFTS(model, length, schedule, threshold)                                                                     \
    model ".generation_config.update(num_assistant_tokens=" length ", num_assistant_tokens_schedule='" schedule        \
          "', assistant_confidence_threshold=" threshold ")\n"
/* vLLM and SGLang draft the likeliest token without these, also when sampling. */
#define VLLM_SAMPLES   "<sampled:, \"draft_sample_method\": \"probabilistic\">"
#define SGLANG_SAMPLES "<chain-sampled: --speculative-use-rejection-sampling>"
#define EXIT           "model.generate(**inputs, assistant_early_exit=<exit_layer><sampling>)"
