/* A rank of two drafters: n-grams where they match, else a draft model (docs/policies/ngram.md). A round
 * has the drafts of one of them. */
#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/engine_commands.h"
#include "policies/lookup.h"

enum { KNOB_K = LOOKUP_NGRAM_KNOBS };

static bool
ngram_sd_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return lookup_ngram_open(p, 3, "copied", "copied", "tokens copied a round, at most") &&
           policy_number(p, "k", "K", 1, 32, 1, 5, "tokens drafted a round without a match");
}

static bool
ngram_sd_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct round *rest[ROUNDS_MOST];
    uint32_t left = 0;
    if (!lookup_draft(p, r, n, lookup_ngram))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (round_drafted(r[i]) == 0)
            rest[left++] = r[i];
    return left == 0 || chain_draft_aux(rest, left, AUX_DRAFT, (uint32_t)p[0]->value[KNOB_K]);
}

static bool
ngram_sd_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    const struct lookup_rule rule = lookup_ngram(value);
    struct what_if w;
    what_if_begin(&w, record, out);
    while (record->draft.known && what_if_round(&w)) {
        lookup_what_if_round(&w, &rule);
        if (w.drafted == 0)
            chain_what_if_drafted(&w, (uint32_t)value[KNOB_K]);
        what_if_verify(&w);
    }
    return true;
}

const struct policy_ops policy_ngram_sd = {
    .name = "ngram+sd",
    .title = "n-grams, else a draft model",
    .paper = "as llama.cpp's --spec-type ngram-simple,draft-simple",
    .needs = NEEDS(AUX_DRAFT),
    .open = ngram_sd_open,
    .draft_vocab = KNOB_K + 1,
    .length = "k",
    .draft = ngram_sd_draft,
    .what_if = ngram_sd_what_if,
    .command[ENGINE_LLAMA_CPP] =
        LLAMA " --spec-type ngram-simple,draft-simple --spec-ngram-simple-size-n <n_min> --spec-ngram-simple-size-m "
              "<copied> --spec-draft-model <draft> --spec-draft-n-max <k> --spec-draft-n-min 0 --spec-draft-p-min "
              "0<rates:copied|k><sampling>",
    .no_command = "it has one drafter at a time; see ngram and sd",
};
