/* tune --texts: the prompts of one half of the conversations are raced, by the settings that score best on the other
 * half. */
#pragma once

#include "cli/drafts.h"
#include "cli/options/files.h"
#include "cli/options/options.h"
#include "engine/scoring/texts.h"
#include "engine/tune/candidates.h"

struct tune_texts {
    struct texts all;
    size_t prompts;                          /* of these, conversations whose prompts are raced: the first ones */
    struct candidate given[CANDIDATES_MOST]; /* (n) for struct tune_request */
    uint32_t n;
};

/* Reads the file, and appends prompts to the list, which is empty; with --prompts it has them already, and all texts
 * are scored. */
bool tune_texts_read(struct tune_texts *, const struct options *, struct prompt_list *, struct err *);
/* Scores the other conversations, in a quarter of o->time_s at most, of which it takes the time. */
bool tune_texts_score(struct tune_texts *, struct options *, struct engine *, const struct drafts *, struct err *);
void tune_texts_free(struct tune_texts *);
