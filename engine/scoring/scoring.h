/* Scores all drafters of an engine on finished texts: reads the texts (reading.h), adds up simulated rounds
 * (engine/tune/score.h), and reports. `specscope score`, `tune --texts` and `:score` use it. */
#pragma once

#include "engine/scoring/texts.h"
#include "engine/session/engine.h"
#include "engine/session/prompt.h"
#include "engine/session/session.h"
#include "engine/tune/score_report.h"

struct scoring_options {
    const struct policy_ops *const *registry; /* NULL-terminated */
    const char *const *policies;              /* (n_policies) names; none: all that can be scored */
    size_t n_policies;
    const struct knob_setting *set; /* (n_set) knobs of a further setting of each named policy, which is scored, too */
    size_t n_set;
    const struct engine_draft *drafts; /* (n_drafts) further draft models, and */
    const char *const *draft_names;    /* (n_drafts) their names; borrowed */
    uint32_t n_drafts;
    struct chat_setting chat; /* messages go through the model's chat template if it has one */
    uint32_t ctx;             /* 0: the model's own */
    double time_s;            /* ends after this time; 0: no limit */
    const char *texts;        /* the file's name, for the report */
    const atomic_bool *cancel;
    /* Called after each conversation, from this thread; the report is valid during the call. Returns false to stop. May
     * be NULL. */
    bool (*done)(void *user, const struct score_report *);
    void *user;
};

/* The caller frees *out. If it is stopped, the report is about the conversations before; it fails with ERR_CANCELLED if
 * there are none. Sessions of the engine must rest. Changes the order of the texts. */
bool scoring_run(struct engine *, const struct texts *, const struct scoring_options *, struct score_report **out,
                 struct err *);
