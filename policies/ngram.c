/* Prompt lookup (docs/policies/ngram.md): drafts the tokens after an earlier occurrence of the
 * text's last tokens. It needs no model, and its drafts cost no time. */
#include "policies/lookup.h"
#include "policies/policy.h"

enum { KNOB_MOST, KNOB_LEAST, KNOB_K, KNOB_MATCH };

static const char *const matches[] = {"recent", "frequent", NULL};

static bool
ngram_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "n_max", "n_max", 1, 32, 1, 4, "last tokens to look for, at most") &&
           policy_number(p, "n_min", "n_min", 1, 32, 1, 2, "last tokens to look for, at least") &&
           policy_number(p, "k", "K", 1, LOOKUP_NODES, 1, 8, "tokens drafted a round, at most") &&
           policy_choice(p, "match", "match", matches, 0, "occurrence: the latest, or the usual continuation") &&
           policy_series(p, "match", "tokens that match", SERIES_LINE, 1, 1);
}

static struct lookup_rule
rule_of(const double *value)
{
    return lookup_ngram((uint32_t)value[KNOB_LEAST], (uint32_t)value[KNOB_MOST], (uint32_t)value[KNOB_K],
                        value[KNOB_MATCH] < 1);
}

static bool
ngram_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return lookup_draft(p, r, n, rule_of);
}

static bool
ngram_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    const struct lookup_rule rule = rule_of(value);
    lookup_what_if(record, &rule, out);
    return true;
}

extern const struct policy_ops policy_ngram;
const struct policy_ops policy_ngram = {
    .name = "ngram",
    .title = "n-grams: prompt lookup",
    .paper = "Saxena 2023, prompt-lookup-decoding",
    .open = ngram_open,
    .draft = ngram_draft,
    .what_if = ngram_what_if,
};
