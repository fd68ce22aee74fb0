/* Autoregressive decoding: no drafts, and one row through all layers for each token. All speedups are relative to
 * it. */
#include "engine/events/policy.h"
#include "policies/engine_commands.h"
#include "policies/what_if.h"

static bool
ar_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    (void)p, (void)r, (void)n;
    return true;
}

static bool
ar_what_if(const struct layer_record *record, const double *values, struct tally *out)
{
    struct what_if w;
    (void)values;
    what_if_begin(&w, record, out);
    while (what_if_round(&w))
        what_if_verify(&w);
    return true;
}

const struct policy_ops policy_ar = {
    .name = POLICY_BASELINE,
    .title = "autoregressive",
    .paper = "",
    .draft = ar_draft,
    .what_if = ar_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA "<sampling>",
    .command[ENGINE_VLLM] = VLLM,
    .command[ENGINE_SGLANG] = "python3 -m sglang.launch_server --model-path <target>",
    .command[ENGINE_TRANSFORMERS] = LOAD "model.generate(**inputs<sampling>)",
};
