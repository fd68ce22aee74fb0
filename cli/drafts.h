/* Draft models of tune and score --drafts: the models of a place whose vocabulary matches the target's. */
#pragma once

#include "engine/session/engine.h"
#include "engine/tune/tuner.h"

#define DRAFTS_MOST TUNE_DRAFTS

/* Why a model is not raced, in the order of the checks. */
enum draft_skipped {
    DRAFT_UNREADABLE, /* it is damaged or of an unknown kind */
    DRAFT_FEATURES,   /* an EAGLE-3 head or a block drafter: only --draft takes it */
    DRAFT_VOCABULARY, /* it differs from the target's */
    DRAFT_TOO_LARGE,  /* it is not smaller than the target */
    DRAFT_REPEATED,   /* it is the engine's own draft model, or one of the others */
    DRAFT_TOO_MANY,
    DRAFT_NO_ROOM, /* it does not fit into memory, or the backend refuses it */
    DRAFT_REASONS
};

struct drafts {
    struct draft {
        char name[512]; /* for --draft */
        char label[64]; /* the end of the name, printable */
        struct engine_draft reserve;
    } draft[DRAFTS_MOST];
    uint32_t n, skipped[DRAFT_REASONS];
};

/* Opens the draft models at a place (model_place_list(); NULL: none) for an engine whose weights are not repacked yet,
 * repacks all, and prints how many models are draft models and how many are not, for which reasons. Fails if the place
 * does not exist or cannot be read. */
bool drafts_open(struct drafts *, struct engine *, const char *place, struct err *);
void drafts_close(struct drafts *, struct engine *);
