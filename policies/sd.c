/* Speculative decoding with a draft model (docs/policies/sd.md): a fixed number of tokens K, from a
 * model of its own or from the target's own first layers. */
#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/engine_commands.h"

enum { KNOB_K };

static bool
sd_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, 32, 1, 5, "tokens drafted a round");
}

static bool
sd_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return chain_draft_aux(r, n, AUX_DRAFT, (uint32_t)p[0]->value[KNOB_K]);
}

static bool
sd_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return chain_what_if_aux(record, AUX_DRAFT, (uint32_t)value[KNOB_K], out);
}

const struct policy_ops policy_sd = {
    .name = "sd",
    .title = "speculative decoding with a draft model",
    .paper = "Leviathan et al. 2023, arXiv:2211.17192",
    .needs = NEEDS(AUX_DRAFT),
    .open = sd_open,
    .draft_vocab = KNOB_K + 1,
    .length = "k",
    .draft = sd_draft,
    .what_if = sd_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA " --spec-type draft-simple --spec-draft-model <draft> --spec-draft-n-max <k> "
                                       "--spec-draft-n-min 0 --spec-draft-p-min 0<rates:k><sampling>",
    .command[ENGINE_VLLM] = VLLM " --speculative-config '{\"method\": \"draft_model\", \"model\": <draft:json>, "
                                 "\"num_speculative_tokens\": <k>" VLLM_SAMPLES "<rates:k>}'",
    .command[ENGINE_SGLANG] =
        SGLANG " --speculative-algorithm STANDALONE --speculative-draft-model-path <draft> --speculative-num-steps <k> "
               "--speculative-eagle-topk 1 --speculative-num-draft-tokens <k+1>",
    .command[ENGINE_TRANSFORMERS] =
        LOAD_BOTH DRAFTS("draft", "<k>", "constant", "0") "model.generate(**inputs, assistant_model=draft<sampling>)",
};
