/* Prompt lookup (docs/policies/ngram.md): drafts the tokens after an earlier occurrence of the
 * text's last tokens. It needs no model, and its drafts cost no time. */
#include "engine/events/policy.h"
#include "policies/engine_commands.h"
#include "policies/lookup.h"

static bool
ngram_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return lookup_ngram_open(p, 2, "k", "K", "tokens drafted a round, at most");
}

static bool
ngram_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return lookup_draft(p, r, n, lookup_ngram);
}

static bool
ngram_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return lookup_what_if(record, lookup_ngram(value), out);
}

const struct policy_ops policy_ngram = {
    .name = "ngram",
    .title = "n-grams: prompt lookup",
    .paper = "Saxena 2023, prompt-lookup-decoding",
    .open = ngram_open,
    .length = "k",
    .draft = ngram_draft,
    .what_if = ngram_what_if,
    .command[ENGINE_LLAMA_CPP] = LLAMA
    " --spec-type ngram-simple --spec-ngram-simple-size-n <n_min> --spec-ngram-simple-size-m <k><rates:k><sampling>",
    .command[ENGINE_VLLM] = VLLM " --speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": <k>, "
                                 "\"prompt_lookup_max\": <n_max>, \"prompt_lookup_min\": <n_min><rates:k>}'",
    .command[ENGINE_SGLANG] = SGLANG " --speculative-algorithm NGRAM --speculative-num-draft-tokens <k+1> "
                                     "--speculative-ngram-min-bfs-breadth 1 --speculative-ngram-max-bfs-breadth 1 "
                                     "--speculative-ngram-match-type BFS --speculative-ngram-max-trie-depth <n_max+k>",
    .command[ENGINE_TRANSFORMERS] =
        LOAD "model.generate(**inputs, prompt_lookup_num_tokens=<k>, max_matching_ngram_size=<n_max><sampling>)",
};
