/* Suffix decoding (docs/policies/ngram.md): drafts the most frequent continuation of the text's longest suffix that
 * occurs earlier; the longer the match and the more frequent the continuation, the longer the draft. It needs no
 * model. */
#include "engine/events/policy.h"
#include "policies/engine_commands.h"
#include "policies/lookup.h"

enum { KNOB_DEPTH, KNOB_FACTOR, KNOB_K, KNOB_PROBABILITY, KNOB_NODES };

static bool
suffix_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "depth", "D", 1, 64, 1, 24, "last tokens to look for, at most") &&
           policy_number(p, "spec_factor", "α", 0.25, 8, 0.25, 1, "drafts for each token of the match, at most") &&
           policy_number(p, "k", "K", 1, LOOKUP_NODES, 1, 16, "tokens drafted in a row, at most") &&
           policy_number(p, "min_prob", "p_min", 0, 1, 0.05, 0.1, "probability of a draft's path, at least") &&
           policy_number(p, "nodes", "nodes", 0, LOOKUP_NODES, 1, 0, "drafts of a round's tree; up to K: a chain") &&
           policy_series(p, "match", "tokens that match", SERIES_LINE, 1, 1);
}

static struct lookup_rule
rule_of(const double *value)
{
    const uint32_t k = (uint32_t)value[KNOB_K], nodes = (uint32_t)value[KNOB_NODES];
    return (struct lookup_rule){.least = 1,
                                .most = (uint32_t)value[KNOB_DEPTH],
                                .per_match = value[KNOB_FACTOR],
                                .depth = k,
                                .nodes = nodes > k ? nodes : k,
                                .probability = value[KNOB_PROBABILITY],
                                .full = "k",
                                .full_match = "spec_factor",
                                .full_tree = "nodes"};
}

static bool
suffix_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return lookup_draft(p, r, n, rule_of);
}

static bool
suffix_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    return lookup_what_if(record, rule_of(value), out);
}

const struct policy_ops policy_suffix = {
    .name = "suffix",
    .title = "suffix decoding",
    .paper = "Oliaro et al. 2024, arXiv:2411.04975",
    .open = suffix_open,
    .length = "k",
    .draft = suffix_draft,
    .what_if = suffix_what_if,
    .command[ENGINE_VLLM] =
        VLLM " --speculative-config '{\"method\": \"suffix\", \"num_speculative_tokens\": <k>,"
             " \"suffix_decoding_max_tree_depth\": <depth+k>, \"suffix_decoding_max_spec_factor\": <spec_factor>,"
             " \"suffix_decoding_min_token_prob\": <min_prob>, \"suffix_decoding_max_cached_requests\": 0<rates:k>}'",
    .no_command = "its drafts from earlier text have neither spec_factor nor min_prob; see ngram",
};
